//! The runner's log, `daemon-PID.log`: each line with its time, readable by its owner only.
//!
//! A log that cannot be written never stops the work.

use std::fs::{self, File};
use std::io::Write;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use super::LogLimits;
use tenure_core::text::escape_line;
use tenure_core::{Clock, Timestamp};

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
        let file = private_folder(folder)
            .and_then(|()| File::options().append(true).create(true).mode(0o600).open(&path))
            .ok()
            .map(Mutex::new);
        Self { path, file, echo, clock }
    }

    /// Opens a log that many processes write one after another. It is rotated when it is long.
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
        let line = format!("[{}] {}\n", self.clock.now(), escape_line(text));
        if let Some(mut file) = self.file.as_ref().and_then(|f| f.lock().ok()) {
            let _ = file.write_all(line.as_bytes());
        }
        if self.echo {
            let _ = std::io::stderr().write_all(line.as_bytes());
        }
    }
}

pub(crate) fn private_folder(folder: &Path) -> std::io::Result<()> {
    fs::DirBuilder::new().mode(0o700).recursive(true).create(folder)
}

/// A log that was written to more recently may belong to a process that still writes to it.
const IN_USE: Duration = Duration::from_mins(1);

/// Removes logs that were not written to for longer than the limit, and the oldest of the others until the rest fits. Logs
/// that were written to in the last minute stay.
pub fn sweep(folder: &Path, limits: LogLimits, now: Timestamp) {
    let Ok(entries) = fs::read_dir(folder) else { return };
    let mut logs: Vec<_> = entries.flatten().filter_map(|entry| LogFile::find(&entry, now)).collect();
    logs.sort_by_key(|log| log.age);
    let mut newer = 0_u64;
    for log in logs {
        newer = newer.saturating_add(log.bytes);
        if log.age > limits.age || (newer > limits.total && log.age > IN_USE) {
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
        path.extension().filter(|extension| *extension == "log" || *extension == "1")?;
        let found = entry.metadata().ok().filter(fs::Metadata::is_file)?;
        let changed = found.modified().ok()?.duration_since(std::time::UNIX_EPOCH).ok()?;
        let changed = Timestamp::from_millis(i64::try_from(changed.as_millis()).ok()?);
        Some(Self { path, age: now.since(changed), bytes: found.len() })
    }
}

#[cfg(test)]
mod tests {
    use std::time::SystemTime;

    use super::*;

    #[test]
    fn the_oldest_logs_are_removed_until_the_rest_fits() {
        let folder = tempfile::tempdir().unwrap();
        let now = tenure_core::SystemClock.now();
        let time = SystemTime::UNIX_EPOCH + Duration::from_millis(u64::try_from(now.as_millis()).unwrap());
        for (name, hours) in [("a.log", 1), ("b.log", 2), ("c.log", 3), ("d.txt", 4), ("e.log", 30)] {
            let file = File::create(folder.path().join(name)).unwrap();
            file.set_len(if name == "e.log" { 1 } else { 100 }).unwrap();
            file.set_modified(time - Duration::from_hours(hours)).unwrap();
        }
        File::create(folder.path().join("new.log")).unwrap().set_len(1000).unwrap();
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
        assert_eq!(left(), ["a.log", "b.log", "c.log", "d.txt", "new.log"]);
        sweep(folder.path(), limits(1250), now);
        assert_eq!(left(), ["a.log", "b.log", "d.txt", "new.log"]);
        sweep(folder.path(), limits(10), now);
        assert_eq!(left(), ["d.txt", "new.log"], "a log that is in use stays");
    }
}
