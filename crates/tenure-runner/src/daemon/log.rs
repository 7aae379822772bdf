//! The runner's log, `daemon-PID.log`: each line with its time, readable by its owner only.
//!
//! A log that cannot be written never stops the work.

use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use super::LogLimits;
use tenure_core::text::escape_line;
use tenure_core::{Clock, Timestamp};
use tenure_lock::{create_private_folder, open_private};

const ROTATE_AT: u64 = 1024 * 1024;

#[derive(Debug)]
pub struct DaemonLog {
    path: PathBuf,
    file: Option<Mutex<File>>,
    /// Also write to standard error, for a runner in the foreground.
    echo: bool,
    clock: Arc<dyn Clock>,
}

impl DaemonLog {
    /// Opens `daemon-PID.log` in `folder`, creating both.
    pub fn open(folder: &Path, pid: u32, echo: bool, clock: Arc<dyn Clock>) -> Self {
        Self::at(folder, folder.join(format!("daemon-{pid}.log")), echo, clock)
    }

    fn at(folder: &Path, path: PathBuf, echo: bool, clock: Arc<dyn Clock>) -> Self {
        let file = create_private_folder(folder)
            .and_then(|()| open_for_writing(&path, File::options().append(true).create(true)))
            .ok()
            .map(Mutex::new);
        Self { path, file, echo, clock }
    }

    /// Opens a log that many processes append to, one after another. It is rotated when it becomes long.
    pub fn shared(folder: &Path, name: &str, clock: Arc<dyn Clock>) -> Self {
        let path = folder.join(name);
        if fs::metadata(&path).is_ok_and(|found| found.len() > ROTATE_AT) {
            let _ = fs::rename(&path, path.with_extension("log.1"));
        }
        Self::at(folder, path, false, clock)
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    pub fn line(&self, text: &str) {
        let line = self.stamped(text);
        if let Some(mut file) = self.file.as_ref().and_then(|f| f.lock().ok()) {
            let _ = file.write_all(line.as_bytes());
        }
        if self.echo {
            let _ = io::stderr().write_all(line.as_bytes());
        }
    }

    /// Whether a person sees the lines as they are written.
    pub(super) fn is_watched(&self) -> bool {
        self.echo
    }

    /// Shows a line at the terminal, without recording it.
    pub(super) fn show(&self, text: &str) {
        if self.echo {
            let _ = io::stderr().write_all(self.stamped(text).as_bytes());
        }
    }

    fn stamped(&self, text: &str) -> String {
        format!("[{}] {}\n", self.clock.now(), escape_line(text))
    }
}

/// The log of an attempt, as a runner's log names it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NamedLog {
    /// The task's key.
    pub task: String,
    pub agent: String,
    pub path: PathBuf,
}

impl NamedLog {
    /// `Log of F001 (claude): PATH`
    pub(super) fn sentence(&self) -> String {
        format!("Log of {} ({}): {}", self.task, self.agent, self.path.display())
    }

    /// Reads a line of a runner's log, without its time.
    pub fn parse(line: &str) -> Option<Self> {
        let (task, rest) = line.strip_prefix("Log of ")?.split_once(" (")?;
        let (agent, path) = rest.split_once("): ")?;
        Some(Self { task: task.to_owned(), agent: agent.to_owned(), path: path.into() })
    }
}

/// Opens a log so that it is not swept while it is open, even if nothing is written to it for a long time.
pub(super) fn open_for_writing(path: &Path, options: &mut fs::OpenOptions) -> io::Result<File> {
    let file = open_private(path, options)?;
    // A sweep holds the exclusive lock only briefly. If the shared lock is not obtained, the log can be swept
    // once it is old.
    let _ = file.try_lock_shared();
    Ok(file)
}

/// Whether a process has the log open for writing.
fn is_open(path: &Path) -> bool {
    let file = open_private(path, File::options().read(true));
    file.is_ok_and(|file| matches!(file.try_lock(), Err(fs::TryLockError::WouldBlock)))
}

/// A log that was written to more recently may belong to a process that is about to write to it again.
const IN_USE: Duration = Duration::from_mins(1);

/// Removes logs that were not written to for longer than the limit, and the oldest of the others until the rest fits. Logs
/// that were written to in the last minute stay, and so do logs that a process has open. Only files with names that
/// tenure gives to logs are removed, and none if the folder is a symbolic link.
pub fn sweep(folder: &Path, limits: LogLimits, now: Timestamp) {
    if !fs::symlink_metadata(folder).is_ok_and(|found| found.is_dir()) {
        return;
    }
    let Ok(entries) = fs::read_dir(folder) else { return };
    let mut logs: Vec<_> = entries.flatten().filter_map(|entry| LogFile::find(&entry, now)).collect();
    logs.sort_by_key(|log| log.age);
    let mut newer = 0_u64;
    for log in logs {
        newer = newer.saturating_add(log.bytes);
        let is_due = log.age > limits.age || (newer > limits.total && log.age > IN_USE);
        if is_due && !log.is_in_use() {
            let _ = fs::remove_file(log.path);
        }
    }
}

struct LogFile {
    path: PathBuf,
    /// Since it was last written to.
    age: Duration,
    bytes: u64,
}

impl LogFile {
    fn find(entry: &fs::DirEntry, now: Timestamp) -> Option<Self> {
        let path = entry.path();
        entry.file_name().to_str().filter(|name| is_log(name))?;
        let found = entry.metadata().ok().filter(fs::Metadata::is_file)?;
        let changed = found.modified().ok()?.duration_since(std::time::UNIX_EPOCH).ok()?;
        let changed = Timestamp::from_millis(i64::try_from(changed.as_millis()).ok()?);
        Some(Self { path, age: now.since(changed), bytes: found.len() })
    }

    /// The older part of a log, `NAME.log.1`, is in use together with `NAME.log`.
    fn is_in_use(&self) -> bool {
        let is_older_part = self.path.extension().is_some_and(|ending| ending == "1");
        is_open(&if is_older_part { self.path.with_extension("") } else { self.path.clone() })
    }
}

/// Whether tenure makes logs with such names: `KEY-FENCE.log`, `JOB-ITEM-FENCE.log`, `daemon-PID.log`, `hooks.log` and
/// `wakeup.log`, and the same with `.1` for the older part.
fn is_log(name: &str) -> bool {
    let Some(stem) = name.strip_suffix(".1").unwrap_or(name).strip_suffix(".log") else { return false };
    let is_number = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    matches!(stem, "hooks" | "wakeup")
        || stem.rsplit_once('-').is_some_and(|(key, number)| check_log_name(key) && is_number(number))
}

/// Keys of tasks and names of jobs have these characters; the latter are followed by the item's number.
fn check_log_name(key: &str) -> bool {
    key.starts_with(|first: char| first.is_ascii_alphanumeric())
        && key.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'_' | b'-'))
}

#[cfg(test)]
mod tests {
    use std::time::SystemTime;

    use super::super::output::AttemptLog;
    use super::*;

    #[test]
    fn the_log_of_an_attempt_is_found_by_the_runners_line() {
        let named = NamedLog {
            task: "F001".to_owned(),
            agent: "claude".to_owned(),
            path: "/a (b): c/F001-3.log".into(),
        };
        assert_eq!(NamedLog::parse(&named.sentence()), Some(named));
        assert_eq!(NamedLog::parse("Ended F001: Log of F002 (claude): /etc/passwd"), None);
    }

    #[test]
    fn the_oldest_logs_are_removed_until_the_rest_fits() {
        let folder = tempfile::tempdir().unwrap();
        let now = tenure_core::SystemClock.now();
        let time = SystemTime::UNIX_EPOCH + Duration::from_millis(u64::try_from(now.as_millis()).unwrap());
        for (name, hours) in [("a-1.log", 1), ("b-2.log", 2), ("c-3.log", 3), ("d.txt", 4), ("e-4.log", 30)] {
            let file = File::create(folder.path().join(name)).unwrap();
            file.set_len(if name == "e-4.log" { 1 } else { 100 }).unwrap();
            file.set_modified(time - Duration::from_hours(hours)).unwrap();
        }
        File::create(folder.path().join("new-5.log")).unwrap().set_len(1000).unwrap();
        let limits = |total| LogLimits { age: Duration::from_hours(24), total };
        let left = || {
            let mut names: Vec<_> = fs::read_dir(folder.path())
                .unwrap()
                .map(|entry| entry.unwrap().file_name().into_string().unwrap())
                .collect();
            names.sort();
            names
        };
        sweep(folder.path(), limits(10_000), now);
        assert_eq!(left(), ["a-1.log", "b-2.log", "c-3.log", "d.txt", "new-5.log"]);
        sweep(folder.path(), limits(1250), now);
        assert_eq!(left(), ["a-1.log", "b-2.log", "d.txt", "new-5.log"]);
        sweep(folder.path(), limits(10), now);
        assert_eq!(left(), ["d.txt", "new-5.log"], "a log that is in use stays");
    }

    /// Removes everything that the sweep may remove.
    fn sweep_all(folder: &Path) {
        let later = tenure_core::SystemClock.now().after(Duration::from_hours(1));
        sweep(folder, LogLimits { age: Duration::from_secs(1), total: 0 }, later);
    }

    #[test]
    fn only_names_that_tenure_gives_to_logs_are_removed() {
        let folder = tempfile::tempdir().unwrap();
        let own = ["T1-3.log", "T1-3.log.1", "a.b_c-d-1-7.log", "hooks.log", "hooks.log.1", "wakeup.log.1"];
        let others =
            ["a.log", "tool.1", "access.log.1", "-1.log", "x-.log", "x-1a.log", "x y-1.log", "T1-3.log.2"];
        for name in own.iter().chain(&others) {
            File::create(folder.path().join(name)).unwrap();
        }
        sweep_all(folder.path());
        for name in own {
            assert!(!folder.path().join(name).exists(), "{name}");
        }
        for name in others {
            assert!(folder.path().join(name).exists(), "{name}");
        }
    }

    #[test]
    fn a_log_that_is_open_stays_however_long_it_is_silent() {
        let folder = tempfile::tempdir().unwrap();
        let logs = folder.path();
        let clock = || Arc::new(tenure_core::SystemClock);
        let daemon = DaemonLog::open(logs, 4242, false, clock());
        let attempt = AttemptLog::create(logs, "T1-3", clock());
        let open = ["daemon-4242.log", "T1-3.log", "T1-3.log.1"];
        let closed = ["daemon-4243.log", "T1-4.log", "T1-4.log.1", "T1-5.log.1"];
        for name in ["T1-3.log.1"].iter().chain(&closed) {
            File::create(logs.join(name)).unwrap();
        }
        sweep_all(logs);
        assert!(open.iter().all(|name| logs.join(name).exists()));
        assert!(closed.iter().all(|name| !logs.join(name).exists()));
        drop((daemon, attempt));
        sweep_all(logs);
        assert!(open.iter().all(|name| !logs.join(name).exists()));
    }

    #[test]
    fn a_linked_folder_is_not_swept() {
        let folder = tempfile::tempdir().unwrap();
        let logs = folder.path().join("logs");
        fs::create_dir(&logs).unwrap();
        let log = logs.join("T1-3.log");
        File::create(&log).unwrap();
        std::os::unix::fs::symlink(&logs, folder.path().join("link")).unwrap();
        sweep_all(&folder.path().join("link"));
        assert!(log.exists());
        sweep_all(&logs);
        assert!(!log.exists());
    }
}
