//! Linux.

use std::path::PathBuf;

/// The name of this process's controlling terminal, such as `pts/3` or `tty1`. Found even if all standard streams
/// are pipes.
pub(crate) fn controlling_terminal() -> Option<String> {
    let stat = std::fs::read_to_string("/proc/self/stat").ok()?;
    // The command name may contain spaces and parentheses, so the fields are read after the last parenthesis.
    let number: u64 = stat.rsplit_once(')')?.1.split_whitespace().nth(4)?.parse().ok()?;
    let major = (number >> 8) & 0xfff;
    let minor = (number & 0xff) | ((number >> 12) & 0xfff00);
    match major {
        136..=143 => Some(format!("pts/{}", (major - 136) * 256 + minor)),
        4 if minor < 64 => Some(format!("tty{minor}")),
        4 => Some(format!("ttyS{}", minor - 64)),
        _ => None,
    }
}

/// The running binary itself, even if its file was replaced or deleted.
pub(crate) fn running_binary() -> Option<PathBuf> {
    let running = PathBuf::from("/proc/self/exe");
    running.exists().then_some(running)
}

/// The program that opens a file as a person would.
#[cfg(feature = "web")]
pub(crate) const OPENER: &str = "xdg-open";

/// Whether all usual browsers resolve the names below `localhost` by themselves.
#[cfg(feature = "web")]
pub(crate) const BROWSERS_KNOW_LOCALHOST: bool = true;
