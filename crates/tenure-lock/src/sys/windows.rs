//! Process information from Win32.
//!
//! Guarantees: an existing pid is never reported as gone. Start times are absolute, so a pid with its start time is
//! unique across boots, and the boot id only has to distinguish machines. Windows has no pid namespaces.

use std::ptr::null_mut;
use std::sync::OnceLock;
use std::time::{Duration, Instant};

use windows_sys::Win32::Foundation::{
    CloseHandle, ERROR_ACCESS_DENIED, ERROR_INVALID_PARAMETER, ERROR_SUCCESS, FILETIME, GetLastError, HANDLE,
    STILL_ACTIVE,
};
use windows_sys::Win32::System::Registry::{
    HKEY_LOCAL_MACHINE, RRF_RT_REG_SZ, RRF_SUBKEY_WOW6464KEY, RegGetValueW,
};
use windows_sys::Win32::System::Threading::{
    GetExitCodeProcess, GetProcessTimes, OpenProcess, PROCESS_QUERY_LIMITED_INFORMATION,
};

use crate::identity::Probe;

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
