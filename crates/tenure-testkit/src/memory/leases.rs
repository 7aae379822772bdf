//! Leases, tickets and attempts.

use tenure_core::holder::{Holder, Incarnation};
use tenure_core::id::{AttemptId, Fence, SectionId, TaskId};
use tenure_core::lease::{Attempt, AttemptState, EndReason, Lease, Resource, ResourceKind, Ticket};
use tenure_core::store::{
    AttemptUsage, LeaseBeat, LeaseFilter, NewLease, NewTicket, ReadLeases, WriteLeases,
};
use tenure_core::{Error, Result, Timestamp};

use super::MemoryTx;

impl MemoryTx {
    /// Newest first.
    fn newest_attempts(&self, fits: impl Fn(&Attempt) -> bool) -> Vec<Attempt> {
        let mut found: Vec<_> = self.state.attempts.iter().filter(|attempt| fits(attempt)).cloned().collect();
        found.sort_by_key(|attempt| std::cmp::Reverse((attempt.started_at, attempt.fence)));
        found
    }
}

impl ReadLeases for MemoryTx {
    fn recorded_processes(&self) -> Result<Vec<Incarnation>> {
        Ok(self.state.recorded_processes())
    }

    fn open_lease(&self, resource: &Resource) -> Result<Option<Lease>> {
        Ok(self.state.open_lease(resource).cloned())
    }

    fn latest_lease(&self, resource: &Resource) -> Result<Option<Lease>> {
        Ok(self.state.leases.values().rev().find(|lease| lease.resource == *resource).cloned())
    }

    fn lease_by_id(&self, id: &str) -> Result<Option<Lease>> {
        Ok(self.state.leases.values().find(|lease| lease.id.as_str() == id).cloned())
    }

    fn lease_by_fence(&self, fence: Fence) -> Result<Option<Lease>> {
        Ok(self.state.leases.get(&fence).cloned())
    }

    fn leases(&self, filter: &LeaseFilter) -> Result<Vec<Lease>> {
        let fits = |lease: &&Lease| {
            let wanted = match filter.expired_since {
                Some(since) => {
                    lease.ended.is_some_and(|(at, reason)| reason == EndReason::Expired && at >= since)
                }
                None => filter.include_ended || lease.is_open(),
            };
            wanted
                && filter.kinds.as_ref().is_none_or(|kinds| kinds.contains(&lease.resource.kind))
                && filter.resource.as_ref().is_none_or(|resource| lease.resource == *resource)
                && filter.holder.as_ref().is_none_or(|holder| lease.held_by(holder))
        };
        let mut found: Vec<Lease> = self.state.leases.values().filter(fits).cloned().collect();
        if filter.newest_first {
            found.reverse();
        }
        if let Some(limit) = filter.limit {
            found.truncate(usize::try_from(limit).unwrap_or(usize::MAX));
        }
        Ok(found)
    }

    fn task_leases_in_section(&self, section: &SectionId, holder: &Holder) -> Result<Vec<Lease>> {
        let inside = |lease: &&Lease| {
            let task = lease.resource.task_id().and_then(|id| self.state.tasks.get(&id));
            task.is_some_and(|task| task.section.as_ref() == Some(section))
        };
        let open = self.state.leases.values().filter(|lease| lease.is_open() && lease.held_by(holder));
        Ok(open.filter(inside).cloned().collect())
    }

    fn tickets(&self, resource: &Resource) -> Result<Vec<Ticket>> {
        Ok(self.state.tickets.values().filter(|ticket| ticket.resource == *resource).cloned().collect())
    }

    fn work_tickets(&self) -> Result<Vec<Ticket>> {
        Ok(self.state.tickets.values().filter(|ticket| ticket.resource.is_work()).cloned().collect())
    }

    fn all_tickets(&self) -> Result<Vec<Ticket>> {
        Ok(self.state.tickets.values().cloned().collect())
    }

    fn count_tickets(&self) -> Result<u64> {
        Ok(self.state.tickets.len() as u64)
    }

    fn attempts(&self, resource: &Resource) -> Result<Vec<Attempt>> {
        Ok(self.newest_attempts(|attempt| attempt.resource == *resource))
    }

    fn attempts_at(&self, tasks: &[TaskId]) -> Result<Vec<Attempt>> {
        Ok(self.newest_attempts(|attempt| attempt.resource.task_id().is_some_and(|id| tasks.contains(&id))))
    }

    fn open_attempts(&self) -> Result<Vec<Attempt>> {
        let open = |attempt: &&Attempt| attempt.state != AttemptState::Ended;
        let mut found: Vec<_> = self.state.attempts.iter().filter(open).cloned().collect();
        found.sort_by_key(|attempt| attempt.started_at);
        Ok(found)
    }

    fn usage_since(&self, since: Timestamp) -> Result<Vec<AttemptUsage>> {
        let mut ended: Vec<_> =
            self.state.attempts.iter().filter(|attempt| attempt.ended_at >= Some(since)).collect();
        ended.sort_by_key(|attempt| (attempt.ended_at, attempt.fence));
        let key = |id: &TaskId| {
            self.state.tasks.get(id).map_or_else(|| id.as_str().to_owned(), |task| task.key.clone())
        };
        let used = ended.into_iter().filter_map(|attempt| {
            Some(AttemptUsage {
                task: key(&attempt.resource.task_id()?),
                agent: attempt.agent.clone().unwrap_or_default(),
                ended_at: attempt.ended_at?,
                usage: attempt.run.as_ref()?.usage?,
            })
        });
        Ok(used.collect())
    }
}

impl WriteLeases for MemoryTx {
    fn grant(&mut self, new: &NewLease) -> Result<Option<Lease>> {
        if new.resource.kind == ResourceKind::Ready {
            return Err(Error::store("the queue for ready work cannot be held"));
        }
        // L1, which other stores enforce by a unique index.
        if self.state.open_lease(&new.resource).is_some() {
            return Err(Error::store(format!("{} has an open lease", new.resource)));
        }
        if self.state.leases.values().any(|lease| lease.id == new.id) {
            return Ok(None);
        }
        self.state.last_fence += 1;
        let lease = new.granted(Fence::new(self.state.last_fence), self.now);
        self.state.leases.insert(lease.fence, lease.clone());
        Ok(Some(lease))
    }

    fn beat(&mut self, fence: Fence, beat: &LeaseBeat) -> Result<()> {
        if let Some(lease) = self.state.leases.get_mut(&fence) {
            lease.process.clone_from(&beat.process);
            lease.doorbell.clone_from(&beat.doorbell);
            lease.ttl = beat.ttl;
            lease.heartbeat_at = beat.heartbeat_at;
            lease.expires_at = beat.expires_at;
        }
        Ok(())
    }

    fn set_messages_through(&mut self, fence: Fence, number: i64) -> Result<()> {
        if let Some(lease) = self.state.leases.get_mut(&fence) {
            lease.messages_through = number;
        }
        Ok(())
    }

    fn end_lease(&mut self, fence: Fence, reason: EndReason) -> Result<()> {
        let now = self.now;
        if let Some(lease) = self.state.leases.get_mut(&fence)
            && lease.is_open()
        {
            lease.ended = Some((now, reason));
        }
        Ok(())
    }

    fn reopen_lease(&mut self, fence: Fence) -> Result<()> {
        let resource = self.state.leases.get(&fence).map(|lease| lease.resource.clone());
        if resource.is_some_and(|resource| self.state.open_lease(&resource).is_some()) {
            return Err(Error::store("another lease is open"));
        }
        if let Some(lease) = self.state.leases.get_mut(&fence)
            && lease.ended.is_some_and(|(_, reason)| reason == EndReason::Expired)
        {
            lease.ended = None;
        }
        Ok(())
    }

    fn insert_ticket(&mut self, new: &NewTicket) -> Result<i64> {
        self.state.last_ticket += 1;
        let ticket = Ticket {
            number: self.state.last_ticket,
            resource: new.resource.clone(),
            review: new.review,
            holder: new.holder.clone(),
            process: new.process.clone(),
            doorbell: new.doorbell.clone(),
            created_at: self.now,
            refreshed_at: self.now,
            life: new.life,
        };
        self.state.tickets.insert(ticket.number, ticket);
        Ok(self.state.last_ticket)
    }

    fn refresh_ticket(&mut self, number: i64) -> Result<bool> {
        let found = self.state.tickets.get_mut(&number);
        let Some(ticket) = found.filter(|ticket| ticket.is_fresh(self.now)) else { return Ok(false) };
        ticket.refreshed_at = self.now;
        Ok(true)
    }

    fn delete_ticket(&mut self, number: i64) -> Result<()> {
        self.state.tickets.remove(&number);
        Ok(())
    }

    fn insert_attempt(&mut self, attempt: &Attempt) -> Result<()> {
        if self.state.attempts.iter().any(|known| known.id == attempt.id) {
            return Err(Error::store("this attempt is there already"));
        }
        self.state.attempts.push(attempt.clone());
        Ok(())
    }

    fn update_attempt(&mut self, id: &AttemptId, to: &Attempt) -> Result<()> {
        if let Some(attempt) = self.state.attempts.iter_mut().find(|attempt| attempt.id == *id) {
            attempt.state = to.state;
            attempt.leader.clone_from(&to.leader);
            attempt.log_path.clone_from(&to.log_path);
            attempt.ended_at = to.ended_at;
            attempt.exit_code = to.exit_code;
            attempt.reason.clone_from(&to.reason);
            attempt.charged = to.charged;
            attempt.quick_return = to.quick_return;
            attempt.run.clone_from(&to.run);
        }
        Ok(())
    }

    fn ring(&mut self, doorbell: &str) {
        self.rings.push(doorbell.to_owned());
    }
}
