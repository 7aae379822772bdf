//! Windows. The permissions of a new file or folder are inherited from the folder that it is in.

use std::fs::{DirBuilder, OpenOptions};
use std::io;
use std::path::Path;

/// Where a file is: its volume and index. An index is not given to another file later, so the birth time is not needed.
pub(crate) fn home_of(path: &Path) -> io::Result<String> {
    Ok(tenure_lock::FileId::behind(path)?.to_string())
}

/// Found out when the file is opened.
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
