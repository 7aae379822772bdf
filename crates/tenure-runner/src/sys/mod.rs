//! The operating system behind common names: what differs between systems is in the file of each, and nowhere else in this
//! crate. Facts about processes come from `tenure_lock::ProcessInfo`.

#[cfg(target_os = "linux")]
#[path = "linux.rs"]
mod system;
#[cfg(not(target_os = "linux"))]
#[path = "macos.rs"]
mod system;

#[cfg(all(target_os = "linux", feature = "simulation"))]
mod simulation;

#[cfg(any(not(target_os = "linux"), feature = "simulation"))]
mod verified;

pub(crate) use system::*;
