//! Linux in the role of macOS, for tests: `TENURE_SIMULATE=macos` in the environment of a binary with the feature
//! `simulation`. Processes have no descriptors, their end is polled for, orphans go to init, there are no control groups, and
//! the environment of a system program cannot be read. `TENURE_SIMULATE=windows` refuses what is not on Windows, and nothing else.

use std::ffi::{OsStr, OsString};
use std::path::Path;
use std::sync::OnceLock;

fn simulated() -> Option<&'static OsStr> {
    static SIMULATED: OnceLock<Option<OsString>> = OnceLock::new();
    SIMULATED.get_or_init(|| std::env::var_os("TENURE_SIMULATE")).as_deref()
}

pub(super) fn is_macos() -> bool {
    simulated().is_some_and(|name| name == "macos")
}

pub(super) fn is_windows() -> bool {
    simulated().is_some_and(|name| name == "windows")
}

/// Whether macOS would hide the environment of this process.
pub(super) fn hides_environment(pid: u32) -> bool {
    let program = std::fs::read_link(format!("/proc/{pid}/exe")).unwrap_or_default();
    ["/bin", "/sbin", "/usr/bin", "/usr/sbin"]
        .into_iter()
        .any(|folder| program.parent() == Some(Path::new(folder)))
}
