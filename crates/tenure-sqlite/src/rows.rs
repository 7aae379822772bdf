//! Columns to values and back. A value that no tenure wrote is an error, never a guess.

use std::time::Duration;

use rusqlite::Row;
use rusqlite::types::Type;
use serde::de::DeserializeOwned;
use tenure_core::Timestamp;
use tenure_core::holder::{Holder, HolderKind, Incarnation};
use tenure_core::id::{AttemptId, Fence, LeaseId};
use tenure_core::lease::{Attempt, AttemptState, EndReason, Lease, Resource, ResourceKind, Ticket};
use tenure_core::task::TaskStatus;

pub(crate) type Sql<T> = rusqlite::Result<T>;

pub(crate) const LEASE_COLUMNS: &str = "fence, lease_id, resource_kind, resource_id, holder_kind, holder_id, process, \
     doorbell, ttl_ms, acquired_at, heartbeat_at, expires_at, claimed_from, ended_at, end_reason";

/// The same columns of a table that goes by another name in the query.
pub(crate) fn columns_of(alias: &str, columns: &str) -> String {
    columns.split(", ").map(|column| format!("{alias}.{}", column.trim())).collect::<Vec<_>>().join(", ")
}

pub(crate) fn parsed<T>(index: usize, text: &str, parse: impl Fn(&str) -> Option<T>) -> Sql<T> {
    parse(text).ok_or_else(|| {
        rusqlite::Error::FromSqlConversionFailure(
            index,
            Type::Text,
            format!("{text:?} is not a value that tenure stores here").into(),
        )
    })
}

pub(crate) fn json<T: DeserializeOwned>(index: usize, text: &str) -> Sql<T> {
    serde_json::from_str(text)
        .map_err(|e| rusqlite::Error::FromSqlConversionFailure(index, Type::Text, Box::new(e)))
}

pub(crate) fn to_json<T: serde::Serialize>(value: &T) -> Sql<String> {
    serde_json::to_string(value).map_err(|e| rusqlite::Error::ToSqlConversionFailure(Box::new(e)))
}

pub(crate) fn time(row: &Row<'_>, index: usize) -> Sql<Timestamp> {
    row.get(index).map(Timestamp::from_millis)
}

pub(crate) fn optional_time(row: &Row<'_>, index: usize) -> Sql<Option<Timestamp>> {
    Ok(row.get::<_, Option<i64>>(index)?.map(Timestamp::from_millis))
}

pub(crate) fn status(row: &Row<'_>, index: usize) -> Sql<TaskStatus> {
    parsed(index, &row.get::<_, String>(index)?, TaskStatus::parse)
}

pub(crate) fn optional_status(row: &Row<'_>, index: usize) -> Sql<Option<TaskStatus>> {
    let text: Option<String> = row.get(index)?;
    text.map(|t| parsed(index, &t, TaskStatus::parse)).transpose()
}

pub(crate) fn duration(row: &Row<'_>, index: usize) -> Sql<Duration> {
    Ok(Duration::from_millis(u64::try_from(row.get::<_, i64>(index)?).unwrap_or(0)))
}

pub(crate) fn millis(duration: Duration) -> i64 {
    i64::try_from(duration.as_millis()).unwrap_or(i64::MAX)
}

pub(crate) fn count(row: &Row<'_>, index: usize) -> Sql<u64> {
    Ok(u64::try_from(row.get::<_, i64>(index)?).unwrap_or(0))
}

fn holder(row: &Row<'_>, kind: usize, id: usize) -> Sql<Holder> {
    Ok(Holder { kind: parsed(kind, &row.get::<_, String>(kind)?, HolderKind::parse)?, id: row.get(id)? })
}

fn resource(row: &Row<'_>, kind: usize, id: usize) -> Sql<Resource> {
    Ok(Resource { kind: parsed(kind, &row.get::<_, String>(kind)?, ResourceKind::parse)?, id: row.get(id)? })
}

pub(crate) fn optional_process(row: &Row<'_>, index: usize) -> Sql<Option<Incarnation>> {
    let text: Option<String> = row.get(index)?;
    text.map(|t| json(index, &t)).transpose()
}

/// A lease whose [`LEASE_COLUMNS`] begin at `at`.
pub(crate) fn lease(row: &Row<'_>, at: usize) -> Sql<Lease> {
    let ended_at = optional_time(row, at + 13)?;
    let reason: Option<String> = row.get(at + 14)?;
    let ended = match (ended_at, reason) {
        (Some(when), Some(why)) => Some((when, parsed(at + 14, &why, EndReason::parse)?)),
        _ => None,
    };
    Ok(Lease {
        fence: Fence::new(row.get(at)?),
        id: LeaseId::new(row.get::<_, String>(at + 1)?),
        resource: resource(row, at + 2, at + 3)?,
        holder: holder(row, at + 4, at + 5)?,
        process: optional_process(row, at + 6)?,
        doorbell: row.get(at + 7)?,
        ttl: duration(row, at + 8)?,
        acquired_at: time(row, at + 9)?,
        heartbeat_at: time(row, at + 10)?,
        expires_at: time(row, at + 11)?,
        claimed_from: optional_status(row, at + 12)?,
        ended,
    })
}

/// A lease that an outer join may not have found.
pub(crate) fn optional_lease(row: &Row<'_>, at: usize) -> Sql<Option<Lease>> {
    match row.get::<_, Option<i64>>(at)? {
        Some(_) => lease(row, at).map(Some),
        None => Ok(None),
    }
}

pub(crate) const TICKET_COLUMNS: &str = "number, resource_kind, resource_id, holder_kind, holder_id, process, \
     doorbell, created_at, refreshed_at";

pub(crate) fn ticket(row: &Row<'_>) -> Sql<Ticket> {
    Ok(Ticket {
        number: row.get(0)?,
        resource: resource(row, 1, 2)?,
        holder: holder(row, 3, 4)?,
        process: json(5, &row.get::<_, String>(5)?)?,
        doorbell: row.get(6)?,
        created_at: time(row, 7)?,
        refreshed_at: time(row, 8)?,
    })
}

pub(crate) const ATTEMPT_COLUMNS: &str = "id, resource_kind, resource_id, fence, state, owner, pid, log_path, \
     started_at, ended_at, exit_code, reason, charged";

pub(crate) fn attempt(row: &Row<'_>) -> Sql<Attempt> {
    Ok(Attempt {
        id: AttemptId::new(row.get::<_, String>(0)?),
        resource: resource(row, 1, 2)?,
        fence: Fence::new(row.get(3)?),
        state: parsed(4, &row.get::<_, String>(4)?, AttemptState::parse)?,
        owner: json(5, &row.get::<_, String>(5)?)?,
        pid: row.get(6)?,
        log_path: row.get(7)?,
        started_at: time(row, 8)?,
        ended_at: optional_time(row, 9)?,
        exit_code: row.get(10)?,
        reason: row.get(11)?,
        charged: row.get(12)?,
    })
}
