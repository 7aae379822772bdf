//! What a command reads: any text of any length, so never an argument, and nobody else's business.

use std::fs::File;
use std::io::{self, Seek, Write};
use std::path::Path;

use crate::daemon::log::private_folder;

/// A file without a name, readable by us alone, at its beginning.
pub(crate) fn private_input(folder: &Path, text: &str) -> io::Result<File> {
    private_folder(folder)?;
    let mut file = tempfile::tempfile_in(folder)?;
    file.write_all(text.as_bytes())?;
    file.rewind()?;
    Ok(file)
}
