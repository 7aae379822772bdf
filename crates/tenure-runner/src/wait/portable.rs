//! Without pidfds and timers on the boot clock: callers check again after short naps.

use std::io;
use std::os::fd::{BorrowedFd, OwnedFd};

use rustix::process::{Pid, Signal, kill_process, test_kill_process};
use tenure_lock::BootTime;

/// One process. Not guaranteed here: that its pid is not taken by another between two calls.
#[derive(Debug)]
pub struct Process(Pid);

impl Process {
    /// The process that has this pid now.
    pub fn open(pid: u32) -> Option<Self> {
        let pid = Pid::from_raw(i32::try_from(pid).ok()?)?;
        (test_kill_process(pid) != Err(rustix::io::Errno::SRCH)).then_some(Self(pid))
    }

    pub fn signal(&self, signal: Signal) -> io::Result<()> {
        Ok(kill_process(self.0, signal)?)
    }

    /// Readable once the process has exited.
    pub fn fd(&self) -> Option<BorrowedFd<'_>> {
        None
    }

    pub fn into_fd(self) -> Option<OwnedFd> {
        None
    }
}

pub(super) fn boot_timer(_at: BootTime) -> Option<OwnedFd> {
    None
}
