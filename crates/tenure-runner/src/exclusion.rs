//! The exclusive lock, as runners and wake-up ask for it: our own file, and that of beads where the project has one, so
//! that one tool can hold both.

use std::path::{Path, PathBuf};

use tenure_lock::{ExclusiveLock, ExclusiveStatus, SkipDecision, SkipReason, should_skip_database};

/// The folders of a project that may hold a lock file.
pub fn folders(root: &Path) -> Vec<PathBuf> {
    let beads = root.join(".beads");
    let mut folders = vec![root.join(".tenure")];
    if beads.is_dir() {
        folders.push(beads);
    }
    folders
}

/// What each lock file says, for those that say anything. Stale ones are removed on the way.
pub fn check(root: &Path) -> Vec<SkipDecision> {
    let mut said: Vec<_> = folders(root).iter().map(should_skip_database).collect();
    said.retain(|decision| decision.reason != SkipReason::NoLock);
    said
}

/// [`check`], without touching anything: what is stale would be removed.
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
