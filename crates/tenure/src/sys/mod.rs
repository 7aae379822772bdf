//! What differs between operating systems.

#[cfg(target_os = "linux")]
#[path = "linux.rs"]
mod system;
#[cfg(windows)]
#[path = "windows.rs"]
mod system;
#[cfg(not(any(target_os = "linux", windows)))]
#[path = "macos.rs"]
mod system;

#[cfg(unix)]
mod unix;

pub(crate) use system::*;
pub(crate) use tenure_runner::real_path;
#[cfg(unix)]
pub(crate) use unix::*;
