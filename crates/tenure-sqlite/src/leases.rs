//! Leases, tickets and attempts.

use std::collections::BTreeSet;

use rusqlite::params;
use tenure_core::holder::{Holder, Incarnation};
use tenure_core::id::{AttemptId, Fence, SectionId};
use tenure_core::lease::{Attempt, EndReason, Lease, Resource, Ticket};
use tenure_core::store::columns::{attempts, leases, tickets};
use tenure_core::store::{
    Cell, LeaseBeat, LeaseFilter, NewLease, NewTicket, ReadLeases, Reader, Record, SqlTx, WriteLeases,
    unexpected,
};
use tenure_core::{Result, Timestamp};

use crate::connection::Transaction;
use crate::error::sql_error;

/// The open lease of a resource.
pub(crate) const OPEN: &str = "resource_kind = ? AND resource_id = ? AND ended_at IS NULL";

/// The attempts at a resource.
pub(crate) const OF_RESOURCE: &str =
    "resource_kind = ? AND resource_id = ? ORDER BY started_at DESC, fence DESC";

pub(crate) const DELETE_TICKET: &str = "DELETE FROM tickets WHERE number = ?1";

fn key(resource: &Resource) -> [Cell<'_>; 2] {
    [resource.kind.as_str().into(), (&resource.id).into()]
}

impl Transaction<'_> {
    fn all_leases(&self, filter: &LeaseFilter) -> Result<Vec<Lease>> {
        let mut terms = vec!["true".to_owned()];
        let mut values: Vec<Cell<'_>> = Vec::new();
        if !filter.include_ended {
            terms.push("ended_at IS NULL".to_owned());
        }
        if let Some(kinds) = &filter.kinds {
            let list = kinds.iter().map(|k| format!("'{}'", k.as_str())).collect::<Vec<_>>().join(", ");
            terms.push(format!("resource_kind IN ({list})"));
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
        // The plus keeps SQLite from scanning all leases in the order of fences to find the few that are open.
        let by = if filter.include_ended { "fence" } else { "+fence" };
        self.select(&format!("{} ORDER BY {by} {order} {limit}", terms.join(" AND ")), &values)
    }
}

impl ReadLeases for Transaction<'_> {
    fn recorded_processes(&self) -> Result<Vec<Incarnation>> {
        // Duplicates are removed here, because SQLite would create a temporary table for it, even for no rows.
        let sql = "SELECT process FROM leases WHERE ended_at IS NULL AND process IS NOT NULL
                   UNION ALL SELECT process FROM tickets";
        let texts = self.query(sql, &[], |row| Ok(row.text(0)?.unwrap_or_default().to_owned()))?;
        let distinct: BTreeSet<String> = texts.into_iter().collect();
        distinct.iter().map(|text| serde_json::from_str(text).map_err(unexpected)).collect()
    }

    fn open_lease(&self, resource: &Resource) -> Result<Option<Lease>> {
        Ok(self.select(OPEN, &key(resource))?.pop())
    }

    fn latest_lease(&self, resource: &Resource) -> Result<Option<Lease>> {
        let latest = "resource_kind = ? AND resource_id = ? ORDER BY fence DESC LIMIT 1";
        Ok(self.select(latest, &key(resource))?.pop())
    }

    fn lease_by_id(&self, id: &str) -> Result<Option<Lease>> {
        Ok(self.select("lease_id = ?", &[id.into()])?.pop())
    }

    fn lease_by_fence(&self, fence: Fence) -> Result<Option<Lease>> {
        Ok(self.select("fence = ?", &[fence.number().into()])?.pop())
    }

    fn leases(&self, filter: &LeaseFilter) -> Result<Vec<Lease>> {
        self.all_leases(filter)
    }

    fn task_leases_in_section(&self, section: &SectionId, holder: &Holder) -> Result<Vec<Lease>> {
        let sql = format!(
            "SELECT {} FROM leases l CROSS JOIN tasks t ON t.id = l.resource_id
             WHERE l.holder_id = ? AND l.holder_kind = ? AND l.ended_at IS NULL
             AND l.resource_kind = 'task' AND t.section_id = ?",
            leases::TABLE.of("l")
        );
        let values = [(&holder.id).into(), holder.kind.as_str().into(), section.as_str().into()];
        self.query(&sql, &values, |row| Lease::read(Reader::new(row, 0)))
    }

    fn tickets(&self, resource: &Resource) -> Result<Vec<Ticket>> {
        self.select("resource_kind = ? AND resource_id = ? ORDER BY number", &key(resource))
    }

    fn ready_tickets(&self) -> Result<Vec<Ticket>> {
        let ready = "resource_kind = ? AND resource_id <> ? ORDER BY number";
        self.select(ready, &key(&Resource::messages()))
    }

    fn all_tickets(&self) -> Result<Vec<Ticket>> {
        self.select("true ORDER BY number", &[])
    }

    fn count_tickets(&self) -> Result<u64> {
        self.count(&tickets::TABLE, "true", &[])
    }

    fn attempts(&self, resource: &Resource) -> Result<Vec<Attempt>> {
        self.select(OF_RESOURCE, &key(resource))
    }

    fn open_attempts(&self) -> Result<Vec<Attempt>> {
        self.select("state <> 'ended' ORDER BY started_at", &[])
    }
}

impl WriteLeases for Transaction<'_> {
    fn grant(&mut self, new: &NewLease) -> Result<Option<Lease>> {
        match self.insert_numbered(&leases::TABLE, &new.values(self.now)?) {
            // Built here, because returning the row would cost SQLite as much as writing it.
            Ok(fence) => Ok(Some(new.granted(Fence::new(fence), self.now))),
            Err(rusqlite::Error::SqliteFailure(_, Some(said))) if said.contains("leases.lease_id") => {
                Ok(None)
            }
            Err(e) => Err(sql_error(&e)),
        }
    }

    fn beat(&mut self, fence: Fence, beat: &LeaseBeat) -> Result<()> {
        self.update(&leases::TABLE, beat.values()?, vec![(leases::fence, fence.number().into())]).map(drop)
    }

    fn end_lease(&mut self, fence: Fence, reason: EndReason) -> Result<()> {
        self.conn
            .prepare_cached(
                "UPDATE leases SET ended_at = ?2, end_reason = ?3 WHERE fence = ?1 AND ended_at IS NULL",
            )
            .and_then(|mut s| s.execute(params![fence.number(), self.now.as_millis(), reason.as_str()]))
            .map(drop)
            .map_err(|e| sql_error(&e))
    }

    fn reopen_lease(&mut self, fence: Fence) -> Result<()> {
        self.conn
            .prepare_cached(
                "UPDATE leases SET ended_at = NULL, end_reason = NULL WHERE fence = ?1 AND end_reason = 'expired'",
            )
            .and_then(|mut s| s.execute([fence.number()]))
            .map(drop)
            .map_err(|e| sql_error(&e))
    }

    fn insert_ticket(&mut self, new: &NewTicket) -> Result<i64> {
        self.insert_numbered(&tickets::TABLE, &new.values(self.now)?).map_err(|e| sql_error(&e))
    }

    fn refresh_ticket(&mut self, number: i64, silent_since: Timestamp) -> Result<bool> {
        self.conn
            .prepare_cached("UPDATE tickets SET refreshed_at = ?2 WHERE number = ?1 AND refreshed_at > ?3")
            .and_then(|mut s| s.execute(params![number, self.now.as_millis(), silent_since.as_millis()]))
            .map(|changed| changed > 0)
            .map_err(|e| sql_error(&e))
    }

    fn delete_ticket(&mut self, number: i64) -> Result<()> {
        self.conn
            .prepare_cached(DELETE_TICKET)
            .and_then(|mut s| s.execute([number]))
            .map(drop)
            .map_err(|e| sql_error(&e))
    }

    fn insert_attempt(&mut self, new: &Attempt) -> Result<()> {
        self.insert(&attempts::TABLE, &new.values()?)
    }

    fn update_attempt(&mut self, id: &AttemptId, to: &Attempt) -> Result<()> {
        let key = vec![(attempts::id, id.as_str().into())];
        self.update(&attempts::TABLE, to.progress(), key).map(drop)
    }

    fn ring(&mut self, doorbell: &str) {
        self.rings.push(doorbell.to_owned());
    }
}
