//! What Unix systems have in common.

use std::fs::Metadata;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::fs::MetadataExt;
use std::os::unix::net::UnixDatagram;
use std::path::Path;

use tokio::net::UnixStream;
use tokio_postgres::config::Host;

use crate::connect::Socket;

/// Datagrams within this process.
pub(crate) type LocalDatagrams = UnixDatagram;

pub(crate) fn local_datagrams() -> io::Result<(LocalDatagrams, LocalDatagrams)> {
    UnixDatagram::pair()
}

pub(crate) fn others_can_read(found: &Metadata) -> bool {
    found.mode() & 0o077 != 0
}

/// Whether this is a folder that only this user can access.
pub(crate) fn is_private(found: &Metadata) -> bool {
    found.is_dir() && found.uid() == rustix::process::geteuid().as_raw() && !others_can_read(found)
}

/// The name of a host, or the folder of its socket.
pub(crate) fn host_text(host: &Host) -> String {
    match host {
        Host::Tcp(name) => name.clone(),
        Host::Unix(folder) => folder.display().to_string(),
    }
}

/// The folder of the server's socket, if it is reached by one.
pub(crate) fn socket_folder(host: &Host) -> Option<&Path> {
    match host {
        Host::Tcp(_) => None,
        Host::Unix(folder) => Some(folder),
    }
}

pub(crate) async fn connect_to_socket(path: &Path) -> io::Result<(Box<dyn Socket>, OwnedFd)> {
    let stream = UnixStream::connect(path).await?;
    let socket = stream.as_fd().try_clone_to_owned()?;
    Ok((Box::new(stream), socket))
}
