//! Waiting for descriptors, with a limit.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};

const BROKEN: Duration = Duration::from_millis(100);

/// Sleeps until one of them has something to say, or `limit` is over. Says which have.
///
/// An interrupted sleep counts as over: whoever waits looks again.
pub fn until_any(fds: &[BorrowedFd<'_>], limit: Duration) -> Vec<bool> {
    let mut polled: Vec<PollFd<'_>> =
        fds.iter().map(|fd| PollFd::from_borrowed_fd(*fd, PollFlags::IN)).collect();
    match poll(&mut polled, Some(&timespec(limit))) {
        Ok(_) => polled.iter().map(|fd| !fd.revents().is_empty()).collect(),
        Err(rustix::io::Errno::INTR) => vec![false; fds.len()],
        Err(_) => {
            // Whoever waits in a loop must not spin, whatever is wrong with the descriptors.
            std::thread::sleep(limit.min(BROKEN));
            vec![false; fds.len()]
        }
    }
}

/// Sleeps until each of these process descriptors tells of an end, or `limit` is over.
pub(crate) fn until_all_end(watched: &[OwnedFd], limit: Duration) {
    let end = Instant::now() + limit;
    let mut left: Vec<BorrowedFd<'_>> = watched.iter().map(AsFd::as_fd).collect();
    loop {
        let nap = end.saturating_duration_since(Instant::now());
        if nap.is_zero() {
            return;
        }
        let ended = until_any(&left, nap);
        left = left.into_iter().zip(ended).filter(|(_, ended)| !ended).map(|(fd, _)| fd).collect();
        if left.is_empty() && !watched.is_empty() {
            return;
        }
    }
}

fn timespec(duration: Duration) -> Timespec {
    Timespec {
        tv_sec: i64::try_from(duration.as_secs()).unwrap_or(i64::MAX),
        tv_nsec: i64::from(duration.subsec_nanos()),
    }
}
