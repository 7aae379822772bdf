//! Doorbells: a Unix datagram to a waiting process.
//!
//! A ring is only a hint. A process that receives it runs its transaction again; one that misses it polls.

use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::os::unix::net::UnixDatagram;
use std::path::{Path, PathBuf};

/// A socket of this process that other processes can ring.
#[derive(Debug)]
pub struct Doorbell {
    socket: UnixDatagram,
    path: PathBuf,
}

impl Doorbell {
    /// Binds a socket with the given name. If that fails (no space, no permission), the caller polls instead.
    pub fn bind(folder: &Path, name: &str) -> io::Result<Self> {
        private_folder(folder)?;
        let path = folder.join(name);
        let socket = UnixDatagram::bind(&path)?;
        socket.set_nonblocking(true)?;
        Ok(Self { socket, path })
    }

    pub fn address(&self) -> String {
        self.path.to_string_lossy().into_owned()
    }

    /// Readable when the doorbell was rung.
    pub fn fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }

    /// Discards the rings that have arrived, so that the next wait blocks.
    pub fn silence(&self) {
        let mut byte = [0];
        while self.socket.recv(&mut byte).is_ok() {}
    }
}

impl Drop for Doorbell {
    fn drop(&mut self) {
        drop(std::fs::remove_file(&self.path));
    }
}

/// Requires a folder that only this user can access, because other users share the temporary directory.
fn private_folder(folder: &Path) -> io::Result<()> {
    match std::fs::DirBuilder::new().mode(0o700).recursive(true).create(folder) {
        Ok(()) => {}
        Err(e) if e.kind() == io::ErrorKind::AlreadyExists => {}
        Err(e) => return Err(e),
    }
    let found = std::fs::symlink_metadata(folder)?;
    if !found.is_dir() || found.uid() != rustix::process::geteuid().as_raw() || found.mode() & 0o077 != 0 {
        return Err(io::Error::new(
            io::ErrorKind::PermissionDenied,
            "the doorbell folder is not private to this user",
        ));
    }
    Ok(())
}

/// Counts the sockets of killed processes whose names begin with `prefix`, and removes them if `remove` is set.
pub fn sweep_doorbells(folder: &Path, prefix: &str, remove: bool) -> usize {
    let Ok(entries) = std::fs::read_dir(folder) else { return 0 };
    let Ok(socket) = UnixDatagram::unbound() else { return 0 };
    let own =
        entries.flatten().filter(|entry| entry.file_name().as_encoded_bytes().starts_with(prefix.as_bytes()));
    let dead = own.filter(|entry| {
        let answer = socket.connect(entry.path());
        let dead = answer.is_err_and(|e| e.kind() == io::ErrorKind::ConnectionRefused);
        dead && (!remove || std::fs::remove_file(entry.path()).is_ok())
    });
    dead.count()
}

/// Rings each doorbell, ignoring failures. A process whose socket is gone, full or inaccessible polls.
pub(crate) fn ring_all(doorbells: &[String]) {
    if doorbells.is_empty() {
        return;
    }
    let Ok(socket) = UnixDatagram::unbound() else { return };
    if socket.set_nonblocking(true).is_err() {
        return;
    }
    for doorbell in doorbells {
        drop(socket.send_to(&[1], doorbell));
    }
}
