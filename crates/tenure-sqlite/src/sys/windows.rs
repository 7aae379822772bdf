//! Windows. The permissions of a new file or folder are inherited from the folder that it is in.

use std::fs::{DirBuilder, OpenOptions};
use std::io;
use std::path::Path;

/// Where a file is: its volume and index. An index is not reused for another file, so the birth time is not needed.
pub(crate) fn home_of(path: &Path) -> io::Result<String> {
    Ok(tenure_lock::FileId::behind(path)?.to_string())
}

/// Not checked here; opening the file fails if it cannot be read.
#[expect(clippy::unnecessary_wraps, reason = "the same signature as on Unix")]
pub(crate) fn check_readable(_path: &Path) -> io::Result<()> {
    Ok(())
}

pub(crate) fn private_folder() -> DirBuilder {
    DirBuilder::new()
}

pub(crate) fn make_private(options: &mut OpenOptions) -> &mut OpenOptions {
    options
}

/// A folder cannot be synced.
#[expect(clippy::unnecessary_wraps, reason = "the same signature as on Unix")]
pub(crate) fn sync_folder(_folder: &Path) -> io::Result<()> {
    Ok(())
}

/// Not known.
pub(crate) fn is_open_here_only(_shared_memory: &Path) -> bool {
    false
}
