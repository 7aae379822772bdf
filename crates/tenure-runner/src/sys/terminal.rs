//! Gives the terminal to the command while it runs.
//!
//! The command has a separate process group, so that it can be ended as a whole. At a terminal that would put it into
//! the background, where reading stops it, so the foreground is handed over, as a shell does, and again after Ctrl+Z.
//! Without a controlling terminal, or if this process is in the background, nothing happens.

use std::fs::File;
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream;

use nix::sys::signal::{SigSet, Signal as Blockable};
use rustix::process::{
    Pid, Signal, WaitId, WaitIdOptions, getpgrp, kill_current_process_group, kill_process_group, waitid,
};
use rustix::termios::{tcgetpgrp, tcsetpgrp};
use signal_hook::SigId;

use super::unix::pid_of;

#[derive(Debug)]
pub(crate) struct Foreground {
    terminal: File,
    ours: Pid,
    theirs: Pid,
    /// Readable when the command has stopped, ended or continued.
    changes: UnixStream,
    registered: SigId,
}

impl Foreground {
    /// Gives the terminal to the command, if this process is in the foreground.
    pub(crate) fn hand_to(command: u32) -> Option<Self> {
        let theirs = pid_of(command)?;
        let terminal = File::options().read(true).write(true).open("/dev/tty").ok()?;
        // Checked first: it fails if our process group was created outside this pid namespace and has no number here.
        let front = tcgetpgrp(&terminal).ok()?;
        let ours = getpgrp();
        if front != ours {
            return None;
        }
        let (changes, tell) = UnixStream::pair().ok()?;
        changes.set_nonblocking(true).ok()?;
        let registered = signal_hook::low_level::pipe::register(signal_hook::consts::SIGCHLD, tell).ok()?;
        // A background process can take the terminal back only while it blocks this signal.
        let _ = SigSet::from(Blockable::SIGTTOU).thread_block();
        let foreground = Self { terminal, ours, theirs, changes, registered };
        foreground.give();
        Some(foreground)
    }

    /// If the command was stopped (Ctrl+Z), stops this process as well, and later continues the command.
    pub(crate) fn follow(&self) {
        let mut bytes = [0; 64];
        while rustix::io::read(&self.changes, &mut bytes).is_ok_and(|count| count == bytes.len()) {}
        let asked = WaitIdOptions::STOPPED | WaitIdOptions::NOHANG;
        if let Ok(Some(_)) = waitid(WaitId::Pid(self.theirs), asked) {
            self.take_back();
            let _ = kill_current_process_group(Signal::TSTP);
            self.give();
        }
    }

    /// Readable when the command has stopped, ended or continued.
    pub(crate) fn fd(&self) -> BorrowedFd<'_> {
        self.changes.as_fd()
    }

    fn give(&self) {
        if tcgetpgrp(&self.terminal) == Ok(self.ours) {
            let _ = tcsetpgrp(&self.terminal, self.theirs);
        }
        // It may have tried to read before it was in the foreground.
        let _ = kill_process_group(self.theirs, Signal::CONT);
    }

    fn take_back(&self) {
        if tcgetpgrp(&self.terminal) == Ok(self.theirs) {
            let _ = tcsetpgrp(&self.terminal, self.ours);
        }
    }
}

impl Drop for Foreground {
    fn drop(&mut self) {
        self.take_back();
        let _ = SigSet::from(Blockable::SIGTTOU).thread_unblock();
        signal_hook::low_level::unregister(self.registered);
    }
}
