//! Process information from procfs, without allocations except for the returned strings.
//!
//! Guarantees: an existing pid is never reported as gone, even if procfs hides other users' processes (`hidepid`), is
//! not mounted, or belongs to another pid namespace.
//! Does not distinguish the id of a thread from that of a process; it counts as running.

use std::sync::OnceLock;
use std::time::Duration;

use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;
use rustix::process::Pid;
use rustix::time::ClockId;

use crate::identity::Probe;

/// The inode of the initial time namespace, fixed by the kernel (`PROC_TIME_INIT_INO`).
const INITIAL_TIME_NS: u64 = 0xEFFF_FFFA;

/// Counts suspend, unlike `CLOCK_MONOTONIC`.
pub(crate) fn boot_time() -> Duration {
    let now = rustix::time::clock_gettime(ClockId::Boottime);
    Duration::try_from(now).unwrap_or_default()
}

/// By how many milliseconds this process's time namespace sets the boot clock ahead. Constant for the life of a process.
pub(crate) fn boot_time_offset() -> Option<i64> {
    static OFFSET: OnceLock<Option<i64>> = OnceLock::new();
    *OFFSET.get_or_init(|| match std::fs::read_to_string("/proc/self/timens_offsets") {
        Ok(text) => parse_offset(&text),
        // Kernels without time namespaces.
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => Some(0),
        Err(_) => None,
    })
}

/// A line is the name of a clock, seconds and nanoseconds.
fn parse_offset(text: &str) -> Option<i64> {
    let mut fields = text.lines().find_map(|line| line.strip_prefix("boottime"))?.split_whitespace();
    let (seconds, nanos): (i64, i64) = (fields.next()?.parse().ok()?, fields.next()?.parse().ok()?);
    seconds.checked_mul(1000)?.checked_add(nanos / 1_000_000)
}

pub(crate) fn hostname() -> String {
    rustix::system::uname().nodename().to_string_lossy().into_owned()
}

pub(crate) fn machine_id() -> Option<String> {
    ["/etc/machine-id", "/var/lib/dbus/machine-id"]
        .into_iter()
        .filter_map(first_line)
        // Some images contain this text until the first boot writes an id.
        .find(|id| id != "uninitialized")
}

pub(crate) fn boot_id() -> Option<String> {
    first_line("/proc/sys/kernel/random/boot_id")
}

/// The pid namespace, combined with the time namespace if that has offsets, because start times include them.
pub(crate) fn pid_namespace() -> u64 {
    let inode = |path| rustix::fs::stat(path).map(|stat| stat.st_ino).ok();
    let Some(pid_ns) = inode("/proc/self/ns/pid") else {
        return 0;
    };
    match inode("/proc/self/ns/time") {
        None | Some(INITIAL_TIME_NS) => pid_ns,
        Some(time_ns) => pid_ns | (time_ns << 32),
    }
}

pub(crate) fn own_start_time() -> Option<u64> {
    read_stat("/proc/self/stat").ok().flatten().map(|stat| stat.start_time)
}

pub(crate) fn probe(pid: u32) -> Probe {
    let Some(checked) = i32::try_from(pid).ok().filter(|pid| *pid > 0).and_then(Pid::from_raw) else {
        return Probe::Gone;
    };
    if procfs_is_ours() {
        match read_stat(&format!("/proc/{pid}/stat")) {
            Ok(Some(stat)) if stat.ended() => return Probe::Zombie,
            Ok(Some(stat)) => return Probe::Running { start_time: Some(stat.start_time) },
            Ok(None) | Err(_) => {}
        }
    }
    match rustix::process::test_kill_process(checked) {
        Ok(()) | Err(Errno::PERM) => Probe::Running { start_time: None },
        Err(Errno::SRCH) => Probe::Gone,
        Err(_) => Probe::Unclear,
    }
}

/// Cheaper than [`probe`]: whether any process, including a zombie, has this pid.
pub(crate) fn exists(pid: u32) -> bool {
    i32::try_from(pid)
        .ok()
        .filter(|pid| *pid > 0)
        .and_then(Pid::from_raw)
        .is_some_and(|pid| rustix::process::test_kill_process(pid) != Err(Errno::SRCH))
}

/// Whether `/proc` shows this process's pid namespace. After `unshare --pid` without a new mount it does not, and
/// `/proc/2` is an unrelated process.
fn procfs_is_ours() -> bool {
    rustix::fs::readlink("/proc/self", [0_u8; 16])
        .is_ok_and(|link| link.to_bytes() == std::process::id().to_string().as_bytes())
}

#[derive(Debug, PartialEq, Eq)]
struct Stat {
    state: u8,
    threads: u64,
    start_time: u64,
}

impl Stat {
    /// A thread-group leader that exited before its other threads is also shown as a zombie.
    fn ended(&self) -> bool {
        matches!(self.state, b'Z' | b'X' | b'x') && self.threads <= 1
    }
}

fn read_stat(path: &str) -> Result<Option<Stat>, Errno> {
    let file = rustix::fs::open(path, OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty())?;
    // 52 numbers of at most 20 digits and a name of 64 bytes.
    let mut buffer = [0_u8; 1280];
    let length = rustix::io::read(&file, &mut buffer)?;
    Ok(buffer.get(..length).and_then(parse_stat))
}

/// The name in field 2 may contain spaces and parentheses, so fields are counted from the last `)`.
fn parse_stat(text: &[u8]) -> Option<Stat> {
    let after_name = text.iter().rposition(|byte| *byte == b')')? + 1;
    let rest = std::str::from_utf8(text.get(after_name..)?).ok()?;
    let mut fields = rest.split_ascii_whitespace();
    let state = *fields.next()?.as_bytes().first()?;
    let threads = fields.nth(16)?.parse().ok()?;
    let start_time = fields.nth(1)?.parse().ok()?;
    Some(Stat { state, threads, start_time })
}

fn first_line(path: &str) -> Option<String> {
    let text = std::fs::read_to_string(path).ok()?;
    let line = text.lines().next()?.trim();
    (!line.is_empty()).then(|| line.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_offset_of_a_time_namespace_is_read() {
        let text = "monotonic           0         0\nboottime       -7200 500000000\n";
        assert_eq!(parse_offset(text), Some(-7_199_500));
        assert_eq!(parse_offset("monotonic 0 0\n"), None);
    }

    #[test]
    fn fields_are_counted_after_the_last_parenthesis() {
        let line = b"7 (a) Z (b c) S 1 7 7 0 -1 4 100 0 0 0 1 2 0 0 20 0 3 0 98765 1 2";
        assert_eq!(parse_stat(line), Some(Stat { state: b'S', threads: 3, start_time: 98765 }));
    }

    #[test]
    fn a_truncated_line_gives_no_answer() {
        for line in
            ["", "7 (a", "7 (a)", "7 (a) S 1 2 3", "7 (a) S 1 7 7 0 -1 4 100 0 0 0 1 2 0 0 20 0 x 0 5"]
        {
            assert_eq!(parse_stat(line.as_bytes()), None, "{line:?}");
        }
    }

    #[test]
    fn a_zombie_leader_with_running_threads_has_not_ended() {
        let stat = |state, threads| Stat { state, threads, start_time: 1 };
        assert!(stat(b'Z', 1).ended());
        assert!(!stat(b'Z', 2).ended());
        assert!(!stat(b'S', 1).ended());
    }

    #[test]
    fn numbers_outside_the_range_of_pids_are_gone() {
        for pid in [0, 1 << 22, i32::MAX.unsigned_abs(), 1 << 31, u32::MAX] {
            assert_eq!(probe(pid), Probe::Gone, "{pid}");
        }
    }
}
