//! A common interface to the operating system. Everything that differs between systems is in the file of each system, and
//! nowhere else in this crate. Facts about processes come from `tenure_lock::ProcessInfo`.
//!
//! Descriptors are those of `rustix::fd`, which on Windows are sockets.

#[cfg(target_os = "linux")]
#[path = "linux.rs"]
mod system;
#[cfg(windows)]
#[path = "windows.rs"]
mod system;
#[cfg(not(any(target_os = "linux", windows)))]
#[path = "macos.rs"]
mod system;

#[cfg(target_os = "linux")]
#[path = "inotify.rs"]
mod growth;
#[cfg(not(any(target_os = "linux", windows)))]
#[path = "kqueue.rs"]
mod growth;

#[cfg(unix)]
mod terminal;
#[cfg(unix)]
mod unix;

#[cfg(all(target_os = "linux", feature = "simulation"))]
mod simulation;

#[cfg(all(unix, any(not(target_os = "linux"), feature = "simulation")))]
mod verified;

#[cfg(unix)]
pub(crate) use growth::GrowthWatch;
pub use system::*;
#[cfg(unix)]
pub(crate) use terminal::Foreground;
#[cfg(unix)]
pub use unix::*;
