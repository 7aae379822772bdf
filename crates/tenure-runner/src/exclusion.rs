//! The exclusive lock as runners and wake-up check it: tenure's file, and that of beads if the project has one, so
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
