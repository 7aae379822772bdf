//! What differs between operating systems.

#[cfg(target_os = "linux")]
#[path = "linux.rs"]
mod system;
#[cfg(target_os = "macos")]
#[path = "macos.rs"]
mod system;
#[cfg(not(any(target_os = "linux", target_os = "macos")))]
#[path = "other.rs"]
mod system;

#[cfg(target_os = "linux")]
#[path = "inotify.rs"]
mod watch;
#[cfg(target_os = "macos")]
#[path = "kqueue.rs"]
mod watch;
#[cfg(not(any(target_os = "linux", target_os = "macos")))]
#[path = "no_watch.rs"]
mod watch;

#[cfg(unix)]
#[path = "unix.rs"]
mod family;
#[cfg(windows)]
#[path = "windows.rs"]
mod family;

pub(crate) use family::*;
pub(crate) use system::*;
pub(crate) use watch::*;
