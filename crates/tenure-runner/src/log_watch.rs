//! Watching the log of an attempt on this machine, so that a process that shows it need not poll its size.
//!
//! Guaranteed: anything appended to the log after [`LogWatch::clear`] makes the descriptor readable, and so does a rotation.
//! The descriptor may also become readable without new lines. Where there is no watch, or while the log is missing,
//! [`LogWatch::recheck`] is the interval at which the log has to be polled.

use std::path::{Path, PathBuf};
use std::time::Duration;

use rustix::fd::BorrowedFd;

use crate::sys;

/// How often an unwatched log is read.
const POLL_INTERVAL: Duration = Duration::from_millis(200);
/// How often a watched log is read without a report, in case one was lost.
const RECHECK: Duration = Duration::from_secs(10);

/// A watch on one log.
#[derive(Debug)]
pub struct LogWatch {
    path: PathBuf,
    /// `None` where the system has no watch, or refuses one.
    watch: Option<sys::GrowthWatch>,
    is_watched: bool,
}

impl LogWatch {
    pub fn new(path: &Path) -> Self {
        let mut log = Self { path: path.to_owned(), watch: sys::GrowthWatch::new().ok(), is_watched: false };
        log.clear();
        log
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Readable when the log has grown. `None` if it has to be polled.
    pub fn fd(&self) -> Option<BorrowedFd<'_>> {
        self.watch.as_ref().map(sys::GrowthWatch::fd)
    }

    /// Forgets the reports so far. To be called before the log is read.
    pub fn clear(&mut self) {
        // Rotation puts another file in the place of the log, so its name is looked up again each time.
        self.is_watched = self.watch.as_mut().is_some_and(|watch| watch.restart(&self.path).is_ok());
    }

    /// When to read again without a report.
    pub fn recheck(&self) -> Duration {
        if self.is_watched { RECHECK } else { POLL_INTERVAL }
    }
}

#[cfg(test)]
mod tests {
    use std::fs::{self, File};
    use std::io::Write;

    use super::*;
    use crate::until_any;

    const SOON: Duration = Duration::from_secs(20);

    fn is_reported(log: &LogWatch, within: Duration) -> bool {
        until_any(&[log.fd().expect("this system has a watch")], within) == [true]
    }

    fn append(path: &Path) {
        let mut file = File::options().append(true).create(true).open(path).unwrap();
        file.write_all(b"line\n").unwrap();
    }

    #[test]
    fn growth_is_reported_also_after_a_rotation_and_nothing_else_is() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.log");
        append(&path);
        let mut log = LogWatch::new(&path);
        assert_eq!(log.recheck(), RECHECK);
        append(&folder.path().join("b.log"));
        assert!(!is_reported(&log, Duration::ZERO), "the log of another attempt");
        for _ in 0..3 {
            append(&path);
            assert!(is_reported(&log, SOON), "growth");
            log.clear();
            assert!(!is_reported(&log, Duration::ZERO), "the report was forgotten");
            fs::rename(&path, folder.path().join("a.log.1")).unwrap();
            append(&path);
            assert!(is_reported(&log, SOON), "rotation");
            log.clear();
        }
    }

    #[test]
    fn a_missing_log_is_polled_until_it_is_there() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.log");
        let mut log = LogWatch::new(&path);
        assert_eq!(log.recheck(), POLL_INTERVAL);
        append(&path);
        log.clear();
        assert_eq!(log.recheck(), RECHECK);
        append(&path);
        assert!(is_reported(&log, SOON));
    }
}
