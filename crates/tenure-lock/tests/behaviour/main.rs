//! Behaviour of the locks within one process: results by content, by file type and by error.

#![expect(clippy::unwrap_used, clippy::panic, reason = "tests")]

mod exclusive;
mod fixtures;
mod ids;
mod logs;
mod named_by_the_seed;
mod resume_files;
mod resume_guard;

use std::io::Write;
use std::path::{Path, PathBuf};

use tempfile::TempDir;
use tenure_lock::{ResumeLockData, ResumeLockManager};

/// Whether a removed file keeps its name until it is closed, so that the loss of a lock file cannot be noticed before that. If
/// so, prints that the test is skipped. True under Wine, and on Windows file systems without POSIX deletion.
fn removed_files_keep_their_names(test: &str) -> bool {
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::remove_file(file.path()).unwrap();
    let keeps = file.path().exists();
    if keeps {
        let line = format!("SKIPPED: {test}: a removed file keeps its name here until it is closed\n");
        let _ = std::io::stderr().write_all(line.as_bytes());
    }
    keeps
}

/// A manager in a temporary directory.
struct Fixture {
    dir: TempDir,
    manager: ResumeLockManager,
}

impl Fixture {
    fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let manager = ResumeLockManager::new(dir.path()).unwrap();
        Self { dir, manager }
    }

    fn locks_dir(&self) -> PathBuf {
        self.dir.path().join("resume_locks")
    }

    fn path(&self, id: &str) -> PathBuf {
        self.locks_dir().join(format!("{id}.lock"))
    }

    fn file_count(&self) -> usize {
        std::fs::read_dir(self.locks_dir()).unwrap().count()
    }
}

/// The four fields that every tool knows.
fn foreign_resume(pid: u32, hostname: &str) -> String {
    format!(
        r#"{{"job_id":"job","process_id":{pid},"hostname":"{hostname}","acquired_at":"2025-01-11T10:30:00.123456789Z"}}"#
    )
}

fn our_resume(change: impl FnOnce(&mut ResumeLockData)) -> String {
    let mut data = ResumeLockData::new("job");
    change(&mut data);
    format!(" {}\n", serde_json::to_string_pretty(&data).unwrap())
}

/// Greater than the largest pid that Linux allows.
const NO_PID: u32 = 4_194_305;

/// Without the guard file, which remains where a directory cannot be locked.
fn list(dir: &Path) -> Vec<String> {
    let mut names: Vec<_> = std::fs::read_dir(dir)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .filter(|name| name != ".exclusive-lock.guard")
        .collect();
    names.sort();
    names
}
