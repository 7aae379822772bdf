//! The changes that a person can make on the board, with the functions behind the commands.

use tenure_core::Error;
use tenure_core::error::TaskName;
use tenure_core::kernel::{self, Finish, Terms};
use tenure_core::lease::{Resource, ResourceKind};
use tenure_core::rules::{AddTask, Change, EditTask, Seen};
use tenure_core::text::check_message;
use tenure_serve::web::{Action, TaskChange};

use super::handler::WebHandler;
use crate::app::App;
use crate::commands::tasks::status_change::{StatusChange, change_one};
use crate::commands::tasks::{add, finish, status_change, update};
use crate::commands::{locks, runners};
use crate::hooks;
use crate::identity::IdentityArgs;
use crate::report::{CommandResult, Report};
use crate::text::{RenderOptions, Text};
use crate::unsupported;
use crate::waiting::{self, Claim, ClaimRequest, NamedTask};

/// The text of an answer in one line.
fn sentence(text: &Text) -> String {
    let plain = text.render(RenderOptions { color: false, width: None });
    plain.split_whitespace().collect::<Vec<_>>().join(" ")
}

impl WebHandler<'_, '_> {
    pub(super) fn make(&mut self, action: &Action) -> CommandResult<String> {
        match action {
            Action::Add { title, description, section, key } => {
                let request = AddTask {
                    title: title.clone(),
                    description: description.clone(),
                    section: section.clone(),
                    key: key.clone(),
                    source_file: None,
                    priority: None,
                    depends_on: Vec::new(),
                    labels: Vec::new(),
                    after: None,
                };
                let answer = add::add(self.app, self.open, &IdentityArgs::default(), &request)?;
                Ok(sentence(&answer.text))
            }
            Action::Task { task, seen, change } => {
                let name = self.open.resolve(task)?;
                self.change_task(&name, seen, change)
            }
            Action::StartRunner { .. } | Action::StopRunner { .. } => act_apart(self.app, action),
        }
    }

    fn change_task(&mut self, name: &TaskName, seen: &Seen, change: &TaskChange) -> CommandResult<String> {
        match change {
            TaskChange::Edit { title, description, section, priority } => {
                let edit = EditTask {
                    title: Some(title.clone()),
                    description: Some(description.clone()),
                    section: Some(section.clone()),
                    priority: Some(*priority),
                    ..EditTask::default()
                };
                self.edit(name, edit, seen)
            }
            TaskChange::Claim => self.claim(name, seen),
            TaskChange::Release { remark } => self.release(name, seen, remark.as_deref()),
            TaskChange::Evict => self.evict(name, seen),
            TaskChange::Retry { remark } => {
                self.change_status(name, seen, Change::Retry, remark.as_deref(), "Reopened")
            }
            TaskChange::Skip { remark } => {
                self.change_status(name, seen, Change::Skip, remark.as_deref(), "Skipped")
            }
            TaskChange::Approve { remark } => {
                self.change_status(name, seen, Change::Approve, remark.as_deref(), "Approved")
            }
            TaskChange::Reject { remark } => {
                self.change_status(name, seen, Change::Reject, Some(remark), "Rejected")
            }
        }
    }

    /// Changes only the fields that differ.
    fn edit(&mut self, name: &TaskName, mut edit: EditTask, seen: &Seen) -> CommandResult<String> {
        let now = self.open.read(|view| {
            let viewer = self.open.viewer(view, &self.identity)?;
            view.task(&tenure_core::id::TaskId::new(&name.id), &viewer)
        })?;
        if let Some(now) = now {
            let section = now.section.map(|section| section.name);
            edit.title = edit.title.filter(|title| *title != now.title);
            edit.description = edit.description.filter(|text| *text != now.description);
            edit.section = edit.section.filter(|to| *to != section);
            edit.priority = edit.priority.filter(|priority| *priority != now.priority);
        }
        if edit.is_empty() {
            return Ok(format!("{} is as it was", name.key));
        }
        let task = update::edit_one(self.app, self.open, &self.identity, name, &edit, Some(seen))?;
        Ok(format!("Updated {}", task.key))
    }

    fn claim(&mut self, name: &TaskName, seen: &Seen) -> CommandResult<String> {
        let caller = |task: Option<&TaskName>| self.identity.claimant(task);
        let request = ClaimRequest::Task(NamedTask::new(&name.id));
        let claim = Claim { seen: Some(seen), ..Claim::new(&request, &caller) };
        let terms = Terms::new(self.open.config.locking.task_timeout);
        let grant = waiting::acquire(self.app, self.open, &claim, terms, None)?;
        let hook_contexts = hooks::filter(self.app, self.open).granted(self.app.env.clock.now(), &grant);
        hooks::deliver(self.app, self.open, &hook_contexts);
        let until = self.app.local_time().seconds(grant.lease.expires_at);
        Ok(format!("Claimed {} until {until}", kernel::name_of(&grant.task).key))
    }

    fn release(&mut self, name: &TaskName, seen: &Seen, remark: Option<&str>) -> CommandResult<String> {
        if let Some(text) = remark {
            check_message(text).map_err(Error::from)?;
        }
        // Without a fence there was no lease to release.
        let fence = seen.fence.ok_or_else(|| Error::Changed { task: name.clone() })?;
        let identity = IdentityArgs { fence: Some(fence.number()), ..IdentityArgs::default() };
        let outcome = Finish::Release(remark);
        let finished = finish::finish(self.app, self.open, name, &identity, outcome, "release")?;
        Ok(sentence(&finish::answer(self.app, &finished, outcome, "released").text))
    }

    fn evict(&mut self, name: &TaskName, seen: &Seen) -> CommandResult<String> {
        let changed = || Error::Changed { task: name.clone() };
        let fence = seen.fence.ok_or_else(changed)?;
        let lease = self.open.read(|view| view.lease_by_fence(fence))?.ok_or_else(changed)?;
        let is_of_task = lease.resource == Resource::new(ResourceKind::Task, &name.id);
        if !lease.is_open() || !is_of_task {
            return Err(changed().into());
        }
        // By the lease's id, so that no later lease of the task is ended instead.
        let answer = locks::release::release(self.app, self.open, &self.identity, lease.id.as_str(), true)?;
        Ok(sentence(&answer.text))
    }

    fn change_status(
        &mut self,
        name: &TaskName,
        seen: &Seen,
        change: Change,
        message: Option<&str>,
        done: &str,
    ) -> CommandResult<String> {
        let wanted = StatusChange { change, message, force: false, seen: Some(seen) };
        let changed = change_one(self.app, self.open, &self.identity, name, wanted)?;
        Ok(sentence(&status_change::answer(self.app, &changed, done).text))
    }
}

/// Starts or stops a runner, like the commands.
pub(super) fn act_apart(app: &mut App<'_>, action: &Action) -> CommandResult<String> {
    let answer = match action {
        Action::StartRunner { preset, section } => {
            unsupported::check("runners start")?;
            runners::start::run(app, runners::start::Args::replacement(section.clone(), preset.clone()))?
        }
        Action::StopRunner { id } => {
            unsupported::check("runners stop")?;
            Some(runners::stop::stop_own(app, id)?)
        }
        Action::Add { .. } | Action::Task { .. } => {
            return Err(Report::usage("this action does not concern a runner"));
        }
    };
    Ok(answer.map(|answer| sentence(&answer.text)).unwrap_or_default())
}
