//! One task with everything that is known about it.

use std::collections::BTreeMap;

use super::model::{EventLine, TaskLine, used};
use crate::ending::Usage;
use crate::error::{Error, Result};
use crate::event_text::Names;
use crate::id::TaskId;
use crate::lease::{Attempt, EndReason, Resource};
use crate::store::{EventFilter, Message, MessageFilter, View};
use crate::task::Task;
use crate::why::{Asking, Reason, about_task};

/// At most this many messages are read.
const MESSAGES: u64 = 50;

#[derive(Debug, Clone, PartialEq)]
pub struct TaskDetail {
    pub task: Task,
    pub line: TaskLine,
    /// Why it makes no progress, as in `tenure why KEY`. Never empty.
    pub reasons: Vec<Reason>,
    /// The newest first.
    pub history: Vec<EventLine>,
    /// The newest first.
    pub attempts: Vec<Attempt>,
    /// What all ended attempts have used.
    pub used: Option<Usage>,
    /// The oldest first, acknowledged or not.
    pub messages: Vec<Message>,
}

impl TaskDetail {
    /// Who left the newest remark with a change of the status, and what it says. How a lease has lapsed is not one.
    pub fn remark(&self) -> Option<(&str, &str)> {
        let is_remark = |text: &&str| !text.trim().is_empty() && EndReason::parse(text).is_none();
        let mut changes = self.history.iter().filter(|event| event.to.is_some());
        changes.find_map(|event| Some((event.actor.as_str(), event.remark.as_deref().filter(is_remark)?)))
    }
}

/// Reads the task that `reference` names, with its last `events` events.
pub fn read_task(view: &dyn View, asking: &Asking<'_>, reference: &str, events: u64) -> Result<TaskDetail> {
    let viewer = asking.ctx.viewer(view, asking.me)?;
    let (name, reasons) = about_task(view, asking, reference)?;
    let id = TaskId::new(&name.id);
    let task = view.task(&id, &viewer)?.ok_or(Error::TaskNotFound { reference: name.key })?;
    let filter = EventFilter { task: Some(id.clone()), last: true, limit: events, ..EventFilter::default() };
    let events = view.events(&filter)?;
    let mut names = Names::default();
    names.learn(view, &events)?;
    let attempts = view.attempts(&Resource::task(&id))?;
    let filter = MessageFilter { task: Some(id), include_acknowledged: true, limit: MESSAGES, to: None };
    Ok(TaskDetail {
        line: TaskLine::of(&task, view.now(), asking.ctx.judge),
        reasons,
        history: events.iter().rev().map(|event| EventLine::of(event, &names)).collect(),
        used: used(&attempts, &BTreeMap::new()),
        attempts,
        messages: view.messages(&filter)?.0,
        task,
    })
}
