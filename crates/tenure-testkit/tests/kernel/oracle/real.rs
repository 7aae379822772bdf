//! The real thing: the kernel's functions on a real database, with the same commands and the same view.

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
use tenure_testkit::conformance::statuses_told;
use tenure_testkit::fixture::{TESTER, TTL, new_task};

use super::command::{CALLERS, Command, TASKS, Word};
use super::naive::{Answer, Look, SeenLease};

pub(crate) struct Real {
    f: Fixture,
    tasks: Vec<TaskId>,
    sections: Vec<SectionId>,
    pids: Vec<u32>,
    shown: Vec<[Option<Fence>; TASKS]>,
    /// The feed up to here belongs to earlier sequences.
    told: i64,
    rounds: u32,
    /// The fences in the order of their grants. A store may leave numbers out; the model counts.
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
            told: 0,
            rounds: 0,
            granted: RefCell::default(),
        }
    }

    /// An empty project in the same database; with the last fence, the time in seconds, and the callers' pids.
    pub(crate) fn reset(&mut self) -> (i64, i64, Vec<u32>) {
        let f = &self.f;
        let last = EventFilter { last: true, limit: 1, ..EventFilter::default() };
        let sections: Vec<_> = (0..2).map(|_| f.ids.section()).collect();
        let tasks: Vec<_> = (0..TASKS).map(|_| f.ids.task()).collect();
        // All in one transaction: there are thousands of sequences.
        self.told = f
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
                let told = tx.events(&last)?.first().map_or(0, |event| event.seq);
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
                    // Tasks are in the model's order whatever section they move to.
                    let position = i64::try_from(at).unwrap();
                    let section = home[at].map(|section: usize| &sections[section]);
                    let task = new_task(id, &format!("T{at}"), section, position);
                    tx.insert_task(&task, NewEvent::new(EventKind::TaskCreated, TESTER).task(id))?;
                }
                Ok(told)
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

    /// The how-manieth grant that was.
    fn place(&self, fence: Fence) -> i64 {
        let mut granted = self.granted.borrow_mut();
        if granted.last().is_none_or(|last| *last < fence.number()) {
            // One command grants a section and a task at most; revivals bring a few more.
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

    fn caller(&self, who: usize) -> Caller {
        let (name, has_process) = CALLERS[who];
        if has_process { self.f.worker(name, self.pids[who]) } else { self.f.bare(name) }
    }

    fn name(&self, task: usize) -> TaskName {
        let id = self.tasks[task].to_string();
        TaskName { id, key: format!("T{task}"), title: String::new(), status: TaskStatus::Pending }
    }

    fn showing(&self, who: usize, task: usize, shown: bool) -> Caller {
        self.caller(who).with_fence(self.shown[who][task].filter(|_| shown))
    }

    pub(crate) fn perform(&mut self, command: &Command) -> Answer {
        let f = &self.f;
        match *command {
            Command::Claim { who, task } => self.claim(who, task),
            Command::Next { who } => self.next(who),
            Command::Renew { who, task, shown, revive } => {
                let beat = Beat { revive, ..Beat::default() };
                let (caller, name) = (self.showing(who, task, shown), self.name(task));
                let answer = f.write(|tx| kernel::renew(tx, &f.context(), &caller, &name, beat));
                told(answer, |lease| Answer::of(self.place(lease.fence)))
            }
            Command::Finish { who, task, shown, word } => {
                let word = match word {
                    Word::Done => Finish::Done,
                    Word::Fail => Finish::Fail("it did not work"),
                    Word::Release => Finish::Release(None),
                };
                let (caller, name) = (self.showing(who, task, shown), self.name(task));
                let answer = f.write(|tx| kernel::finish(tx, &f.context(), &caller, &name, word, false));
                told(answer, |finished| Answer::Changed(finished.changed))
            }
            Command::Check { who, task, shown } => {
                let (caller, name) = (self.showing(who, task, shown), self.name(task));
                let answer = f.store.read(|view| kernel::check(view, &f.context(), &caller, &name));
                told(answer, |lease| Answer::of(self.place(lease.fence)))
            }
            Command::Settle { who, task, to, force } => {
                let (caller, id) = (self.caller(who), &self.tasks[task]);
                let answer =
                    f.write(|tx| kernel::override_status(tx, &f.context(), &caller, id, to, None, force));
                told(answer, |_| Answer::Nothing)
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
            Command::Kill { who } => {
                if CALLERS[who].1 {
                    self.f.world.kill(self.pids[who]);
                    self.pids[who] += 100;
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

    fn claim(&mut self, who: usize, task: usize) -> Answer {
        let (caller, id) = (self.caller(who), &self.tasks[task]);
        let f = &self.f;
        match f.write(|tx| kernel::acquire_task(tx, &f.context(), &caller, id, &Terms::new(TTL))) {
            Ok(Verdict::Granted(grant)) => {
                self.shown[who][task] = Some(grant.lease.fence);
                Answer::Fence { fence: self.place(grant.lease.fence), reacquired: grant.reacquired }
            }
            Ok(verdict) => told(verdict.granted(), |_| Answer::Nothing),
            Err(error) => Answer::Refused(error.code()),
        }
    }

    fn next(&mut self, who: usize) -> Answer {
        let Some(grant) = self.f.next(&self.caller(who)) else { return Answer::Nothing };
        let task = self.tasks.iter().position(|id| *id == grant.task.id).unwrap();
        self.shown[who][task] = Some(grant.lease.fence);
        Answer::Taken { task, fence: self.place(grant.lease.fence) }
    }

    fn force(&self, resource: &Resource) -> Answer {
        match self.f.read(|view| view.open_lease(resource)) {
            Some(lease) => told(self.f.force(&lease), |forced| Answer::Ended(forced.ended.len())),
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

    pub(crate) fn look(&self) -> Look {
        let filter = TaskFilter { limit: 100, ..TaskFilter::default() };
        let (tasks, sections) = self.f.read(|view| {
            let viewer = self.f.viewer(view, None);
            Ok((view.list_tasks(&filter, &viewer)?.0, view.sections()?))
        });
        let find = |id: &TaskId| -> &Task { tasks.iter().find(|task| task.id == *id).unwrap() };
        let seen = |lease: &Lease| SeenLease {
            fence: self.place(lease.fence),
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
        Look {
            tasks: self.tasks.iter().map(task).collect(),
            sections: self.sections.iter().map(section).collect(),
        }
    }

    /// T1, over this sequence.
    pub(crate) fn check_the_feed(&self) {
        let filter = EventFilter { since: self.told, limit: u64::from(u32::MAX), ..EventFilter::default() };
        let told = statuses_told(&self.f.read(|view| view.events(&filter)));
        let look = self.look();
        for (id, (status, _, lease)) in self.tasks.iter().zip(look.tasks) {
            assert_eq!(told.get(id), Some(&status), "what the feed tells of {id}");
            assert_eq!(lease.is_some(), status == TaskStatus::InProgress);
        }
    }
}

fn told<T>(answer: Result<T>, say: impl FnOnce(T) -> Answer) -> Answer {
    match answer {
        Ok(answer) => say(answer),
        Err(error) => Answer::Refused(error.code()),
    }
}
