//! A control group (version 2) per attempt, where this process may make one. It finds processes that cleared their
//! environment, left their group and lost their supervisor.
//!
//! Only the list of processes is used. `cgroup.kill` would also end what must survive the attempt: a runner or keeper that
//! was started in it, and the attempts of that runner.

use std::collections::HashSet;
use std::fs;
use std::path::{Path, PathBuf};

use crate::sys;

const PREFIX: &str = "tenure-";

/// The path of the control group for this attempt, below the one of the calling process. None if that one is the root, or
/// cannot be written: then it was not delegated to this user.
pub(crate) fn planned(mark: &str) -> Option<PathBuf> {
    planned_below(&sys::control_group()?, mark)
}

fn planned_below(own: &Path, mark: &str) -> Option<PathBuf> {
    let writable = [own.to_owned(), own.join("cgroup.procs")];
    let delegated = writable.iter().all(|path| sys::is_writable(path));
    delegated.then(|| own.join(format!("{PREFIX}{mark}")))
}

/// Moves the calling process into the control group. A failure is ignored.
pub(crate) fn enter(folder: &Path) {
    if fs::create_dir(folder).is_ok() && fs::write(folder.join("cgroup.procs"), "0").is_err() {
        let _ = fs::remove_dir(folder);
    }
}

/// The processes in the control group and in those below it.
pub(super) fn pids(folder: &Path, mark: &str) -> HashSet<u32> {
    let mut found = HashSet::new();
    if is_of(folder, mark) {
        collect(folder, &mut found);
    }
    found
}

/// Removes the control group once it is empty.
pub(crate) fn remove(folder: &Path, mark: &str) {
    if is_of(folder, mark) {
        let below = fs::read_dir(folder).into_iter().flatten().flatten();
        for entry in below.filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir())) {
            let _ = fs::remove_dir(entry.path());
        }
        let _ = fs::remove_dir(folder);
    }
}

/// The path was read from the store, so only its name is trusted.
fn is_of(folder: &Path, mark: &str) -> bool {
    !mark.is_empty() && folder.file_name().and_then(|name| name.to_str()?.strip_prefix(PREFIX)) == Some(mark)
}

fn collect(folder: &Path, found: &mut HashSet<u32>) {
    let listed = fs::read_to_string(folder.join("cgroup.procs")).unwrap_or_default();
    found.extend(listed.lines().filter_map(|line| line.parse::<u32>().ok()));
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            collect(&entry.path(), found);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_processes_of_a_group_and_of_groups_below_it_are_found() {
        let own = tempfile::tempdir().unwrap();
        assert_eq!(planned_below(own.path(), "m"), None, "without a list that can be written");
        fs::write(own.path().join("cgroup.procs"), "1\n").unwrap();
        let folder = planned_below(own.path(), "m").unwrap();
        enter(&folder);
        assert_eq!(fs::read_to_string(folder.join("cgroup.procs")).unwrap(), "0");
        fs::write(folder.join("cgroup.procs"), "7\n8\n").unwrap();
        fs::create_dir(folder.join("tenure-nested")).unwrap();
        fs::write(folder.join("tenure-nested").join("cgroup.procs"), "9\n").unwrap();
        assert_eq!(pids(&folder, "m"), HashSet::from([7, 8, 9]));
    }

    #[test]
    fn only_the_group_of_the_attempt_is_read_or_removed() {
        let own = tempfile::tempdir().unwrap();
        fs::write(own.path().join("cgroup.procs"), "1\n").unwrap();
        assert_eq!(pids(own.path(), "m"), HashSet::new());
        let other = own.path().join("tenure-other");
        fs::create_dir(&other).unwrap();
        remove(&other, "m");
        assert!(other.exists());
        remove(&other, "other");
        assert!(!other.exists());
    }
}
