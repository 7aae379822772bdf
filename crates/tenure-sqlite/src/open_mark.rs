//! The open mark: shows other processes that this one has the database open.
//!
//! It is a shared lock on a file beside the database, and ends with the process. Guarantees: of the processes that
//! [leave](OpenMark::leave), the last one finds out that it is the last. Each removes its own mark before it checks for the
//! marks of others, so of two that leave at the same time at least one finds no other mark.

use std::fs::File;
use std::path::{Path, PathBuf};

use tenure_lock::open_private;

/// `None` inside if the mark could not be set, for example in a folder that cannot be written.
#[derive(Debug)]
pub(crate) struct OpenMark(Option<File>);

impl OpenMark {
    pub(crate) fn set(database: &Path) -> Self {
        let options = &mut File::options();
        let file = open_private(&path(database), options.read(true).write(true).create(true).truncate(false));
        Self(file.ok().filter(|file| file.try_lock_shared().is_ok()))
    }

    /// Removes the mark.
    pub(crate) fn remove(&self) {
        if let Some(file) = &self.0 {
            let _ = file.unlock();
        }
    }

    /// Removes the mark. If no other process has one, returns a guard that keeps others from leaving as the last one until
    /// it is dropped.
    pub(crate) fn leave(&self) -> Option<LastOne<'_>> {
        self.remove();
        let Some(file) = &self.0 else { return Some(LastOne(None)) };
        file.try_lock().is_ok().then_some(LastOne(Some(file)))
    }
}

/// Held by the last process that has the database open.
pub(crate) struct LastOne<'a>(Option<&'a File>);

impl Drop for LastOne<'_> {
    fn drop(&mut self) {
        if let Some(file) = self.0 {
            let _ = file.unlock();
        }
    }
}

/// The file of the marks.
fn path(database: &Path) -> PathBuf {
    database.with_extension("open.lock")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_last_one_to_leave_is_the_last() {
        let folder = tempfile::tempdir().unwrap();
        let database = folder.path().join("tenure.db");
        let marks: Vec<OpenMark> = (0..3).map(|_| OpenMark::set(&database)).collect();
        let last: Vec<bool> = marks.iter().map(|mark| mark.leave().is_some()).collect();
        assert_eq!(last, [false, false, true]);
        let late = OpenMark::set(&database);
        assert!(late.leave().is_some(), "marks that were left do not count");
    }

    #[test]
    fn of_those_that_leave_at_once_one_is_the_last() {
        let folder = tempfile::tempdir().unwrap();
        let database = folder.path().join("tenure.db");
        for round in 0..200 {
            let marks: Vec<OpenMark> = (0..4).map(|_| OpenMark::set(&database)).collect();
            let barrier = std::sync::Barrier::new(marks.len());
            let leave = |mark: &OpenMark| {
                barrier.wait();
                mark.leave().is_some()
            };
            let last = std::thread::scope(|scope| {
                let threads: Vec<_> = marks.iter().map(|mark| scope.spawn(|| leave(mark))).collect();
                threads.into_iter().map(|thread| thread.join().unwrap()).filter(|last| *last).count()
            });
            assert!(last >= 1, "none was the last in round {round}");
        }
    }

    #[test]
    fn a_removed_mark_does_not_count() {
        let folder = tempfile::tempdir().unwrap();
        let database = folder.path().join("tenure.db");
        let (first, second) = (OpenMark::set(&database), OpenMark::set(&database));
        first.remove();
        assert!(second.leave().is_some());
        assert!(first.leave().is_some(), "it may still move the log");
    }

    #[test]
    fn without_a_mark_every_process_may_be_the_last() {
        let folder = tempfile::tempdir().unwrap();
        let mark = OpenMark::set(&folder.path().join("missing/tenure.db"));
        assert!(mark.leave().is_some());
    }
}
