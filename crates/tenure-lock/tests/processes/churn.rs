//! Thousands of processes that acquire the lock and then release it or die with it.

use std::fs::{File, OpenOptions};
use std::io::{Read, Write};
use std::path::{Path, PathBuf};

use tenure_lock::ResumeLockManager;

use super::rivals::foreign_json;
use super::worker::{Worker, count, role, say};

const BREEDERS: usize = 8;

/// An OS lock on a named file that is removed at release without checking that the name still refers to that file.
struct UncheckedFlock {
    path: PathBuf,
    _file: File,
}

impl UncheckedFlock {
    fn acquire(path: &Path) -> Option<Self> {
        let mut file =
            OpenOptions::new().read(true).write(true).create(true).truncate(false).open(path).ok()?;
        // Widens the race window of the missing check; a busy machine has the same effect.
        std::thread::yield_now();
        file.try_lock().ok()?;
        let mut text = String::new();
        file.read_to_string(&mut text).ok()?;
        file.set_len(0).ok()?;
        file.write_all(foreign_json("job", std::process::id()).as_bytes()).ok()?;
        Some(Self { path: path.to_owned(), _file: file })
    }
}

impl Drop for UncheckedFlock {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.path);
    }
}

pub(crate) fn short_lived_processes_never_hold_the_lock_at_the_same_time() {
    let total = count(2_000, 10_000);
    let (held, together) = breed("breed-ours", total);
    println!("{total} short-lived processes: {held} held the lock, {together} together");
    assert_eq!(together, 0);
    assert!(held > total / 20, "only {held} of {total} acquired the lock; the test shows nothing");
}

pub(crate) fn the_harness_detects_a_lock_that_does_not_compare_the_inode() {
    let (held, together) = breed("breed-unchecked", count(2_000, 10_000));
    println!("without comparing the inode: {held} held the lock, {together} together");
    assert!(together > 0, "the harness would not notice two holders");
}

/// The number of processes that held the lock, and of those that found another holder.
fn breed(name: &str, total: usize) -> (usize, usize) {
    let dir = tempfile::tempdir().unwrap();
    ResumeLockManager::new(dir.path()).unwrap();
    let workers: Vec<_> = (0..BREEDERS)
        .map(|_| {
            let mut command = role(name, dir.path());
            command.env("TENURE_LOCK_COUNT", (total / BREEDERS).to_string());
            Worker::start(command)
        })
        .collect();
    let mut sum = (0, 0);
    for worker in &workers {
        // The timeout applies per line, so that a slow machine only takes longer.
        let line = std::iter::repeat_with(|| worker.line()).find(|line| line != "on").unwrap();
        let (held, together) = line.split_once(' ').unwrap();
        sum.0 += held.parse::<usize>().unwrap();
        sum.1 += together.parse::<usize>().unwrap();
    }
    sum
}

/// The worker's part: one fork per holder, so that each holder is a separate process.
#[expect(unsafe_code, reason = "the worker has a single thread, and fork is what is tested")]
pub(crate) fn breeder(dir: &Path, ours: bool) {
    let lives: usize = std::env::var("TENURE_LOCK_COUNT").unwrap().parse().unwrap();
    let (mut held, mut together) = (0, 0);
    for life in 0..lives {
        if life.is_multiple_of(50) {
            say("on");
        }
        // SAFETY: this process has one thread.
        let child = unsafe { libc::fork() };
        assert!(child >= 0);
        if child == 0 {
            let code = if ours { live_ours(dir, life) } else { live_unchecked(dir, life) };
            // SAFETY: ends the child at once, without the parent's exit handlers and, on purpose, without any drop.
            unsafe { libc::_exit(code) };
        }
        let mut status = 0;
        // SAFETY: waits for the child just made; status is a local.
        unsafe { libc::waitpid(child, &raw mut status, 0) };
        match libc::WEXITSTATUS(status) {
            1 => held += 1,
            2 => together += 1,
            _ => {}
        }
    }
    say(&format!("{held} {together}"));
}

const TRIES: usize = 20;

fn live_ours(dir: &Path, life: usize) -> i32 {
    let manager = ResumeLockManager::new(dir).unwrap();
    for _ in 0..TRIES {
        if let Ok(lock) = manager.acquire("job") {
            let code = witness(dir);
            if life.is_multiple_of(2) {
                drop(lock);
            } else {
                std::mem::forget(lock);
            }
            return code;
        }
        std::thread::yield_now();
    }
    0
}

fn live_unchecked(dir: &Path, life: usize) -> i32 {
    for _ in 0..TRIES {
        if let Some(lock) = UncheckedFlock::acquire(&dir.join("resume_locks/job.lock")) {
            let code = witness(dir);
            if life.is_multiple_of(2) {
                drop(lock);
            } else {
                std::mem::forget(lock);
            }
            return code;
        }
        std::thread::yield_now();
    }
    0
}

/// Returns 1 if no other process is in the critical section, else 2.
fn witness(dir: &Path) -> i32 {
    let path = dir.join("inside");
    if File::create_new(&path).is_err() {
        return 2;
    }
    std::thread::yield_now();
    std::fs::remove_file(&path).unwrap();
    1
}
