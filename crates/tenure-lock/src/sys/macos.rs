//! Process information from libproc and sysctl.
//!
//! Guarantees: an existing pid is never reported as gone. macOS has no pid namespaces, so all processes use the
//! number 1.

use std::ffi::CStr;
use std::mem::{MaybeUninit, size_of};
use std::time::Duration;

use rustix::io::Errno;
use rustix::process::Pid;
use rustix::time::ClockId;

use crate::identity::Probe;

/// `SZOMB` of `sys/proc.h`.
const ZOMBIE: u32 = 5;

/// `CLOCK_MONOTONIC` counts sleep here.
pub(crate) fn boot_time() -> Duration {
    let now = rustix::time::clock_gettime(ClockId::Monotonic);
    Duration::try_from(now).unwrap_or_default()
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
    info(i32::try_from(std::process::id()).ok()?).map(|info| started(&info))
}

pub(crate) fn probe(pid: u32) -> Probe {
    let Some((raw, checked)) =
        i32::try_from(pid).ok().filter(|pid| *pid > 0).and_then(|pid| Some((pid, Pid::from_raw(pid)?)))
    else {
        return Probe::Gone;
    };
    if let Some(info) = info(raw) {
        if info.pbi_status == ZOMBIE {
            return Probe::Zombie;
        }
        return Probe::Running { start_time: Some(started(&info)) };
    }
    match rustix::process::test_kill_process(checked) {
        Ok(()) | Err(Errno::PERM) => Probe::Running { start_time: None },
        Err(Errno::SRCH) => Probe::Gone,
        Err(_) => Probe::Unclear,
    }
}

fn started(info: &libc::proc_bsdinfo) -> u64 {
    info.pbi_start_tvsec.saturating_mul(1_000_000).saturating_add(info.pbi_start_tvusec)
}

#[expect(unsafe_code, reason = "libproc has no safe binding")]
fn info(pid: i32) -> Option<libc::proc_bsdinfo> {
    let mut info = MaybeUninit::<libc::proc_bsdinfo>::zeroed();
    let size = i32::try_from(size_of::<libc::proc_bsdinfo>()).ok()?;
    // SAFETY: the buffer has the given size; the argument 1 includes zombies.
    let written =
        unsafe { libc::proc_pidinfo(pid, libc::PROC_PIDTBSDINFO, 1, info.as_mut_ptr().cast(), size) };
    // SAFETY: the structure is plain numbers, and was zeroed where the call did not fill it.
    (written == size).then(|| unsafe { info.assume_init() })
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
