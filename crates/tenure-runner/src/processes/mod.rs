//! Finding and ending the processes of an attempt.
//!
//! A process belongs to an attempt if it has the caller's uid and pid namespace, is not older than the attempt's leader, and
//!
//! - carries the attempt's mark in its environment, or shares a process group with a process that does, or
//! - is in the process group or the session that the leader created, or in the attempt's control group, or
//! - is a descendant of such a process, or an orphan that was handed to the attempt's supervisor, or
//! - was seen by the supervisor as a descendant while the command ran, where orphans are not handed to it. The record outlives
//!   the supervisor.
//!
//! It does not belong to the attempt if its environment has another mark (even an empty one), or if it or an ancestor has
//! opened the terminal of a process outside the attempt: then a person works in a server that the attempt has started.
//!
//! Guaranteed: each process is verified after it was opened, so a recycled pid is not signalled (on macOS pid and start time
//! are compared just before the signal); neither is the caller, one of its ancestors, or another user's process. When [`end`]
//! reports that nothing is left, two consecutive scans were empty.
//! Not guaranteed: finding a process that has cleared its environment and left the group, after its parent and the
//! supervisor have ended and where there is no control group; on macOS a process that runs a system program counts as one
//! that has cleared its environment. An unmarked process whose parent is gone is never assumed to be a member.

use std::collections::HashSet;
use std::fmt;
use std::io;
use std::time::{Duration, Instant};

use rustix::fd::OwnedFd;
use tenure_core::lease::{Attempt, Leader};
use tenure_lock::ProcessInfo;

use crate::sys::Signal;
use crate::wait;

pub(crate) mod cgroup;
pub mod children;

mod descendants;
mod members;
mod scanner;
mod single;

pub use descendants::Descendants;
use scanner::{Scanner, leader_at};
pub use single::signal_one;

/// How long a process may take to end after SIGKILL before it is reported as a survivor.
pub const PATIENCE: Duration = Duration::from_secs(10);

/// The time between two scans, if no process ends before.
const SCAN_INTERVAL: Duration = Duration::from_millis(200);

/// Identifies the processes of an attempt.
#[derive(Debug, Clone, Copy)]
pub struct ProcessFilter<'a> {
    /// The value of `TENURE_ATTEMPT`.
    pub mark: &'a str,
    /// The first process, as it was recorded.
    pub leader: Option<&'a Leader>,
    /// The first process, if it is a child of the caller that has not been reaped yet.
    pub child: Option<u32>,
    /// The descendants that the supervisor has seen. If the caller is another process, this is the record that the supervisor
    /// left behind.
    pub recorded: Option<&'a Descendants>,
}

impl<'a> ProcessFilter<'a> {
    /// The processes of an attempt that another process supervised.
    pub fn of(attempt: &'a Attempt) -> Self {
        Self { mark: attempt.id.as_str(), leader: attempt.leader.as_ref(), child: None, recorded: None }
    }
}

#[derive(Debug, Clone, Copy)]
pub enum EndMode {
    /// SIGKILL immediately: the lease has already ended.
    Kill,
    /// First `signal`, so that processes can clean up, then SIGKILL after `grace`.
    Graceful { signal: Signal, grace: Duration },
}

/// A process that SIGKILL did not end in time.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Survivor {
    pub pid: u32,
    pub command: String,
}

/// What remains of an attempt after [`end`].
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct EndReport {
    /// Usually empty.
    pub survivors: Vec<Survivor>,
    /// Whether the caller or one of its ancestors belongs to the attempt. Those were not signalled.
    pub includes_caller: bool,
}

impl fmt::Display for Survivor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({})", self.pid, self.command)
    }
}

/// A process as seen by a scan.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct Member {
    pid: u32,
    start_time: u64,
    group: u32,
}

/// Lists and signals processes.
trait ProcessTable {
    /// The live members of the attempt, excluding the caller and its ancestors.
    fn scan(&mut self) -> io::Result<Vec<Member>>;
    /// Signals the process if it is still the one that was seen. Returns a descriptor that becomes readable when it
    /// ends.
    fn signal(&mut self, member: &Member, signal: Option<Signal>) -> Option<OwnedFd>;
    fn name(&self, member: &Member) -> String;
    /// Whether the last scan found the caller or one of its ancestors among the members.
    fn found_caller(&self) -> bool;
}

/// Ends every process of the attempt, and returns what could not or must not be ended.
pub fn end(filter: ProcessFilter<'_>, mode: EndMode) -> io::Result<EndReport> {
    let mut scanner = Scanner::new(filter);
    let survivors = end_within(&mut scanner, mode, PATIENCE)?;
    Ok(EndReport { survivors, includes_caller: scanner.found_caller() })
}

/// The live processes of the attempt, excluding the caller and its ancestors. Sends no signal.
pub fn find(filter: ProcessFilter<'_>) -> io::Result<Vec<Survivor>> {
    let mut scanner = Scanner::new(filter);
    let members = scanner.scan()?;
    Ok(members.iter().map(|m| Survivor { pid: m.pid, command: scanner.name(m) }).collect())
}

/// The calling process as the leader of an attempt.
pub(crate) fn own_leader() -> Option<Leader> {
    leader_at(std::process::id())
}

fn end_within(table: &mut dyn ProcessTable, mode: EndMode, patience: Duration) -> io::Result<Vec<Survivor>> {
    let (first, grace) = match mode {
        EndMode::Kill => (Signal::KILL, Duration::ZERO),
        EndMode::Graceful { signal, grace } => (signal, grace),
    };
    let kill_at = Instant::now() + grace;
    let give_up = kill_at + patience;
    let mut signalled = HashSet::new();
    let mut first_signal_at = None;
    let mut empty_scans = 0;
    loop {
        let members = table.scan()?;
        if members.is_empty() {
            // A process may fork during a scan and exit before it is listed; the next scan finds the child.
            empty_scans += 1;
            if empty_scans == 2 {
                return Ok(Vec::new());
            }
            continue;
        }
        empty_scans = 0;
        let now = Instant::now();
        if now >= give_up {
            return Ok(members.iter().map(|m| Survivor { pid: m.pid, command: table.name(m) }).collect());
        }
        let killing = now >= kill_at;
        let first_signal_at = *first_signal_at.get_or_insert_with(ProcessInfo::present_start_time);
        // A process that was forked after the scan and before its parent got the signal has not been signalled yet.
        // Processes that started later belong to a clean-up and are not interrupted.
        let is_due = |member: &Member, is_new: bool| is_new && member.start_time <= first_signal_at;
        let mut watched: Vec<OwnedFd> = Vec::new();
        for member in &members {
            let is_new = signalled.insert(member.clone());
            let signal = if killing { Some(Signal::KILL) } else { is_due(member, is_new).then_some(first) };
            watched.extend(table.signal(member, signal));
        }
        let until = if killing { give_up } else { kill_at };
        wait::until_all_end(&watched, until.saturating_duration_since(now).min(SCAN_INTERVAL));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Simulated processes, each with the number of signals needed to end it.
    #[derive(Default)]
    struct FakeProcesses {
        alive: Vec<(Member, usize)>,
        signalled: Vec<(u32, Option<Signal>)>,
        /// Missed by one scan, listed by the next.
        hidden_once: bool,
        /// Listed from the second scan on.
        later: Vec<(Member, usize)>,
    }

    fn member(pid: u32) -> Member {
        Member { pid, start_time: 1, group: 1 }
    }

    impl ProcessTable for FakeProcesses {
        fn scan(&mut self) -> io::Result<Vec<Member>> {
            if std::mem::take(&mut self.hidden_once) {
                return Ok(Vec::new());
            }
            let listed = self.alive.iter().map(|(m, _)| m.clone()).collect();
            self.alive.append(&mut self.later);
            Ok(listed)
        }

        fn signal(&mut self, member: &Member, signal: Option<Signal>) -> Option<OwnedFd> {
            self.signalled.push((member.pid, signal));
            for (m, lives) in &mut self.alive {
                if m == member && signal.is_some() {
                    *lives = lives.saturating_sub(1);
                }
            }
            self.alive.retain(|(_, lives)| *lives > 0);
            None
        }

        fn name(&self, member: &Member) -> String {
            format!("fake-{}", member.pid)
        }

        fn found_caller(&self) -> bool {
            false
        }
    }

    #[test]
    fn a_process_that_does_not_end_is_reported_with_its_command() {
        let mut table = FakeProcesses {
            alive: vec![(member(7), usize::MAX), (member(8), 1)],
            ..FakeProcesses::default()
        };
        let left = end_within(&mut table, EndMode::Kill, Duration::from_millis(1)).unwrap();
        assert_eq!(left, [Survivor { pid: 7, command: "fake-7".into() }]);
    }

    #[test]
    fn a_process_that_one_scan_missed_is_ended() {
        let mut table =
            FakeProcesses { alive: vec![(member(7), 1)], hidden_once: true, ..FakeProcesses::default() };
        assert!(end_within(&mut table, EndMode::Kill, PATIENCE).unwrap().is_empty());
        assert!(table.alive.is_empty());
    }

    #[test]
    fn a_process_forked_while_the_others_were_signalled_gets_the_signal_and_a_later_one_does_not() {
        let late = Member { start_time: u64::MAX, ..member(9) };
        let mut table = FakeProcesses {
            alive: vec![(member(7), 1)],
            later: vec![(member(8), 1), (late, 1)],
            ..FakeProcesses::default()
        };
        let mode = EndMode::Graceful { signal: Signal::TERM, grace: SCAN_INTERVAL * 2 };
        assert!(end_within(&mut table, mode, PATIENCE).unwrap().is_empty());
        let signals: Vec<_> = table.signalled.iter().filter_map(|(pid, s)| s.map(|s| (*pid, s))).collect();
        assert_eq!(signals, [(7, Signal::TERM), (8, Signal::TERM), (9, Signal::KILL)]);
    }

    #[test]
    fn a_graceful_end_signals_once_and_kills_after_the_grace_period() {
        let mut table = FakeProcesses { alive: vec![(member(7), 2)], ..FakeProcesses::default() };
        let mode = EndMode::Graceful { signal: Signal::TERM, grace: Duration::from_millis(20) };
        assert!(end_within(&mut table, mode, PATIENCE).unwrap().is_empty());
        let signals: Vec<_> = table.signalled.iter().filter_map(|(_, signal)| *signal).collect();
        assert_eq!(signals, [Signal::TERM, Signal::KILL]);
    }
}
