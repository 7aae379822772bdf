//! One process by pid and start time, for systems on which a process has no descriptor.

use std::io;
use std::os::fd::OwnedFd;

use rustix::io::Errno;
use rustix::process::{Pid, Signal, kill_process};
use tenure_lock::ProcessInfo;

/// Guaranteed: pid and start time are compared just before a signal is sent. Not guaranteed: that the process does not
/// end, and its pid is not reused, between the comparison and the signal.
#[derive(Debug)]
pub(crate) struct Verified {
    pid: u32,
    start_time: u64,
    pub(crate) exit: Option<OwnedFd>,
}

impl Verified {
    /// The process that has this pid now. `watch` returns a descriptor that is readable once the pid has exited.
    pub(crate) fn open(pid: u32, watch: impl FnOnce(u32) -> Option<OwnedFd>) -> Option<Self> {
        let start_time = ProcessInfo::of(pid)?.start_time;
        let exit = watch(pid);
        // Compared again, so that the watched process is the one whose start time was read.
        ProcessInfo::is_running_since(pid, start_time).then_some(Self { pid, start_time, exit })
    }

    pub(crate) fn signal(&self, signal: Signal) -> io::Result<()> {
        let pid = i32::try_from(self.pid).ok().and_then(Pid::from_raw).ok_or(Errno::SRCH)?;
        if !ProcessInfo::is_running_since(self.pid, self.start_time) {
            return Err(Errno::SRCH.into());
        }
        Ok(kill_process(pid, signal)?)
    }
}

#[cfg(test)]
mod tests {
    use std::process::{Child, Command};

    use super::*;

    fn sleeper() -> Child {
        Command::new("sleep").arg("100").spawn().unwrap()
    }

    #[test]
    fn a_pid_that_was_given_to_another_process_is_not_signalled() {
        let mut child = sleeper();
        let mut opened = Verified::open(child.id(), |_| None).unwrap();
        opened.start_time += 1;
        assert_eq!(opened.signal(Signal::KILL).unwrap_err().raw_os_error(), Some(Errno::SRCH.raw_os_error()));
        assert!(child.try_wait().unwrap().is_none(), "the other process was killed");
        opened.start_time -= 1;
        opened.signal(Signal::KILL).unwrap();
        child.wait().unwrap();
    }

    #[test]
    fn a_process_that_ended_while_it_was_opened_is_not_returned() {
        let mut child = sleeper();
        let pid = child.id();
        let opened = Verified::open(pid, |_| {
            child.kill().unwrap();
            child.wait().unwrap();
            None
        });
        assert!(opened.is_none());
    }
}
