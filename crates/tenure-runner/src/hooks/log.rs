//! The log of hooks: one JSON object per line, readable by the user only, at most about twice [`LIMIT`] bytes.
//!
//! Guarantees: lines of several processes never mix, and a full log becomes `hooks.log.1`. Not guaranteed: that a line is
//! written at all. A log that cannot be written never affects the command.

use std::fs::File;
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};

use serde::Deserialize;
use serde_json::Value;
use tenure_core::Timestamp;
use tenure_lock::{FileId, create_private_folder, open_private};

use super::outcome::Outcome;

const LIMIT: u64 = 256 * 1024;
const NAME: &str = "hooks.log";
const OLD_NAME: &str = "hooks.log.1";

/// Where outcomes are logged.
#[derive(Debug, Clone)]
pub struct HookLog {
    folder: Option<PathBuf>,
}

/// A line of the log.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct LogEntry {
    pub at: String,
    pub hook: String,
    pub event: String,
    pub task: Option<String>,
    pub outcome: String,
    pub error: Option<String>,
}

impl HookLog {
    /// A log in this folder, which is created when needed: a project's `.tenure/logs`.
    pub fn in_folder(folder: impl Into<PathBuf>) -> Self {
        Self { folder: Some(folder.into()) }
    }

    pub const fn nowhere() -> Self {
        Self { folder: None }
    }

    pub(super) fn folder(&self) -> Option<&Path> {
        self.folder.as_deref()
    }

    pub(super) fn write(&self, at: Timestamp, outcome: &Outcome) {
        let Some(folder) = &self.folder else { return };
        let mut line = serde_json::json!({"at": at});
        if let (Some(fields), Value::Object(more)) = (line.as_object_mut(), outcome.to_json()) {
            fields.extend(more);
        }
        let _ = append(folder, &format!("{line}\n"));
    }

    /// The last entry of each hook, in no particular order. Lines that are not entries are skipped.
    pub fn last_entries(&self) -> Vec<LogEntry> {
        let mut last: Vec<LogEntry> = Vec::new();
        let Some(folder) = &self.folder else { return last };
        for name in [OLD_NAME, NAME] {
            let mut text = Vec::new();
            let opened = open_private(&folder.join(name), File::options().read(true));
            // Concurrent writers may exceed the limit by some lines; a far longer file is not this log.
            if opened.and_then(|file| file.take(LIMIT * 10).read_to_end(&mut text)).is_err() {
                continue;
            }
            let lines = text.split(|byte| *byte == b'\n');
            for entry in lines.filter_map(|line| serde_json::from_slice::<LogEntry>(line).ok()) {
                match last.iter_mut().find(|earlier| earlier.hook == entry.hook) {
                    Some(earlier) => *earlier = entry,
                    None => last.push(entry),
                }
            }
        }
        last
    }
}

fn append(folder: &Path, line: &str) -> io::Result<()> {
    let path = folder.join(NAME);
    create_private_folder(folder)?;
    let mut file = open(&path)?;
    if file.metadata()?.len() >= LIMIT && turn_over(&file, &path, folder)? {
        file = open(&path)?;
    }
    // One write: with O_APPEND, lines of several processes never mix.
    file.write_all(line.as_bytes())
}

fn open(path: &Path) -> io::Result<File> {
    open_private(path, File::options().append(true).create(true))
}

/// Renames the file under a lock, if it still has this name. Returns `false` if another process holds the lock.
fn turn_over(file: &File, path: &Path, folder: &Path) -> io::Result<bool> {
    if file.try_lock().is_err() {
        return Ok(false);
    }
    if FileId::of(file)? == Some(FileId::behind(path)?) {
        std::fs::rename(path, folder.join(OLD_NAME))?;
    }
    Ok(true)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::MetadataExt;
    use std::time::Duration;

    use tenure_core::config::HookEvent;

    use super::super::outcome::{Failure, HookResult};
    use super::*;

    fn outcome(hook: &str, result: HookResult) -> Outcome {
        Outcome {
            hook: hook.into(),
            event: HookEvent::TaskFailed,
            task: Some("T1".into()),
            result,
            said: None,
            tries: 1,
            took: Duration::from_millis(5),
        }
    }

    #[test]
    fn the_last_entry_of_each_hook_is_listed_and_only_the_user_may_read_it() {
        let folder = tempfile::tempdir().unwrap();
        let logs = folder.path().join("logs");
        let log = HookLog::in_folder(&logs);
        assert_eq!(log.last_entries(), []);
        let at = Timestamp::from_millis(0);
        log.write(at, &outcome("a", HookResult::Failed(Failure::Exit(3))));
        log.write(at, &outcome("b", HookResult::Succeeded));
        log.write(at, &outcome("a", HookResult::Succeeded));
        File::options().append(true).open(logs.join(NAME)).unwrap().write_all(b"\xff junk\n{}\n").unwrap();
        let listed: Vec<_> =
            log.last_entries().into_iter().map(|entry| (entry.hook, entry.outcome)).collect();
        assert_eq!(listed, [("a".into(), "succeeded".into()), ("b".into(), "succeeded".into())]);
        assert_eq!(std::fs::metadata(logs.join(NAME)).unwrap().mode() & 0o777, 0o600);
        assert_eq!(std::fs::metadata(&logs).unwrap().mode() & 0o777, 0o700);
    }

    #[test]
    fn a_full_log_makes_room_and_stays_bounded() {
        let folder = tempfile::tempdir().unwrap();
        let log = HookLog::in_folder(folder.path());
        let at = Timestamp::from_millis(0);
        log.write(at, &outcome("old", HookResult::Succeeded));
        let failure = Failure::Unreachable("x".repeat(10_000));
        for _ in 0..60 {
            log.write(at, &outcome("new", HookResult::Failed(failure.clone())));
        }
        let size = |name| std::fs::metadata(folder.path().join(name)).unwrap().len();
        assert!(size(NAME) <= LIMIT + 11_000 && size(OLD_NAME) <= LIMIT + 11_000);
        assert!(log.last_entries().iter().any(|entry| entry.hook == "new"));
    }

    #[test]
    fn a_log_that_cannot_be_written_is_not_in_the_way() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("logs"), "a file").unwrap();
        let log = HookLog::in_folder(folder.path().join("logs"));
        log.write(Timestamp::from_millis(0), &outcome("a", HookResult::Succeeded));
        assert_eq!(log.last_entries(), []);
    }
}
