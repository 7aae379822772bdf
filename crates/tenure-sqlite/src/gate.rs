//! The gate: writers take turns.
//!
//! SQLite lets the writer that polls at the right moment write next, so one of eight writers starves. Two OS file locks
//! before `BEGIN IMMEDIATE` let writers take turns: a writer waits for the first lock, then takes the second and
//! releases the first, so that only one process at a time waits for the second. Both locks belong to open files and end
//! with the process that holds them.

use std::ffi::OsStr;
use std::fs::{File, TryLockError};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::mpsc;
use std::time::{Duration, Instant};

use tenure_core::error::Advice;
use tenure_core::{Error, Result};
use tenure_lock::open_private;

use crate::error::io_error;
use crate::sys;

#[derive(Debug)]
pub(crate) struct Gate {
    queue: PathBuf,
    turn: PathBuf,
    on_wait: Option<fn(&str)>,
}

/// How long the next writer tries for its turn before it blocks: first without a pause, because most turns end sooner than a sleeping
/// process is woken, then with one.
const SPINNING: Duration = Duration::from_micros(200);
const POLLING: Duration = Duration::from_millis(2);
const PAUSE: Duration = Duration::from_micros(30);

/// How long a writer waits before it calls `on_wait`.
const SILENCE: Duration = Duration::from_secs(1);

/// Held for one transaction.
#[derive(Debug)]
pub(crate) struct Pass {
    _gate: File,
}

impl Gate {
    pub(crate) fn beside(database: &Path) -> Self {
        Self {
            queue: database.with_extension("queue.lock"),
            turn: database.with_extension("gate.lock"),
            on_wait: None,
        }
    }

    /// Calls this with a sentence for the user when a turn takes longer than a second.
    #[must_use]
    pub(crate) fn on_wait(mut self, on_wait: Option<fn(&str)>) -> Self {
        self.on_wait = on_wait;
        self
    }

    /// The name of the file that a writer opens for its turn and closes after it.
    pub(crate) fn name(&self) -> Option<&OsStr> {
        self.turn.file_name()
    }

    /// A turn, if no process has one or waits for one.
    pub(crate) fn try_enter(&self) -> Option<Pass> {
        let free = |path: &Path| open(path).ok().filter(|file| file.try_lock().is_ok());
        let queue = free(&self.queue)?;
        let gate = free(&self.turn)?;
        drop(queue);
        Some(Pass { _gate: gate })
    }

    /// Waits for a turn, at most for `patience`.
    pub(crate) fn enter(&self, patience: Duration) -> Result<Pass> {
        let deadline = Instant::now() + patience;
        let queue = lock(&self.queue, Duration::ZERO, deadline, self.on_wait)?;
        // Only one process at a time waits here, so polling takes no turn from another one. Most turns end sooner than a
        // thread could be started to wait for them.
        let gate = lock(&self.turn, POLLING, deadline, self.on_wait)?;
        drop(queue);
        Ok(Pass { _gate: gate })
    }
}

/// Polls for the lock for the time `polling`, then blocks.
fn lock(path: &Path, polling: Duration, deadline: Instant, on_wait: Option<fn(&str)>) -> Result<File> {
    let file = open(path).map_err(|e| io_error(&e, "open", path))?;
    let begun = Instant::now();
    loop {
        match file.try_lock() {
            Ok(()) => return Ok(file),
            Err(TryLockError::WouldBlock) => match begun.elapsed() {
                tried if tried >= polling => break,
                tried if tried < SPINNING => std::thread::yield_now(),
                _ => std::thread::sleep(PAUSE),
            },
            Err(TryLockError::Error(e)) => return Err(io_error(&e, "lock", path)),
        }
    }
    // The kernel serves blocked lockers in the order of arrival, which polling would not, but blocking has no time
    // limit. If the deadline passes, the blocked thread remains until the process ends, or releases the lock as soon as
    // it gets it.
    let (sender, receiver) = mpsc::sync_channel(1);
    let spawned = std::thread::Builder::new().name("gate".into()).spawn(move || {
        let outcome = file.lock().map(|()| file);
        drop(sender.send(outcome));
    });
    spawned.map_err(|e| io_error(&e, "wait for", path))?;
    let left = || deadline.saturating_duration_since(Instant::now());
    let mut outcome = receiver.recv_timeout(SILENCE.min(left()));
    if outcome.is_err() && !left().is_zero() {
        if let Some(on_wait) = on_wait {
            on_wait(&format!("Waiting for {}, which is writing to the store...", holder(path)));
        }
        outcome = receiver.recv_timeout(left());
    }
    match outcome {
        Ok(Ok(file)) => Ok(file),
        Ok(Err(e)) => Err(io_error(&e, "lock", path)),
        Err(_) => Err(stuck(path)),
    }
}

fn open(path: &Path) -> io::Result<File> {
    open_private(path, File::options().read(true).write(true).create(true).truncate(false))
}

/// The process that has the lock, as far as the system reports it.
fn holder(path: &Path) -> String {
    sys::lock_holder(path).map_or_else(
        || "another process".to_owned(),
        |pid| {
            format!("process {pid}{}", sys::program_name(pid).map(|c| format!(" ({c})")).unwrap_or_default())
        },
    )
}

fn stuck(path: &Path) -> Error {
    Error::Store {
        message: format!("{} has kept the store from being written for too long", holder(path)),
        advice: Advice::note("if that process hangs, end it; its lock goes with it"),
    }
}

/// The pid of the process that keeps others from writing to this database now, if the system reports it: the one that
/// holds the gate, otherwise the one that holds the lock before it.
pub fn writer_of(database: &Path) -> Option<u32> {
    let gate = Gate::beside(database);
    sys::lock_holder(&gate.turn).or_else(|| sys::lock_holder(&gate.queue))
}
