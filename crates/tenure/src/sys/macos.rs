//! macOS.

use std::ffi::OsString;
use std::io;
use std::os::unix::ffi::OsStringExt;
use std::path::{Path, PathBuf};

/// A path without links, by which the same folder is always named alike: file systems ignore case, and the system says in
/// which case the names were created. What cannot be opened keeps the case in which it was written.
pub(crate) fn real_path(path: &Path) -> io::Result<PathBuf> {
    let real = path.canonicalize()?;
    let named = std::fs::File::open(&real).ok().and_then(|file| rustix::fs::getpath(&file).ok());
    Ok(named.map_or(real, |name| PathBuf::from(OsString::from_vec(name.into_bytes()))))
}

/// The name of this process's terminal, such as `ttys003`, if standard input is one.
pub(crate) fn controlling_terminal() -> Option<String> {
    let name = rustix::termios::ttyname(std::io::stdin(), Vec::new()).ok()?;
    let name = name.to_str().ok()?;
    Some(name.strip_prefix("/dev/").unwrap_or(name).to_owned())
}

/// A binary that was deleted has no path.
pub(crate) fn running_binary() -> Option<PathBuf> {
    None
}
