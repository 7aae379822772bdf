//! Processes by pidfd, and a timer on `CLOCK_BOOTTIME`.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::event::Timespec;
use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};
use rustix::time::{
    Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, timerfd_create, timerfd_settime,
};
use tenure_lock::BootTime;

use super::timespec;

/// One process, open: whatever is done to it never hits a later process with the same pid.
#[derive(Debug)]
pub struct Process(OwnedFd);

impl Process {
    /// The process that has this pid now.
    pub fn open(pid: u32) -> Option<Self> {
        let pid = Pid::from_raw(i32::try_from(pid).ok()?)?;
        pidfd_open(pid, PidfdFlags::empty()).ok().map(Self)
    }

    pub fn signal(&self, signal: Signal) -> io::Result<()> {
        Ok(pidfd_send_signal(&self.0, signal)?)
    }

    /// Readable once the process has exited.
    pub fn fd(&self) -> Option<BorrowedFd<'_>> {
        Some(self.0.as_fd())
    }

    pub fn into_fd(self) -> Option<OwnedFd> {
        Some(self.0)
    }
}

/// Readable from that moment on; a moment that passes during a suspend counts.
pub(super) fn boot_timer(at: BootTime) -> Option<OwnedFd> {
    let timer = timerfd_create(TimerfdClockId::Boottime, TimerfdFlags::CLOEXEC).ok()?;
    let once = Itimerspec { it_interval: Timespec::default(), it_value: timespec(at.since_boot()) };
    timerfd_settime(&timer, TimerfdTimerFlags::ABSTIME, &once).ok()?;
    Some(timer)
}
