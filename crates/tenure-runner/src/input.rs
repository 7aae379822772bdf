//! The input of a command, passed as a private file because it may be long and confidential.

use std::fs::File;
use std::io::{self, Seek, Write};
use std::path::Path;

use tenure_lock::create_private_folder;

use crate::sys;

/// An unnamed file with this text, readable only by this user, positioned at its beginning. In memory where that is
/// possible, so that a full disk does not matter; else in `folder`.
pub(crate) fn private_input(folder: &Path, text: &str) -> io::Result<File> {
    let mut file = match sys::file_in_memory() {
        Some(file) => file,
        None => {
            create_private_folder(folder)?;
            tempfile::tempfile_in(folder)?
        }
    };
    file.write_all(text.as_bytes())?;
    file.rewind()?;
    Ok(file)
}
