//! Leases, tickets and attempts in SQL.

use std::collections::BTreeSet;

use super::{SqlTx, Statement, columns};
use crate::clock::Timestamp;
use crate::error::{Error, Result};
use crate::holder::{Holder, Incarnation};
use crate::id::{AttemptId, Fence, SectionId, TaskId};
use crate::lease::{Attempt, EndReason, Lease, Resource, ResourceKind, Ticket};
use crate::store::View;
use crate::store::columns::{Cell, attempts, leases, tickets};
use crate::store::leases::{
    AttemptUsage, LeaseBeat, LeaseFilter, NewLease, NewTicket, ReadLeases, WriteLeases,
};
use crate::store::rows::{json, unexpected};

// Duplicates are removed by the caller, because SQLite would create a temporary table for it, even for no rows.
static PROCESSES: Statement = Statement::new(|dialect| {
    dialect.statement(
        "SELECT process FROM tenure.leases WHERE project = $1 AND ended_at IS NULL AND process IS NOT NULL
         UNION ALL SELECT process FROM tenure.tickets WHERE project = $1 AND true",
    )
});

pub(super) static OPEN_LEASE: Statement = Statement::new(|dialect| {
    dialect.select(&leases::TABLE, "resource_kind = ? AND resource_id = ? AND ended_at IS NULL")
});

static LATEST_LEASE: Statement = Statement::new(|dialect| {
    dialect.select(&leases::TABLE, "resource_kind = ? AND resource_id = ? ORDER BY fence DESC LIMIT 1")
});

// SQLite's planner does not change the order of a CROSS JOIN, and it must begin with the few leases.
static TASK_LEASES_IN_SECTION: Statement = Statement::new(|dialect| {
    dialect.statement(&format!(
        "SELECT {} FROM tenure.leases l CROSS JOIN tenure.tasks t
         WHERE l.project = $1 AND l.holder_id = $2 AND l.holder_kind = $3 AND l.ended_at IS NULL
         AND l.resource_kind = 'task' AND t.project = $1 AND t.id = l.resource_id AND t.section_id = $4",
        leases::TABLE.of("l")
    ))
});

static TICKETS: Statement = Statement::new(|dialect| {
    dialect.select(&tickets::TABLE, "resource_kind = ? AND resource_id = ? ORDER BY number")
});

static WORK_TICKETS: Statement = Statement::new(|dialect| {
    dialect.select(&tickets::TABLE, "(resource_kind = 'task' OR resource_kind = 'ready') ORDER BY number")
});

pub(super) static ENDING_ATTEMPTS: Statement = Statement::new(|dialect| {
    dialect.select(
        &attempts::TABLE,
        "resource_kind = ? AND resource_id = ? AND state = 'ending' ORDER BY started_at DESC, fence DESC",
    )
});

static USAGE: Statement = Statement::new(|dialect| {
    dialect.statement(
        "SELECT coalesce(t.key, a.resource_id), a.agent, a.ended_at, a.usage
         FROM tenure.attempts a LEFT JOIN tenure.tasks t ON t.project = $1 AND t.id = a.resource_id
         WHERE a.project = $1 AND a.resource_kind = 'task' AND a.usage IS NOT NULL AND a.ended_at >= $2
         ORDER BY a.ended_at, a.fence",
    )
});

static END_LEASE: Statement = Statement::new(|dialect| {
    dialect.statement(
        "UPDATE tenure.leases SET ended_at = $2, end_reason = $3
         WHERE project = $1 AND fence = $4 AND ended_at IS NULL",
    )
});

static REOPEN_LEASE: Statement = Statement::new(|dialect| {
    dialect.statement(
        "UPDATE tenure.leases SET ended_at = NULL, end_reason = NULL
         WHERE project = $1 AND fence = $2 AND end_reason = 'expired'",
    )
});

static REFRESH_TICKET: Statement = Statement::new(|dialect| {
    dialect.statement(
        "UPDATE tenure.tickets SET refreshed_at = $2
         WHERE project = $1 AND number = $3 AND refreshed_at + life_ms > $4",
    )
});

pub(super) static DELETE_TICKET: Statement = Statement::new(|dialect| {
    dialect.statement("DELETE FROM tenure.tickets WHERE project = $1 AND number = $2")
});

/// The query for all tickets for tasks, without parameters.
pub fn work_tickets_query(dialect: super::Dialect) -> &'static str {
    WORK_TICKETS.text(dialect)
}

fn key(resource: &Resource) -> [Cell<'_>; 2] {
    [resource.kind.as_str().into(), (&resource.id).into()]
}

impl<T: SqlTx> ReadLeases for T {
    fn recorded_processes(&self) -> Result<Vec<Incarnation>> {
        let texts = match self.known_processes() {
            Some(known) => known,
            None => self.query(PROCESSES.text(T::DIALECT), &[], |row| {
                Ok(row.text(0)?.unwrap_or_default().to_owned())
            })?,
        };
        let distinct: BTreeSet<String> = texts.into_iter().collect();
        distinct.iter().map(|text| serde_json::from_str(text).map_err(unexpected)).collect()
    }

    fn open_lease(&self, resource: &Resource) -> Result<Option<Lease>> {
        match self.known_open_lease(resource) {
            Some(known) => Ok(Some(known)),
            None => Ok(self.records(&OPEN_LEASE, &key(resource))?.pop()),
        }
    }

    fn latest_lease(&self, resource: &Resource) -> Result<Option<Lease>> {
        Ok(self.records(&LATEST_LEASE, &key(resource))?.pop())
    }

    fn lease_by_id(&self, id: &str) -> Result<Option<Lease>> {
        Ok(self.select("lease_id = ?", &[id.into()])?.pop())
    }

    fn lease_by_fence(&self, fence: Fence) -> Result<Option<Lease>> {
        Ok(self.select("fence = ?", &[fence.number().into()])?.pop())
    }

    fn leases(&self, filter: &LeaseFilter) -> Result<Vec<Lease>> {
        let only_sections = filter.kinds.as_deref() == Some(&[ResourceKind::Section]);
        if only_sections && !filter.include_ended && self.is_without_section_leases() {
            return Ok(Vec::new());
        }
        let mut terms = vec!["true".to_owned()];
        let mut values: Vec<Cell<'_>> = Vec::new();
        if let Some(since) = filter.expired_since {
            terms.push("end_reason = 'expired' AND ended_at >= ?".to_owned());
            values.push(self.on_store_clock(since).into());
        } else if !filter.include_ended {
            terms.push("ended_at IS NULL".to_owned());
        }
        if let Some(kinds) = &filter.kinds {
            let list: Vec<String> = kinds.iter().map(|kind| format!("'{}'", kind.as_str())).collect();
            let any = format!("resource_kind IN ({})", list.join(", "));
            // PostgreSQL does not accept an empty list.
            terms.push(if list.is_empty() { "false".to_owned() } else { any });
        }
        if let Some(resource) = &filter.resource {
            terms.push("resource_kind = ? AND resource_id = ?".to_owned());
            values.extend(key(resource));
        }
        if let Some(holder) = &filter.holder {
            terms.push("holder_kind = ? AND holder_id = ?".to_owned());
            values.extend([holder.kind.as_str().into(), (&holder.id).into()]);
        }
        let order = if filter.newest_first { "DESC" } else { "ASC" };
        let limit = filter.limit.map(|n| format!("LIMIT {n}")).unwrap_or_default();
        // The sum keeps the planner from scanning all leases in the order of fences to find the few that are open.
        let by = if filter.include_ended { "fence" } else { "(fence + 0)" };
        self.select(&format!("{} ORDER BY {by} {order} {limit}", terms.join(" AND ")), &values)
    }

    fn task_leases_in_section(&self, section: &SectionId, holder: &Holder) -> Result<Vec<Lease>> {
        let values = [(&holder.id).into(), holder.kind.as_str().into(), section.as_str().into()];
        self.records(&TASK_LEASES_IN_SECTION, &values)
    }

    fn tickets(&self, resource: &Resource) -> Result<Vec<Ticket>> {
        if self.is_without_tickets() { Ok(Vec::new()) } else { self.records(&TICKETS, &key(resource)) }
    }

    fn work_tickets(&self) -> Result<Vec<Ticket>> {
        let queue: Vec<Ticket> = match self.known_work_tickets() {
            Some(known) => known,
            None => {
                let queue = self.records(&WORK_TICKETS, &[])?;
                self.note_work_tickets(&queue);
                queue
            }
        };
        if !queue.is_empty() {
            // Which task each waiter gets depends on several tasks, but a shared turn locks only the one that it takes.
            self.require_exclusive_turn()?;
        }
        Ok(queue)
    }

    fn all_tickets(&self) -> Result<Vec<Ticket>> {
        self.select("true ORDER BY number", &[])
    }

    fn count_tickets(&self) -> Result<u64> {
        self.count(&tickets::TABLE, "true", &[])
    }

    fn attempts(&self, resource: &Resource) -> Result<Vec<Attempt>> {
        let newest_first = "resource_kind = ? AND resource_id = ? ORDER BY started_at DESC, fence DESC";
        self.select(newest_first, &key(resource))
    }

    fn attempts_at(&self, tasks: &[TaskId]) -> Result<Vec<Attempt>> {
        let listed = T::DIALECT.listed("resource_id", "?");
        let newest_first =
            format!("resource_kind = 'task' AND {listed} ORDER BY started_at DESC, fence DESC");
        self.select(&newest_first, &[json(&tasks)?.into()])
    }

    fn ending_attempts(&self, resource: &Resource) -> Result<Vec<Attempt>> {
        if self.is_without_ending_attempts(resource) {
            return Ok(Vec::new());
        }
        self.records(&ENDING_ATTEMPTS, &key(resource))
    }

    fn open_attempts(&self) -> Result<Vec<Attempt>> {
        self.select("state <> 'ended' ORDER BY started_at", &[])
    }

    fn usage_since(&self, since: Timestamp) -> Result<Vec<AttemptUsage>> {
        self.query(USAGE.text(T::DIALECT), &[since.into()], |row| {
            let text = |at| Ok::<_, Error>(row.text(at)?.unwrap_or_default());
            let ended_at = row.int(2)?.map(Timestamp::from_millis);
            Ok(AttemptUsage {
                task: text(0)?.to_owned(),
                agent: text(1)?.to_owned(),
                ended_at: ended_at.ok_or_else(|| unexpected("an attempt with usage has not ended"))?,
                usage: serde_json::from_str(text(3)?).map_err(unexpected)?,
            })
        })
    }
}

impl<T: SqlTx> WriteLeases for T {
    fn grant(&mut self, new: &NewLease) -> Result<Option<Lease>> {
        self.insert_lease(new)
    }

    fn beat(&mut self, fence: Fence, beat: &LeaseBeat) -> Result<()> {
        let mut values = beat.values()?;
        let sql = T::DIALECT.update(&leases::TABLE, columns(&values), [leases::fence].iter());
        values.push((leases::fence, fence.number().into()));
        self.defer_repeatable(&leases::TABLE, &sql, &values)
    }

    fn set_messages_through(&mut self, fence: Fence, number: i64) -> Result<()> {
        let set = vec![(leases::messages_through, number.into())];
        self.defer_update(&leases::TABLE, set, vec![(leases::fence, fence.number().into())])
    }

    fn end_lease(&mut self, fence: Fence, reason: EndReason) -> Result<()> {
        let values = [
            (leases::ended_at, self.now().into()),
            (leases::end_reason, reason.as_str().into()),
            (leases::fence, fence.number().into()),
        ];
        self.defer(&leases::TABLE, END_LEASE.text(T::DIALECT), &values)
    }

    fn reopen_lease(&mut self, fence: Fence) -> Result<()> {
        let values = [(leases::fence, fence.number().into())];
        self.defer(&leases::TABLE, REOPEN_LEASE.text(T::DIALECT), &values)
    }

    fn insert_ticket(&mut self, new: &NewTicket) -> Result<i64> {
        self.insert_numbered(&tickets::TABLE, &new.values(self.now())?)
    }

    fn refresh_ticket(&mut self, number: i64) -> Result<bool> {
        let values = [
            (tickets::refreshed_at, self.now().into()),
            (tickets::number, number.into()),
            (tickets::refreshed_at, self.now().into()),
        ];
        Ok(self.execute_repeatable(&tickets::TABLE, REFRESH_TICKET.text(T::DIALECT), &values)? > 0)
    }

    fn delete_ticket(&mut self, number: i64) -> Result<()> {
        let values = [(tickets::number, number.into())];
        self.defer(&tickets::TABLE, DELETE_TICKET.text(T::DIALECT), &values)
    }

    fn insert_attempt(&mut self, new: &Attempt) -> Result<()> {
        let values = new.values()?;
        self.defer(&attempts::TABLE, &T::DIALECT.insert(&attempts::TABLE, columns(&values)), &values)
    }

    fn update_attempt(&mut self, id: &AttemptId, to: &Attempt) -> Result<()> {
        self.defer_update(&attempts::TABLE, to.progress()?, vec![(attempts::id, id.as_str().into())])
    }

    fn ring(&mut self, doorbell: &str) {
        self.state_mut().rings.push(doorbell.to_owned());
    }
}
