//! Waiting: for descriptors, the end of a process, and a moment on the boot clock. The only place of this crate that polls.
//!
//! A wait may end early, for example when a signal interrupts it. Callers check again what they wait for.

use std::io;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use tenure_core::holder::{Incarnation, Judge, Liveness};
use tenure_lock::BootTime;

use crate::sys::{self, Signal};

/// The pause after a poll that failed, so that a loop around it does not spin.
const BROKEN: Duration = Duration::from_millis(100);
/// How often a process is checked whose end cannot be polled for.
const CHECK_EXIT: Duration = Duration::from_millis(50);
/// Without a timer that counts suspend: how late the end of a suspend may be noticed.
const CHECK_RESUME: Duration = Duration::from_secs(1);

/// Sleeps until a descriptor is readable or closed, or `limit` has passed. Returns which are.
pub fn until_any(fds: &[BorrowedFd<'_>], limit: Duration) -> Vec<bool> {
    let mut polled: Vec<PollFd<'_>> =
        fds.iter().map(|fd| PollFd::from_borrowed_fd(*fd, PollFlags::IN)).collect();
    match poll(&mut polled, Timespec::try_from(limit).ok().as_ref()) {
        Ok(_) => polled.iter().map(|fd| !fd.revents().is_empty()).collect(),
        Err(rustix::io::Errno::INTR) => vec![false; fds.len()],
        Err(_) => {
            std::thread::sleep(limit.min(BROKEN));
            vec![false; fds.len()]
        }
    }
}

/// Like [`until_any`], with a limit on the boot clock: a limit that passes during a suspend ends the wait on resume, while
/// the timeout of a poll does not count the suspend.
pub fn until_any_or(fds: &[BorrowedFd<'_>], at: BootTime) -> Vec<bool> {
    let left = at.since(BootTime::now());
    if left.is_zero() {
        return until_any(fds, left);
    }
    let Some(timer) = sys::boot_timer(at) else { return until_any(fds, left.min(CHECK_RESUME)) };
    let mut with_timer = fds.to_vec();
    with_timer.push(timer.as_fd());
    let mut ready = until_any(&with_timer, left);
    ready.truncate(fds.len());
    ready
}

/// Sleeps until each of these process descriptors reports an exit, or `limit` has passed.
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

/// An open process. Operations on it never affect a later process with the same pid.
#[derive(Debug)]
pub struct Process(sys::Handle);

impl Process {
    /// The process that has this pid now.
    pub fn open(pid: u32) -> Option<Self> {
        sys::Handle::open(pid).map(Self)
    }

    /// The recorded process, if it is alive.
    pub fn open_alive(recorded: &Incarnation, judge: &dyn Judge) -> Option<Self> {
        let process = Self::open(recorded.process.pid)?;
        // Checked after opening: a descriptor opened before cannot belong to a later process with the same pid.
        (judge.liveness(recorded) == Liveness::Alive).then_some(process)
    }

    pub fn signal(&self, signal: Signal) -> io::Result<()> {
        self.0.signal(signal)
    }

    /// Readable once the process has exited. Without one, its exit has to be checked for.
    pub fn fd(&self) -> Option<BorrowedFd<'_>> {
        self.0.exit()
    }

    pub fn into_fd(self) -> Option<OwnedFd> {
        self.0.into_exit()
    }
}

/// The limit for a wait that includes the process's descriptor: shorter where there is none and its exit must be checked
/// for.
pub fn limit_for(process: Option<&Process>, limit: Duration) -> Duration {
    if process.and_then(Process::fd).is_some() { limit } else { limit.min(CHECK_EXIT) }
}

#[cfg(test)]
mod tests {
    use std::os::unix::net::UnixStream;

    use super::*;

    #[test]
    fn a_wait_on_the_boot_clock_ends_at_its_moment_and_not_before() {
        let (silent, _other) = UnixStream::pair().unwrap();
        let at = BootTime::now() + Duration::from_millis(30);
        while BootTime::now() < at {
            assert_eq!(until_any_or(&[silent.as_fd()], at), [false]);
        }
        assert_eq!(until_any_or(&[silent.as_fd()], at), [false], "a moment in the past does not wait");
    }

    #[test]
    fn a_descriptor_ends_the_wait_before_its_moment() {
        let (waiting, other) = UnixStream::pair().unwrap();
        drop(other);
        let at = BootTime::now() + Duration::from_hours(1);
        assert_eq!(until_any_or(&[waiting.as_fd()], at), [true]);
    }

    #[test]
    fn the_exit_of_a_process_ends_the_wait() {
        let mut child = std::process::Command::new("sleep").arg("100").spawn().unwrap();
        let process = Process::open(child.id()).unwrap();
        assert!(until_any(&process.fd().into_iter().collect::<Vec<_>>(), Duration::ZERO).iter().all(|r| !r));
        process.signal(Signal::KILL).unwrap();
        let end = Instant::now() + Duration::from_mins(1);
        let fds: Vec<_> = process.fd().into_iter().collect();
        while child.try_wait().unwrap().is_none() {
            assert!(Instant::now() < end);
            until_any(&fds, limit_for(Some(&process), Duration::from_secs(1)));
        }
    }
}
