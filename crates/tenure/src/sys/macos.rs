//! macOS.

use std::path::PathBuf;

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

/// The program that opens a file as a person would.
#[cfg(feature = "web")]
pub(crate) const OPENER: &str = "open";

/// Whether all usual browsers resolve the names below `localhost` by themselves.
#[cfg(feature = "web")]
pub(crate) const BROWSERS_KNOW_LOCALHOST: bool = false;

/// Nothing to do: the C library is the system's.
pub(crate) fn resolve_names_without_modules() {}

/// Left to the system's C library.
pub(crate) fn share_one_heap() {}
