//! Inspects processes through procfs and signals them through pidfds.

use std::collections::HashSet;
use std::fs;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;

use rustix::process::{Pid, Signal, geteuid};
use tenure_core::lease::Leader;

use super::members::{Evidence, Mark, Seen, members};
use super::{Member, ProcessFilter, ProcessTable, cgroup, children};
use crate::wait::Process;

/// The name of the variable that carries the mark.
const VARIABLE: &[u8] = b"TENURE_ATTEMPT=";

/// A kernel thread (`PF_KTHREAD`): it has no environment.
const KERNEL_THREAD: u64 = 0x0020_0000;

#[derive(Debug)]
pub(super) struct Scanner {
    mark: String,
    leader: Option<Leader>,
    cgroup: Option<PathBuf>,
    /// The caller is the supervisor: orphans that were handed to it belong to the attempt.
    supervises: bool,
    uid: u32,
    me: u32,
    /// The caller and its ancestors.
    spared: Vec<u32>,
    found_caller: bool,
}

/// The information of procfs about a pid.
#[derive(Debug, Clone, PartialEq, Eq)]
struct ProcStat {
    parent: u32,
    group: u32,
    session: u32,
    terminal: u32,
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
        let recorded = filter.leader.cloned();
        let cgroup = recorded.as_ref().and_then(|leader| leader.cgroup.as_ref()).map(PathBuf::from);
        Ok(Self {
            mark: filter.mark.to_owned(),
            leader: filter.child.and_then(leader_at).or(recorded),
            cgroup,
            supervises: filter.child.is_some(),
            uid: geteuid().as_raw(),
            me,
            spared: ancestors_of(me),
            found_caller: false,
        })
    }

    fn mark_of(&self, pid: u32) -> Mark {
        let Ok(environment) = fs::read(format!("/proc/{pid}/environ")) else { return Mark::Missing };
        let mut marks = environment.split(|byte| *byte == 0).filter_map(|entry| entry.strip_prefix(VARIABLE));
        match marks.next() {
            Some(mark) if mark == self.mark.as_bytes() => Mark::This,
            Some(_) => Mark::Other,
            None => Mark::Missing,
        }
    }

    fn is_ours(&self, pid: u32) -> bool {
        fs::read_to_string(format!("/proc/{pid}/status")).is_ok_and(|text| belongs_to(&text, self.uid))
    }

    fn look(&self) -> io::Result<Vec<Seen>> {
        let mut all = Vec::new();
        for pid in pids()? {
            let Some(facts) = facts(pid).filter(|facts| !facts.kernel) else { continue };
            let mark = if facts.ended { Mark::Missing } else { self.mark_of(pid) };
            let ProcStat { parent, group, session, terminal, start_time, ended, .. } = facts;
            all.push(Seen { pid, parent, group, session, terminal, start_time, ended, mark });
        }
        Ok(all)
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
            spared: &self.spared,
        };
        let found = members(&all, &evidence, &open_terminals);
        self.found_caller = self.spared.iter().any(|pid| found.contains(pid));
        let members = all.iter().filter(|p| found.contains(&p.pid) && !self.spared.contains(&p.pid));
        let members = members.filter(|p| self.is_ours(p.pid));
        Ok(members.map(|p| Member { pid: p.pid, start_time: p.start_time, group: p.group }).collect())
    }

    fn signal(&mut self, member: &Member, signal: Option<Signal>) -> Option<OwnedFd> {
        let process = Process::open(member.pid)?;
        // Opened first, verified second: if the information is unchanged, the descriptor refers to that process.
        let now = facts(member.pid)?;
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

/// The process that has this pid now, as the leader of an attempt.
pub(super) fn leader_at(pid: u32) -> Option<Leader> {
    let facts = facts(pid)?;
    Some(Leader {
        pid,
        start_time: facts.start_time,
        session: facts.session,
        cgroup: None,
        tmux_folder: None,
    })
}

/// Makes this process the parent of its descendants whose parent ends.
pub(super) fn adopt_orphans() -> bool {
    rustix::process::set_child_subreaper(Some(Pid::INIT)).is_ok()
}

/// The children of this process, including those that have ended.
pub(super) fn children() -> Option<HashSet<u32>> {
    let me = std::process::id();
    let tasks = fs::read_dir("/proc/self/task").ok()?;
    let lists: io::Result<Vec<String>> =
        tasks.flatten().map(|task| fs::read_to_string(task.path().join("children"))).collect();
    match lists {
        Ok(lists) => {
            Some(lists.iter().flat_map(|l| l.split_whitespace()).filter_map(|p| p.parse().ok()).collect())
        }
        // The kernel was built without these lists, or a thread has ended meanwhile.
        Err(_) => {
            Some(pids().ok()?.into_iter().filter(|pid| facts(*pid).is_some_and(|f| f.parent == me)).collect())
        }
    }
}

/// The device numbers of the terminals that a process has open.
fn open_terminals(pid: u32) -> Vec<u32> {
    let descriptors = fs::read_dir(format!("/proc/{pid}/fd")).into_iter().flatten().flatten();
    let terminal = |path: PathBuf| {
        let target = fs::read_link(&path).ok()?;
        let name = target.to_str()?;
        if !name.starts_with("/dev/pts/") && !name.starts_with("/dev/tty") {
            return None;
        }
        let device = fs::metadata(&path).ok()?.rdev();
        Some(terminal_number(rustix::fs::major(device), rustix::fs::minor(device)))
    };
    descriptors.filter_map(|entry| terminal(entry.path())).collect()
}

/// A device number as in `/proc/PID/stat`.
fn terminal_number(major: u32, minor: u32) -> u32 {
    (minor & 0xff) | (major << 8) | ((minor & !0xff) << 12)
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
fn ancestors_of(pid: u32) -> Vec<u32> {
    let mut line = Vec::new();
    let mut next = pid;
    while next != 0 && !line.contains(&next) {
        line.push(next);
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
        session: small(3)?,
        // Shown as a signed number.
        terminal: u32::try_from(fields.get(4)?.parse::<i64>().ok()? & 0xffff_ffff).ok()?,
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
        ProcStat {
            parent: 1,
            group: 3,
            session: 7,
            terminal: 0,
            start_time: 98765,
            ended: false,
            kernel: false,
        }
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
