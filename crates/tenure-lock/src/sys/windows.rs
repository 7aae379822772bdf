//! Process information from Win32.
//!
//! Guarantees: an existing pid is never reported as gone. Start times are absolute, so a pid with its start time is
//! unique across boots, and the boot id only has to distinguish machines. Windows has no pid namespaces.

use std::collections::HashSet;
use std::io;
use std::path::PathBuf;
use std::ptr::null_mut;
use std::sync::OnceLock;
use std::time::{Duration, Instant};

use windows_sys::Win32::Foundation::{
    CloseHandle, ERROR_ACCESS_DENIED, ERROR_INVALID_PARAMETER, ERROR_SUCCESS, FILETIME, GetLastError, HANDLE,
    INVALID_HANDLE_VALUE, STILL_ACTIVE,
};
use windows_sys::Win32::System::Diagnostics::ToolHelp::{
    CreateToolhelp32Snapshot, PROCESSENTRY32W, Process32FirstW, Process32NextW, TH32CS_SNAPPROCESS,
};
use windows_sys::Win32::System::Registry::{
    HKEY_LOCAL_MACHINE, RRF_RT_REG_SZ, RRF_SUBKEY_WOW6464KEY, RegGetValueW,
};
use windows_sys::Win32::System::Threading::{
    GetExitCodeProcess, GetProcessTimes, OpenProcess, PROCESS_QUERY_LIMITED_INFORMATION,
};

use crate::identity::Probe;
use crate::process_info::ProcessInfo;

/// No path fits: there are no sockets in the file system.
pub(crate) const SOCKET_PATH_SIZE: usize = 0;

/// The performance counter behind `Instant` counts sleep.
pub(crate) fn boot_time() -> Duration {
    static START: OnceLock<Instant> = OnceLock::new();
    START.get_or_init(Instant::now).elapsed()
}

/// The clock starts with the process.
pub(crate) fn boot_time_offset() -> Option<i64> {
    None
}

pub(crate) fn hostname() -> String {
    std::env::var("COMPUTERNAME").unwrap_or_default()
}

#[expect(unsafe_code, reason = "the registry has no safe binding")]
pub(crate) fn machine_id() -> Option<String> {
    let wide = |text: &str| text.encode_utf16().chain([0]).collect::<Vec<u16>>();
    let key = wide(r"SOFTWARE\Microsoft\Cryptography");
    let value = wide("MachineGuid");
    let mut buffer = [0_u16; 64];
    let mut bytes = u32::try_from(size_of_val(&buffer)).ok()?;
    // SAFETY: both names end with NUL, and bytes is the size of the buffer.
    let result = unsafe {
        RegGetValueW(
            HKEY_LOCAL_MACHINE,
            key.as_ptr(),
            value.as_ptr(),
            RRF_RT_REG_SZ | RRF_SUBKEY_WOW6464KEY,
            null_mut(),
            buffer.as_mut_ptr().cast(),
            &raw mut bytes,
        )
    };
    if result != ERROR_SUCCESS {
        return None;
    }
    let text: Vec<u16> = buffer.into_iter().take_while(|unit| *unit != 0).collect();
    let text = String::from_utf16(&text).ok()?;
    (!text.is_empty()).then_some(text)
}

pub(crate) fn boot_id() -> Option<String> {
    machine_id().map(|machine| format!("windows-{machine}"))
}

pub(crate) fn pid_namespace() -> u64 {
    1
}

pub(crate) fn own_start_time() -> Option<u64> {
    match probe(std::process::id()) {
        Probe::Running { start_time } => start_time,
        Probe::Gone | Probe::Zombie | Probe::Unclear => None,
    }
}

#[expect(unsafe_code, reason = "process handles have no safe binding")]
pub(crate) fn probe(pid: u32) -> Probe {
    if pid == 0 {
        return Probe::Gone;
    }
    // SAFETY: no pointers are passed; a null handle is checked for.
    let handle = unsafe { OpenProcess(PROCESS_QUERY_LIMITED_INFORMATION, 0, pid) };
    if handle.is_null() {
        // SAFETY: reads the calling thread's own error code.
        return match unsafe { GetLastError() } {
            ERROR_INVALID_PARAMETER => Probe::Gone,
            ERROR_ACCESS_DENIED => Probe::Running { start_time: None },
            _ => Probe::Unclear,
        };
    }
    let answer = describe(handle);
    // SAFETY: the handle is ours and not used after this.
    unsafe { CloseHandle(handle) };
    answer
}

/// An ended process can be opened while any handle to it exists, like a zombie.
#[expect(unsafe_code, reason = "process handles have no safe binding")]
fn describe(handle: HANDLE) -> Probe {
    let mut code = 0_u32;
    // SAFETY: the handle is open, and the result is a local.
    let known = unsafe { GetExitCodeProcess(handle, &raw mut code) } != 0;
    if known && i32::try_from(code) != Ok(STILL_ACTIVE) {
        return Probe::Zombie;
    }
    let mut times = [FILETIME { dwLowDateTime: 0, dwHighDateTime: 0 }; 4];
    let [created, exited, kernel, user] = &mut times;
    // SAFETY: the handle is open, and all four results are locals.
    let timed = unsafe {
        GetProcessTimes(handle, &raw mut *created, &raw mut *exited, &raw mut *kernel, &raw mut *user)
    } != 0;
    let start = (u64::from(created.dwHighDateTime) << 32) | u64::from(created.dwLowDateTime);
    Probe::Running { start_time: timed.then_some(start) }
}

pub(crate) fn exists(pid: u32) -> bool {
    probe(pid) != Probe::Gone
}

/// Every process. The system remembers the pid of a parent that has ended, which may be given to a later process; such a parent
/// is reported as 0.
#[expect(unsafe_code, reason = "snapshots have no safe binding")]
pub(crate) fn list() -> io::Result<Vec<ProcessInfo>> {
    // SAFETY: no pointers are passed; an invalid handle is checked for.
    let snapshot = unsafe { CreateToolhelp32Snapshot(TH32CS_SNAPPROCESS, 0) };
    if snapshot == INVALID_HANDLE_VALUE {
        return Err(io::Error::last_os_error());
    }
    let mut entry = PROCESSENTRY32W {
        dwSize: u32::try_from(size_of::<PROCESSENTRY32W>()).map_err(io::Error::other)?,
        ..PROCESSENTRY32W::default()
    };
    let mut all = Vec::new();
    // SAFETY: the handle is open, and the entry is a local with its size.
    let mut more = unsafe { Process32FirstW(snapshot, &raw mut entry) } != 0;
    while more {
        all.push(describe_entry(&entry));
        // SAFETY: as above.
        more = unsafe { Process32NextW(snapshot, &raw mut entry) } != 0;
    }
    // SAFETY: the handle is ours and not used after this.
    unsafe { CloseHandle(snapshot) };
    let started: Vec<(u32, u64)> = all.iter().map(|info| (info.pid, info.start_time)).collect();
    for info in &mut all {
        let is_older = |(pid, at): &(u32, u64)| *pid == info.parent && *at <= info.start_time;
        if !started.iter().any(is_older) {
            info.parent = 0;
        }
    }
    Ok(all)
}

fn describe_entry(entry: &PROCESSENTRY32W) -> ProcessInfo {
    let (start_time, ended) = match probe(entry.th32ProcessID) {
        Probe::Running { start_time } => (start_time.unwrap_or(0), false),
        Probe::Gone | Probe::Zombie => (0, true),
        Probe::Unclear => (0, false),
    };
    ProcessInfo {
        pid: entry.th32ProcessID,
        parent: entry.th32ParentProcessID,
        group: 0,
        session: 0,
        terminal: 0,
        start_time,
        ended,
    }
}

pub(crate) fn info(pid: u32) -> Option<ProcessInfo> {
    list().ok()?.into_iter().find(|info| info.pid == pid)
}

/// Not offered by the system.
pub(crate) fn environment(_pid: u32) -> Option<Vec<u8>> {
    None
}

/// Not offered by the system.
pub(crate) fn command_line(_pid: u32) -> Vec<u8> {
    Vec::new()
}

/// Users have no numeric ids.
pub(crate) fn belongs_to(_pid: u32, _uid: u32) -> bool {
    false
}

pub(crate) fn open_terminals(_pid: u32) -> Vec<u32> {
    Vec::new()
}

/// In steps of 100 ns since 1601, as the system counts.
pub(crate) fn present_start_time() -> u64 {
    const UNIX_EPOCH: u64 = 116_444_736_000_000_000;
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
    UNIX_EPOCH + u64::try_from(now.as_nanos() / 100).unwrap_or(u64::MAX - UNIX_EPOCH)
}

pub(crate) fn children() -> Option<HashSet<u32>> {
    let me = std::process::id();
    Some(list().ok()?.into_iter().filter(|info| info.parent == me).map(|info| info.pid).collect())
}

pub(crate) fn temporary_folder() -> PathBuf {
    std::env::temp_dir()
}
