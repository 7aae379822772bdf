//! Process information from procfs, without allocations except for the returned strings.
//!
//! Guarantees: an existing pid is never reported as gone, even if procfs hides other users' processes (`hidepid`), is
//! not mounted, or belongs to another pid namespace.
//! Does not distinguish the id of a thread from that of a process; it counts as running.

use std::collections::HashSet;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;
use rustix::mm::{Advice, MapFlags, ProtFlags};
use rustix::process::Pid;
use rustix::time::ClockId;

use crate::identity::Probe;
use crate::process_info::ProcessInfo;

/// A kernel thread (`PF_KTHREAD`).
const KERNEL_THREAD: u64 = 0x0020_0000;

/// The size of `sockaddr_un::sun_path`, with its final NUL.
pub(crate) const SOCKET_PATH_SIZE: usize = 108;

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
        Err(e) if e.kind() == io::ErrorKind::NotFound => Some(0),
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
    once_per_process(|own| &own.pid_namespace, read_pid_namespace)
}

/// `None` if it cannot be read.
pub(crate) fn own_start_time() -> Option<u64> {
    let read = || read_stat("/proc/self/stat").ok().flatten().map_or(0, |stat| stat.start_time);
    Some(once_per_process(|own| &own.start_time, read)).filter(|time| *time != 0)
}

/// What procfs says about this process, which is slow to read. It does not change during its life, unless it enters another time
/// namespace with `setns`, which [`boot_time_offset`] does not notice either. 0 means not known yet.
struct Own {
    start_time: AtomicU64,
    pid_namespace: AtomicU64,
}

/// Reads a field of [`Own`] at its first use in this process. A result of 0 is not kept.
fn once_per_process(field: impl Fn(&Own) -> &AtomicU64, read: impl Fn() -> u64) -> u64 {
    static OWN: OnceLock<Option<&'static Own>> = OnceLock::new();
    let Some(kept) = OWN.get_or_init(cleared_in_children).map(field) else { return read() };
    match kept.load(Ordering::Relaxed) {
        0 => {
            let value = read();
            kept.store(value, Ordering::Relaxed);
            value
        }
        value => value,
    }
}

/// Memory that the kernel fills with zeros in every child with its own memory, also in one created by a bare `clone` system
/// call, whose pid may even be the same in another namespace. `None` before Linux 4.14.
#[expect(unsafe_code, reason = "no other memory can be cleared by the kernel in a child")]
fn cleared_in_children() -> Option<&'static Own> {
    let (length, access) = (size_of::<Own>(), ProtFlags::READ | ProtFlags::WRITE);
    // SAFETY: a new mapping, which overlaps no other and is never unmapped. It begins with zeros, which are a valid `Own`, and
    // it is written only through atomics.
    unsafe {
        let start =
            rustix::mm::mmap_anonymous(std::ptr::null_mut(), length, access, MapFlags::PRIVATE).ok()?;
        // On failure, a page of address space that was never touched remains.
        rustix::mm::madvise(start, length, Advice::LinuxWipeOnFork).ok()?;
        Some(&*start.cast::<Own>())
    }
}

fn read_pid_namespace() -> u64 {
    let inode = |path| rustix::fs::stat(path).map(|stat| stat.st_ino).ok();
    let Some(pid_ns) = inode("/proc/self/ns/pid") else {
        return 0;
    };
    match inode("/proc/self/ns/time") {
        None | Some(INITIAL_TIME_NS) => pid_ns,
        Some(time_ns) => pid_ns | (time_ns << 32),
    }
}

pub(crate) fn probe(pid: u32) -> Probe {
    let Some(checked) = i32::try_from(pid).ok().filter(|pid| *pid > 0).and_then(Pid::from_raw) else {
        return Probe::Gone;
    };
    // One call is enough for most of the dead.
    if rustix::process::test_kill_process(checked) == Err(Errno::SRCH) {
        return Probe::Gone;
    }
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

/// For temporary files of this user, which `TMPDIR` may move.
pub(crate) fn temporary_folder() -> PathBuf {
    std::env::temp_dir()
}

/// Fails if `/proc` shows the pids of another namespace, as after `unshare --pid` without a new mount.
pub(crate) fn list() -> io::Result<Vec<ProcessInfo>> {
    if !procfs_is_ours() {
        return Err(io::Error::other("/proc shows the processes of another pid namespace"));
    }
    Ok(pids()?.into_iter().filter_map(info).collect())
}

fn pids() -> io::Result<Vec<u32>> {
    let entries = std::fs::read_dir("/proc")?;
    Ok(entries.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok()).collect())
}

pub(crate) fn info(pid: u32) -> Option<ProcessInfo> {
    // As bytes, because a process name may contain any byte.
    parse_info(pid, &std::fs::read(format!("/proc/{pid}/stat")).ok()?)
}

pub(crate) fn environment(pid: u32) -> Option<Vec<u8>> {
    std::fs::read(format!("/proc/{pid}/environ")).ok()
}

pub(crate) fn command_line(pid: u32) -> Vec<u8> {
    let line = std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
    if line.iter().any(|byte| *byte != 0) {
        return line;
    }
    std::fs::read_to_string(format!("/proc/{pid}/comm")).unwrap_or_default().trim().into()
}

pub(crate) fn belongs_to(pid: u32, uid: u32) -> bool {
    std::fs::read_to_string(format!("/proc/{pid}/status")).is_ok_and(|text| has_uids(&text, uid))
}

fn has_uids(status: &str, uid: u32) -> bool {
    let Some(line) = status.lines().find_map(|line| line.strip_prefix("Uid:")) else { return false };
    let ids: Vec<_> = line.split_ascii_whitespace().take(2).map(str::parse).collect();
    ids.len() == 2 && ids.into_iter().all(|id| id == Ok(uid))
}

pub(crate) fn open_terminals(pid: u32) -> Vec<u32> {
    let descriptors = std::fs::read_dir(format!("/proc/{pid}/fd")).into_iter().flatten().flatten();
    let terminal = |path: PathBuf| {
        let target = std::fs::read_link(&path).ok()?;
        let name = target.to_str()?;
        if !name.starts_with("/dev/pts/") && !name.starts_with("/dev/tty") {
            return None;
        }
        let device = std::fs::metadata(&path).ok()?.rdev();
        Some(terminal_number(rustix::fs::major(device), rustix::fs::minor(device)))
    };
    descriptors.filter_map(|entry| terminal(entry.path())).collect()
}

/// A device number as in `/proc/PID/stat`.
fn terminal_number(major: u32, minor: u32) -> u32 {
    (minor & 0xff) | (major << 8) | ((minor & !0xff) << 12)
}

/// In clock ticks, 100 per second.
pub(crate) fn present_start_time() -> u64 {
    u64::try_from(boot_time().as_millis() / 10).unwrap_or(u64::MAX)
}

pub(crate) fn children() -> Option<HashSet<u32>> {
    let me = std::process::id();
    let tasks = std::fs::read_dir("/proc/self/task").ok()?;
    let lists: io::Result<Vec<String>> =
        tasks.flatten().map(|task| std::fs::read_to_string(task.path().join("children"))).collect();
    match lists {
        Ok(lists) => {
            Some(lists.iter().flat_map(|l| l.split_whitespace()).filter_map(|p| p.parse().ok()).collect())
        }
        // The kernel was built without these lists, or a thread has ended meanwhile.
        Err(_) => {
            Some(pids().ok()?.into_iter().filter(|pid| info(*pid).is_some_and(|f| f.parent == me)).collect())
        }
    }
}

/// `None` for a kernel thread. Fields are counted from the last `)`, as in [`parse_stat`].
fn parse_info(pid: u32, stat: &[u8]) -> Option<ProcessInfo> {
    let after_name = stat.iter().rposition(|byte| *byte == b')')? + 1;
    let rest = std::str::from_utf8(stat.get(after_name..)?).ok()?;
    let fields: Vec<&str> = rest.split_ascii_whitespace().collect();
    let number = |index: usize| fields.get(index)?.parse::<u64>().ok();
    let small = |index: usize| u32::try_from(number(index)?).ok();
    if number(6)? & KERNEL_THREAD != 0 {
        return None;
    }
    let state =
        Stat { state: *fields.first()?.as_bytes().first()?, threads: number(17)?, start_time: number(19)? };
    Some(ProcessInfo {
        pid,
        parent: small(1)?,
        group: small(2)?,
        session: small(3)?,
        // Shown as a signed number.
        terminal: u32::try_from(fields.get(4)?.parse::<i64>().ok()? & 0xffff_ffff).ok()?,
        start_time: state.start_time,
        ended: state.ended(),
    })
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
    fn the_facts_of_a_process_are_read_after_the_last_parenthesis() {
        let line = b"7 (a) Z (b c) S 1 3 7 0 -1 4 100 0 0 0 1 2 0 0 20 0 3 0 98765 1 2";
        let facts = ProcessInfo {
            pid: 7,
            parent: 1,
            group: 3,
            session: 7,
            terminal: 0,
            start_time: 98765,
            ended: false,
        };
        assert_eq!(parse_info(7, line), Some(facts));
        assert_eq!(parse_info(7, b"7 (a) S 1 3"), None);
        let zombie = b"7 (a) Z 1 3 7 0 -1 4 100 0 0 0 1 2 0 0 20 0 1 0 98765 1 2";
        assert!(parse_info(7, zombie).is_some_and(|facts| facts.ended));
        let kernel = b"7 (a) S 1 3 7 0 -1 2097152 100 0 0 0 1 2 0 0 20 0 1 0 98765 1 2";
        assert_eq!(parse_info(7, kernel), None);
    }

    #[test]
    fn a_process_belongs_to_the_user_by_both_real_and_effective_uid() {
        let status = "Name:\tsh\nUid:\t1000\t1000\t1000\t1000\nGid:\t5\t5\t5\t5\n";
        assert!(has_uids(status, 1000));
        assert!(!has_uids(status, 0));
        assert!(!has_uids("Uid:\t1000\t0\t0\t0\n", 1000));
        assert!(!has_uids("Uid:\t0\t1000\t0\t0\n", 1000));
        assert!(!has_uids("Name:\tsh\n", 1000));
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
