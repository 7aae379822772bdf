//! What Unix systems have in common.

use std::fs::{DirBuilder, File, OpenOptions};
use std::io;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::Path;

use rustix::process::{Flock, FlockOffsetType, FlockType, fcntl_getlk};

/// Where a file is: its file system, inode and birth time.
pub(crate) fn home_of(path: &Path) -> io::Result<String> {
    let found = std::fs::metadata(path)?;
    let file_system = rustix::fs::statvfs(path)?.f_fsid;
    // Not every file system records it.
    let born = found.created().ok().and_then(|at| at.duration_since(std::time::UNIX_EPOCH).ok());
    Ok(format!("{file_system:x}:{}:{}", found.ino(), born.map_or(0, |at| at.as_nanos())))
}

/// Checks that this user may read a file, without opening it.
pub(crate) fn check_readable(path: &Path) -> io::Result<()> {
    Ok(rustix::fs::access(path, rustix::fs::Access::READ_OK)?)
}

/// A folder for its owner only.
pub(crate) fn private_folder() -> DirBuilder {
    let mut builder = DirBuilder::new();
    builder.mode(0o700);
    builder
}

/// A new file is for its owner only.
pub(crate) fn make_private(options: &mut OpenOptions) -> &mut OpenOptions {
    options.mode(0o600)
}

/// Writes the names in a folder to the disk.
pub(crate) fn sync_folder(folder: &Path) -> io::Result<()> {
    File::open(folder)?.sync_all()
}

/// A byte of the shared memory that SQLite locks as long as a connection has a database open.
const OPEN: u64 = 128;

/// Whether no other process has the database of this shared memory open; false if that is not known.
///
/// To be called only by a process that ends without closing a file of this database: closing any descriptor of the shared memory
/// would drop SQLite's locks on it, so the one that is opened here stays open.
pub(crate) fn is_open_here_only(shared_memory: &Path) -> bool {
    let Ok(file) = File::options().read(true).write(true).open(shared_memory) else { return false };
    let exclusive = Flock {
        start: OPEN,
        length: 1,
        pid: None,
        typ: FlockType::WriteLock,
        offset_type: FlockOffsetType::Set,
    };
    let held = fcntl_getlk(&file, &exclusive);
    std::mem::forget(file);
    held.is_ok_and(|other| other.is_none())
}
