//! Windows: a server is reached by TCP only.

use std::fs::Metadata;
use std::io;
use std::net::{Ipv4Addr, UdpSocket};
use std::path::Path;

use rustix::fd::OwnedFd;
use tokio_postgres::config::Host;

use crate::connect::Socket;

/// Datagrams within this process.
pub(crate) type LocalDatagrams = UdpSocket;

/// Connected, so that datagrams of other programs are not received.
pub(crate) fn local_datagrams() -> io::Result<(LocalDatagrams, LocalDatagrams)> {
    let (one, other) =
        (UdpSocket::bind((Ipv4Addr::LOCALHOST, 0))?, UdpSocket::bind((Ipv4Addr::LOCALHOST, 0))?);
    one.connect(other.local_addr()?)?;
    other.connect(one.local_addr()?)?;
    Ok((one, other))
}

/// The permission to read a file is inherited from its folder.
pub(crate) fn others_can_read(_found: &Metadata) -> bool {
    false
}

/// The permission to use a folder is inherited.
pub(crate) fn is_private(found: &Metadata) -> bool {
    found.is_dir()
}

pub(crate) fn host_text(host: &Host) -> String {
    let Host::Tcp(name) = host;
    name.clone()
}

pub(crate) fn socket_folder(_host: &Host) -> Option<&Path> {
    None
}

#[expect(clippy::unused_async, reason = "the same signature as on Unix")]
pub(crate) async fn connect_to_socket(_path: &Path) -> io::Result<(Box<dyn Socket>, OwnedFd)> {
    Err(io::ErrorKind::Unsupported.into())
}
