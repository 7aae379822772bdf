//! Waits with a time limit for a thread, a pipe or a request to stop.

use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use rustix::fd::{AsFd, BorrowedFd};

use crate::sys::{LocalStream, local_pair};
use crate::wait::until_any;

/// Why a wait ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum WaitEnd {
    Done,
    TimedOut,
    Stopped,
}

/// A thread whose end can be polled.
#[derive(Debug)]
pub(super) struct PolledThread<T> {
    thread: JoinHandle<T>,
    ended: LocalStream,
}

impl<T: Send + 'static> PolledThread<T> {
    pub(super) fn begin(body: impl FnOnce() -> T + Send + 'static) -> std::io::Result<Self> {
        let (ended, theirs) = local_pair()?;
        let thread = std::thread::Builder::new().spawn(move || {
            let result = body();
            // Closing this end signals the end of the work, even if the body panics.
            drop(theirs);
            result
        })?;
        Ok(Self { thread, ended })
    }

    /// The result; waits for the thread if it still runs. `None` if it panicked.
    pub(super) fn result(self) -> Option<T> {
        self.thread.join().ok()
    }
}

impl<T> PolledThread<T> {
    /// Readable when the thread has ended.
    pub(super) fn fd(&self) -> BorrowedFd<'_> {
        self.ended.as_fd()
    }
}

/// Waits until `fd` or `stop` is readable or the time is over. If both are readable, `fd` wins.
pub(super) fn wait(fd: Option<BorrowedFd<'_>>, stop: Option<BorrowedFd<'_>>, end: Instant) -> WaitEnd {
    loop {
        let left = end.saturating_duration_since(Instant::now());
        let ready = ready([fd, stop], left);
        if ready[0] {
            return WaitEnd::Done;
        }
        if ready[1] {
            return WaitEnd::Stopped;
        }
        if Instant::now() >= end {
            return WaitEnd::TimedOut;
        }
    }
}

/// Waits at most `limit` and returns which descriptors are readable.
pub(super) fn ready<const N: usize>(fds: [Option<BorrowedFd<'_>>; N], limit: Duration) -> [bool; N] {
    let given: Vec<(usize, BorrowedFd<'_>)> =
        fds.iter().enumerate().filter_map(|(place, fd)| Some((place, (*fd)?))).collect();
    let polled: Vec<BorrowedFd<'_>> = given.iter().map(|(_, fd)| *fd).collect();
    let mut answer = [false; N];
    for ((place, _), is_ready) in given.into_iter().zip(until_any(&polled, limit)) {
        answer[place] = is_ready;
    }
    answer
}
