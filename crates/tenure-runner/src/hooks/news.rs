//! What a change means for hooks.
//!
//! Guarantees: where the change and the question are in one transaction, a section or a project is told to be completed
//! by exactly one of those who finish its tasks. Nothing is read that no hook listens for.
//! Each change of a task is one event: `task.updated`, unless it has a more telling one.

use std::time::Duration;

use tenure_core::config::{Hook, HookEvent};
use tenure_core::holder::Judge;
use tenure_core::kernel::Grant;
use tenure_core::lease::Lease;
use tenure_core::store::{View, Viewer};
use tenure_core::task::{Task, TaskStatus};
use tenure_core::{Result, Timestamp, wire};

use super::happening::Happening;

/// What the hooks of a project listen for.
#[derive(Debug, Clone, Copy)]
pub struct Ears<'a> {
    hooks: &'a [Hook],
    judge: &'a dyn Judge,
}

impl<'a> Ears<'a> {
    /// With no hooks, every answer is empty and costs nothing.
    pub const fn new(hooks: &'a [Hook], judge: &'a dyn Judge) -> Self {
        Self { hooks, judge }
    }

    /// Whether there is nobody to tell anything.
    pub const fn is_empty(&self) -> bool {
        self.hooks.is_empty()
    }

    pub fn listen_for(&self, event: HookEvent) -> bool {
        self.hooks.iter().any(|hook| hook.event == event)
    }

    pub fn created(&self, now: Timestamp, task: &Task) -> Vec<Happening> {
        self.about(HookEvent::TaskCreated, now, task)
    }

    /// Something about it changed, but not its status.
    pub fn edited(&self, now: Timestamp, task: &Task) -> Vec<Happening> {
        self.about(HookEvent::TaskUpdated, now, task)
    }

    /// Its status was `was`. To be asked in the transaction of the change.
    pub fn changed(&self, view: &dyn View, was: TaskStatus, task: &Task) -> Result<Vec<Happening>> {
        if self.hooks.is_empty() || was == task.status {
            return Ok(Vec::new());
        }
        let event = match task.status {
            TaskStatus::Completed => HookEvent::TaskCompleted,
            TaskStatus::Failed => HookEvent::TaskFailed,
            _ => HookEvent::TaskUpdated,
        };
        let mut news = self.about(event, view.now(), task);
        if !was.is_finished() && task.status.is_finished() {
            news.extend(self.completed(view, task)?);
        }
        Ok(news)
    }

    /// It is gone. To be asked in the transaction that deleted it.
    pub fn deleted(&self, view: &dyn View, task: &Task) -> Result<Vec<Happening>> {
        if task.status.is_finished() { Ok(Vec::new()) } else { self.completed(view, task) }
    }

    /// It was claimed, and maybe from somebody who did not give it back.
    pub fn granted(&self, now: Timestamp, grant: &Grant) -> Vec<Happening> {
        let mut news = Vec::new();
        if let Some((old, _)) = &grant.taken_over {
            news.extend(self.lost(now, &grant.task, old));
        }
        if !grant.reacquired {
            news.extend(self.about(HookEvent::TaskUpdated, now, &grant.task));
        }
        news
    }

    /// Its holder lost it without giving it back. Told by whoever ended the lease: the loser may be dead.
    pub fn lost(&self, now: Timestamp, task: &Task, lease: &Lease) -> Vec<Happening> {
        let news = self.about(HookEvent::LeaseLost, now, task);
        news.into_iter().map(|news| news.with("lease", wire::lease(lease, now, self.judge))).collect()
    }

    /// Somebody ended the lease of a holder that did not give it back, and the task went where that leads. To be asked in
    /// the transaction that ended it.
    pub fn abandoned(&self, view: &dyn View, lease: &Lease) -> Result<Vec<Happening>> {
        let Some(id) = lease.resource.task_id().filter(|_| !self.is_empty()) else { return Ok(Vec::new()) };
        let viewer = Viewer { me: None, dead: Vec::new(), ticket_life: Duration::ZERO };
        let Some(task) = view.task(&id, &viewer)? else { return Ok(Vec::new()) };
        let mut news = self.lost(view.now(), &task, lease);
        news.extend(self.changed(view, TaskStatus::InProgress, &task)?);
        Ok(news)
    }

    fn about(&self, event: HookEvent, now: Timestamp, task: &Task) -> Vec<Happening> {
        if !self.listen_for(event) {
            return Vec::new();
        }
        vec![Happening::new(event, now).with("task", wire::task(task, now, self.judge))]
    }

    /// Whether this task was the last open one of its section and of the project.
    fn completed(&self, view: &dyn View, task: &Task) -> Result<Vec<Happening>> {
        let mut news = Vec::new();
        let now = view.now();
        if let Some(section) = task.section.as_ref().filter(|_| self.listen_for(HookEvent::SectionCompleted))
            && let Some(section) = view.section(&section.id)?
            && section.tasks > 0
            && section.open_tasks == 0
        {
            let section = wire::section(&section, now, self.judge);
            news.push(Happening::new(HookEvent::SectionCompleted, now).with("section", section));
        }
        if self.listen_for(HookEvent::ProjectCompleted) {
            let counts = view.count_tasks()?;
            let finished = |(status, count): &(TaskStatus, u64)| *count == 0 || status.is_finished();
            if counts.iter().any(|(_, count)| *count > 0) && counts.iter().all(finished) {
                news.push(Happening::new(HookEvent::ProjectCompleted, now));
            }
        }
        Ok(news)
    }
}
