//! Agents, messages and the event feed.

use tenure_core::Result;
use tenure_core::error::TaskName;
use tenure_core::event::{Event, EventKind, NewEvent};
use tenure_core::id::TaskId;
use tenure_core::lease::ResourceKind;
use tenure_core::store::{
    Agent, CHANGES_READ, EventFilter, MESSAGES_SHOWN, Message, MessageFilter, ReadFeed, StatusChange,
    TaskNotes, WriteFeed,
};

use super::MemoryTx;
use super::state::MessageRow;

impl MemoryTx {
    fn whole_agent(&self, agent: &Agent) -> Agent {
        let claims = self.state.leases.values().filter(|lease| {
            lease.is_open()
                && lease.resource.kind == ResourceKind::Task
                && lease.expires_at > self.now
                && lease.holder.id == agent.id
        });
        Agent { active_claims: claims.count() as u64, ..agent.clone() }
    }

    fn whole_message(&self, id: i64, row: &MessageRow) -> Message {
        let task = row.task.as_ref().and_then(|id| {
            self.state.tasks.get(id).map(|task| TaskName {
                id: id.to_string(),
                key: task.key.clone(),
                title: task.title.clone(),
                status: task.status,
            })
        });
        Message {
            id,
            task,
            from: row.from.clone(),
            to: row.to.clone(),
            text: row.text.clone(),
            sent_at: row.sent_at,
            acknowledged_at: row.acknowledged.as_ref().map(|(at, _)| *at),
            acknowledged_by: row.acknowledged.as_ref().map(|(_, by)| by.clone()),
        }
    }
}

impl ReadFeed for MemoryTx {
    fn agent(&self, id: &str) -> Result<Option<Agent>> {
        Ok(self.state.agents.get(id).map(|agent| self.whole_agent(agent)))
    }

    fn agents(&self) -> Result<Vec<Agent>> {
        let mut all: Vec<_> = self.state.agents.values().map(|agent| self.whole_agent(agent)).collect();
        all.sort_by_key(|agent| (agent.joined_at, agent.id.clone()));
        Ok(all)
    }

    fn messages(&self, filter: &MessageFilter) -> Result<(Vec<Message>, u64)> {
        let fits = |(_, row): &(&i64, &MessageRow)| {
            filter.task.as_ref().is_none_or(|task| row.task.as_ref() == Some(task))
                && filter.to.as_ref().is_none_or(|to| row.to.as_ref() == Some(to))
                && (filter.include_acknowledged || row.acknowledged.is_none())
        };
        let found: Vec<_> = self.state.messages.iter().filter(fits).collect();
        let total = found.len() as u64;
        let limit = usize::try_from(filter.limit).unwrap_or(usize::MAX);
        Ok((found.into_iter().take(limit).map(|(id, row)| self.whole_message(*id, row)).collect(), total))
    }

    fn task_notes(&self, task: &TaskId, reader: &str) -> Result<TaskNotes> {
        let for_reader = |(_, row): &(&i64, &MessageRow)| {
            row.task.as_ref() == Some(task)
                && row.acknowledged.is_none()
                && row.to.as_deref().is_none_or(|to| to == reader)
        };
        let messages = self.state.messages.iter().filter(for_reader).take(MESSAGES_SHOWN + 1);
        let changed =
            |event: &&Event| event.kind == EventKind::TaskStatus && event.task.as_ref() == Some(task);
        let changes = self.state.events.iter().rev().filter(changed).take(CHANGES_READ);
        Ok(TaskNotes {
            messages: messages
                .map(|(id, row)| Message { task: None, ..self.whole_message(*id, row) })
                .collect(),
            changes: changes
                .map(|event| StatusChange {
                    at: event.at,
                    actor: event.actor.clone(),
                    from: event.from,
                    to: event.to,
                    detail: event.detail.clone(),
                })
                .collect(),
        })
    }

    fn events(&self, filter: &EventFilter) -> Result<Vec<Event>> {
        let fits = |event: &&Event| {
            event.seq > filter.since
                && filter.task.as_ref().is_none_or(|task| event.task.as_ref() == Some(task))
                && filter.not_before.is_none_or(|at| event.at >= at)
                && filter.actor.as_ref().is_none_or(|actor| event.actor == *actor)
                && (filter.kinds.is_empty() || filter.kinds.contains(&event.kind))
        };
        let found: Vec<Event> = self.state.events.iter().filter(fits).cloned().collect();
        let limit = usize::try_from(filter.limit).unwrap_or(usize::MAX);
        let skip = if filter.last { found.len().saturating_sub(limit) } else { 0 };
        Ok(found.into_iter().skip(skip).take(limit).collect())
    }

    fn last_events(&self, tasks: &[TaskId]) -> Result<Vec<Event>> {
        let last = |task| self.state.events.iter().rfind(|event| event.task.as_ref() == Some(task));
        Ok(tasks.iter().filter_map(last).cloned().collect())
    }
}

impl WriteFeed for MemoryTx {
    fn save_agent(&mut self, agent: &Agent) -> Result<()> {
        let joined_at = self.state.agents.get(&agent.id).map_or(agent.joined_at, |known| known.joined_at);
        let saved = Agent { joined_at, active_claims: 0, ..agent.clone() };
        self.state.agents.insert(agent.id.clone(), saved);
        Ok(())
    }

    fn see_agent(&mut self, id: &str) -> Result<bool> {
        let now = self.now;
        let Some(agent) = self.state.agents.get_mut(id) else { return Ok(false) };
        agent.last_seen_at = now;
        agent.left_at = None;
        Ok(true)
    }

    fn insert_message(
        &mut self,
        task: Option<&TaskId>,
        from: &str,
        to: Option<&str>,
        text: &str,
    ) -> Result<i64> {
        self.state.last_message += 1;
        let row = MessageRow {
            task: task.cloned(),
            from: from.to_owned(),
            to: to.map(str::to_owned),
            text: text.to_owned(),
            sent_at: self.now,
            acknowledged: None,
        };
        self.state.messages.insert(self.state.last_message, row);
        Ok(self.state.last_message)
    }

    fn acknowledge(&mut self, message: i64, by: &str) -> Result<bool> {
        let now = self.now;
        let Some(row) = self.state.messages.get_mut(&message).filter(|row| row.acknowledged.is_none()) else {
            return Ok(false);
        };
        row.acknowledged = Some((now, by.to_owned()));
        Ok(true)
    }

    fn append(&mut self, event: NewEvent<'_>) -> Result<()> {
        self.state.last_event += 1;
        self.state.events.push(Event {
            seq: self.state.last_event,
            at: self.now,
            kind: event.kind,
            actor: event.actor.to_owned(),
            task: event.task.cloned(),
            from: event.from,
            to: event.to,
            fence: event.fence,
            detail: event.detail,
        });
        Ok(())
    }
}
