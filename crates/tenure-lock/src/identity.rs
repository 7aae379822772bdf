//! Identifies a process so that it can be distinguished from a later process with the same pid.
//!
//! Guarantees: [`Liveness::Dead`] is returned only if it is proven; a recycled pid, a reboot and a zombie are
//! detected; a process that may not be signalled counts as alive.
//! Does not guarantee an answer: across hosts and pid namespaces it is [`Liveness::Unknown`], which callers treat as
//! alive. Machines with the same machine id (cloned disk images) look like one machine that was rebooted.

use serde::{Deserialize, Serialize};

use crate::{host, sys};

/// The identity of a process.
///
/// A part that could not be determined is an empty string or 0, and then the liveness is [`Liveness::Unknown`].
///
/// ```
/// use tenure_lock::{Liveness, ProcessIdentity};
///
/// let me = ProcessIdentity::current();
/// # #[cfg(target_os = "linux")]
/// assert_eq!(me.liveness(), Liveness::Alive);
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct ProcessIdentity {
    /// The machine, see [`host_id`](crate::host_id). Never the hostname.
    pub host_id: String,
    /// The boot of that machine, see [`boot_id`](crate::boot_id).
    pub boot_id: String,
    /// The pid in the process's own pid namespace.
    pub pid: u32,
    /// The start time in the unit of the system; only compared for equality.
    /// Linux: clock ticks since boot. macOS: microseconds since 1970. Windows: 100 ns since 1601.
    pub start_time: u64,
    /// The namespace that `pid` and `start_time` refer to: on Linux the pid namespace, combined with the time
    /// namespace unless that is the initial one; 1 on systems without namespaces.
    pub pid_ns: u64,
}

/// Whether a recorded process is running.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Liveness {
    /// It is running, or a process that cannot be inspected has its pid.
    Alive,
    /// Proven to have ended.
    Dead,
    /// Not determinable from here. To be treated as alive.
    Unknown,
}

/// The host that liveness is evaluated on: the parts of an identity that do not depend on the process.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Host {
    /// See [`host_id`](crate::host_id).
    pub host_id: String,
    /// See [`boot_id`](crate::boot_id).
    pub boot_id: String,
    /// The [`ProcessIdentity::pid_ns`] of the evaluating process.
    pub pid_ns: u64,
    /// See [`hostname`](crate::hostname). Used only for files that record nothing better.
    pub hostname: String,
}

/// The operating system's information about a pid.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Probe {
    /// No such process.
    Gone,
    /// It has ended and has not been reaped yet.
    Zombie,
    /// It exists; the start time is missing if it cannot be read.
    Running { start_time: Option<u64> },
    /// The system gave no definite answer.
    Unclear,
}

impl Host {
    /// This host, as the calling process sees it.
    pub fn here() -> Self {
        Self {
            host_id: host::host_id(),
            boot_id: host::boot_id(),
            pid_ns: sys::process::pid_namespace(),
            hostname: host::hostname(),
        }
    }
}

impl ProcessIdentity {
    /// The calling process.
    ///
    /// Not cached in ordinary memory, except for host and boot: a forked child inherits that, and after a wrap-around of pids
    /// could even have the same pid.
    pub fn current() -> Self {
        Self {
            host_id: host::host_id(),
            boot_id: host::boot_id(),
            pid: std::process::id(),
            start_time: sys::process::own_start_time().unwrap_or(0),
            pid_ns: sys::process::pid_namespace(),
        }
    }

    /// The process that currently has this pid, or `None` if there is none or it is a zombie.
    pub fn of(pid: u32) -> Option<Self> {
        if pid == std::process::id() {
            return Some(Self::current());
        }
        let start_time = match sys::process::probe(pid) {
            Probe::Gone | Probe::Zombie => return None,
            Probe::Running { start_time } => start_time.unwrap_or(0),
            Probe::Unclear => 0,
        };
        Some(Self {
            host_id: host::host_id(),
            boot_id: host::boot_id(),
            pid,
            start_time,
            pid_ns: sys::process::pid_namespace(),
        })
    }

    /// Whether this process is still running.
    pub fn liveness(&self) -> Liveness {
        self.liveness_seen_from(&Host::here())
    }

    /// Like [`liveness`](Self::liveness), with the host as an argument, for callers that evaluate many processes.
    pub fn liveness_seen_from(&self, here: &Host) -> Liveness {
        judge(self, here, |pid| {
            if pid == std::process::id() {
                // This process is running, and has read its own start time once.
                Probe::Running { start_time: sys::process::own_start_time() }
            } else {
                sys::process::probe(pid)
            }
        })
    }
}

/// Whether a process with this pid is running on this machine. False for 0, for numbers outside the range of pids,
/// and for zombies; true for processes of other users.
pub fn is_process_running(pid: u32) -> bool {
    matches!(sys::process::probe(pid), Probe::Running { .. } | Probe::Unclear)
}

/// The rule behind [`ProcessIdentity::liveness`], with host and probe as arguments.
pub fn judge(recorded: &ProcessIdentity, here: &Host, probe: impl Fn(u32) -> Probe) -> Liveness {
    let known = |a: &str, b: &str| !a.is_empty() && !b.is_empty();
    if !known(&recorded.host_id, &here.host_id) || recorded.host_id != here.host_id {
        return Liveness::Unknown;
    }
    if !known(&recorded.boot_id, &here.boot_id) {
        return Liveness::Unknown;
    }
    if recorded.boot_id != here.boot_id {
        return Liveness::Dead;
    }
    if recorded.pid_ns == 0 || recorded.pid_ns != here.pid_ns {
        return Liveness::Unknown;
    }
    match probe(recorded.pid) {
        Probe::Unclear => Liveness::Unknown,
        Probe::Running { start_time: None } => Liveness::Alive,
        Probe::Running { start_time: Some(_) } if recorded.start_time == 0 => Liveness::Unknown,
        Probe::Running { start_time: Some(started) } if started == recorded.start_time => Liveness::Alive,
        Probe::Gone | Probe::Zombie | Probe::Running { start_time: Some(_) } => Liveness::Dead,
    }
}

/// The rule for files that record only a pid and a hostname: a different name is [`Liveness::Unknown`], otherwise the
/// pid decides. Names are compared case-insensitively.
pub fn judge_by_hostname(pid: i64, hostname: &str, here: &Host, probe: impl Fn(u32) -> Probe) -> Liveness {
    if here.hostname.is_empty() || !hostname.eq_ignore_ascii_case(&here.hostname) {
        return Liveness::Unknown;
    }
    let Ok(pid) = u32::try_from(pid) else {
        return Liveness::Dead;
    };
    match probe(pid) {
        Probe::Gone | Probe::Zombie => Liveness::Dead,
        Probe::Running { .. } => Liveness::Alive,
        Probe::Unclear => Liveness::Unknown,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn here() -> Host {
        Host { host_id: "machine".into(), boot_id: "boot-2".into(), pid_ns: 7, hostname: "Dev-Box".into() }
    }

    fn recorded() -> ProcessIdentity {
        ProcessIdentity {
            host_id: "machine".into(),
            boot_id: "boot-2".into(),
            pid: 42,
            start_time: 1000,
            pid_ns: 7,
        }
    }

    fn running(start: u64) -> impl Fn(u32) -> Probe {
        move |_| Probe::Running { start_time: Some(start) }
    }

    #[test]
    fn the_same_process_is_alive() {
        assert_eq!(judge(&recorded(), &here(), running(1000)), Liveness::Alive);
    }

    #[test]
    fn a_recycled_pid_is_dead() {
        assert_eq!(judge(&recorded(), &here(), running(1001)), Liveness::Dead);
    }

    #[test]
    fn this_process_is_alive_and_an_earlier_one_with_its_pid_is_not() {
        let me = ProcessIdentity::current();
        assert_eq!(me.liveness(), Liveness::Alive);
        let earlier = ProcessIdentity { start_time: me.start_time + 1, ..me };
        let expected =
            if sys::process::own_start_time().is_some() { Liveness::Dead } else { Liveness::Alive };
        assert_eq!(earlier.liveness(), expected);
    }

    #[test]
    fn a_pid_that_is_gone_or_a_zombie_is_dead() {
        assert_eq!(judge(&recorded(), &here(), |_| Probe::Gone), Liveness::Dead);
        assert_eq!(judge(&recorded(), &here(), |_| Probe::Zombie), Liveness::Dead);
    }

    #[test]
    fn a_process_that_cannot_be_inspected_is_alive() {
        assert_eq!(judge(&recorded(), &here(), |_| Probe::Running { start_time: None }), Liveness::Alive);
    }

    #[test]
    fn after_a_reboot_the_holder_is_dead_even_if_its_pid_runs() {
        let before = ProcessIdentity { boot_id: "boot-1".into(), ..recorded() };
        assert_eq!(judge(&before, &here(), running(1000)), Liveness::Dead);
    }

    #[test]
    fn another_host_is_unknown_even_with_another_boot() {
        let remote = ProcessIdentity { host_id: "elsewhere".into(), boot_id: "boot-9".into(), ..recorded() };
        assert_eq!(judge(&remote, &here(), |_| Probe::Gone), Liveness::Unknown);
    }

    #[test]
    fn another_pid_namespace_is_unknown_unless_the_boot_differs() {
        let inside = ProcessIdentity { pid_ns: 8, ..recorded() };
        assert_eq!(judge(&inside, &here(), |_| Probe::Gone), Liveness::Unknown);
        let earlier = ProcessIdentity { boot_id: "boot-1".into(), ..inside };
        assert_eq!(judge(&earlier, &here(), |_| Probe::Gone), Liveness::Dead);
    }

    #[test]
    fn an_unknown_part_never_proves_death() {
        for strip in [
            (|p: &mut ProcessIdentity| p.host_id.clear()) as fn(&mut _),
            |p| p.boot_id.clear(),
            |p| p.pid_ns = 0,
            |p| p.start_time = 0,
        ] {
            let mut vague = recorded();
            strip(&mut vague);
            assert_eq!(judge(&vague, &here(), running(1000)), Liveness::Unknown, "{vague:?}");
        }
        let nowhere = Host { host_id: String::new(), ..here() };
        let vague = ProcessIdentity { host_id: String::new(), ..recorded() };
        assert_eq!(judge(&vague, &nowhere, |_| Probe::Gone), Liveness::Unknown);
    }

    #[test]
    fn hostnames_are_compared_without_case_and_only_the_local_one_can_be_dead() {
        let by_name = |pid, name| judge_by_hostname(pid, name, &here(), |_| Probe::Gone);
        assert_eq!(by_name(42, "DEV-BOX"), Liveness::Dead);
        assert_eq!(by_name(42, "test-host"), Liveness::Unknown);
        assert_eq!(judge_by_hostname(42, "dev-box", &here(), running(1)), Liveness::Alive);
    }

    #[test]
    fn numbers_that_are_not_pids_are_never_alive() {
        for pid in [i64::MIN, -1, i64::from(u32::MAX) + 1, i64::MAX] {
            assert_eq!(judge_by_hostname(pid, "dev-box", &here(), running(1)), Liveness::Dead, "{pid}");
        }
    }

    #[test]
    fn identity_survives_json() {
        let text = serde_json::to_string(&recorded()).unwrap();
        assert_eq!(serde_json::from_str::<ProcessIdentity>(&text).unwrap(), recorded());
    }
}
