//! Which processes belong to an attempt, decided from a list of all processes.

use std::collections::{HashMap, HashSet};

use tenure_core::lease::Leader;

use super::descendants::Descendants;

/// What the environment of a process says about its attempt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Mark {
    This,
    /// The variable has another value: the process belongs to another attempt, or has left on purpose.
    Other,
    /// There is no such variable, or the environment cannot be read.
    Missing,
}

/// A process, as the system lists it, with its mark.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Seen {
    pub(super) pid: u32,
    pub(super) parent: u32,
    pub(super) group: u32,
    pub(super) session: u32,
    /// The device number of the controlling terminal; 0 without one.
    pub(super) terminal: u32,
    pub(super) start_time: u64,
    pub(super) ended: bool,
    pub(super) mark: Mark,
}

/// What is known of the attempt.
#[derive(Debug, Default)]
pub(super) struct Evidence<'a> {
    pub(super) leader: Option<&'a Leader>,
    /// The processes in the attempt's control group.
    pub(super) cgroup: HashSet<u32>,
    /// Orphans that the system handed to the caller, which is the supervisor of this attempt alone.
    pub(super) adopted: HashSet<u32>,
    /// Processes that were seen as descendants of the leader while it ran.
    pub(super) recorded: Option<&'a Descendants>,
    /// The caller and its ancestors. They may be members, but their descendants do not become members through
    /// them.
    pub(super) spared: &'a [u32],
}

/// The pids of the live members. `terminals` returns the terminals that a process has open.
pub(super) fn members(
    all: &[Seen],
    evidence: &Evidence<'_>,
    terminals: &dyn Fn(u32) -> Vec<u32>,
) -> HashSet<u32> {
    let by_pid: HashMap<u32, &Seen> = all.iter().map(|p| (p.pid, p)).collect();
    let eligible = |p: &Seen| {
        !p.ended && p.mark != Mark::Other && evidence.leader.is_none_or(|l| p.start_time >= l.start_time)
    };
    let mut members: HashSet<u32> = HashSet::new();
    let mut groups: HashSet<u32> = HashSet::new();
    for p in all.iter().filter(|p| eligible(p)) {
        if p.mark == Mark::This && !is_in_an_older_session(p, evidence.leader, &by_pid) {
            members.insert(p.pid);
            groups.insert(p.group);
        } else if evidence.cgroup.contains(&p.pid)
            || evidence.adopted.contains(&p.pid)
            || evidence.recorded.is_some_and(|seen| seen.contains(p.pid, p.start_time))
            || evidence.leader.is_some_and(|l| is_in_group_of(p, l, &by_pid))
        {
            members.insert(p.pid);
        }
    }
    members.extend(all.iter().filter(|p| eligible(p) && groups.contains(&p.group)).map(|p| p.pid));
    add_descendants(&mut members, all, |p| eligible(p), |parent| !evidence.spared.contains(&parent));
    let servers = interactive_servers(all, &members, evidence.leader, terminals);
    if !servers.is_empty() {
        let mut kept = servers;
        add_descendants(&mut kept, all, |_| true, |_| true);
        members.retain(|pid| !kept.contains(pid));
    }
    members
}

/// Whether the process is in the group or the session that the leader has created. The system does not reuse the number
/// of a group or session while it has members, but may do so afterwards.
fn is_in_group_of(p: &Seen, leader: &Leader, by_pid: &HashMap<u32, &Seen>) -> bool {
    let recycled = by_pid.get(&leader.pid).is_some_and(|now| now.start_time != leader.start_time);
    // Without the leader to compare, only a group of the same session can be the leader's.
    p.session == leader.session && (p.group == leader.pid || leader.session == leader.pid) && !recycled
}

/// Whether the process has the mark but is in a session that is older than the attempt, such as the shell of a person who
/// has loaded an agent's environment.
fn is_in_an_older_session(p: &Seen, leader: Option<&Leader>, by_pid: &HashMap<u32, &Seen>) -> bool {
    let Some(leader) = leader.filter(|l| l.session != p.session && l.pid != p.group) else { return false };
    by_pid.get(&p.session).is_some_and(|first| {
        first.pid != p.pid && first.mark == Mark::Missing && first.start_time < leader.start_time
    })
}

/// Members outside of the attempt's session that have the terminal of a process outside of the attempt open: a person works
/// in them.
fn interactive_servers(
    all: &[Seen],
    members: &HashSet<u32>,
    leader: Option<&Leader>,
    terminals: &dyn Fn(u32) -> Vec<u32>,
) -> HashSet<u32> {
    let outside = |p: &Seen| leader.is_none_or(|l| l.session != p.session);
    let others: HashSet<u32> = all
        .iter()
        .filter(|p| p.terminal != 0 && !p.ended && !members.contains(&p.pid) && outside(p))
        .map(|p| p.terminal)
        .collect();
    if others.is_empty() {
        return HashSet::new();
    }
    all.iter()
        .filter(|p| members.contains(&p.pid) && outside(p))
        .filter(|p| terminals(p.pid).iter().any(|terminal| others.contains(terminal)))
        .map(|p| p.pid)
        .collect()
}

fn add_descendants(
    found: &mut HashSet<u32>,
    all: &[Seen],
    eligible: impl Fn(&Seen) -> bool,
    passes_on: impl Fn(u32) -> bool,
) {
    loop {
        let more: Vec<u32> = all
            .iter()
            .filter(|p| {
                !found.contains(&p.pid) && found.contains(&p.parent) && passes_on(p.parent) && eligible(p)
            })
            .map(|p| p.pid)
            .collect();
        if more.is_empty() {
            return;
        }
        found.extend(more);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SHELL: u32 = 100;
    const NONE: [u32; 0] = [];

    fn leader() -> Leader {
        Leader { pid: 500, start_time: 5000, session: SHELL, cgroup: None, tmux_folder: None }
    }

    /// An unmarked process in the attempt's group, whose parent has ended.
    fn process(pid: u32) -> Seen {
        Seen {
            pid,
            parent: 1,
            group: 500,
            session: SHELL,
            terminal: 0,
            start_time: 6000,
            ended: false,
            mark: Mark::Missing,
        }
    }

    /// An unmarked process in its own session.
    fn daemon(pid: u32) -> Seen {
        Seen { group: pid, session: pid, ..process(pid) }
    }

    fn shell() -> Seen {
        Seen { start_time: 10, group: SHELL, ..process(SHELL) }
    }

    fn found(all: &[Seen], evidence: &Evidence<'_>) -> Vec<u32> {
        let mut found: Vec<u32> = members(all, evidence, &|_| Vec::new()).into_iter().collect();
        found.sort_unstable();
        found
    }

    fn found_with_leader(all: &[Seen]) -> Vec<u32> {
        found(all, &Evidence { leader: Some(&leader()), ..Evidence::default() })
    }

    #[test]
    fn an_unmarked_process_in_the_leaders_group_is_a_member_even_without_the_leader() {
        assert_eq!(found_with_leader(&[shell(), process(501)]), [501]);
        let first = Seen { start_time: 5000, mark: Mark::This, ..process(500) };
        assert_eq!(found_with_leader(&[shell(), first, process(501)]), [500, 501]);
    }

    #[test]
    fn a_recycled_group_is_not_the_attempts() {
        let another = Seen { start_time: 7000, ..process(500) };
        assert_eq!(found_with_leader(&[another, process(501)]), NONE);
        let elsewhere = Seen { session: 101, ..process(501) };
        assert_eq!(found_with_leader(&[elsewhere]), NONE);
    }

    #[test]
    fn a_process_older_than_the_attempt_is_never_a_member() {
        let older = Seen { start_time: 4999, ..process(501) };
        assert_eq!(found_with_leader(std::slice::from_ref(&older)), NONE);
        let marked = Seen { mark: Mark::This, ..process(502) };
        assert_eq!(found_with_leader(&[older, marked]), [502]);
    }

    #[test]
    fn a_process_with_another_mark_is_never_a_member_nor_are_its_children() {
        let left = Seen { mark: Mark::Other, ..process(501) };
        let child = Seen { parent: 501, ..daemon(502) };
        assert_eq!(found_with_leader(&[left, child]), NONE);
    }

    #[test]
    fn descendants_of_members_are_members_except_through_the_caller() {
        let marked = Seen { mark: Mark::This, ..daemon(501) };
        let child = Seen { parent: 501, ..daemon(502) };
        let grandchild = Seen { parent: 502, ..daemon(503) };
        let all = [grandchild, child, marked];
        assert_eq!(found(&all, &Evidence::default()), [501, 502, 503]);
        assert_eq!(found(&all, &Evidence { spared: &[501], ..Evidence::default() }), [501]);
    }

    #[test]
    fn processes_of_the_control_group_and_adopted_orphans_are_members() {
        let all = [daemon(501), daemon(502), daemon(503)];
        let evidence = Evidence {
            leader: Some(&leader()),
            cgroup: HashSet::from([501]),
            adopted: HashSet::from([502]),
            ..Evidence::default()
        };
        assert_eq!(found(&all, &evidence), [501, 502]);
    }

    #[test]
    fn a_recorded_descendant_is_a_member_and_a_later_process_with_its_pid_is_not() {
        let mut recorded = Descendants::default();
        recorded.insert(501, 6000);
        recorded.insert(502, 5999);
        let evidence = Evidence { leader: Some(&leader()), recorded: Some(&recorded), ..Evidence::default() };
        assert_eq!(found(&[daemon(501), daemon(502), daemon(503)], &evidence), [501]);
    }

    #[test]
    fn every_group_of_the_session_that_the_leader_created_belongs_to_the_attempt() {
        let leader = Leader { session: 500, ..leader() };
        let evidence = Evidence { leader: Some(&leader), ..Evidence::default() };
        let job = Seen { session: 500, group: 501, ..process(501) };
        assert_eq!(found(&[shell(), job.clone()], &evidence), [501]);
        // A session that existed before has other groups.
        assert_eq!(found_with_leader(&[shell(), Seen { session: SHELL, ..job }]), NONE);
    }

    #[test]
    fn a_mark_that_came_into_an_older_session_does_not_make_a_member() {
        let person = Seen { start_time: 20, ..daemon(200) };
        let program = Seen { session: 200, group: 501, mark: Mark::This, ..process(501) };
        assert_eq!(found_with_leader(&[person.clone(), program.clone()]), NONE);
        // The agent's own daemon: the first process of its session is young, or gone.
        let young = Seen { mark: Mark::This, ..daemon(200) };
        assert_eq!(found_with_leader(&[young, program.clone()]), [200, 501]);
        assert_eq!(found_with_leader(&[program]), [501]);
    }

    #[test]
    fn a_server_on_the_terminal_of_another_process_is_spared_with_its_children() {
        const PERSON: u32 = 0x8801;
        const OWN: u32 = 0x8802;
        let client = Seen { terminal: PERSON, start_time: 6500, ..daemon(300) };
        let server = Seen { mark: Mark::This, ..daemon(501) };
        let window = Seen { mark: Mark::This, parent: 501, terminal: OWN, ..daemon(502) };
        let leftover = Seen { mark: Mark::This, terminal: OWN, ..daemon(503) };
        let all = [client, server, window, leftover];
        let leader = leader();
        let evidence = Evidence { leader: Some(&leader), ..Evidence::default() };
        let look = |open: &dyn Fn(u32) -> Vec<u32>| {
            let mut found: Vec<u32> = members(&all, &evidence, open).into_iter().collect();
            found.sort_unstable();
            found
        };
        assert_eq!(look(&|pid| if pid == 501 { vec![PERSON, OWN] } else { vec![OWN] }), [503]);
        // Only terminals of the attempt's own processes.
        assert_eq!(look(&|_| vec![OWN]), [501, 502, 503]);
    }

    #[test]
    fn the_terminal_of_the_attempts_own_session_spares_nothing() {
        let shell = Seen { terminal: 0x8801, ..shell() };
        let command = Seen { mark: Mark::This, terminal: 0x8801, ..process(501) };
        let leader = leader();
        let evidence = Evidence { leader: Some(&leader), ..Evidence::default() };
        assert_eq!(members(&[shell, command], &evidence, &|_| vec![0x8801]), HashSet::from([501]));
    }
}
