//! Linux in the role of macOS, for tests: `TENURE_SIMULATE=macos` in the environment of a binary with the feature
//! `simulation`. Processes have no descriptors, their end is polled for, orphans go to init, there are no control groups, and
//! the environment of a system program cannot be read. Paths ignore case. `TENURE_SIMULATE=windows` only refuses what is not
//! supported on Windows.

use std::ffi::{OsStr, OsString};
use std::io;
use std::path::{Component, Path, PathBuf};
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

/// The path as its folders were created, if the file system ignored case.
pub(super) fn as_created(path: &Path) -> io::Result<PathBuf> {
    let mut found = PathBuf::new();
    for step in path.components() {
        let next = found.join(step);
        if !matches!(step, Component::Normal(_)) || next.symlink_metadata().is_ok() {
            found = next;
            continue;
        }
        let is_meant = |name: &OsStr| name.eq_ignore_ascii_case(step);
        let folder = if found.as_os_str().is_empty() { Path::new(".") } else { &found };
        let entry = folder.read_dir()?.flatten().find(|entry| is_meant(&entry.file_name()));
        found.push(entry.ok_or(io::ErrorKind::NotFound)?.file_name());
    }
    Ok(found)
}
