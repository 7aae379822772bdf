//! What Unix systems have in common.

use std::fs::{DirBuilder, OpenOptions};
use std::io;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::Path;

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
