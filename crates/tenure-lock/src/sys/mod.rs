//! What differs between operating systems, each behind the same names. `process` says who runs here, `file` moves locks.

#[cfg(target_os = "linux")]
#[path = "linux.rs"]
pub(crate) mod process;
#[cfg(target_os = "macos")]
#[path = "macos.rs"]
pub(crate) mod process;
#[cfg(windows)]
#[path = "windows.rs"]
pub(crate) mod process;
#[cfg(not(any(target_os = "linux", target_os = "macos", windows)))]
#[path = "other.rs"]
pub(crate) mod process;
