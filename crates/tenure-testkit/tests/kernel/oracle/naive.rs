//! The naive model: a list of leases, and the sentences of the specification. It shares no code with the kernel
//! except for the statuses and error codes.

use std::collections::BTreeSet;

use tenure_core::ErrorCode;
use tenure_core::task::TaskStatus;

use super::command::{CALLERS, Command, FinishKind, TASKS};

pub(crate) const TTL: i64 = 60;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum What {
    Task(usize),
    Section(usize),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Why {
    Released,
    Completed,
    Expired,
    Died,
    Forced,
}

#[derive(Debug, Clone)]
pub(crate) struct Held {
    pub(crate) fence: i64,
    pub(crate) what: What,
    pub(crate) name: &'static str,
    pub(crate) pid: Option<u32>,
    pub(crate) expires: i64,
    pub(crate) ended: Option<Why>,
    /// The status that the holder's finish has set.
    pub(crate) said: Option<TaskStatus>,
}

#[derive(Debug, Clone)]
pub(crate) struct Job {
    pub(crate) status: TaskStatus,
    pub(crate) section: Option<usize>,
}

/// The answer to a command: a fence, nothing, or an error code.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Answer {
    Nothing,
    Fence { fence: i64, reacquired: bool },
    Taken { task: usize, fence: i64 },
    Changed(bool),
    Ended(usize),
    Refused(ErrorCode),
}

/// The externally visible state.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct VisibleState {
    pub(crate) tasks: Vec<(TaskStatus, bool, Option<SeenLease>)>,
    pub(crate) sections: Vec<Option<SeenLease>>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct SeenLease {
    pub(crate) fence: i64,
    pub(crate) name: String,
    pub(crate) pid: Option<u32>,
    pub(crate) expires: i64,
}

#[derive(Debug, Clone)]
pub(crate) struct Naive {
    pub(crate) now: i64,
    pub(crate) jobs: Vec<Job>,
    pub(crate) deps: BTreeSet<(usize, usize)>,
    pub(crate) leases: Vec<Held>,
    pub(crate) dead: BTreeSet<u32>,
    pub(crate) pids: Vec<u32>,
    pub(crate) shown: Vec<[Option<i64>; TASKS]>,
    pub(crate) last_fence: i64,
}

type Outcome<T> = Result<T, ErrorCode>;

impl Naive {
    pub(crate) fn new((last_fence, now, pids): (i64, i64, Vec<u32>)) -> Self {
        let section = [Some(0), Some(0), Some(0), Some(1), None, None];
        let job = |at: usize| Job { status: TaskStatus::Pending, section: section[at] };
        Self {
            now,
            jobs: (0..TASKS).map(job).collect(),
            deps: BTreeSet::new(),
            leases: Vec::new(),
            dead: BTreeSet::new(),
            pids,
            shown: vec![[None; TASKS]; CALLERS.len()],
            last_fence,
        }
    }

    pub(crate) fn perform(&mut self, command: &Command) -> Answer {
        match *command {
            Command::Claim { actor, task } => self.undo_if_refused(|m| m.claim(actor, task)),
            Command::Next { actor } => self.next(actor),
            Command::Renew { actor, task, shown, revive } => {
                self.undo_if_refused(|m| m.renew(actor, task, shown, revive).map(Answer::of))
            }
            Command::Finish { actor, task, shown, finish } => {
                self.undo_if_refused(|m| m.finish(actor, task, shown, finish).map(Answer::Changed))
            }
            Command::Check { actor, task, shown } => self.undo_if_refused(|m| {
                let at = m.meant(actor, task, shown)?;
                if m.live(&m.leases[at]) {
                    Ok(Answer::of(m.leases[at].fence))
                } else {
                    Err(ErrorCode::LeaseLost)
                }
            }),
            Command::OverrideStatus { actor, task, to, force } => {
                self.undo_if_refused(|m| m.override_status(actor, task, to, force).map(|()| Answer::Nothing))
            }
            Command::Force { task } => self.force(What::Task(task)),
            Command::ForceSection { section } => self.force(What::Section(section)),
            Command::Cleanup => {
                let count = self.cleanup();
                Answer::Ended(count)
            }
            Command::Depend { task, on } => {
                // Only later tasks depend on earlier ones, so that there is no cycle.
                Answer::Changed(task > on && self.deps.insert((task, on)))
            }
            Command::Undepend { task, on } => Answer::Changed(self.deps.remove(&(task, on))),
            Command::Move { task, section } => self.relocate(task, section),
            Command::Kill { actor } => {
                if CALLERS[actor].1 {
                    self.dead.insert(self.pids[actor]);
                    self.pids[actor] += 100;
                }
                Answer::Nothing
            }
            Command::Advance { seconds } => {
                self.now += i64::try_from(seconds).unwrap();
                Answer::Nothing
            }
            Command::StepBack { seconds } => {
                self.now -= i64::try_from(seconds).unwrap();
                Answer::Nothing
            }
        }
    }

    /// A refused command changes nothing, except that a refusal by a holder (6) still closes lapsed leases.
    fn undo_if_refused(&mut self, body: impl FnOnce(&mut Self) -> Outcome<Answer>) -> Answer {
        let before = self.clone();
        match body(self) {
            Ok(answer) => answer,
            Err(code) => {
                *self = before;
                Answer::Refused(code)
            }
        }
    }

    pub(crate) fn pid(&self, actor: usize) -> Option<u32> {
        CALLERS[actor].1.then(|| self.pids[actor])
    }

    pub(crate) fn live(&self, held: &Held) -> bool {
        held.ended.is_none() && held.expires > self.now && !self.is_dead(held)
    }

    pub(crate) fn is_dead(&self, held: &Held) -> bool {
        held.ended == Some(Why::Died) || held.pid.is_some_and(|pid| self.dead.contains(&pid))
    }

    pub(crate) fn open(&self, what: What) -> Option<usize> {
        self.leases.iter().position(|held| held.what == what && held.ended.is_none())
    }

    pub(crate) fn serial(&self, task: usize) -> Option<usize> {
        self.jobs[task].section.filter(|section| *section == 0)
    }

    /// Whether the holder of this section's lease works there or is between two tasks.
    pub(crate) fn works_there(&self, at: usize) -> bool {
        let section = &self.leases[at];
        let under = |held: &&Held| {
            let inside = matches!(held.what, What::Task(task) if self.serial(task).map(What::Section) == Some(section.what));
            inside && held.ended.is_none() && held.name == section.name && held.pid == section.pid
        };
        let mut tasks = self.leases.iter().filter(under).peekable();
        self.live(section) && (tasks.peek().is_none() || tasks.any(|held| self.live(held)))
    }

    fn blocked(&self, task: usize) -> bool {
        let finished =
            |on: usize| matches!(self.jobs[on].status, TaskStatus::Completed | TaskStatus::Skipped);
        self.deps.iter().any(|(from, on)| *from == task && !finished(*on))
    }

    /// L6: the fence, or the name with the same process; a name without a process also matches its own lease.
    pub(crate) fn same(&self, held: &Held, actor: usize, fence: Option<i64>) -> bool {
        fence == Some(held.fence)
            || held.name == CALLERS[actor].0
                && (held.pid.is_none() || self.pid(actor).is_none() || held.pid == self.pid(actor))
    }

    fn claim(&mut self, actor: usize, task: usize) -> Outcome<Answer> {
        if let Some(at) = self.open(What::Task(task)) {
            if self.live(&self.leases[at]) {
                if !self.same(&self.leases[at], actor, None) {
                    return Ok(Answer::Refused(ErrorCode::TaskLocked));
                }
                let fence = self.leases[at].fence;
                self.shown[actor][task] = Some(fence);
                return Ok(Answer::Fence { fence, reacquired: true });
            }
            self.close_lapsed(at);
        }
        if self.jobs[task].status != TaskStatus::Pending {
            return Err(ErrorCode::InvalidTransition);
        }
        if self.blocked(task) {
            return Err(ErrorCode::NotReady);
        }
        if let Some(section) = self.serial(task)
            && !self.enter(actor, section)
        {
            return Ok(Answer::Refused(ErrorCode::SectionLocked));
        }
        let fence = self.grant(What::Task(task), CALLERS[actor].0, self.pid(actor));
        self.jobs[task].status = TaskStatus::InProgress;
        self.shown[actor][task] = Some(fence);
        Ok(Answer::Fence { fence, reacquired: false })
    }

    /// Takes the section for one holder and one of its processes.
    fn enter(&mut self, actor: usize, section: usize) -> bool {
        if let Some(at) = self.open(What::Section(section)) {
            let pid = self.pid(actor);
            let live = self.live(&self.leases[at]);
            let held = &mut self.leases[at];
            if live && held.name == CALLERS[actor].0 && held.pid == pid {
                held.expires = held.expires.max(self.now + TTL);
                return true;
            }
            if self.works_there(at) {
                return false;
            }
            self.close_lapsed(at);
        }
        self.grant(What::Section(section), CALLERS[actor].0, self.pid(actor));
        true
    }

    pub(crate) fn grant(&mut self, what: What, name: &'static str, pid: Option<u32>) -> i64 {
        self.last_fence += 1;
        let fence = self.last_fence;
        let expires = self.now + TTL;
        self.leases.push(Held { fence, what, name, pid, expires, ended: None, said: None });
        fence
    }

    /// Pending or lapsed, unblocked, not leased, and in no section of another holder.
    fn ready(&self, task: usize, me: Option<&str>) -> bool {
        let status = self.jobs[task].status;
        let offered = matches!(status, TaskStatus::Pending | TaskStatus::InProgress);
        let leased = self.open(What::Task(task)).is_some_and(|at| self.live(&self.leases[at]));
        let section_open = self.serial(task).is_none_or(|section| {
            self.open(What::Section(section)).is_none_or(|at| {
                !self.works_there(at) || self.live(&self.leases[at]) && me == Some(self.leases[at].name)
            })
        });
        offered && !self.blocked(task) && !leased && section_open
    }

    fn next(&mut self, actor: usize) -> Answer {
        let mut me = Some(CALLERS[actor].0);
        loop {
            let order = |task: usize| (self.jobs[task].section.map_or(0, |section| section + 1), task);
            let ready = (0..TASKS).filter(|task| self.ready(*task, me));
            let Some(task) = ready.min_by_key(|task| order(*task)) else { return Answer::Nothing };
            match self.claim(actor, task).unwrap() {
                Answer::Fence { fence, .. } => return Answer::Taken { task, fence },
                // The section is held under the same name, but by another process.
                _ if me.is_some() => me = None,
                _ => return Answer::Nothing,
            }
        }
    }

    pub(crate) fn visible_state(&self) -> VisibleState {
        let seen = |what: What| {
            self.open(what).map(|at| {
                let held = &self.leases[at];
                SeenLease {
                    fence: held.fence,
                    name: held.name.to_owned(),
                    pid: held.pid,
                    expires: held.expires,
                }
            })
        };
        let task = |at: usize| (self.jobs[at].status, self.ready(at, None), seen(What::Task(at)));
        VisibleState {
            tasks: (0..TASKS).map(task).collect(),
            sections: (0..super::command::SECTIONS).map(|at| seen(What::Section(at))).collect(),
        }
    }
}

impl Answer {
    pub(crate) fn of(fence: i64) -> Self {
        Self::Fence { fence, reacquired: false }
    }

    pub(crate) fn finish_leads_to(finish: FinishKind, status: TaskStatus) -> bool {
        match finish {
            FinishKind::Done => matches!(status, TaskStatus::Completed | TaskStatus::Review),
            FinishKind::Fail => status == TaskStatus::Failed,
            FinishKind::Release => status == TaskStatus::Pending,
        }
    }
}
