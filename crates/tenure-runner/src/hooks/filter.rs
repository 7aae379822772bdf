//! The hook events of a change.
//!
//! Guarantees: if the filter is called in the transaction of the change, exactly one of the finishing transactions reports
//! that a section or a project is completed. Nothing is read for an event that no hook listens to. Each change of a task is
//! one event: `task.updated`, unless there is a more specific one.

use tenure_core::config::{Hook, HookEvent};
use tenure_core::holder::Judge;
use tenure_core::kernel::Grant;
use tenure_core::lease::Lease;
use tenure_core::store::{View, Viewer};
use tenure_core::task::{Task, TaskStatus};
use tenure_core::{Result, Timestamp, wire};

use super::context::HookContext;

/// Selects the events that the hooks of a project listen to.
#[derive(Debug, Clone, Copy)]
pub struct HookFilter<'a> {
    hooks: &'a [Hook],
    /// Hooks that listen and are not run, because their file is not trusted.
    ignored: &'a [Hook],
    judge: &'a dyn Judge,
}

impl<'a> HookFilter<'a> {
    /// Without hooks every result is empty and nothing is read.
    pub const fn new(hooks: &'a [Hook], judge: &'a dyn Judge) -> Self {
        Self { hooks, ignored: &[], judge }
    }

    /// Also selects the events of hooks that are not run, so that the caller can report them.
    #[must_use]
    pub const fn with_ignored(self, ignored: &'a [Hook]) -> Self {
        Self { ignored, ..self }
    }

    /// Whether there are no hooks.
    pub const fn is_empty(&self) -> bool {
        self.hooks.is_empty() && self.ignored.is_empty()
    }

    pub fn listens_to(&self, event: HookEvent) -> bool {
        self.hooks.iter().chain(self.ignored).any(|hook| hook.event == event)
    }

    pub fn created(&self, now: Timestamp, task: &Task) -> Vec<HookContext> {
        self.about(HookEvent::TaskCreated, now, task)
    }

    /// The task was changed, but not its status.
    pub fn edited(&self, now: Timestamp, task: &Task) -> Vec<HookContext> {
        self.about(HookEvent::TaskUpdated, now, task)
    }

    /// The status of the task changed from `was`. Must be called in the transaction of the change.
    pub fn changed(&self, view: &dyn View, was: TaskStatus, task: &Task) -> Result<Vec<HookContext>> {
        if self.is_empty() || was == task.status {
            return Ok(Vec::new());
        }
        let event = match task.status {
            TaskStatus::Completed => HookEvent::TaskCompleted,
            TaskStatus::Failed => HookEvent::TaskFailed,
            _ => HookEvent::TaskUpdated,
        };
        let mut contexts = self.about(event, view.now(), task);
        if !was.is_finished() && task.status.is_finished() {
            contexts.extend(self.completed(view, task)?);
        }
        Ok(contexts)
    }

    /// The task was deleted. Must be called in the transaction that deleted it.
    pub fn deleted(&self, view: &dyn View, task: &Task) -> Result<Vec<HookContext>> {
        if task.status.is_finished() { Ok(Vec::new()) } else { self.completed(view, task) }
    }

    /// The task was claimed, possibly by taking over a lapsed lease.
    pub fn granted(&self, now: Timestamp, grant: &Grant) -> Vec<HookContext> {
        let mut contexts = Vec::new();
        if let Some((old, _)) = &grant.taken_over {
            contexts.extend(self.lost(now, &grant.task, old));
        }
        if !grant.reacquired {
            contexts.extend(self.about(HookEvent::TaskUpdated, now, &grant.task));
        }
        contexts
    }

    /// The holder lost the task without releasing it. Reported by the process that ended the lease, because the holder may
    /// be dead.
    pub fn lost(&self, now: Timestamp, task: &Task, lease: &Lease) -> Vec<HookContext> {
        let contexts = self.about(HookEvent::LeaseLost, now, task);
        contexts.into_iter().map(|lost| lost.with("lease", wire::lease(lease, now, self.judge))).collect()
    }

    /// A lease was closed or evicted, and the status of its task may have changed with it. Must be called in the transaction
    /// that ended the lease.
    pub fn abandoned(&self, view: &dyn View, lease: &Lease) -> Result<Vec<HookContext>> {
        let Some(id) = lease.resource.task_id().filter(|_| !self.is_empty()) else { return Ok(Vec::new()) };
        let viewer = Viewer::default();
        let Some(task) = view.task(&id, &viewer)? else { return Ok(Vec::new()) };
        let mut contexts = self.lost(view.now(), &task, lease);
        contexts.extend(self.changed(view, TaskStatus::InProgress, &task)?);
        Ok(contexts)
    }

    fn about(&self, event: HookEvent, now: Timestamp, task: &Task) -> Vec<HookContext> {
        if !self.listens_to(event) {
            return Vec::new();
        }
        vec![HookContext::new(event, now).with("task", wire::task(task, now, self.judge))]
    }

    /// The completion of the section and of the project, if this task was the last open one.
    fn completed(&self, view: &dyn View, task: &Task) -> Result<Vec<HookContext>> {
        let mut contexts = Vec::new();
        let now = view.now();
        if let Some(section) = task.section.as_ref().filter(|_| self.listens_to(HookEvent::SectionCompleted))
            && let Some(section) = view.section(&section.id)?
            && section.tasks > 0
            && section.open_tasks == 0
        {
            let section = wire::section(&section, now, self.judge);
            contexts.push(HookContext::new(HookEvent::SectionCompleted, now).with("section", section));
        }
        if self.listens_to(HookEvent::ProjectCompleted) {
            let counts = view.count_tasks()?;
            let finished = |(status, count): &(TaskStatus, u64)| *count == 0 || status.is_finished();
            if counts.iter().any(|(_, count)| *count > 0) && counts.iter().all(finished) {
                contexts.push(HookContext::new(HookEvent::ProjectCompleted, now));
            }
        }
        Ok(contexts)
    }
}
