//! macOS: kqueue reports the end of a process, and a signal is sent only after the start time was compared. There are no
//! subreapers, no control groups and no timers that count sleep as poll descriptors.

use std::ffi::OsString;
use std::fs::File;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStringExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use rustix::process::Signal;
use tenure_lock::{BootTime, EventQueue, ProcessInfo};

use super::verified::Verified;
use crate::timer::{Kind, Machine};

/// Whether commands can be run under a lease.
pub fn can_supervise() -> bool {
    true
}

/// Whether agents can use a sandbox that is part of the system.
pub const SYSTEM_HAS_SANDBOX: bool = true;

/// The longest argument that the system accepts, with its terminating byte.
pub(crate) const LONGEST_ARGUMENT: usize = 256 * 1024;

/// A canonical path: no links, so the same folder always has the same path. File systems ignore case here, so the path
/// has the case in which the names were created. A path that cannot be opened keeps the case in which it was written.
pub fn real_path(path: &Path) -> io::Result<PathBuf> {
    let real = path.canonicalize()?;
    let named = File::open(&real).ok().and_then(|file| rustix::fs::getpath(&file).ok());
    Ok(named.map_or(real, |name| PathBuf::from(OsString::from_vec(name.into_bytes()))))
}

/// A process, open.
#[derive(Debug)]
pub(crate) struct Handle(Verified);

impl Handle {
    pub(crate) fn open(pid: u32) -> Option<Self> {
        Verified::open(pid, watch_exit).map(Self)
    }

    pub(crate) fn signal(&self, signal: Signal) -> io::Result<()> {
        self.0.signal(signal)
    }

    pub(crate) fn exit(&self) -> Option<BorrowedFd<'_>> {
        self.0.exit.as_ref().map(AsFd::as_fd)
    }

    pub(crate) fn into_exit(self) -> Option<OwnedFd> {
        self.0.exit
    }
}

/// A queue that becomes readable with the exit of the process.
fn watch_exit(pid: u32) -> Option<OwnedFd> {
    let queue = EventQueue::new().ok()?;
    queue.watch_exit(pid).ok()?;
    Some(queue.into())
}

/// Not available: waits check the clock repeatedly instead, to notice the end of a sleep.
pub(crate) fn boot_timer(_at: BootTime) -> Option<OwnedFd> {
    None
}

pub(crate) fn environment(pid: u32) -> Option<Vec<u8>> {
    ProcessInfo::environment(pid)
}

/// Orphans go to launchd.
pub(crate) fn adopt_orphans() -> bool {
    false
}

/// How often the descendants of a command are recorded, so that orphans whose mark cannot be read are still known.
pub(crate) fn record_interval() -> Option<Duration> {
    Some(Duration::from_secs(1))
}

/// Not available: a command whose supervisor was killed ends with the next takeover.
pub(crate) fn end_with_parent() {}

pub(crate) fn control_group() -> Option<PathBuf> {
    None
}

pub(crate) fn file_in_memory() -> Option<File> {
    None
}

/// The usual kind of timer on this machine.
pub(crate) fn usual_timer(machine: &Machine) -> Option<Kind> {
    if machine.has("launchctl") { Some(Kind::Launchd) } else { machine.has("crontab").then_some(Kind::Cron) }
}
