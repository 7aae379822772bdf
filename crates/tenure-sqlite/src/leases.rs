//! Leases, the lines before them, and the attempts under them.

use std::collections::BTreeSet;

use rusqlite::{OptionalExtension, ToSql, params};
use tenure_core::holder::{Holder, Incarnation};
use tenure_core::id::{AttemptId, Fence, SectionId};
use tenure_core::lease::{Attempt, EndReason, Lease, Resource, Ticket};
use tenure_core::store::{LeaseBeat, LeaseFilter, NewLease, NewTicket, ReadLeases, WriteLeases};
use tenure_core::{Result, Timestamp};

use crate::connection::Transaction;
use crate::error::sql_error;
use crate::rows::{
    ATTEMPT_COLUMNS, LEASE_COLUMNS, Sql, TICKET_COLUMNS, attempt, columns_of, count, json, lease, millis,
    ticket, to_json,
};

pub(crate) const GRANT: &str =
    "INSERT INTO leases (lease_id, resource_kind, resource_id, holder_kind, holder_id, process, doorbell, ttl_ms,
                         acquired_at, heartbeat_at, expires_at, claimed_from)
     VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?9, ?10, ?11)";

pub(crate) const OPEN: &str = "resource_kind = ?1 AND resource_id = ?2 AND ended_at IS NULL";

pub(crate) fn lease_query(condition: &str) -> String {
    format!("SELECT {LEASE_COLUMNS} FROM leases WHERE {condition}")
}

pub(crate) const OF_RESOURCE: &str =
    "WHERE resource_kind = ?1 AND resource_id = ?2 ORDER BY started_at DESC, fence DESC";

pub(crate) fn attempt_query(rest: &str) -> String {
    format!("SELECT {ATTEMPT_COLUMNS} FROM attempts {rest}")
}

pub(crate) const LEAVE_LINE: &str = "DELETE FROM tickets WHERE number = ?1";

impl Transaction<'_> {
    fn lease_where(&self, condition: &str, values: &[&dyn ToSql]) -> Result<Option<Lease>> {
        self.conn
            .prepare_cached(&lease_query(condition))
            .and_then(|mut s| s.query_row(values, |row| lease(row, 0)).optional())
            .map_err(|e| sql_error(&e))
    }

    fn all_leases(&self, filter: &LeaseFilter) -> Sql<Vec<Lease>> {
        let mut terms = vec!["1".to_owned()];
        let mut values: Vec<Box<dyn ToSql>> = Vec::new();
        if !filter.include_ended {
            terms.push("ended_at IS NULL".to_owned());
        }
        if let Some(kinds) = &filter.kinds {
            let list = kinds.iter().map(|k| format!("'{}'", k.as_str())).collect::<Vec<_>>().join(", ");
            terms.push(format!("resource_kind IN ({list})"));
        }
        if let Some(resource) = &filter.resource {
            terms.push("resource_kind = ? AND resource_id = ?".to_owned());
            values.push(Box::new(resource.kind.as_str()));
            values.push(Box::new(resource.id.clone()));
        }
        if let Some(holder) = &filter.holder {
            terms.push("holder_kind = ? AND holder_id = ?".to_owned());
            values.push(Box::new(holder.kind.as_str()));
            values.push(Box::new(holder.id.clone()));
        }
        let order = if filter.newest_first { "DESC" } else { "ASC" };
        let limit = filter.limit.map(|n| format!("LIMIT {n}")).unwrap_or_default();
        // The plus keeps SQLite from walking the whole history in the order of fences to find the few that are open.
        let by = if filter.include_ended { "fence" } else { "+fence" };
        let sql = format!(
            "SELECT {LEASE_COLUMNS} FROM leases WHERE {} ORDER BY {by} {order} {limit}",
            terms.join(" AND ")
        );
        let mut statement = self.conn.prepare_cached(&sql)?;

        statement
            .query_map(rusqlite::params_from_iter(values.iter().map(AsRef::as_ref)), |row| lease(row, 0))?
            .collect()
    }

    fn all_attempts(&self, rest: &str, values: &[&dyn ToSql]) -> Result<Vec<Attempt>> {
        let read = || -> Sql<Vec<_>> {
            self.conn.prepare_cached(&attempt_query(rest))?.query_map(values, attempt)?.collect()
        };
        read().map_err(|e| sql_error(&e))
    }
}

impl ReadLeases for Transaction<'_> {
    fn recorded_processes(&self) -> Result<Vec<Incarnation>> {
        // Made distinct here: SQLite would make a table for that, even of nothing.
        let read = || -> Sql<Vec<_>> {
            let texts: BTreeSet<String> = self
                .conn
                .prepare_cached(
                    "SELECT process FROM leases WHERE ended_at IS NULL AND process IS NOT NULL
                     UNION ALL SELECT process FROM tickets",
                )?
                .query_map([], |row| row.get(0))?
                .collect::<Sql<_>>()?;
            texts.iter().map(|text| json(0, text)).collect()
        };
        read().map_err(|e| sql_error(&e))
    }

    fn open_lease(&self, resource: &Resource) -> Result<Option<Lease>> {
        self.lease_where(OPEN, &[&resource.kind.as_str(), &resource.id])
    }

    fn latest_lease(&self, resource: &Resource) -> Result<Option<Lease>> {
        self.lease_where(
            "resource_kind = ?1 AND resource_id = ?2 ORDER BY fence DESC LIMIT 1",
            &[&resource.kind.as_str(), &resource.id],
        )
    }

    fn lease_by_id(&self, id: &str) -> Result<Option<Lease>> {
        self.lease_where("lease_id = ?1", &[&id])
    }

    fn lease_by_fence(&self, fence: Fence) -> Result<Option<Lease>> {
        self.lease_where("fence = ?1", &[&fence.number()])
    }

    fn leases(&self, filter: &LeaseFilter) -> Result<Vec<Lease>> {
        self.all_leases(filter).map_err(|e| sql_error(&e))
    }

    fn task_leases_in_section(&self, section: &SectionId, holder: &Holder) -> Result<Vec<Lease>> {
        let read = || -> Sql<Vec<_>> {
            self.conn
                .prepare_cached(&format!(
                    "SELECT {} FROM leases l CROSS JOIN tasks t ON t.id = l.resource_id
                     WHERE l.holder_id = ?2 AND l.holder_kind = ?3 AND l.ended_at IS NULL
                     AND l.resource_kind = 'task' AND t.section_id = ?1",
                    columns_of("l", LEASE_COLUMNS)
                ))?
                .query_map(params![section.as_str(), holder.id, holder.kind.as_str()], |row| lease(row, 0))?
                .collect()
        };
        read().map_err(|e| sql_error(&e))
    }

    fn tickets(&self, resource: &Resource) -> Result<Vec<Ticket>> {
        let read = || -> Sql<Vec<_>> {
            self.conn
                .prepare_cached(&format!(
                    "SELECT {TICKET_COLUMNS} FROM tickets WHERE resource_kind = ?1 AND resource_id = ?2
                     ORDER BY number"
                ))?
                .query_map(params![resource.kind.as_str(), resource.id], ticket)?
                .collect()
        };
        read().map_err(|e| sql_error(&e))
    }

    fn ready_tickets(&self) -> Result<Vec<Ticket>> {
        let messages = Resource::messages();
        let read = || -> Sql<Vec<_>> {
            self.conn
                .prepare_cached(&format!(
                    "SELECT {TICKET_COLUMNS} FROM tickets WHERE resource_kind = ?1 AND resource_id <> ?2
                     ORDER BY number"
                ))?
                .query_map(params![messages.kind.as_str(), messages.id], ticket)?
                .collect()
        };
        read().map_err(|e| sql_error(&e))
    }

    fn all_tickets(&self) -> Result<Vec<Ticket>> {
        let read = || -> Sql<Vec<_>> {
            self.conn
                .prepare_cached(&format!("SELECT {TICKET_COLUMNS} FROM tickets ORDER BY number"))?
                .query_map([], ticket)?
                .collect()
        };
        read().map_err(|e| sql_error(&e))
    }

    fn count_tickets(&self) -> Result<u64> {
        self.conn
            .prepare_cached("SELECT count(*) FROM tickets")
            .and_then(|mut s| s.query_row([], |row| count(row, 0)))
            .map_err(|e| sql_error(&e))
    }

    fn attempts(&self, resource: &Resource) -> Result<Vec<Attempt>> {
        self.all_attempts(OF_RESOURCE, &[&resource.kind.as_str(), &resource.id])
    }

    fn open_attempts(&self) -> Result<Vec<Attempt>> {
        self.all_attempts("WHERE state <> 'ended' ORDER BY started_at", &[])
    }
}

impl WriteLeases for Transaction<'_> {
    fn grant(&mut self, new: &NewLease) -> Result<Option<Lease>> {
        let insert = || -> Sql<i64> {
            self.conn.prepare_cached(GRANT)?.insert(params![
                new.id.as_str(),
                new.resource.kind.as_str(),
                new.resource.id,
                new.holder.kind.as_str(),
                new.holder.id,
                new.process.as_ref().map(to_json).transpose()?,
                new.doorbell,
                millis(new.ttl),
                self.now.as_millis(),
                new.expires_at.as_millis(),
                new.claimed_from.map(tenure_core::task::TaskStatus::as_str),
            ])
        };
        match insert() {
            // Put together here: to return the row would cost SQLite as much again as to write it.
            Ok(fence) => Ok(Some(new.granted(Fence::new(fence), self.now))),
            Err(rusqlite::Error::SqliteFailure(_, Some(said))) if said.contains("leases.lease_id") => {
                Ok(None)
            }
            Err(e) => Err(sql_error(&e)),
        }
    }

    fn beat(&mut self, fence: Fence, beat: &LeaseBeat) -> Result<()> {
        let update = || -> Sql<usize> {
            self.conn
                .prepare_cached(
                    "UPDATE leases SET process = ?2, doorbell = ?3, ttl_ms = ?4, heartbeat_at = ?5, expires_at = ?6
                     WHERE fence = ?1",
                )?
                .execute(params![
                    fence.number(),
                    beat.process.as_ref().map(to_json).transpose()?,
                    beat.doorbell,
                    millis(beat.ttl),
                    beat.heartbeat_at.as_millis(),
                    beat.expires_at.as_millis(),
                ])
        };
        update().map(drop).map_err(|e| sql_error(&e))
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
        let insert = || -> Sql<i64> {
            self.conn
                .prepare_cached(
                    "INSERT INTO tickets (resource_kind, resource_id, holder_kind, holder_id, process, doorbell,
                                          created_at, refreshed_at)
                     VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?7)",
                )?
                .insert(params![
                    new.resource.kind.as_str(),
                    new.resource.id,
                    new.holder.kind.as_str(),
                    new.holder.id,
                    to_json(&new.process)?,
                    new.doorbell,
                    self.now.as_millis()
                ])
        };
        insert().map_err(|e| sql_error(&e))
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
            .prepare_cached(LEAVE_LINE)
            .and_then(|mut s| s.execute([number]))
            .map(drop)
            .map_err(|e| sql_error(&e))
    }

    fn insert_attempt(&mut self, new: &Attempt) -> Result<()> {
        let insert = || -> Sql<usize> {
            self.conn
                .prepare_cached(&format!(
                    "INSERT INTO attempts ({ATTEMPT_COLUMNS})
                     VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13)"
                ))?
                .execute(params![
                    new.id.as_str(),
                    new.resource.kind.as_str(),
                    new.resource.id,
                    new.fence.number(),
                    new.state.as_str(),
                    to_json(&new.owner)?,
                    new.pid,
                    new.log_path,
                    new.started_at.as_millis(),
                    new.ended_at.map(Timestamp::as_millis),
                    new.exit_code,
                    new.reason,
                    new.charged,
                ])
        };
        insert().map(drop).map_err(|e| sql_error(&e))
    }

    fn update_attempt(&mut self, id: &AttemptId, to: &Attempt) -> Result<()> {
        self.conn
            .prepare_cached(
                "UPDATE attempts SET state = ?2, pid = ?3, log_path = ?4, ended_at = ?5, exit_code = ?6, reason = ?7,
                                     charged = ?8
                 WHERE id = ?1",
            )
            .and_then(|mut s| {
                s.execute(params![
                    id.as_str(),
                    to.state.as_str(),
                    to.pid,
                    to.log_path,
                    to.ended_at.map(Timestamp::as_millis),
                    to.exit_code,
                    to.reason,
                    to.charged
                ])
            })
            .map(drop)
            .map_err(|e| sql_error(&e))
    }

    fn ring(&mut self, doorbell: &str) {
        self.rings.push(doorbell.to_owned());
    }
}
