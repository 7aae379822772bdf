//! Inspects processes through procfs and signals them through pidfds.

use std::collections::HashSet;
use std::fs;
use std::io;
use std::os::fd::OwnedFd;

use rustix::process::{Signal, geteuid};

use super::{Member, ProcessFilter, ProcessTable};
use crate::wait::Process;

/// The name of the variable that carries the mark.
const VARIABLE: &str = "TENURE_ATTEMPT=";

/// A kernel thread (`PF_KTHREAD`): it has no environment.
const KERNEL_THREAD: u64 = 0x0020_0000;

#[derive(Debug)]
pub(super) struct Scanner {
    entry: Vec<u8>,
    group: Option<u32>,
    uid: u32,
    /// The caller and its ancestors.
    spared: HashSet<u32>,
    found_caller: bool,
}

/// The information of procfs about a pid.
#[derive(Debug, Clone, PartialEq, Eq)]
struct ProcStat {
    parent: u32,
    group: u32,
    start_time: u64,
    ended: bool,
    kernel: bool,
}

impl Scanner {
    pub(super) fn new(filter: ProcessFilter<'_>) -> io::Result<Self> {
        let me = std::process::id();
        // After `unshare --pid` without a new mount, `/proc` shows the pids of another namespace.
        if fs::read_link("/proc/self")?.to_string_lossy() != me.to_string() {
            return Err(io::Error::other("/proc shows the processes of another pid namespace"));
        }
        let mut entry = VARIABLE.as_bytes().to_vec();
        entry.extend_from_slice(filter.mark.as_bytes());
        Ok(Self {
            entry,
            group: filter.group,
            uid: geteuid().as_raw(),
            spared: ancestors_of(me),
            found_caller: false,
        })
    }

    fn is_marked(&self, pid: u32) -> bool {
        fs::read(format!("/proc/{pid}/environ"))
            .is_ok_and(|environment| environment.split(|byte| *byte == 0).any(|entry| entry == self.entry))
    }

    fn is_ours(&self, pid: u32) -> bool {
        fs::read_to_string(format!("/proc/{pid}/status")).is_ok_and(|text| belongs_to(&text, self.uid))
    }
}

impl ProcessTable for Scanner {
    fn scan(&mut self) -> io::Result<Vec<Member>> {
        let mut groups: HashSet<u32> = self.group.into_iter().collect();
        let mut others = Vec::new();
        let mut members = Vec::new();
        for pid in pids()? {
            let Some(facts) = facts(pid).filter(|facts| !facts.ended && !facts.kernel) else { continue };
            let member = Member { pid, start_time: facts.start_time, group: facts.group };
            if self.is_marked(pid) && self.is_ours(pid) {
                groups.insert(member.group);
                members.push(member);
            } else {
                others.push(member);
            }
        }
        members.extend(others.into_iter().filter(|m| groups.contains(&m.group) && self.is_ours(m.pid)));
        let found = members.len();
        members.retain(|m| !self.spared.contains(&m.pid));
        self.found_caller = members.len() < found;
        Ok(members)
    }

    fn signal(&mut self, member: &Member, signal: Option<Signal>) -> Option<OwnedFd> {
        let process = Process::open(member.pid)?;
        // Opened first, verified second: if the information is unchanged, the descriptor refers to that process.
        let now = facts(member.pid)?;
        if !is_still(member, &now, || self.is_marked(member.pid)) || !self.is_ours(member.pid) {
            return None;
        }
        if let Some(signal) = signal {
            process.signal(signal).ok()?;
        }
        process.into_fd()
    }

    fn name(&self, member: &Member) -> String {
        let line = fs::read(format!("/proc/{}/cmdline", member.pid)).unwrap_or_default();
        let words: Vec<_> =
            line.split(|byte| *byte == 0).filter(|w| !w.is_empty()).map(String::from_utf8_lossy).collect();
        if words.is_empty() {
            fs::read_to_string(format!("/proc/{}/comm", member.pid)).unwrap_or_default().trim().to_owned()
        } else {
            words.join(" ").chars().take(80).collect()
        }
    }

    fn found_caller(&self) -> bool {
        self.found_caller
    }
}

/// Whether the process that now has the pid is the one that was seen, and still belongs to the attempt.
fn is_still(seen: &Member, now: &ProcStat, marked: impl Fn() -> bool) -> bool {
    now.start_time == seen.start_time && !now.ended && (now.group == seen.group || marked())
}

/// Compares both real and effective user: a process that has changed its privileges is not signalled.
fn belongs_to(status: &str, uid: u32) -> bool {
    let Some(line) = status.lines().find_map(|line| line.strip_prefix("Uid:")) else { return false };
    let ids: Vec<_> = line.split_ascii_whitespace().take(2).map(str::parse).collect();
    ids.len() == 2 && ids.into_iter().all(|id| id == Ok(uid))
}

fn pids() -> io::Result<Vec<u32>> {
    let entries = fs::read_dir("/proc")?;
    Ok(entries.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok()).collect())
}

/// A process and its ancestors, up to the first that is not visible.
fn ancestors_of(pid: u32) -> HashSet<u32> {
    let mut line = HashSet::new();
    let mut next = pid;
    while next != 0 && line.insert(next) {
        next = facts(next).map_or(0, |facts| facts.parent);
    }
    line
}

fn facts(pid: u32) -> Option<ProcStat> {
    // As bytes, because a process name may contain any byte.
    parse(&fs::read(format!("/proc/{pid}/stat")).ok()?)
}

/// The name in field 2 may contain spaces and parentheses, so fields are counted from the last `)`.
fn parse(stat: &[u8]) -> Option<ProcStat> {
    let after_name = stat.iter().rposition(|byte| *byte == b')')? + 1;
    let rest = std::str::from_utf8(stat.get(after_name..)?).ok()?;
    let fields: Vec<&str> = rest.split_ascii_whitespace().collect();
    let number = |index: usize| fields.get(index)?.parse::<u64>().ok();
    let small = |index: usize| u32::try_from(number(index)?).ok();
    Some(ProcStat {
        parent: small(1)?,
        group: small(2)?,
        start_time: number(19)?,
        // A thread-group leader that exited before its other threads is also shown as a zombie.
        ended: matches!(*fields.first()?, "Z" | "X" | "x") && number(17)? <= 1,
        kernel: number(6)? & KERNEL_THREAD != 0,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const SEEN: Member = Member { pid: 7, start_time: 98765, group: 3 };

    fn now() -> ProcStat {
        ProcStat { parent: 1, group: 3, start_time: 98765, ended: false, kernel: false }
    }

    #[test]
    fn a_recycled_pid_is_another_process_even_with_the_same_mark_and_group() {
        assert!(is_still(&SEEN, &now(), || true));
        assert!(!is_still(&SEEN, &ProcStat { start_time: 98766, ..now() }, || true));
    }

    #[test]
    fn a_process_that_left_both_mark_and_group_is_no_longer_a_member() {
        let moved = ProcStat { group: 9, ..now() };
        assert!(!is_still(&SEEN, &moved, || false));
        assert!(is_still(&SEEN, &moved, || true));
        assert!(is_still(&SEEN, &now(), || false));
    }

    #[test]
    fn an_ended_process_is_not_signalled() {
        assert!(!is_still(&SEEN, &ProcStat { ended: true, ..now() }, || true));
    }

    #[test]
    fn a_process_belongs_to_the_user_by_both_real_and_effective_uid() {
        let status = "Name:\tsh\nUid:\t1000\t1000\t1000\t1000\nGid:\t5\t5\t5\t5\n";
        assert!(belongs_to(status, 1000));
        assert!(!belongs_to(status, 0));
        assert!(!belongs_to("Uid:\t1000\t0\t0\t0\n", 1000));
        assert!(!belongs_to("Uid:\t0\t1000\t0\t0\n", 1000));
        assert!(!belongs_to("Name:\tsh\n", 1000));
    }

    #[test]
    fn fields_are_counted_after_the_last_parenthesis() {
        let line = b"7 (a) Z (b c) S 1 3 7 0 -1 4 100 0 0 0 1 2 0 0 20 0 3 0 98765 1 2";
        assert_eq!(parse(line), Some(now()));
        assert_eq!(parse(b"7 (a) S 1 3"), None);
        let zombie = b"7 (a) Z 1 3 7 0 -1 4 100 0 0 0 1 2 0 0 20 0 1 0 98765 1 2";
        assert!(parse(zombie).is_some_and(|facts| facts.ended));
    }

    #[test]
    fn the_ancestors_of_a_process_are_found() {
        let me = std::process::id();
        let line = ancestors_of(me);
        assert!(line.contains(&me));
        assert!(line.contains(&std::os::unix::process::parent_id()));
    }
}
