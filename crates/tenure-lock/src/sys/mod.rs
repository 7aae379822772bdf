//! Operating system specifics behind common names: `process` inspects processes, `file` opens and locks files.

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

#[cfg(unix)]
#[path = "unix_file.rs"]
pub(crate) mod file;
#[cfg(windows)]
#[path = "windows_file.rs"]
pub(crate) mod file;

#[cfg(unix)]
#[path = "unix_fork.rs"]
pub(crate) mod fork;
#[cfg(not(unix))]
#[path = "no_fork.rs"]
pub(crate) mod fork;

#[cfg(target_os = "macos")]
pub(crate) mod kqueue;
