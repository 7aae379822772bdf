//! The exclusive lock of a project: tenure's lock file, and beads' if the project has a `.beads` folder.
//!
//! The project is locked if one of them is. A lock that tenure places is in both, so that a tool that looks at one of them
//! sees it.

use std::path::{Path, PathBuf};

use tenure_lock::{
    ExclusiveError, ExclusiveLock, ExclusiveStatus, Release, SkipDecision, SkipReason, should_skip_database,
};

/// The folders of a project that may hold a lock file.
pub fn folders(root: &Path) -> Vec<PathBuf> {
    let beads = root.join(".beads");
    let mut folders = vec![root.join(".tenure")];
    if beads.is_dir() {
        folders.push(beads);
    }
    folders
}

/// The state of each lock file that exists. Stale ones are removed.
pub fn check(root: &Path) -> Vec<SkipDecision> {
    let mut decisions: Vec<_> = folders(root).iter().map(should_skip_database).collect();
    decisions.retain(|decision| decision.reason != SkipReason::NoLock);
    decisions
}

/// Like [`check`], but removes nothing.
pub fn peek(root: &Path) -> Vec<SkipDecision> {
    let decision = |skip, holder, reason| Some(SkipDecision { skip, holder, reason });
    let look = |folder: &PathBuf| match ExclusiveLock::status(folder) {
        Ok(ExclusiveStatus::Held { lock, .. }) => decision(true, Some(lock.holder), SkipReason::Held),
        Ok(ExclusiveStatus::Stale { lock }) => decision(false, Some(lock.holder), SkipReason::RemovedStale),
        Ok(ExclusiveStatus::Malformed(malformed)) => {
            decision(true, None, SkipReason::Malformed(malformed.why))
        }
        Ok(_) => None,
        Err(error) => decision(true, None, SkipReason::CheckFailed(error.to_string())),
    };
    folders(root).iter().filter_map(look).collect()
}

/// The lock that keeps the project locked; without one, a stale lock.
pub fn status(root: &Path) -> Result<ExclusiveStatus, ExclusiveError> {
    let mut stale = ExclusiveStatus::Free;
    for folder in folders(root) {
        match ExclusiveLock::status(&folder)? {
            ExclusiveStatus::Free => {}
            found @ ExclusiveStatus::Stale { .. } => stale = found,
            blocking => return Ok(blocking),
        }
    }
    Ok(stale)
}

/// Locks the project. If one of the files is held, none is changed.
pub fn place(root: &Path, lock: &ExclusiveLock) -> Result<(), ExclusiveError> {
    let folders = folders(root);
    for (index, folder) in folders.iter().enumerate() {
        if let Err(error) = lock.place(folder) {
            for placed in &folders[..index] {
                let _ = lock.release(placed);
            }
            return Err(error);
        }
    }
    Ok(())
}

/// Replaces the lock in every file. Returns whether this process holds the project afterwards; if not, it has
/// not held it at any time.
pub fn replace(root: &Path, previous: &ExclusiveLock, lock: &ExclusiveLock) -> Result<bool, ExclusiveError> {
    for folder in folders(root) {
        if lock.replace(previous, &folder)? != Release::Removed {
            return Ok(false);
        }
    }
    Ok(true)
}

/// Calls `remove` for each file. Reports a lock that was kept, or else a removed one.
pub fn release(
    root: &Path,
    remove: impl Fn(&Path) -> Result<Release, ExclusiveError>,
) -> Result<Release, ExclusiveError> {
    let results: Vec<_> = folders(root).iter().map(|folder| remove(folder)).collect();
    let mut combined = Release::NotThere;
    for result in results {
        combined = match (result?, combined) {
            (kept @ Release::NotOurs(_), _) | (_, kept @ Release::NotOurs(_)) => kept,
            (Release::NotThere, other) => other,
            (removed, _) => removed,
        };
    }
    Ok(combined)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn project() -> tempfile::TempDir {
        let root = tempfile::tempdir().unwrap();
        std::fs::create_dir(root.path().join(".tenure")).unwrap();
        std::fs::create_dir(root.path().join(".beads")).unwrap();
        root
    }

    fn files(root: &Path) -> Vec<bool> {
        folders(root).iter().map(|folder| folder.join(tenure_lock::EXCLUSIVE_LOCK_FILE).exists()).collect()
    }

    #[test]
    fn a_lock_is_placed_in_and_removed_from_both_folders() {
        let project = project();
        let root = project.path();
        let lock = ExclusiveLock::new("tool", "1");
        place(root, &lock).unwrap();
        assert_eq!(files(root), [true, true]);
        assert!(matches!(status(root), Ok(ExclusiveStatus::Held { .. })));
        assert_eq!(release(root, |folder| lock.release(folder)).unwrap(), Release::Removed);
        assert_eq!(files(root), [false, false]);
        assert_eq!(release(root, |folder| lock.release(folder)).unwrap(), Release::NotThere);
    }

    #[test]
    fn a_lock_in_either_folder_refuses_another_and_nothing_is_left() {
        for folder in [".tenure", ".beads"] {
            let project = project();
            let root = project.path();
            let other = ExclusiveLock::new("other", "1");
            other.place(&root.join(folder)).unwrap();
            let before = files(root);
            let lock = ExclusiveLock::new("tool", "1");
            assert!(matches!(place(root, &lock), Err(ExclusiveError::Held(held)) if held.lock == other));
            assert_eq!(files(root), before, "{folder}");
            assert!(matches!(status(root), Ok(ExclusiveStatus::Held { lock, .. }) if *lock == other));
            assert!(
                matches!(release(root, |f| lock.release(f)), Ok(Release::NotOurs(kept)) if *kept == other)
            );
        }
    }

    #[test]
    fn a_lock_that_was_taken_over_is_not_replaced() {
        let project = project();
        let root = project.path();
        let lock = ExclusiveLock::new("tool", "1");
        let handed = lock.handed_to_this_process();
        place(root, &lock).unwrap();
        assert!(replace(root, &lock, &handed).unwrap());
        assert_eq!(release(root, |folder| lock.release_acquisition(folder)).unwrap(), Release::Removed);
        let other = ExclusiveLock::new("other", "1");
        place(root, &other).unwrap();
        assert!(!replace(root, &lock, &handed).unwrap());
        assert_eq!(release(root, |folder| other.release(folder)).unwrap(), Release::Removed);
    }
}
