//! Finds the processes of an attempt in the list of all processes, and signals them.

use std::collections::HashSet;
use std::io;
use std::path::PathBuf;

use rustix::fd::OwnedFd;
use tenure_core::lease::Leader;
use tenure_lock::ProcessInfo;

use super::descendants::Descendants;
use super::members::{Evidence, Mark, Seen, members};
use super::{Member, ProcessFilter, ProcessTable, cgroup, children};
use crate::sys::{self, Signal};
use crate::wait::Process;

/// The name of the variable that carries the mark.
const VARIABLE: &[u8] = b"TENURE_ATTEMPT=";

#[derive(Debug)]
pub(super) struct Scanner {
    mark: String,
    leader: Option<Leader>,
    cgroup: Option<PathBuf>,
    recorded: Option<Descendants>,
    /// The caller is the supervisor: orphans that were handed to it belong to the attempt.
    supervises: bool,
    uid: u32,
    me: u32,
    /// The caller and its ancestors.
    spared: Vec<u32>,
    found_caller: bool,
}

impl Scanner {
    pub(super) fn new(filter: ProcessFilter<'_>) -> Self {
        let me = std::process::id();
        let recorded = filter.leader.cloned();
        let cgroup = recorded.as_ref().and_then(|leader| leader.cgroup.as_ref()).map(PathBuf::from);
        Self {
            mark: filter.mark.to_owned(),
            leader: filter.child.and_then(leader_at).or(recorded),
            cgroup,
            recorded: filter.recorded.cloned().or_else(|| Descendants::left_behind(filter.mark)),
            supervises: filter.child.is_some(),
            uid: sys::user(),
            me,
            spared: ProcessInfo::ancestors(me),
            found_caller: false,
        }
    }

    fn mark_of(&self, pid: u32) -> Mark {
        let Some(environment) = sys::environment(pid) else { return Mark::Missing };
        let mut marks = environment.split(|byte| *byte == 0).filter_map(|entry| entry.strip_prefix(VARIABLE));
        match marks.next() {
            Some(mark) if mark == self.mark.as_bytes() => Mark::This,
            Some(_) => Mark::Other,
            None => Mark::Missing,
        }
    }

    fn is_ours(&self, pid: u32) -> bool {
        ProcessInfo::belongs_to(pid, self.uid)
    }

    fn look(&self) -> io::Result<Vec<Seen>> {
        let see = |info: ProcessInfo| {
            let mark = if info.ended { Mark::Missing } else { self.mark_of(info.pid) };
            let ProcessInfo { pid, parent, group, session, terminal, start_time, ended } = info;
            Seen { pid, parent, group, session, terminal, start_time, ended, mark }
        };
        Ok(ProcessInfo::all()?.into_iter().map(see).collect())
    }
}

impl ProcessTable for Scanner {
    fn scan(&mut self) -> io::Result<Vec<Member>> {
        let all = self.look()?;
        let children = all.iter().filter(|p| p.parent == self.me).map(|p| p.pid);
        let evidence = Evidence {
            leader: self.leader.as_ref(),
            cgroup: self.cgroup.as_ref().map(|folder| cgroup::pids(folder, &self.mark)).unwrap_or_default(),
            adopted: if self.supervises { children::orphans(children) } else { HashSet::new() },
            recorded: self.recorded.as_ref(),
            spared: &self.spared,
        };
        let found = members(&all, &evidence, &ProcessInfo::open_terminals);
        self.found_caller = self.spared.iter().any(|pid| found.contains(pid));
        let members = all.iter().filter(|p| found.contains(&p.pid) && !self.spared.contains(&p.pid));
        let members = members.filter(|p| self.is_ours(p.pid));
        Ok(members.map(|p| Member { pid: p.pid, start_time: p.start_time, group: p.group }).collect())
    }

    fn signal(&mut self, member: &Member, signal: Option<Signal>) -> Option<OwnedFd> {
        let process = Process::open(member.pid)?;
        // Opened first, verified second: if the information is unchanged, the descriptor refers to that process.
        let now = ProcessInfo::of(member.pid)?;
        let marked = || self.mark_of(member.pid) == Mark::This;
        if !is_still(member, &now, marked) || !self.is_ours(member.pid) {
            return None;
        }
        if let Some(signal) = signal {
            process.signal(signal).ok()?;
        }
        process.into_fd()
    }

    fn name(&self, member: &Member) -> String {
        let line = ProcessInfo::command_line(member.pid);
        let words: Vec<_> =
            line.split(|byte| *byte == 0).filter(|w| !w.is_empty()).map(String::from_utf8_lossy).collect();
        words.join(" ").chars().take(80).collect()
    }

    fn found_caller(&self) -> bool {
        self.found_caller
    }
}

/// The process that has this pid now, as the leader of an attempt.
pub(super) fn leader_at(pid: u32) -> Option<Leader> {
    let ProcessInfo { start_time, session, .. } = ProcessInfo::of(pid)?;
    Some(Leader { pid, start_time, session, cgroup: None, tmux_folder: None })
}

/// Whether the process that now has the pid is the one that was seen, and still belongs to the attempt.
fn is_still(seen: &Member, now: &ProcessInfo, marked: impl Fn() -> bool) -> bool {
    now.start_time == seen.start_time && !now.ended && (now.group == seen.group || marked())
}

#[cfg(test)]
mod tests {
    use super::*;

    const SEEN: Member = Member { pid: 7, start_time: 98765, group: 3 };

    fn now() -> ProcessInfo {
        ProcessInfo { pid: 7, parent: 1, group: 3, session: 7, terminal: 0, start_time: 98765, ended: false }
    }

    #[test]
    fn a_recycled_pid_is_another_process_even_with_the_same_mark_and_group() {
        assert!(is_still(&SEEN, &now(), || true));
        assert!(!is_still(&SEEN, &ProcessInfo { start_time: 98766, ..now() }, || true));
    }

    #[test]
    fn a_process_that_left_both_mark_and_group_is_no_longer_a_member() {
        let moved = ProcessInfo { group: 9, ..now() };
        assert!(!is_still(&SEEN, &moved, || false));
        assert!(is_still(&SEEN, &moved, || true));
        assert!(is_still(&SEEN, &now(), || false));
    }

    #[test]
    fn an_ended_process_is_not_signalled() {
        assert!(!is_still(&SEEN, &ProcessInfo { ended: true, ..now() }, || true));
    }
}
