//! The runner's log, `daemon-PID.log`: each line with its time, readable by its owner only.
//!
//! A log that cannot be written never stops the work.

use std::fs::{self, File};
use std::io::Write;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::Duration;

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

/// Removes logs that were not written to for longer than `keep`.
pub fn sweep(folder: &Path, keep: Duration, now: Timestamp) {
    let Ok(entries) = fs::read_dir(folder) else { return };
    for entry in entries.flatten() {
        let is_log = entry.path().extension().is_some_and(|e| e == "log" || e == "1");
        if is_log && age(&entry, now).is_some_and(|age| age > keep) {
            let _ = fs::remove_file(entry.path());
        }
    }
}

fn age(entry: &fs::DirEntry, now: Timestamp) -> Option<Duration> {
    let changed = entry.metadata().ok()?.modified().ok()?;
    let changed = changed.duration_since(std::time::UNIX_EPOCH).ok()?;
    let changed = Timestamp::from_millis(i64::try_from(changed.as_millis()).ok()?);
    Some(now.since(changed))
}
