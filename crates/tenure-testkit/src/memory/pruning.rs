//! Deleting rows of the history.

use tenure_core::event::{Event, EventKind};
use tenure_core::id::{Fence, TaskId};
use tenure_core::job::JobState;
use tenure_core::lease::{Lease, Resource};
use tenure_core::session::SessionState;
use tenure_core::store::{History, LastStatus, PruneHistory, ReadHistory, Stretch};
use tenure_core::task::TaskStatus;
use tenure_core::{Result, Timestamp};

use super::MemoryTx;

fn is_in(stretch: Stretch, number: i64) -> bool {
    stretch.after < number && number <= stretch.through
}

fn has_status(event: &Event) -> bool {
    event.to.is_some() || event.kind == EventKind::TaskCreated
}

/// Removes the first `limit` of the rows that match.
fn remove_first<K: Ord + Clone, V>(
    rows: &mut std::collections::BTreeMap<K, V>,
    limit: u64,
    matches: impl Fn(&K, &V) -> bool,
) -> u64 {
    let limit = usize::try_from(limit).unwrap_or(usize::MAX);
    let chosen: Vec<K> =
        rows.iter().filter(|(key, row)| matches(key, row)).map(|(key, _)| key.clone()).take(limit).collect();
    for key in &chosen {
        rows.remove(key);
    }
    chosen.len() as u64
}

impl ReadHistory for MemoryTx {
    fn pruned_through(&self, history: History) -> Result<i64> {
        Ok(self.state.pruned_through.get(&history).copied().unwrap_or(0))
    }

    fn last_statuses(&self, tasks: &[TaskId]) -> Result<Vec<LastStatus>> {
        let last = |task: &TaskId| {
            let of_task = |event: &&Event| event.task.as_ref() == Some(task) && has_status(event);
            let event = self.state.events.iter().rfind(of_task)?;
            let status = event.to.unwrap_or(TaskStatus::Pending);
            Some(LastStatus { task: task.clone(), event: event.seq, status })
        };
        Ok(tasks.iter().filter(|task| self.state.tasks.contains_key(task)).filter_map(last).collect())
    }

    fn leases_after(&self, fence: i64, limit: u64) -> Result<Vec<Lease>> {
        let limit = usize::try_from(limit).unwrap_or(usize::MAX);
        Ok(self
            .state
            .leases
            .values()
            .filter(|lease| lease.fence.number() > fence)
            .take(limit)
            .cloned()
            .collect())
    }

    fn latest_fences(&self, resources: &[Resource]) -> Result<Vec<Fence>> {
        let latest = |resource: &Resource| {
            self.state.leases.values().rfind(|lease| lease.resource == *resource).map(|lease| lease.fence)
        };
        Ok(resources.iter().filter_map(latest).collect())
    }

    fn ended_job(&self, before: Timestamp) -> Result<Option<String>> {
        let ended = |job: &&tenure_core::job::Job| {
            !matches!(job.state, JobState::Loading | JobState::Open) && job.updated_at < before
        };
        Ok(self.state.jobs.values().find(ended).map(|job| job.id.clone()))
    }
}

impl PruneHistory for MemoryTx {
    fn set_pruned_through(&mut self, history: History, number: i64) -> Result<()> {
        self.state.pruned_through.insert(history, number);
        Ok(())
    }

    fn delete_events(&mut self, stretch: Stretch, tasks: &[TaskId], kept: &[i64]) -> Result<u64> {
        let before = self.state.events.len();
        self.state.events.retain(|event| {
            let earlier =
                event.seq <= stretch.after && event.task.as_ref().is_some_and(|task| tasks.contains(task));
            kept.contains(&event.seq) || !(earlier || is_in(stretch, event.seq))
        });
        Ok((before - self.state.events.len()) as u64)
    }

    fn delete_leases(&mut self, stretch: Stretch, resources: &[Resource], kept: &[Fence]) -> Result<u64> {
        let before = self.state.leases.len();
        self.state.leases.retain(|fence, lease| {
            let earlier = fence.number() <= stretch.after && resources.contains(&lease.resource);
            lease.is_open() || kept.contains(fence) || !(earlier || is_in(stretch, fence.number()))
        });
        let leases = &self.state.leases;
        self.state.attempts.retain(|attempt| leases.contains_key(&attempt.fence));
        Ok((before - self.state.leases.len()) as u64)
    }

    fn delete_messages(&mut self, before: Timestamp, limit: u64) -> Result<u64> {
        let tasks = &self.state.tasks;
        let unfinished = |task: &TaskId| tasks.get(task).is_some_and(|task| !task.status.is_finished());
        Ok(remove_first(&mut self.state.messages, limit, |_, message| {
            let wanted = message.acknowledged.is_none() && message.task.as_ref().is_some_and(unfinished);
            message.sent_at < before && !wanted
        }))
    }

    fn delete_runners(&mut self, before: Timestamp, limit: u64) -> Result<u64> {
        Ok(remove_first(&mut self.state.runners, limit, |_, runner| {
            runner.completed_at.is_some_and(|ended| ended < before)
        }))
    }

    fn delete_agents(&mut self, before: Timestamp, limit: u64) -> Result<u64> {
        let leases = &self.state.leases;
        let holds = |id: &String| leases.values().any(|lease| lease.is_open() && lease.holder.id == *id);
        Ok(remove_first(&mut self.state.agents, limit, |id, agent| agent.last_seen_at < before && !holds(id)))
    }

    fn delete_sessions(&mut self, before: Timestamp, limit: u64) -> Result<u64> {
        let removed = remove_first(&mut self.state.sessions, limit, |_, session| {
            session.state != SessionState::Open && session.updated_at < before
        });
        let (sessions, tasks) = (&self.state.sessions, self.state.done_tasks.len());
        self.state.done_tasks.retain(|(session, _)| sessions.contains_key(session));
        Ok(removed + (tasks - self.state.done_tasks.len()) as u64)
    }
}
