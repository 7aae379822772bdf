//! Columns to values and back. A value that no tenure wrote is an error, never a guess.

use std::time::Duration;

use serde::de::DeserializeOwned;
use tenure_core::holder::{Holder, HolderKind, Incarnation};
use tenure_core::id::{AttemptId, Fence, LeaseId};
use tenure_core::lease::{Attempt, AttemptState, EndReason, Lease, Resource, ResourceKind, Ticket};
use tenure_core::task::TaskStatus;
use tenure_core::{Error, Result, Timestamp};
use tokio_postgres::Row;
use tokio_postgres::types::FromSql;

pub(crate) const LEASE_COLUMNS: &str = "fence, lease_id, resource_kind, resource_id, holder_kind, holder_id, process, \
     doorbell, ttl_ms, acquired_at, heartbeat_at, expires_at, claimed_from, ended_at, end_reason";

/// The same columns of a table that goes by another name in the query.
pub(crate) fn columns_of(alias: &str, columns: &str) -> String {
    columns.split(", ").map(|column| format!("{alias}.{}", column.trim())).collect::<Vec<_>>().join(", ")
}

pub(crate) fn get<'r, T: FromSql<'r>>(row: &'r Row, index: usize) -> Result<T> {
    row.try_get(index).map_err(|e| unexpected(&e.to_string()))
}

fn unexpected(what: &str) -> Error {
    Error::store(format!("the store answered unexpectedly: {what}"))
}

pub(crate) fn parsed<T>(text: &str, parse: impl Fn(&str) -> Option<T>) -> Result<T> {
    parse(text).ok_or_else(|| unexpected(&format!("{text:?} is not a value that tenure stores here")))
}

pub(crate) fn json<T: DeserializeOwned>(text: &str) -> Result<T> {
    serde_json::from_str(text).map_err(|e| unexpected(&e.to_string()))
}

pub(crate) fn to_json<T: serde::Serialize>(value: &T) -> Result<String> {
    serde_json::to_string(value).map_err(|e| unexpected(&e.to_string()))
}

pub(crate) fn time(row: &Row, index: usize) -> Result<Timestamp> {
    get(row, index).map(Timestamp::from_millis)
}

pub(crate) fn optional_time(row: &Row, index: usize) -> Result<Option<Timestamp>> {
    Ok(get::<Option<i64>>(row, index)?.map(Timestamp::from_millis))
}

pub(crate) fn status(row: &Row, index: usize) -> Result<TaskStatus> {
    parsed(get(row, index)?, TaskStatus::parse)
}

pub(crate) fn optional_status(row: &Row, index: usize) -> Result<Option<TaskStatus>> {
    get::<Option<&str>>(row, index)?.map(|text| parsed(text, TaskStatus::parse)).transpose()
}

pub(crate) fn millis(duration: Duration) -> i64 {
    i64::try_from(duration.as_millis()).unwrap_or(i64::MAX)
}

pub(crate) fn count(row: &Row, index: usize) -> Result<u64> {
    Ok(u64::try_from(get::<i64>(row, index)?).unwrap_or(0))
}

/// A number that is stored wider than it is used.
pub(crate) fn narrow<T: TryFrom<i64>>(row: &Row, index: usize) -> Result<T> {
    let wide: i64 = get(row, index)?;
    T::try_from(wide).map_err(|_| unexpected(&format!("{wide} is out of range")))
}

pub(crate) fn optional_narrow<T: TryFrom<i64>>(row: &Row, index: usize) -> Result<Option<T>> {
    match get::<Option<i64>>(row, index)? {
        Some(_) => narrow(row, index).map(Some),
        None => Ok(None),
    }
}

pub(crate) fn limit_of(limit: u64) -> i64 {
    i64::try_from(limit).unwrap_or(i64::MAX)
}

fn holder(row: &Row, kind: usize, id: usize) -> Result<Holder> {
    Ok(Holder { kind: parsed(get(row, kind)?, HolderKind::parse)?, id: get(row, id)? })
}

fn resource(row: &Row, kind: usize, id: usize) -> Result<Resource> {
    Ok(Resource { kind: parsed(get(row, kind)?, ResourceKind::parse)?, id: get(row, id)? })
}

fn optional_process(row: &Row, index: usize) -> Result<Option<Incarnation>> {
    get::<Option<&str>>(row, index)?.map(json).transpose()
}

/// A lease whose [`LEASE_COLUMNS`] begin at `at`.
pub(crate) fn lease(row: &Row, at: usize) -> Result<Lease> {
    let ended = match (optional_time(row, at + 13)?, get::<Option<&str>>(row, at + 14)?) {
        (Some(when), Some(why)) => Some((when, parsed(why, EndReason::parse)?)),
        _ => None,
    };
    Ok(Lease {
        fence: Fence::new(get(row, at)?),
        id: LeaseId::new(get::<String>(row, at + 1)?),
        resource: resource(row, at + 2, at + 3)?,
        holder: holder(row, at + 4, at + 5)?,
        process: optional_process(row, at + 6)?,
        doorbell: get(row, at + 7)?,
        ttl: Duration::from_millis(u64::try_from(get::<i64>(row, at + 8)?).unwrap_or(0)),
        acquired_at: time(row, at + 9)?,
        heartbeat_at: time(row, at + 10)?,
        expires_at: time(row, at + 11)?,
        claimed_from: optional_status(row, at + 12)?,
        ended,
    })
}

/// A lease that an outer join may not have found.
pub(crate) fn optional_lease(row: &Row, at: usize) -> Result<Option<Lease>> {
    match get::<Option<i64>>(row, at)? {
        Some(_) => lease(row, at).map(Some),
        None => Ok(None),
    }
}

pub(crate) const TICKET_COLUMNS: &str = "number, resource_kind, resource_id, holder_kind, holder_id, process, \
     doorbell, created_at, refreshed_at";

pub(crate) fn ticket(row: &Row) -> Result<Ticket> {
    Ok(Ticket {
        number: get(row, 0)?,
        resource: resource(row, 1, 2)?,
        holder: holder(row, 3, 4)?,
        process: json(get(row, 5)?)?,
        doorbell: get(row, 6)?,
        created_at: time(row, 7)?,
        refreshed_at: time(row, 8)?,
    })
}

pub(crate) const ATTEMPT_COLUMNS: &str = "id, resource_kind, resource_id, fence, state, owner, pid, log_path, \
     started_at, ended_at, exit_code, reason, charged";

pub(crate) fn attempt(row: &Row) -> Result<Attempt> {
    Ok(Attempt {
        id: AttemptId::new(get::<String>(row, 0)?),
        resource: resource(row, 1, 2)?,
        fence: Fence::new(get(row, 3)?),
        state: parsed(get(row, 4)?, AttemptState::parse)?,
        owner: json(get(row, 5)?)?,
        pid: optional_narrow(row, 6)?,
        log_path: get(row, 7)?,
        started_at: time(row, 8)?,
        ended_at: optional_time(row, 9)?,
        exit_code: optional_narrow(row, 10)?,
        reason: get(row, 11)?,
        charged: get::<i64>(row, 12)? != 0,
    })
}

/// All rows, read by the same reader.
pub(crate) fn all<T>(rows: Vec<Row>, read: impl Fn(&Row) -> Result<T>) -> Result<Vec<T>> {
    rows.iter().map(read).collect()
}
