//! Processes of this machine, found by a variable in their environment.

use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};
use tenure_lock::ProcessInfo;

/// Living processes whose environment holds `entry` (`NAME=VALUE`).
pub fn with(entry: &str) -> Vec<u32> {
    let holds = |pid: u32| {
        let environment = ProcessInfo::environment(pid).unwrap_or_default();
        environment.split(|byte| *byte == 0).any(|found| found == entry.as_bytes())
    };
    let all = ProcessInfo::all().unwrap();
    all.iter().filter(|p| !p.ended && holds(p.pid)).map(|p| p.pid).filter(|pid| is_alive(*pid)).collect()
}

/// Exists and is not a zombie.
pub fn is_alive(pid: u32) -> bool {
    ProcessInfo::of(pid).is_some_and(|found| !found.ended)
}

/// The state letter of `/proc/PID/stat`.
pub fn state(pid: u32) -> Option<char> {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    stat.rsplit_once(") ")?.1.chars().next()
}

/// Sends a signal; does nothing if the process has ended.
pub fn signal(pid: u32, signal: Signal) {
    let _ = kill_process(os_pid(pid), signal);
}

pub fn os_pid(pid: u32) -> Pid {
    Pid::from_raw(i32::try_from(pid).unwrap()).unwrap()
}

/// Kills every process with `entry` in its environment, repeatedly, because one of them may be starting another.
pub fn end_all(entry: &str) {
    for _ in 0..200 {
        let left = with(entry);
        if left.is_empty() {
            return;
        }
        for pid in left {
            signal(pid, Signal::KILL);
        }
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// A figure of `/proc/PID/status` (`VmRSS`, `VmHWM`, `RssAnon`), in kB.
pub fn memory(pid: u32, figure: &str) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix(&format!("{figure}:"))).unwrap();
    line.trim().trim_end_matches(" kB").trim().parse().unwrap()
}

/// The processor time that a process has used, even if it has ended and is not reaped yet.
pub fn cpu(pid: u32) -> Duration {
    let mut nanos = 0;
    for task in std::fs::read_dir(format!("/proc/{pid}/task")).unwrap().flatten() {
        let text = std::fs::read_to_string(task.path().join("schedstat")).unwrap_or_default();
        nanos += text.split_whitespace().next().and_then(|n| n.parse::<u64>().ok()).unwrap_or(0);
    }
    Duration::from_nanos(nanos)
}
