//! Process information from sysctl (`KERN_PROC`, `KERN_PROCARGS2`) and libproc.
//!
//! Guarantees: an existing pid is never reported as gone. macOS has no pid namespaces, so all processes use the
//! number 1. Start times are readings of the wall clock.

use std::collections::HashSet;
use std::ffi::{CStr, OsString};
use std::io;
use std::mem::{MaybeUninit, offset_of, size_of};
use std::os::unix::ffi::OsStringExt;
use std::path::PathBuf;
use std::time::{Duration, SystemTime};

use rustix::io::Errno;
use rustix::process::Pid;

use crate::identity::Probe;
use crate::process_info::ProcessInfo;

/// `SZOMB` of `sys/proc.h`.
const ZOMBIE: u8 = 5;

/// The size of `sockaddr_un::sun_path`, with its final NUL.
pub(crate) const SOCKET_PATH_SIZE: usize = 104;

/// `struct kinfo_proc` of `sys/sysctl.h`, of which only some fields have names.
#[repr(C)]
#[derive(Clone, Copy)]
struct KernelProcess {
    seconds: i64,
    micros: i32,
    _a: [u8; 24],
    state: u8,
    _b: [u8; 3],
    pid: i32,
    _c: [u8; 348],
    real_uid: u32,
    _d: [u8; 24],
    effective_uid: u32,
    _e: [u8; 136],
    parent: i32,
    group: i32,
    _f: [u8; 4],
    terminal: i32,
    _g: [u8; 72],
}

const _: () = {
    assert!(offset_of!(KernelProcess, state) == 36);
    assert!(offset_of!(KernelProcess, pid) == 40);
    assert!(offset_of!(KernelProcess, real_uid) == 392);
    assert!(offset_of!(KernelProcess, effective_uid) == 420);
    assert!(offset_of!(KernelProcess, parent) == 560);
    assert!(offset_of!(KernelProcess, group) == 564);
    assert!(offset_of!(KernelProcess, terminal) == 572);
    assert!(size_of::<KernelProcess>() == 648);
};

/// `struct vnode_fdinfo` of `sys/proc_info.h`.
#[repr(C)]
struct OpenVnode {
    _file: [u64; 3],
    vnode: libc::vnode_info,
}

/// `PROC_PIDFDVNODEINFO` of `sys/proc_info.h`.
const OPEN_VNODE: i32 = 1;

/// `CLOCK_MONOTONIC_RAW` counts sleep here, and setting the wall clock does not change it.
#[expect(unsafe_code, reason = "this clock has no safe binding")]
pub(crate) fn boot_time() -> Duration {
    let mut now = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the result is a local.
    unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC_RAW, &raw mut now) };
    let (seconds, nanos) = (u64::try_from(now.tv_sec), u32::try_from(now.tv_nsec));
    Duration::new(seconds.unwrap_or(0), nanos.unwrap_or(0))
}

/// There are no time namespaces.
pub(crate) fn boot_time_offset() -> Option<i64> {
    Some(0)
}

pub(crate) fn hostname() -> String {
    rustix::system::uname().nodename().to_string_lossy().into_owned()
}

pub(crate) fn machine_id() -> Option<String> {
    host_uuid()
}

pub(crate) fn boot_id() -> Option<String> {
    sysctl_string(c"kern.bootsessionuuid")
}

pub(crate) fn pid_namespace() -> u64 {
    1
}

pub(crate) fn own_start_time() -> Option<u64> {
    info(std::process::id()).map(|info| info.start_time)
}

pub(crate) fn probe(pid: u32) -> Probe {
    let Some(checked) = i32::try_from(pid).ok().filter(|pid| *pid > 0).and_then(Pid::from_raw) else {
        return Probe::Gone;
    };
    if let Some(info) = info(pid) {
        if info.ended {
            return Probe::Zombie;
        }
        return Probe::Running { start_time: Some(info.start_time) };
    }
    match rustix::process::test_kill_process(checked) {
        Ok(()) | Err(Errno::PERM) => Probe::Running { start_time: None },
        Err(Errno::SRCH) => Probe::Gone,
        Err(_) => Probe::Unclear,
    }
}

pub(crate) fn list() -> io::Result<Vec<ProcessInfo>> {
    let all = processes(&[libc::CTL_KERN, libc::KERN_PROC, libc::KERN_PROC_ALL])?;
    Ok(all.iter().filter_map(facts).collect())
}

pub(crate) fn info(pid: u32) -> Option<ProcessInfo> {
    facts(&process(pid)?)
}

pub(crate) fn belongs_to(pid: u32, uid: u32) -> bool {
    process(pid).is_some_and(|found| found.real_uid == uid && found.effective_uid == uid)
}

fn process(pid: u32) -> Option<KernelProcess> {
    let pid = i32::try_from(pid).ok().filter(|pid| *pid > 0)?;
    let found = processes(&[libc::CTL_KERN, libc::KERN_PROC, libc::KERN_PROC_PID, pid]).ok()?;
    found.into_iter().find(|found| found.pid == pid)
}

/// None for the kernel itself, which has the pid 0.
fn facts(found: &KernelProcess) -> Option<ProcessInfo> {
    let number = |value: i32| u32::try_from(value).ok();
    let pid = Pid::from_raw(found.pid)?;
    let seconds = u64::try_from(found.seconds).ok()?;
    Some(ProcessInfo {
        pid: number(found.pid)?,
        parent: number(found.parent)?,
        group: number(found.group)?,
        session: rustix::process::getsid(Some(pid))
            .ok()
            .and_then(|session| number(session.as_raw_nonzero().get()))
            .unwrap_or(0),
        // -1 (`NODEV`) without a terminal.
        terminal: number(found.terminal).unwrap_or(0),
        start_time: seconds.saturating_mul(1_000_000).saturating_add(u64::try_from(found.micros).ok()?),
        ended: found.state == ZOMBIE,
    })
}

/// An empty list if there is no such process.
fn processes(name: &[i32]) -> io::Result<Vec<KernelProcess>> {
    const SIZE: usize = size_of::<KernelProcess>();
    let bytes = sysctl(name)?;
    let (chunks, _) = bytes.as_chunks::<SIZE>();
    Ok(chunks.iter().map(read_process).collect())
}

#[expect(unsafe_code, reason = "bytes of the kernel become a structure")]
fn read_process(bytes: &[u8; size_of::<KernelProcess>()]) -> KernelProcess {
    // SAFETY: the structure is plain numbers of that size, and the read needs no alignment.
    unsafe { bytes.as_ptr().cast::<KernelProcess>().read_unaligned() }
}

/// The result of a sysctl. It may grow between the call for its size and the call for its data, so both are retried.
#[expect(unsafe_code, reason = "sysctl has no safe binding")]
fn sysctl(name: &[i32]) -> io::Result<Vec<u8>> {
    let mut name = name.to_vec();
    let count = u32::try_from(name.len()).unwrap_or(0);
    let none = std::ptr::null_mut();
    for _ in 0..10 {
        let mut size = 0;
        // SAFETY: count is the length of the name; without a buffer only the size is written.
        if unsafe { libc::sysctl(name.as_mut_ptr(), count, none, &raw mut size, none, 0) } != 0 {
            return Err(io::Error::last_os_error());
        }
        let mut buffer = vec![0_u8; size + size / 4];
        let mut length = buffer.len();
        // SAFETY: length is the size of the buffer.
        let result = unsafe {
            libc::sysctl(name.as_mut_ptr(), count, buffer.as_mut_ptr().cast(), &raw mut length, none, 0)
        };
        if result == 0 {
            buffer.truncate(length);
            return Ok(buffer);
        }
        let error = io::Error::last_os_error();
        if error.raw_os_error() != Some(libc::ENOMEM) {
            return Err(error);
        }
    }
    Err(io::ErrorKind::OutOfMemory.into())
}

/// What `KERN_PROCARGS2` shows: the number of arguments, the path of the program, NULs, the arguments, and the environment,
/// which the kernel leaves out for system programs.
fn start_area(pid: u32) -> Option<StartArea> {
    let bytes = sysctl(&[libc::CTL_KERN, libc::KERN_PROCARGS2, i32::try_from(pid).ok()?]).ok()?;
    split_start_area(&bytes)
}

#[derive(Debug, PartialEq, Eq)]
struct StartArea {
    arguments: Vec<u8>,
    environment: Vec<u8>,
}

fn split_start_area(bytes: &[u8]) -> Option<StartArea> {
    let (count, rest) = bytes.split_first_chunk::<4>()?;
    let count = usize::try_from(i32::from_ne_bytes(*count)).ok()?;
    let path = rest.iter().position(|byte| *byte == 0)?;
    let rest = rest.get(path..)?;
    let first = rest.iter().position(|byte| *byte != 0)?;
    let rest = rest.get(first..)?;
    let ends = rest.iter().enumerate().filter(|(_, byte)| **byte == 0).map(|(index, _)| index + 1);
    let end = if count == 0 { 0 } else { ends.take(count).last()? };
    let (arguments, environment) = rest.split_at_checked(end)?;
    Some(StartArea { arguments: arguments.to_vec(), environment: environment.to_vec() })
}

pub(crate) fn environment(pid: u32) -> Option<Vec<u8>> {
    start_area(pid).map(|area| area.environment)
}

#[expect(unsafe_code, reason = "libproc has no safe binding")]
pub(crate) fn command_line(pid: u32) -> Vec<u8> {
    if let Some(area) = start_area(pid).filter(|area| area.arguments.iter().any(|byte| *byte != 0)) {
        return area.arguments;
    }
    let Ok(pid) = i32::try_from(pid) else { return Vec::new() };
    let mut name = vec![0_u8; 256];
    // SAFETY: the buffer has the given size.
    let length = unsafe { libc::proc_name(pid, name.as_mut_ptr().cast(), 256) };
    name.truncate(usize::try_from(length).unwrap_or(0));
    name
}

#[expect(unsafe_code, reason = "libproc has no safe binding")]
pub(crate) fn open_terminals(pid: u32) -> Vec<u32> {
    let Ok(pid) = i32::try_from(pid) else { return Vec::new() };
    let one = size_of::<libc::proc_fdinfo>();
    // SAFETY: without a buffer, the size that one would need is returned.
    let size = unsafe { libc::proc_pidinfo(pid, libc::PROC_PIDLISTFDS, 0, std::ptr::null_mut(), 0) };
    let room = usize::try_from(size).unwrap_or(0) / one + 16;
    let mut list = vec![libc::proc_fdinfo { proc_fd: -1, proc_fdtype: 0 }; room];
    let bytes = i32::try_from(room * one).unwrap_or(0);
    // SAFETY: the buffer has the given size.
    let written =
        unsafe { libc::proc_pidinfo(pid, libc::PROC_PIDLISTFDS, 0, list.as_mut_ptr().cast(), bytes) };
    list.truncate(usize::try_from(written).unwrap_or(0) / one);
    let is_file = |open: &&libc::proc_fdinfo| i32::try_from(open.proc_fdtype) == Ok(libc::PROX_FDTYPE_VNODE);
    list.iter().filter(is_file).filter_map(|open| terminal_at(pid, open.proc_fd)).collect()
}

/// The device number of the character device at a descriptor.
#[expect(unsafe_code, reason = "libproc has no safe binding")]
fn terminal_at(pid: i32, descriptor: i32) -> Option<u32> {
    let mut open = MaybeUninit::<OpenVnode>::zeroed();
    let size = i32::try_from(size_of::<OpenVnode>()).ok()?;
    // SAFETY: the buffer has the given size.
    let written =
        unsafe { libc::proc_pidfdinfo(pid, descriptor, OPEN_VNODE, open.as_mut_ptr().cast(), size) };
    if written != size {
        return None;
    }
    // SAFETY: the structure is plain numbers, and the call has filled it.
    let stat = unsafe { open.assume_init() }.vnode.vi_stat;
    (stat.vst_mode & libc::S_IFMT == libc::S_IFCHR).then_some(stat.vst_rdev)
}

/// In microseconds since 1970.
pub(crate) fn present_start_time() -> u64 {
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    u64::try_from(now.as_micros()).unwrap_or(u64::MAX)
}

pub(crate) fn children() -> Option<HashSet<u32>> {
    let me = std::process::id();
    Some(list().ok()?.into_iter().filter(|info| info.parent == me).map(|info| info.pid).collect())
}

/// The user's own folder below `/var/folders`, which is the same for a login, for launchd and over ssh.
#[expect(unsafe_code, reason = "confstr has no safe binding")]
pub(crate) fn temporary_folder() -> PathBuf {
    let mut buffer = vec![0_u8; 1024];
    // SAFETY: the length is the size of the buffer.
    let length =
        unsafe { libc::confstr(libc::_CS_DARWIN_USER_TEMP_DIR, buffer.as_mut_ptr().cast(), buffer.len()) };
    if length <= 1 || length > buffer.len() {
        return std::env::temp_dir();
    }
    // The length includes the final NUL.
    buffer.truncate(length - 1);
    PathBuf::from(OsString::from_vec(buffer))
}

#[expect(unsafe_code, reason = "sysctlbyname has no safe binding")]
fn sysctl_string(name: &CStr) -> Option<String> {
    let mut buffer = [0_u8; 128];
    let mut length = buffer.len();
    // SAFETY: name ends with NUL, and length is the size of the buffer.
    let result = unsafe {
        libc::sysctlbyname(
            name.as_ptr(),
            buffer.as_mut_ptr().cast(),
            &raw mut length,
            std::ptr::null_mut(),
            0,
        )
    };
    if result != 0 {
        return None;
    }
    let text = CStr::from_bytes_until_nul(buffer.get(..length)?).ok()?.to_str().ok()?.trim();
    (!text.is_empty()).then(|| text.to_owned())
}

#[expect(unsafe_code, reason = "gethostuuid has no safe binding")]
fn host_uuid() -> Option<String> {
    let mut uuid = [0_u8; 16];
    let wait = libc::timespec { tv_sec: 1, tv_nsec: 0 };
    // SAFETY: the buffer has the 16 bytes of a uuid_t.
    let result = unsafe { libc::gethostuuid(uuid.as_mut_ptr(), &raw const wait) };
    (result == 0).then(|| uuid.iter().map(|byte| format!("{byte:02x}")).collect())
}

pub(crate) fn exists(pid: u32) -> bool {
    probe(pid) != Probe::Gone
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arguments_and_environment_are_separated_by_their_number() {
        let area = [&2_i32.to_ne_bytes()[..], b"/bin/a\0\0\0a\0-b\0X=1\0Y=2\0"].concat();
        let (arguments, environment) = (b"a\0-b\0".to_vec(), b"X=1\0Y=2\0".to_vec());
        assert_eq!(split_start_area(&area), Some(StartArea { arguments, environment }));
        let hidden = [&1_i32.to_ne_bytes()[..], b"/bin/sh\0\0sh\0"].concat();
        assert_eq!(split_start_area(&hidden).unwrap().environment, b"");
        assert_eq!(split_start_area(&[1, 0]), None);
    }
}
