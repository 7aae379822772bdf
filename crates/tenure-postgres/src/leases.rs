//! Leases, tickets and attempts.

use std::collections::BTreeSet;

use tenure_core::holder::{Holder, Incarnation};
use tenure_core::id::{AttemptId, Fence, SectionId};
use tenure_core::lease::{Attempt, EndReason, Lease, Resource, ResourceKind, Ticket};
use tenure_core::store::columns::{attempts, leases, tickets};
use tenure_core::store::{Dialect, LeaseBeat, LeaseFilter, NewLease, NewTicket, ReadLeases, WriteLeases};
use tenure_core::{Error, Result, Timestamp};

use crate::connection::{NOW, Value};
use crate::rows::{Parameters, all, count, get, insert_sql, json, record, update_sql};
use crate::task_query::id_or_key;
use crate::transaction::Transaction;

impl Transaction<'_> {
    fn lease_where(&self, condition: &str, values: &[&dyn Value]) -> Result<Option<Lease>> {
        let sql = Dialect::Postgres.select(&leases::TABLE, condition);
        self.row(&sql, values)?.map(|row| record(&row)).transpose()
    }

    fn attempts_where(&self, rest: &str, values: &[&dyn Value]) -> Result<Vec<Attempt>> {
        let sql = Dialect::Postgres.select(&attempts::TABLE, rest);
        all(self.rows(&sql, values)?, record)
    }
}

pub(crate) fn tickets_query() -> String {
    Dialect::Postgres.select(&tickets::TABLE, "resource_kind = ? AND resource_id = ? ORDER BY number")
}

/// The tickets for the task with the id `$2` or the key `$3`.
pub(crate) fn named_task_tickets_query() -> String {
    format!(
        "SELECT {} FROM tenure.tickets
         WHERE project = $1 AND resource_kind = 'task' AND resource_id = {} ORDER BY number",
        tickets::TABLE.list,
        id_or_key("$2", "$3")
    )
}

/// Refreshes the ticket `$2` if it was refreshed within the last `$3` milliseconds, and reads the open lease of the
/// resource `$4`, `$5`. The write need not survive power loss.
pub(crate) fn refresh_ticket_query() -> String {
    format!(
        "WITH moment AS MATERIALIZED (
           SELECT set_config('synchronous_commit', 'off', true), coalesce($6, {NOW}) AS now)
         UPDATE tenure.tickets SET refreshed_at = moment.now
         FROM moment LEFT JOIN tenure.leases o
           ON o.project = $1 AND o.resource_kind = $4 AND o.resource_id = $5 AND o.ended_at IS NULL
         WHERE tickets.project = $1 AND tickets.number = $2 AND tickets.refreshed_at > moment.now - $3
         RETURNING moment.now, {}",
        leases::TABLE.of("o")
    )
}

fn distinct(processes: &[String]) -> Result<Vec<Incarnation>> {
    processes.iter().collect::<BTreeSet<_>>().into_iter().map(|text| json(text)).collect()
}

impl ReadLeases for Transaction<'_> {
    fn recorded_processes(&self) -> Result<Vec<Incarnation>> {
        if let Some(known) = &self.prefetched.borrow().processes {
            return distinct(known);
        }
        let rows = self.rows(
            "SELECT process FROM tenure.leases WHERE project = $1 AND ended_at IS NULL AND process IS NOT NULL
             UNION ALL SELECT process FROM tenure.tickets WHERE project = $1",
            &[],
        )?;
        distinct(&all(rows, |row| get::<String>(row, 0))?)
    }

    fn open_lease(&self, resource: &Resource) -> Result<Option<Lease>> {
        let granted = self.prefetched.borrow().granted(resource);
        if granted.is_some() {
            return Ok(granted);
        }
        self.lease_where(
            "resource_kind = $2 AND resource_id = $3 AND ended_at IS NULL",
            &[&resource.kind.as_str(), &resource.id],
        )
    }

    fn latest_lease(&self, resource: &Resource) -> Result<Option<Lease>> {
        self.lease_where(
            "resource_kind = $2 AND resource_id = $3 ORDER BY fence DESC LIMIT 1",
            &[&resource.kind.as_str(), &resource.id],
        )
    }

    fn lease_by_id(&self, id: &str) -> Result<Option<Lease>> {
        self.lease_where("lease_id = $2", &[&id])
    }

    fn lease_by_fence(&self, fence: Fence) -> Result<Option<Lease>> {
        self.lease_where("fence = $2", &[&fence.number()])
    }

    fn leases(&self, filter: &LeaseFilter) -> Result<Vec<Lease>> {
        let mut terms = vec!["project = $1".to_owned()];
        let mut values: Vec<&dyn Value> = Vec::new();
        let kinds: Option<Vec<&str>> =
            filter.kinds.as_ref().map(|kinds| kinds.iter().map(|kind| kind.as_str()).collect());
        let resource =
            filter.resource.as_ref().map(|resource| (resource.kind.as_str(), resource.id.as_str()));
        let holder = filter.holder.as_ref().map(|holder| (holder.kind.as_str(), holder.id.as_str()));
        if !filter.include_ended {
            terms.push("ended_at IS NULL".to_owned());
        }
        if let Some(kinds) = &kinds {
            values.push(kinds);
            terms.push(format!("resource_kind = ANY (${})", values.len() + 1));
        }
        if let Some((kind, id)) = &resource {
            values.extend([kind as &dyn Value, id]);
            let at = values.len();
            terms.push(format!("resource_kind = ${at} AND resource_id = ${}", at + 1));
        }
        if let Some((kind, id)) = &holder {
            values.extend([kind as &dyn Value, id]);
            let at = values.len();
            terms.push(format!("holder_kind = ${at} AND holder_id = ${}", at + 1));
        }
        let order = if filter.newest_first { "DESC" } else { "ASC" };
        // Without the plus the planner scans all leases in the order of fences to find the few open ones.
        let by = if filter.include_ended { "fence" } else { "(fence + 0)" };
        let limit = filter.limit.map(|n| format!("LIMIT {n}")).unwrap_or_default();
        let sql = format!(
            "SELECT {} FROM tenure.leases WHERE {} ORDER BY {by} {order} {limit}",
            leases::TABLE.list,
            terms.join(" AND ")
        );
        all(self.rows(&sql, &values)?, record)
    }

    fn task_leases_in_section(&self, section: &SectionId, holder: &Holder) -> Result<Vec<Lease>> {
        let sql = format!(
            "SELECT {} FROM tenure.leases l JOIN tenure.tasks t ON t.project = l.project AND t.id = l.resource_id
             WHERE l.project = $1 AND l.holder_id = $3 AND l.holder_kind = $4 AND l.ended_at IS NULL
             AND l.resource_kind = 'task' AND t.section_id = $2",
            leases::TABLE.of("l")
        );
        let values: [&dyn Value; 3] = [&section.as_str(), &holder.id, &holder.kind.as_str()];
        all(self.rows(&sql, &values)?, record)
    }

    fn tickets(&self, resource: &Resource) -> Result<Vec<Ticket>> {
        let known = self.prefetched.borrow().tickets(resource);
        if let Some(known) = known {
            return Ok(known);
        }
        all(self.rows(&tickets_query(), &[&resource.kind.as_str(), &resource.id])?, record)
    }

    fn ready_tickets(&self) -> Result<Vec<Ticket>> {
        if !self.prefetched.borrow().may_exist.tickets {
            return Ok(Vec::new());
        }
        let messages = Resource::messages();
        let ready = "resource_kind = ? AND resource_id <> ? ORDER BY number";
        let sql = Dialect::Postgres.select(&tickets::TABLE, ready);
        let queue = all(self.rows(&sql, &[&messages.kind.as_str(), &messages.id])?, record::<Ticket>)?;
        if !queue.is_empty() {
            // Which task each waiter gets depends on several tasks, but a shared turn locks only the one that it takes.
            self.require_exclusive_turn()?;
        }
        Ok(queue)
    }

    fn all_tickets(&self) -> Result<Vec<Ticket>> {
        let sql = Dialect::Postgres.select(&tickets::TABLE, "true ORDER BY number");
        all(self.rows(&sql, &[])?, record)
    }

    fn count_tickets(&self) -> Result<u64> {
        let row = self.row("SELECT count(*) FROM tenure.tickets WHERE project = $1", &[])?;
        row.map_or(Ok(0), |row| count(&row, 0))
    }

    fn attempts(&self, resource: &Resource) -> Result<Vec<Attempt>> {
        self.attempts_where(
            "resource_kind = $2 AND resource_id = $3 ORDER BY started_at DESC, fence DESC",
            &[&resource.kind.as_str(), &resource.id],
        )
    }

    fn ending_attempts(&self, resource: &Resource) -> Result<Vec<Attempt>> {
        if self.prefetched.borrow().has_no_ending_attempts(resource) {
            return Ok(Vec::new());
        }
        self.attempts_where(
            "resource_kind = $2 AND resource_id = $3 AND state = 'ending' ORDER BY started_at DESC, fence DESC",
            &[&resource.kind.as_str(), &resource.id],
        )
    }

    fn open_attempts(&self) -> Result<Vec<Attempt>> {
        self.attempts_where("state <> 'ended' ORDER BY started_at", &[])
    }
}

impl WriteLeases for Transaction<'_> {
    fn grant(&mut self, new: &NewLease) -> Result<Option<Lease>> {
        let mut values = new.values(self.now)?;
        if new.resource.kind != ResourceKind::Task {
            self.require_exclusive_turn()?;
        }
        let fence = self.prefetched.borrow_mut().fence.take();
        let Some(fence) = fence else {
            let sql = format!("{} RETURNING {}", insert_sql(&leases::TABLE, &values), leases::TABLE.list);
            return self.change(&sql, &Parameters::of(&values).values())?.first().map(record).transpose();
        };
        values.push((leases::fence, fence.into()));
        self.changed.set(true);
        let sql = insert_sql(&leases::TABLE, &values);
        self.keep_shared("leases", &sql, &Parameters::of(&values).values());
        let granted = new.granted(Fence::new(fence), self.now);
        self.prefetched.borrow_mut().granted = Some(granted.clone());
        Ok(Some(granted))
    }

    fn beat(&mut self, fence: Fence, beat: &LeaseBeat) -> Result<()> {
        let mut values = beat.values()?;
        let sql = update_sql(&leases::TABLE, &values, leases::fence);
        values.push((leases::fence, fence.number().into()));
        self.keep_repeatable("leases", &sql, &Parameters::of(&values).values())
    }

    fn end_lease(&mut self, fence: Fence, reason: EndReason) -> Result<()> {
        self.keep(
            "leases",
            "UPDATE tenure.leases SET ended_at = $3, end_reason = $4
             WHERE project = $1 AND fence = $2 AND ended_at IS NULL",
            &[&fence.number(), &self.now.as_millis(), &reason.as_str()],
        )
    }

    fn reopen_lease(&mut self, fence: Fence) -> Result<()> {
        self.keep(
            "leases",
            "UPDATE tenure.leases SET ended_at = NULL, end_reason = NULL
             WHERE project = $1 AND fence = $2 AND end_reason = 'expired'",
            &[&fence.number()],
        )
    }

    fn insert_ticket(&mut self, new: &NewTicket) -> Result<i64> {
        let values = new.values(self.now)?;
        let sql = format!("{} RETURNING number", insert_sql(&tickets::TABLE, &values));
        let rows = self.change(&sql, &Parameters::of(&values).values())?;
        rows.first().map_or_else(|| Err(Error::store("the ticket was not written")), |row| get(row, 0))
    }

    fn refresh_ticket(&mut self, number: i64, silent_since: Timestamp) -> Result<bool> {
        let changed = self.repeat(
            "UPDATE tenure.tickets SET refreshed_at = $3 WHERE project = $1 AND number = $2 AND refreshed_at > $4
             RETURNING 1",
            &[&number, &self.now.as_millis(), &silent_since.as_millis()],
        )?;
        Ok(!changed.is_empty())
    }

    fn delete_ticket(&mut self, number: i64) -> Result<()> {
        self.keep("tickets", "DELETE FROM tenure.tickets WHERE project = $1 AND number = $2", &[&number])
    }

    fn insert_attempt(&mut self, new: &Attempt) -> Result<()> {
        let values = new.values()?;
        self.keep("attempts", &insert_sql(&attempts::TABLE, &values), &Parameters::of(&values).values())
    }

    fn update_attempt(&mut self, id: &AttemptId, to: &Attempt) -> Result<()> {
        let mut values = to.progress();
        let sql = update_sql(&attempts::TABLE, &values, attempts::id);
        values.push((attempts::id, id.as_str().into()));
        self.keep("attempts", &sql, &Parameters::of(&values).values())
    }

    fn ring(&mut self, doorbell: &str) {
        self.rings.push(doorbell.to_owned());
    }
}
