//! What differs between operating systems.

#[cfg(unix)]
#[path = "unix.rs"]
mod family;
#[cfg(windows)]
#[path = "windows.rs"]
mod family;

pub(crate) use family::*;
