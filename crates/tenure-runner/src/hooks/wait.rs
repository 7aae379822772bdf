//! Waiting for a thread, a pipe or a request to stop, with a limit.

use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use crate::wait::until_any;

/// Why a wait is over.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Over {
    Done,
    TimedOut,
    Stopped,
}

/// Work in a thread of its own, whose end can be polled for.
#[derive(Debug)]
pub(super) struct Work<T> {
    thread: JoinHandle<T>,
    ended: UnixStream,
}

impl<T: Send + 'static> Work<T> {
    pub(super) fn begin(body: impl FnOnce() -> T + Send + 'static) -> std::io::Result<Self> {
        let (ended, theirs) = UnixStream::pair()?;
        let thread = std::thread::Builder::new().spawn(move || {
            let result = body();
            // Closing its end is the message, also if the body panics.
            drop(theirs);
            result
        })?;
        Ok(Self { thread, ended })
    }

    /// What it returned. Only after its end, or this waits for it; none if it panicked.
    pub(super) fn result(self) -> Option<T> {
        self.thread.join().ok()
    }
}

impl<T> AsFd for Work<T> {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.ended.as_fd()
    }
}

/// Sleeps until `fd` has something to say, `stop` does, or the time is over. `fd` wins, then `stop`.
pub(super) fn wait(fd: Option<BorrowedFd<'_>>, stop: Option<BorrowedFd<'_>>, end: Instant) -> Over {
    loop {
        let left = end.saturating_duration_since(Instant::now());
        let ready = ready([fd, stop], left);
        if ready[0] {
            return Over::Done;
        }
        if ready[1] {
            return Over::Stopped;
        }
        if Instant::now() >= end {
            return Over::TimedOut;
        }
    }
}

/// Which of them have something to say, at the latest after `limit`.
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
