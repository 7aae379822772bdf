//! Measures resume locks on this machine and file system, compared with a bare `flock`.
//!
//! The alternatives run interleaved, so that disturbances affect all of them: ratios are comparable between machines,
//! absolute times are not.

use std::fs::{File, OpenOptions, TryLockError};
use std::io;
use std::path::Path;
use std::time::{Duration, Instant};

use crate::{ResumeLockData, ResumeLockError, ResumeLockManager};

/// Median times of the same operation with a resume lock and with a bare `flock`.
#[derive(Debug, Clone, Copy)]
#[non_exhaustive]
pub struct Compared {
    /// A resume lock.
    pub ours: Duration,
    /// Open or create a file, and `flock` it.
    pub bare: Duration,
}

/// An operation that returns the duration of its measured part.
pub type Work<'w> = &'w mut dyn FnMut() -> io::Result<Duration>;

/// Median durations of several operations, run interleaved.
pub fn medians<const N: usize>(rounds: usize, mut works: [Work<'_>; N]) -> io::Result<[Duration; N]> {
    let mut times = [const { Vec::new() }; N];
    for _ in 0..rounds.max(1) {
        for (times, work) in times.iter_mut().zip(&mut works) {
            times.push(work()?);
        }
    }
    Ok(times.map(|mut times| {
        times.sort_unstable();
        times[times.len() / 2]
    }))
}

/// Runs `work` and returns its duration. The result is dropped after the clock has stopped.
pub fn timed<T>(work: impl FnOnce() -> T) -> (Duration, T) {
    let begun = Instant::now();
    let made = work();
    (begun.elapsed(), made)
}

/// Acquires and releases a free lock.
pub fn acquire_and_release(folder: &Path, rounds: usize) -> io::Result<Compared> {
    let (manager, bare) = (manager(folder)?, folder.join("bare"));
    compared(rounds, &mut || spent(timed(|| manager.acquire("job")?.release())), &mut || {
        spent(timed(|| flock(&bare).map(drop)))
    })
}

/// Attempts to acquire a held lock.
pub fn refuse(folder: &Path, rounds: usize) -> io::Result<Compared> {
    let (manager, bare) = (manager(folder)?, folder.join("bare"));
    let _held = (manager.acquire("job").map_err(io::Error::other)?, flock(&bare)?);
    let granted = || Err(io::Error::other("a held lock was granted"));
    compared(
        rounds,
        &mut || match timed(|| manager.acquire("job")) {
            (took, Err(ResumeLockError::Held(_))) => Ok(took),
            (_, Err(error)) => Err(io::Error::other(error)),
            (_, Ok(_)) => granted(),
        },
        &mut || match timed(|| flock(&bare)) {
            (took, Ok(None)) => Ok(took),
            (_, Err(error)) => Err(error),
            (_, Ok(Some(_))) => granted(),
        },
    )
}

/// Takes over the lock of a dead holder. The bare `flock` locks an existing unlocked file.
pub fn take_over(folder: &Path, rounds: usize, left: &ResumeLockData) -> io::Result<Compared> {
    let (manager, bare) = (manager(folder)?, folder.join("bare"));
    drop(flock(&bare)?);
    let path = manager.acquire(&left.job_id).map_err(io::Error::other)?.path().to_owned();
    let text = if left.tenure.is_some() { left.to_text() } else { serde_json::to_vec_pretty(left) }?;
    compared(
        rounds,
        &mut || {
            std::fs::write(&path, &text)?;
            spent(timed(|| manager.acquire(&left.job_id)))
        },
        &mut || spent(timed(|| flock(&bare))),
    )
}

/// The lock file of a dead process, written by a tool that knows only the common fields.
pub fn left_by_another_tool(job_id: &str) -> ResumeLockData {
    // Greater than the largest possible pid.
    ResumeLockData { tenure: None, process_id: i32::MAX.unsigned_abs(), ..ResumeLockData::new(job_id) }
}

fn compared(rounds: usize, ours: Work<'_>, bare: Work<'_>) -> io::Result<Compared> {
    let [ours, bare] = medians(rounds, [ours, bare])?;
    Ok(Compared { ours, bare })
}

/// A minimal lock that does not record its holder; `None` if it is held.
fn flock(path: &Path) -> io::Result<Option<File>> {
    let file = OpenOptions::new().read(true).write(true).create(true).truncate(false).open(path)?;
    match file.try_lock() {
        Ok(()) => Ok(Some(file)),
        Err(TryLockError::WouldBlock) => Ok(None),
        Err(TryLockError::Error(error)) => Err(error),
    }
}

fn spent<T, E>((time, made): (Duration, Result<T, E>)) -> io::Result<Duration>
where
    E: Into<Box<dyn std::error::Error + Send + Sync>>,
{
    made.map(|_| time).map_err(io::Error::other)
}

fn manager(folder: &Path) -> io::Result<ResumeLockManager> {
    ResumeLockManager::new(folder).map_err(io::Error::other)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_operation_is_measured_and_leaves_the_lock_free() {
        let folder = tempfile::tempdir().unwrap();
        for act in [acquire_and_release, refuse] {
            let times = act(folder.path(), 3).unwrap();
            assert!(times.ours > Duration::ZERO && times.bare > Duration::ZERO);
        }
        let mut rebooted = ResumeLockData::new("job");
        rebooted.tenure.as_mut().unwrap().identity.boot_id = "earlier".into();
        for left in [left_by_another_tool("job"), rebooted] {
            take_over(folder.path(), 3, &left).unwrap();
        }
        assert!(ResumeLockManager::new(folder.path()).unwrap().holder("job").unwrap().is_none());
    }

    #[test]
    fn the_lock_of_a_live_holder_is_not_taken_over() {
        let folder = tempfile::tempdir().unwrap();
        let living = ResumeLockData { process_id: std::process::id(), ..left_by_another_tool("job") };
        assert!(take_over(folder.path(), 1, &living).is_err());
    }
}
