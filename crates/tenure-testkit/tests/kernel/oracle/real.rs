//! Applies the commands to the real kernel on a real database.

use std::cell::RefCell;
use std::time::Duration;

use tenure_core::error::TaskName;
use tenure_core::event::{EventKind, NewEvent};
use tenure_core::holder::Caller;
use tenure_core::id::{Fence, Ids, SectionId, TaskId};
use tenure_core::kernel::{self, Beat, Finish, Terms, Verdict};
use tenure_core::lease::{EndReason, Lease, Resource};
use tenure_core::section::SectionMode;
use tenure_core::store::{EventFilter, LeaseFilter, NewSection, TaskEdit, TaskFilter};
use tenure_core::task::{DEFAULT_PRIORITY, Task, TaskStatus};
use tenure_core::{Clock, ErrorCode, Result};
use tenure_testkit::Fixture;
use tenure_testkit::conformance::replayed_statuses;
use tenure_testkit::fixture::{TESTER, TTL, new_task};

use super::command::{CALLERS, Command, FinishKind, TASKS};
use super::naive::{Answer, SeenLease, VisibleState};

pub(crate) struct Real {
    f: Fixture,
    tasks: Vec<TaskId>,
    sections: Vec<SectionId>,
    pids: Vec<u32>,
    shown: Vec<[Option<Fence>; TASKS]>,
    /// Events up to this number belong to earlier sequences.
    earlier_events: i64,
    rounds: u32,
    /// The fences in order of their grants. A store may skip numbers; the model does not.
    granted: RefCell<Vec<i64>>,
}

impl Real {
    pub(crate) fn new(f: Fixture) -> Self {
        Self {
            f,
            tasks: Vec::new(),
            sections: Vec::new(),
            pids: Vec::new(),
            shown: Vec::new(),
            earlier_events: 0,
            rounds: 0,
            granted: RefCell::default(),
        }
    }

    /// Creates an empty project in the same database. Returns the last fence, the time in seconds, and the callers'
    /// pids.
    pub(crate) fn reset(&mut self) -> (i64, i64, Vec<u32>) {
        let f = &self.f;
        let last = EventFilter { last: true, limit: 1, ..EventFilter::default() };
        let sections: Vec<_> = (0..2).map(|_| f.ids.section()).collect();
        let tasks: Vec<_> = (0..TASKS).map(|_| f.ids.task()).collect();
        // One transaction, because there are thousands of sequences.
        self.earlier_events = f
            .write(|tx| {
                for lease in tx.leases(&LeaseFilter::default())? {
                    tx.end_lease(lease.fence, EndReason::Forced)?;
                }
                for id in &self.tasks {
                    tx.delete_task(id, NewEvent::new(EventKind::TaskDeleted, TESTER).task(id))?;
                }
                for id in &self.sections {
                    tx.delete_section(id, NewEvent::new(EventKind::SectionDeleted, TESTER))?;
                }
                let earlier_events = tx.events(&last)?.first().map_or(0, |event| event.seq);
                for (at, id) in (0..).zip(&sections) {
                    let mode = if at == 0 { SectionMode::Serial } else { SectionMode::Parallel };
                    let name = format!("S{at}");
                    let section = NewSection {
                        id: id.clone(),
                        name,
                        mode,
                        priority: DEFAULT_PRIORITY,
                        position: at + 1,
                    };
                    tx.insert_section(&section, NewEvent::new(EventKind::SectionCreated, TESTER))?;
                }
                let home = [Some(0), Some(0), Some(0), Some(1), None, None];
                for (at, id) in tasks.iter().enumerate() {
                    // Tasks keep the model's order whatever section they are moved to.
                    let position = i64::try_from(at).unwrap();
                    let section = home[at].map(|section: usize| &sections[section]);
                    let task = new_task(id, &format!("T{at}"), section, position);
                    tx.insert_task(&task, NewEvent::new(EventKind::TaskCreated, TESTER).task(id))?;
                }
                Ok(earlier_events)
            })
            .unwrap();
        self.sections = sections;
        self.tasks = tasks;
        self.rounds += 1;
        let first = self.rounds * 10_000;
        self.pids = (0..5).map(|at| first + at).collect();
        self.shown = vec![[None; TASKS]; CALLERS.len()];
        let granted = i64::try_from(self.granted.borrow().len()).unwrap();
        (granted, self.now(), self.pids.clone())
    }

    /// The ordinal number of the grant with this fence.
    fn ordinal(&self, fence: Fence) -> i64 {
        let mut granted = self.granted.borrow_mut();
        if granted.last().is_none_or(|last| *last < fence.number()) {
            // A command grants at most a section and a task; revivals add a few more.
            let newest = LeaseFilter {
                include_ended: true,
                newest_first: true,
                limit: Some(8),
                ..LeaseFilter::default()
            };
            let mut fences: Vec<i64> =
                self.f.read(|view| view.leases(&newest)).iter().map(|lease| lease.fence.number()).collect();
            fences.retain(|found| granted.last().is_none_or(|last| last < found));
            fences.sort_unstable();
            granted.extend(fences);
        }
        i64::try_from(granted.binary_search(&fence.number()).unwrap()).unwrap() + 1
    }

    fn now(&self) -> i64 {
        self.f.clock.now().as_millis() / 1000
    }

    fn caller(&self, actor: usize) -> Caller {
        let (name, has_process) = CALLERS[actor];
        if has_process { self.f.worker(name, self.pids[actor]) } else { self.f.bare(name) }
    }

    fn name(&self, task: usize) -> TaskName {
        let id = self.tasks[task].to_string();
        TaskName { id, key: format!("T{task}"), title: String::new(), status: TaskStatus::Pending }
    }

    fn showing(&self, actor: usize, task: usize, shown: bool) -> Caller {
        self.caller(actor).with_fence(self.shown[actor][task].filter(|_| shown))
    }

    pub(crate) fn perform(&mut self, command: &Command) -> Answer {
        let f = &self.f;
        match *command {
            Command::Claim { actor, task } => self.claim(actor, task),
            Command::Next { actor } => self.next(actor),
            Command::Renew { actor, task, shown, revive } => {
                let beat = Beat { revive, ..Beat::default() };
                let (caller, name) = (self.showing(actor, task, shown), self.name(task));
                let answer = f.write(|tx| kernel::renew(tx, &f.context(), &caller, &name, beat));
                answer_of(answer, |lease| Answer::of(self.ordinal(lease.fence)))
            }
            Command::Finish { actor, task, shown, finish } => {
                let finish = match finish {
                    FinishKind::Done => Finish::Done,
                    FinishKind::Fail => Finish::Fail("it did not work"),
                    FinishKind::Release => Finish::Release(None),
                };
                let (caller, name) = (self.showing(actor, task, shown), self.name(task));
                let answer = f.write(|tx| kernel::finish(tx, &f.context(), &caller, &name, finish, false));
                answer_of(answer, |finished| Answer::Changed(finished.changed))
            }
            Command::Check { actor, task, shown } => {
                let (caller, name) = (self.showing(actor, task, shown), self.name(task));
                let answer = f.store.read(|view| kernel::check(view, &f.context(), &caller, &name));
                answer_of(answer, |lease| Answer::of(self.ordinal(lease.fence)))
            }
            Command::OverrideStatus { actor, task, to, force } => {
                let (caller, id) = (self.caller(actor), &self.tasks[task]);
                let answer =
                    f.write(|tx| kernel::override_status(tx, &f.context(), &caller, id, to, None, force));
                answer_of(answer, |_| Answer::Nothing)
            }
            Command::Force { task } => self.force(&Resource::task(&self.tasks[task])),
            Command::ForceSection { section } => self.force(&Resource::section(&self.sections[section])),
            Command::Cleanup => Answer::Ended(self.f.cleanup().len()),
            Command::Depend { task, on } => {
                let (a, b) = (&self.tasks[task], &self.tasks[on]);
                Answer::Changed(task > on && self.f.write(|tx| tx.add_dependency(a, b)).unwrap())
            }
            Command::Undepend { task, on } => {
                let (a, b) = (&self.tasks[task], &self.tasks[on]);
                Answer::Changed(self.f.write(|tx| tx.remove_dependency(a, b)).unwrap())
            }
            Command::Move { task, section } => self.relocate(task, section),
            Command::Kill { actor } => {
                if CALLERS[actor].1 {
                    self.f.world.kill(self.pids[actor]);
                    self.pids[actor] += 100;
                }
                Answer::Nothing
            }
            Command::Advance { seconds } => {
                self.f.clock.advance(Duration::from_secs(seconds));
                Answer::Nothing
            }
            Command::StepBack { seconds } => {
                self.f.clock.step_back(Duration::from_secs(seconds));
                Answer::Nothing
            }
        }
    }

    fn claim(&mut self, actor: usize, task: usize) -> Answer {
        let (caller, id) = (self.caller(actor), &self.tasks[task]);
        let f = &self.f;
        match f.write(|tx| kernel::acquire_task(tx, &f.context(), &caller, id, &Terms::new(TTL))) {
            Ok(Verdict::Granted(grant)) => {
                self.shown[actor][task] = Some(grant.lease.fence);
                Answer::Fence { fence: self.ordinal(grant.lease.fence), reacquired: grant.reacquired }
            }
            Ok(verdict) => answer_of(verdict.granted(), |_| Answer::Nothing),
            Err(error) => Answer::Refused(error.code()),
        }
    }

    fn next(&mut self, actor: usize) -> Answer {
        let Some(grant) = self.f.next(&self.caller(actor)) else { return Answer::Nothing };
        let task = self.tasks.iter().position(|id| *id == grant.task.id).unwrap();
        self.shown[actor][task] = Some(grant.lease.fence);
        Answer::Taken { task, fence: self.ordinal(grant.lease.fence) }
    }

    fn force(&self, resource: &Resource) -> Answer {
        match self.f.read(|view| view.open_lease(resource)) {
            Some(lease) => answer_of(self.f.force(&lease), |forced| Answer::Ended(forced.ended.len())),
            None => Answer::Nothing,
        }
    }

    fn relocate(&self, task: usize, section: Option<usize>) -> Answer {
        let f = &self.f;
        f.cleanup();
        let key = format!("T{task}");
        if f.lease(&key).is_some() {
            return Answer::Refused(ErrorCode::TaskLocked);
        }
        let section = section.map(|at| self.sections[at].clone());
        f.edit(&key, &TaskEdit { section: Some(section), ..TaskEdit::default() });
        Answer::Nothing
    }

    pub(crate) fn visible_state(&self) -> VisibleState {
        let filter = TaskFilter { limit: 100, ..TaskFilter::default() };
        let (tasks, sections) = self.f.read(|view| {
            let viewer = self.f.viewer(view, None);
            Ok((view.list_tasks(&filter, &viewer)?.0, view.sections()?))
        });
        let find = |id: &TaskId| -> &Task { tasks.iter().find(|task| task.id == *id).unwrap() };
        let seen = |lease: &Lease| SeenLease {
            fence: self.ordinal(lease.fence),
            name: lease.holder.id.clone(),
            pid: lease.process.as_ref().map(|process| process.process.pid),
            expires: lease.expires_at.as_millis() / 1000,
        };
        let task = |id: &TaskId| {
            let task = find(id);
            (task.status, task.ready, task.lease.as_ref().map(seen))
        };
        let section = |id: &SectionId| {
            sections
                .iter()
                .find(|section| section.id == *id)
                .and_then(|section| section.lease.as_ref().map(seen))
        };
        VisibleState {
            tasks: self.tasks.iter().map(task).collect(),
            sections: self.sections.iter().map(section).collect(),
        }
    }

    /// T1 for this sequence.
    pub(crate) fn check_feed(&self) {
        let filter =
            EventFilter { since: self.earlier_events, limit: u64::from(u32::MAX), ..EventFilter::default() };
        let statuses = replayed_statuses(&self.f.read(|view| view.events(&filter)));
        let state = self.visible_state();
        for (id, (status, _, lease)) in self.tasks.iter().zip(state.tasks) {
            assert_eq!(statuses.get(id), Some(&status), "the status of {id} according to the feed");
            assert_eq!(lease.is_some(), status == TaskStatus::InProgress);
        }
    }
}

fn answer_of<T>(answer: Result<T>, say: impl FnOnce(T) -> Answer) -> Answer {
    match answer {
        Ok(answer) => say(answer),
        Err(error) => Answer::Refused(error.code()),
    }
}
