//! Systems on which the environment of other processes is not readable: only a known process group can be ended.
//!
//! A supervisor ends the process group that it started. Processes that a dead supervisor left behind are not found.

use std::collections::HashSet;
use std::io;
use std::os::fd::OwnedFd;

use rustix::process::{Pid, Signal, kill_process_group, test_kill_process_group};

use tenure_core::lease::Leader;

use super::{Member, ProcessFilter, ProcessTable};

#[derive(Debug)]
pub(super) struct Scanner {
    group: Option<u32>,
}

impl Scanner {
    #[expect(clippy::unnecessary_wraps, reason = "the same signature as on Linux")]
    pub(super) fn new(filter: ProcessFilter<'_>) -> io::Result<Self> {
        Ok(Self { group: filter.child })
    }
}

fn pid(number: u32) -> Option<Pid> {
    Pid::from_raw(i32::try_from(number).ok()?)
}

impl ProcessTable for Scanner {
    fn scan(&mut self) -> io::Result<Vec<Member>> {
        let group = self.group.filter(|g| pid(*g).is_some_and(|p| test_kill_process_group(p).is_ok()));
        Ok(group.map(|group| Member { pid: group, start_time: 0, group }).into_iter().collect())
    }

    fn signal(&mut self, member: &Member, signal: Option<Signal>) -> Option<OwnedFd> {
        let _ = kill_process_group(pid(member.group)?, signal?);
        None
    }

    fn name(&self, member: &Member) -> String {
        format!("process group {}", member.group)
    }

    fn found_caller(&self) -> bool {
        false
    }
}

pub(super) fn leader_at(pid: u32) -> Option<Leader> {
    Some(Leader { pid, start_time: 0, session: 0, cgroup: None, tmux_folder: None })
}

pub(super) fn adopt_orphans() -> bool {
    false
}

pub(super) fn children() -> Option<HashSet<u32>> {
    None
}
