//! One state of the model: the rows, the clock, the live processes, and the knowledge of each holder.

use std::collections::BTreeSet;
use std::hash::{Hash, Hasher};
use std::time::Duration;

use tenure_core::event::{EventKind, NewEvent};
use tenure_core::holder::{Caller, Holder};
use tenure_core::id::{Fence, SectionId, TaskId};
use tenure_core::kernel::Terms;
use tenure_core::lease::Resource;
use tenure_core::section::SectionMode;
use tenure_core::store::{NewSection, Tx};
use tenure_core::{Context, Policy, Result};
use tenure_testkit::fixture::new_task;
use tenure_testkit::memory::State;
use tenure_testkit::{CountingIds, FakeProcesses, MemoryStore};

use super::canonical::now;

/// The ttl of a lease and the lifetime of an unrefreshed ticket: one tick.
pub(crate) const TICK: Duration = Duration::from_secs(1);
pub(crate) const TTL: Duration = TICK;
pub(crate) const TICKET_LIFE: Duration = TICK;

/// What a holder does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Role {
    /// Claims any task by name, and may wait for it.
    Everything,
    /// Waits for the task with this number.
    Named(usize),
    /// Waits for any task of the serial section.
    InSection,
    /// Waits for any task of a section without tasks.
    InEmptySection,
    /// Waits for any task.
    Any,
    /// Looks for any task as a runner does: it claims one, or asks what blocks it and waits.
    Runner,
    /// Claims any task without waiting.
    Newcomer,
}

/// The holders and the tasks.
#[derive(Debug, Clone)]
pub(crate) struct Scene {
    pub(crate) callers: Vec<Caller>,
    pub(crate) roles: Vec<Role>,
    pub(crate) tasks: Vec<TaskId>,
    /// A serial section.
    pub(crate) section: Option<SectionId>,
    /// How many of the tasks are in the section. The others come before it in working order.
    pub(crate) inside: usize,
}

impl Scene {
    pub(crate) fn one_task(holders: usize) -> Self {
        Self::new(&vec![Role::Everything; holders], 1, None)
    }

    pub(crate) fn serial_section(holders: usize) -> Self {
        Self::new(&vec![Role::Everything; holders], 2, Some(2))
    }

    /// Two tasks, one or both of them in the serial section.
    pub(crate) fn queues(roles: &[Role], inside: usize) -> Self {
        Self::new(roles, 2, Some(inside))
    }

    fn new(roles: &[Role], tasks: usize, inside: Option<usize>) -> Self {
        let world = FakeProcesses::default();
        // The last two share a name: two processes of one person.
        let names = ["ann", "bob", "bob"];
        let caller = |at: usize| {
            let pid = u32::try_from(at).unwrap() + 1;
            Caller::new(Holder::runner(names[at])).with_process(world.process(pid))
        };
        Self {
            callers: (0..roles.len()).map(caller).collect(),
            roles: roles.to_vec(),
            tasks: (0..tasks).map(|at| TaskId::new(format!("task-{at}"))).collect(),
            section: inside.map(|_| SectionId::new("section")),
            inside: inside.unwrap_or(0),
        }
    }

    /// The serial section of a task.
    pub(crate) fn section_of(&self, task: usize) -> Option<&SectionId> {
        self.section.as_ref().filter(|_| task >= self.tasks.len() - self.inside)
    }

    pub(crate) fn empty_section() -> SectionId {
        SectionId::new("empty")
    }

    /// What an actor waits for, if it claims this task by name.
    pub(crate) fn wish(&self, actor: usize, task: usize) -> Resource {
        match self.roles[actor] {
            Role::Everything | Role::Named(_) => Resource::task(&self.tasks[task]),
            Role::InSection => Resource::ready(self.section.as_ref()),
            Role::InEmptySection => Resource::ready(Some(&Self::empty_section())),
            Role::Any | Role::Runner | Role::Newcomer => Resource::ready(None),
        }
    }

    pub(crate) fn resources(&self) -> Vec<Resource> {
        let section = self.section.iter().map(Resource::section);
        section.chain(self.tasks.iter().map(Resource::task)).collect()
    }

    pub(crate) fn bell(at: usize) -> String {
        format!("bell-{at}")
    }
}

/// What a holder knows: the last fence that it was granted for each task, and its ticket.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct Belief {
    pub(crate) fences: Vec<Option<Fence>>,
    pub(crate) ticket: Option<(i64, Resource)>,
}

#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Snapshot {
    pub(crate) rows: State,
    pub(crate) dead: BTreeSet<u32>,
    pub(crate) beliefs: Vec<Belief>,
    pub(crate) fault: Option<&'static str>,
}

impl Hash for Snapshot {
    fn hash<H: Hasher>(&self, to: &mut H) {
        (&self.rows, &self.dead, &self.beliefs, self.fault).hash(to);
    }
}

/// The effects of a transaction.
pub(crate) struct Done<T> {
    pub(crate) answer: Result<T>,
    pub(crate) rows: State,
    pub(crate) rings: Vec<String>,
}

impl Snapshot {
    pub(crate) fn first(scene: &Scene) -> Self {
        let belief = Belief { fences: vec![None; scene.tasks.len()], ticket: None };
        let mut first = Self {
            rows: State::default(),
            dead: BTreeSet::new(),
            beliefs: vec![belief; scene.callers.len()],
            fault: None,
        };
        let made = first.transact(|tx, _| {
            let empty = scene.roles.contains(&Role::InEmptySection).then(Scene::empty_section);
            for id in scene.section.iter().chain(&empty) {
                let section = NewSection {
                    id: id.clone(),
                    name: id.to_string(),
                    mode: SectionMode::Serial,
                    // After the tasks without a section.
                    priority: 1000,
                    position: 1,
                };
                tx.insert_section(&section, NewEvent::new(EventKind::SectionCreated, "model"))?;
            }
            for (position, id) in (1..).zip(&scene.tasks) {
                let section = scene.section_of(usize::try_from(position).unwrap() - 1);
                let task = new_task(id, id.as_str(), section, position);
                tx.insert_task(&task, NewEvent::new(EventKind::TaskCreated, "model").task(id))?;
            }
            Ok(())
        });
        made.answer.unwrap();
        first.rows = made.rows;
        first.canonical()
    }

    pub(crate) fn is_dead(&self, caller: &Caller) -> bool {
        caller.process.as_ref().is_some_and(|process| self.dead.contains(&process.process.pid))
    }

    pub(crate) fn judge(&self) -> FakeProcesses {
        FakeProcesses::without(self.dead.iter().copied())
    }

    /// Runs one transaction of the real kernel on a copy of the rows.
    pub(crate) fn transact<T>(
        &self,
        mut body: impl FnMut(&mut dyn Tx, &Context<'_>) -> Result<T>,
    ) -> Done<T> {
        let judge = self.judge();
        // The kernel generates only lease ids here, and there are as many leases as fences.
        let ids = CountingIds::after(u64::try_from(self.rows.last_fence).unwrap());
        let policy = Policy { ticket_life: TICKET_LIFE, max_attempts: 3, max_rejections: 5, review: false };
        let ctx = Context::new(&judge, &ids, policy);
        let (answer, rows, rings) = MemoryStore::on_copy(&self.rows, now(), |tx| body(tx, &ctx));
        Done { answer, rows, rings }
    }

    pub(crate) fn terms(&self, at: usize) -> Terms {
        Terms { doorbell: Some(Scene::bell(at)), ticket: self.beliefs[at].ticket.clone(), ..Terms::new(TTL) }
    }
}
