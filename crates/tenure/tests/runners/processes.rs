//! Processes of this machine, found by a variable in their environment.

use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};

/// Living processes whose environment holds `entry` (`NAME=VALUE`).
pub(crate) fn with(entry: &str) -> Vec<u32> {
    let mut found = Vec::new();
    for name in std::fs::read_dir("/proc").unwrap().flatten().map(|e| e.file_name()) {
        let Ok(pid) = name.to_string_lossy().parse::<u32>() else { continue };
        let Ok(environ) = std::fs::read(format!("/proc/{pid}/environ")) else { continue };
        if environ.split(|byte| *byte == 0).any(|e| e == entry.as_bytes()) && is_alive(pid) {
            found.push(pid);
        }
    }
    found
}

/// Neither gone nor a zombie.
pub(crate) fn is_alive(pid: u32) -> bool {
    !matches!(state(pid), None | Some('Z' | 'X'))
}

pub(crate) fn state(pid: u32) -> Option<char> {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    stat.rsplit_once(") ")?.1.chars().next()
}

pub(crate) fn signal(pid: u32, signal: Signal) {
    let Some(pid) = i32::try_from(pid).ok().and_then(Pid::from_raw) else { return };
    if let Ok(fd) = pidfd_open(pid, PidfdFlags::empty()) {
        let _ = pidfd_send_signal(&fd, signal);
    }
}

/// Kills everything with `entry` in its environment, until nothing is left of it.
pub(crate) fn end_all(entry: &str) {
    for _ in 0..200 {
        let left = with(entry);
        if left.is_empty() {
            return;
        }
        for pid in left {
            signal(pid, Signal::KILL);
        }
        std::thread::sleep(std::time::Duration::from_millis(5));
    }
}

/// A figure of `/proc/PID/status`, in kB.
pub(crate) fn memory(pid: u32, figure: &str) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix(&format!("{figure}:"))).unwrap();
    line.trim().trim_end_matches(" kB").trim().parse().unwrap()
}

/// What a process has used of the processors so far.
pub(crate) fn cpu(pid: u32) -> std::time::Duration {
    let mut nanos = 0;
    for task in std::fs::read_dir(format!("/proc/{pid}/task")).unwrap().flatten() {
        let text = std::fs::read_to_string(task.path().join("schedstat")).unwrap_or_default();
        nanos += text.split_whitespace().next().and_then(|n| n.parse::<u64>().ok()).unwrap_or(0);
    }
    std::time::Duration::from_nanos(nanos)
}
