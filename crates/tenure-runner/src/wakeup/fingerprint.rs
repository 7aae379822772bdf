//! Detects that an idle project need not be inspected again because its files are unchanged.
//!
//! Guaranteed: everything that is committed to the store, or changed in a configuration file, after a fingerprint was
//! taken changes the next one. Time and the death of processes change no file; see
//! [`Recheck`](super::inspect::Recheck).

use std::fmt::Write as _;
use std::fs::Metadata;
use std::path::{Path, PathBuf};
use std::time::{Duration, UNIX_EPOCH};

use tenure_core::Timestamp;

use crate::sys;

/// Some file systems record times in seconds: a file written just now may be written again with the same time.
const TOO_YOUNG: Duration = Duration::from_secs(3);

/// The state of `files`, on which the decision about the project at `root` depends; to be taken before they are read.
/// None if it would not show a later change.
pub fn fingerprint(root: &Path, files: &[PathBuf], now: Timestamp) -> Option<String> {
    if crate::exclusion::folders(root).iter().any(|f| f.join(tenure_lock::EXCLUSIVE_LOCK_FILE).exists()) {
        return None;
    }
    let mut text = concat!(env!("CARGO_PKG_VERSION")).to_owned();
    for path in files {
        match std::fs::metadata(path) {
            // An empty write-ahead log counts as none; readers create and remove it.
            Ok(found) if found.len() == 0 => text.push_str(" -"),
            Ok(found) if is_young(&found, now) => return None,
            Ok(found) => {
                let _ = write!(text, " {}", sys::version_of(&found));
            }
            Err(e) if e.kind() == std::io::ErrorKind::NotFound => text.push_str(" -"),
            Err(_) => return None,
        }
    }
    Some(text)
}

fn is_young(file: &Metadata, now: Timestamp) -> bool {
    let changed = file.modified().ok().and_then(|at| at.duration_since(UNIX_EPOCH).ok()).unwrap_or_default();
    i64::try_from(changed.as_millis()).unwrap_or(i64::MAX) > now.before(TOO_YOUNG).as_millis()
}

#[cfg(test)]
mod tests {
    use tenure_core::{Clock, SystemClock};

    use super::*;

    #[test]
    fn every_relevant_file_changes_the_fingerprint_and_a_lock_or_a_young_file_prevents_one() {
        let root = tempfile::tempdir().unwrap();
        let folder = root.path().join(".tenure");
        std::fs::create_dir(&folder).unwrap();
        let [database, log, config, user] =
            ["tenure.db", "tenure.db-wal", "config.yaml", "user.yaml"].map(|name| folder.join(name));
        let files = [database.clone(), log.clone(), config.clone(), user.clone()];
        std::fs::write(&database, "rows").unwrap();
        let later = || SystemClock.now().after(Duration::from_mins(1));
        let take = |now| fingerprint(root.path(), &files, now);
        assert_eq!(take(SystemClock.now()), None, "just written");
        let first = take(later());
        assert!(first.is_some());
        assert_eq!(take(later()), first, "nothing has changed");
        std::fs::write(&log, "").unwrap();
        assert_eq!(take(later()), first, "an empty log is no change");
        let mut seen = vec![first];
        for path in [database, log, config, user] {
            std::fs::write(path, "more than before").unwrap();
            let next = take(later());
            assert!(next.is_some() && !seen.contains(&next), "{next:?}");
            seen.push(next);
        }
        std::fs::write(folder.join(".exclusive-lock"), "{}").unwrap();
        assert_eq!(take(later()), None, "a lock must be checked each time");
        std::fs::remove_file(folder.join(".exclusive-lock")).unwrap();
        assert!(take(later()).is_some());
        std::fs::create_dir(root.path().join(".beads")).unwrap();
        std::fs::write(root.path().join(".beads/.exclusive-lock"), "{}").unwrap();
        assert_eq!(take(later()), None, "so has that of beads");
    }
}
