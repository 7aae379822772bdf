//! What differs between operating systems. Descriptors are those of `rustix::fd`, which on Windows are sockets.

#[cfg(target_os = "linux")]
#[path = "linux.rs"]
mod system;
#[cfg(not(target_os = "linux"))]
#[path = "other.rs"]
mod system;

#[cfg(unix)]
#[path = "unix.rs"]
mod family;
#[cfg(windows)]
#[path = "windows.rs"]
mod family;

pub(crate) use family::*;
pub(crate) use system::*;
