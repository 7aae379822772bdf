//! The input of a command, passed as a private file because it may be long and confidential.

use std::fs::File;
use std::io::{self, Seek, Write};
use std::path::Path;

use crate::daemon::log::private_folder;

/// An unnamed file with this text, readable only by this user, positioned at its beginning.
pub(crate) fn private_input(folder: &Path, text: &str) -> io::Result<File> {
    private_folder(folder)?;
    let mut file = tempfile::tempfile_in(folder)?;
    file.write_all(text.as_bytes())?;
    file.rewind()?;
    Ok(file)
}
