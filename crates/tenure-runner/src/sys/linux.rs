//! Linux: processes by pidfd, a timer on `CLOCK_BOOTTIME`, subreapers, control groups, files in memory.

use std::fs::File;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::time::Duration;

use rustix::event::Timespec;
use rustix::fs::{MemfdFlags, memfd_create};
use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};
use rustix::time::{
    Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, timerfd_create, timerfd_settime,
};
use tenure_lock::{BootTime, ProcessInfo};

#[cfg(feature = "simulation")]
use super::{simulation, verified::Verified};
use crate::timer::{Kind, Machine};

/// Whether commands can be run under a lease.
pub fn can_supervise() -> bool {
    !simulates_windows()
}

/// Whether agents can use a sandbox that is part of the system.
pub const SYSTEM_HAS_SANDBOX: bool = false;

/// The longest argument that the system accepts, with its terminating byte.
pub(crate) const LONGEST_ARGUMENT: usize = 128 * 1024;

/// A canonical path: no links, so the same folder always has the same path. Case-insensitive folders are rare on Linux; there
/// the path keeps the case in which it was written.
pub fn real_path(path: &Path) -> io::Result<PathBuf> {
    #[cfg(feature = "simulation")]
    if simulation::is_macos() {
        return simulation::as_created(path)?.canonicalize();
    }
    path.canonicalize()
}

/// An open process. A later process with the same pid is never mistaken for it.
#[derive(Debug)]
pub(crate) enum Handle {
    Descriptor(OwnedFd),
    #[cfg(feature = "simulation")]
    Verified(Verified),
}

impl Handle {
    pub(crate) fn open(pid: u32) -> Option<Self> {
        #[cfg(feature = "simulation")]
        if simulation::is_macos() {
            return Verified::open(pid, |_| None).map(Self::Verified);
        }
        let pid = Pid::from_raw(i32::try_from(pid).ok()?)?;
        pidfd_open(pid, PidfdFlags::empty()).ok().map(Self::Descriptor)
    }

    pub(crate) fn signal(&self, signal: Signal) -> io::Result<()> {
        match self {
            Self::Descriptor(fd) => Ok(pidfd_send_signal(fd, signal)?),
            #[cfg(feature = "simulation")]
            Self::Verified(process) => process.signal(signal),
        }
    }

    pub(crate) fn exit(&self) -> Option<BorrowedFd<'_>> {
        match self {
            Self::Descriptor(fd) => Some(fd.as_fd()),
            #[cfg(feature = "simulation")]
            Self::Verified(process) => process.exit.as_ref().map(AsFd::as_fd),
        }
    }

    pub(crate) fn into_exit(self) -> Option<OwnedFd> {
        match self {
            Self::Descriptor(fd) => Some(fd),
            #[cfg(feature = "simulation")]
            Self::Verified(process) => process.exit,
        }
    }
}

#[cfg(feature = "simulation")]
fn simulates_macos() -> bool {
    simulation::is_macos()
}

#[cfg(feature = "simulation")]
fn simulates_windows() -> bool {
    simulation::is_windows()
}

#[cfg(not(feature = "simulation"))]
fn simulates_windows() -> bool {
    false
}

#[cfg(not(feature = "simulation"))]
fn simulates_macos() -> bool {
    false
}

/// A descriptor that becomes readable at that moment, even if the moment passes during a suspend.
pub(crate) fn boot_timer(at: BootTime) -> Option<OwnedFd> {
    if simulates_macos() {
        return None;
    }
    let timer = timerfd_create(TimerfdClockId::Boottime, TimerfdFlags::CLOEXEC).ok()?;
    let since_boot = at.since_boot();
    let value = Timespec {
        tv_sec: i64::try_from(since_boot.as_secs()).unwrap_or(i64::MAX),
        tv_nsec: i64::from(since_boot.subsec_nanos()),
    };
    let once = Itimerspec { it_interval: Timespec::default(), it_value: value };
    timerfd_settime(&timer, TimerfdTimerFlags::ABSTIME, &once).ok()?;
    Some(timer)
}

pub(crate) fn environment(pid: u32) -> Option<Vec<u8>> {
    #[cfg(feature = "simulation")]
    if simulation::is_macos() && simulation::hides_environment(pid) {
        return None;
    }
    ProcessInfo::environment(pid)
}

/// Makes this process the parent of its descendants whose parent ends.
pub(crate) fn adopt_orphans() -> bool {
    !simulates_macos() && rustix::process::set_child_subreaper(Some(Pid::INIT)).is_ok()
}

/// How often the descendants of a command are recorded. Not needed on Linux: orphans are adopted and marks
/// can be read.
pub(crate) fn record_interval() -> Option<Duration> {
    simulates_macos().then_some(Duration::from_millis(200))
}

/// The system kills this process when its parent ends. Only shortens the time to a takeover, which finds the process by its
/// mark in any case.
pub(crate) fn end_with_parent() {
    if !simulates_macos() {
        let _ = rustix::process::set_parent_process_death_signal(Some(Signal::KILL));
    }
}

/// The folder of this process's control group, if it is not the root.
pub(crate) fn control_group() -> Option<PathBuf> {
    if simulates_macos() {
        return None;
    }
    let mounts = std::fs::read_to_string("/proc/self/mountinfo").ok()?;
    own_folder(&std::fs::read_to_string("/proc/self/cgroup").ok()?, &mounts)
}

/// A file without a name that is not on a disk.
pub(crate) fn file_in_memory() -> Option<File> {
    memfd_create("tenure-input", MemfdFlags::CLOEXEC).ok().map(File::from)
}

/// The usual kind of timer on this machine, if any.
pub(crate) fn usual_timer(machine: &Machine) -> Option<Kind> {
    if machine.has("crontab") {
        Some(Kind::Cron)
    } else if machine.has("systemctl") && Path::new("/run/systemd/system").exists() {
        Some(Kind::Systemd)
    } else {
        None
    }
}

/// The folder of a process's control group, from the texts of its `/proc/PID/cgroup` and `/proc/PID/mountinfo`.
fn own_folder(cgroup: &str, mounts: &str) -> Option<PathBuf> {
    let path = cgroup.lines().find_map(|line| line.strip_prefix("0::"))?;
    if path == "/" || path.contains("/..") {
        return None;
    }
    mounts.lines().find_map(|line| {
        let (mount, kind) = line.split_once(" - ")?;
        if !kind.starts_with("cgroup2 ") {
            return None;
        }
        let mut fields = mount.split(' ').skip(3);
        let (root, point) = (fields.next()?, fields.next()?);
        let below = Path::new(path).strip_prefix(root).ok()?;
        Some(Path::new(point).join(below))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const MOUNTS: &str = "\
        23 1 0:5 / /proc rw - proc proc rw\n\
        30 23 0:26 / /sys/fs/cgroup rw,nosuid shared:4 - cgroup2 cgroup2 rw,nsdelegate\n";

    #[test]
    fn the_own_folder_is_below_the_mount_of_version_2() {
        let own = own_folder("1:cpu:/x\n0::/user.slice/app.service\n", MOUNTS);
        assert_eq!(own, Some(PathBuf::from("/sys/fs/cgroup/user.slice/app.service")));
        assert_eq!(own_folder("0::/\n", MOUNTS), None, "the root is not delegated");
        assert_eq!(own_folder("1:cpu:/x\n", MOUNTS), None);
        assert_eq!(own_folder("0::/a\n", "23 1 0:5 / /proc rw - proc proc rw\n"), None);
        let below = "30 23 0:26 /user.slice /cg rw - cgroup2 cgroup2 rw\n";
        assert_eq!(own_folder("0::/user.slice/a\n", below), Some(PathBuf::from("/cg/a")));
        assert_eq!(own_folder("0::/system.slice/a\n", below), None);
    }
}
