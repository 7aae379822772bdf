//! Waiting for a thread, a pipe or a request to stop, with a limit.

use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;

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
    let mut answer = [false; N];
    let mut polled = Vec::with_capacity(N);
    for (index, fd) in fds.iter().enumerate() {
        polled.extend(fd.map(|fd| (index, PollFd::from_borrowed_fd(fd, PollFlags::IN))));
    }
    let (places, mut polled): (Vec<usize>, Vec<PollFd<'_>>) = polled.into_iter().unzip();
    let limit = Timespec {
        tv_sec: i64::try_from(limit.as_secs()).unwrap_or(i64::MAX),
        tv_nsec: i64::from(limit.subsec_nanos()),
    };
    match poll(&mut polled, Some(&limit)) {
        Ok(_) => {
            for (place, fd) in places.into_iter().zip(polled) {
                answer[place] = !fd.revents().is_empty();
            }
        }
        Err(Errno::INTR) => {}
        // Whoever waits in a loop must not spin, whatever is wrong with the descriptors.
        Err(_) => std::thread::sleep(Duration::from_millis(20)),
    }
    answer
}
