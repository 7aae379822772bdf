//! The last round trip of a transaction: the buffered writes, the record of the request, the notification of followers,
//! and the commit.

use tenure_core::Timestamp;
use tenure_core::store::Durability;

use crate::connection::{Connection, Sql, Statement, Value};
use crate::doorbell::{CHANNEL, LONGEST_CHANNEL};
use crate::error::{Failure, Remedy};
use crate::follow::{channel_of, notify_followers};
use crate::transaction::{PendingEvent, Trace, Transaction, Writer};
use crate::write_buffer::{Combined, Write};

/// Rows of requests from clients that sent no request for this long are deleted.
const FORGOTTEN_MS: i64 = 24 * 60 * 60 * 1000;

/// A transaction that returns when everything committed so far is on the disk and on the synchronous standbys.
pub(crate) fn flush(connection: &Connection) -> String {
    format!("{}SELECT pg_logical_emit_message(true, 'tenure', '')", connection.durable())
}

impl Transaction<'_> {
    /// Rolls back and returns the outcome of the body, unless the store can remedy a failure by running the body again.
    pub(crate) fn undo(self, outcome: tenure_core::Result<()>) -> Sql<tenure_core::Result<()>> {
        if let Some(failure) = self.failure.into_inner() {
            drop(self.connection.into_inner().batch("ROLLBACK"));
            return Err(failure);
        }
        self.connection.into_inner().batch("ROLLBACK")?;
        Ok(outcome)
    }

    /// The statements that commit. If the turn had to be waited for, or the commit rings a doorbell, other clients may
    /// be waiting. Then the turn ends before the commit is on the disk, so that the commits of a project share one
    /// flush; the flush follows in the same round trip, before the caller gets its answer. A transaction that read this
    /// one's rows commits later in the same log, so it is never durable without this one. A transaction that wrote
    /// nothing flushes too, because its answer may depend on another client's commit that is not durable yet.
    fn commit_statements(&mut self, writer: &Writer, written: bool, rings: bool) -> String {
        let connection = self.connection.get_mut();
        let durability = if self.state.skips_sync { Durability::Process } else { writer.durability };
        match durability {
            Durability::Process => "SET LOCAL synchronous_commit = off; COMMIT".to_owned(),
            Durability::Power if !written => format!("COMMIT; {}", flush(connection)),
            Durability::Power if self.waited || rings => {
                format!("SET LOCAL synchronous_commit = off; COMMIT; {}", flush(connection))
            }
            Durability::Power => format!("{}COMMIT", connection.durable()),
        }
    }

    pub(crate) fn commit(mut self, writer: &Writer, sent: &mut Option<Trace>) -> Sql<()> {
        if let Some(failure) = self.failure.take() {
            drop(self.connection.into_inner().batch("ROLLBACK"));
            return Err(failure);
        }
        let now = self.state.now.as_millis();
        // The lease that was granted proves that the transaction was committed.
        let granted = self.prefetched.get_mut().granted.take();
        let granted =
            granted.map(|lease| Trace::Grant { fence: lease.fence.number(), key_hash: lease.key_hash });
        let mut writes = self.writes.take();
        // A transaction that only read or refreshed rows may simply run again if its answer is lost.
        let noted = self.changed.get();
        writes.extend(event_write(self.state.now, &self.events.take()));
        if self.next_task != self.stored_next_task {
            writes.push(Write::new("projects", COUNT, &[&self.next_task]));
        }
        let trace = granted.unwrap_or(Trace::Note);
        if noted && matches!(trace, Trace::Note) {
            // One client in sixteen deletes old requests, with its first request.
            if writer.request == 1 && writer.client.as_bytes()[0] < 16 {
                let old: [&dyn Value; 1] = [&now.saturating_sub(FORGOTTEN_MS)];
                writes.push(Write::new("requests", FORGET, &old));
            }
            writes.push(Write::new("requests", NOTE, &[&writer.client, &writer.request, &now]));
        }
        let mut statements = Combined::all(self.project, writes);
        let count = statements.len();
        let mut rings = std::mem::take(&mut self.state.rings);
        // Anything else is not a channel of this store, and may be a name that the server refuses.
        rings.retain(|bell| !writer.silent && bell.starts_with(CHANNEL) && bell.len() <= LONGEST_CHANNEL);
        if count == 0 && !rings.is_empty() {
            statements.push(Combined::new(self.project));
        }
        let texts: Vec<String> = statements
            .iter_mut()
            .enumerate()
            .map(|(at, one)| match rings.as_slice() {
                [_, ..] if at + 1 >= count => one.sql(RING, &[&rings]),
                _ => one.sql("SELECT", &[]),
            })
            .collect();
        let values: Vec<Vec<&dyn Value>> = statements.iter().map(Combined::values).collect();
        let mut sent_statements: Vec<Statement<'_>> =
            texts.iter().zip(&values).map(|(sql, values)| Statement::Query(sql, values)).collect();
        let notifies = self.followed && !writer.silent && (count > 0 || self.wrote.get());
        let (project, channel) = (self.project, channel_of(self.project));
        let (notify, followed): (String, [&dyn Value; 2]) = (notify_followers(), [&project, &channel]);
        if notifies {
            sent_statements.push(Statement::Query(&notify, &followed));
        }
        let rings = notifies || !rings.is_empty();
        let last = self.commit_statements(writer, noted, rings);
        sent_statements.push(Statement::Batch(&last));
        *sent = Some(trace);
        let connection = self.connection.into_inner();
        let Err(failure) = connection.pipeline(&sent_statements) else { return Ok(()) };
        if failure.remedy() == Remedy::Reconnect {
            return Err(failure);
        }
        // The server has answered that the transaction was not committed.
        *sent = None;
        drop(connection.batch("ROLLBACK"));
        // A doorbell that cannot be rung must not fail a change: the server's queue of notifications may be full.
        Err(if rings { Failure::WithRings(Box::new(failure)) } else { failure })
    }
}

const FORGET: &str = "DELETE FROM tenure.requests WHERE project = $1 AND at < $2";
const NOTE: &str = "INSERT INTO tenure.requests (project, client, request, at) VALUES ($1, $2, $3, $4)
     ON CONFLICT (project, client) DO UPDATE SET request = $3, at = $4";
const COUNT: &str = "UPDATE tenure.projects SET next_task = $2 WHERE id = $1";
const RING: &str = "SELECT count(pg_notify(bell, '')) FROM unnest($2::text[]) AS bell";

const EVENT_COLUMNS: &str = "project, seq, kind, actor, task_id, from_status, to_status, fence, detail, at";

/// The write of some events: few are sent as rows, which is the least work for the server, many as arrays.
pub(crate) fn event_write(at: Timestamp, events: &[PendingEvent]) -> Option<Write> {
    let at = at.as_millis();
    match events {
        [] => None,
        [_] | [_, _] | [_, _, _] => Some(events_as_rows(at, events)),
        _ => Some(events_as_arrays(at, events)),
    }
}

fn events_as_rows(at: i64, events: &[PendingEvent]) -> Write {
    let mut values: Vec<&dyn Value> = vec![&at];
    let mut rows = Vec::new();
    for event in events {
        let from = values.len() + 2;
        values.extend(event.values());
        let given: Vec<String> = (from..values.len() + 2).map(|number| format!("${number}")).collect();
        rows.push(format!("($1, nextval('tenure.event_numbers'), {}, $2)", given.join(", ")));
    }
    let sql = format!("INSERT INTO tenure.events ({EVENT_COLUMNS}) VALUES {}", rows.join(", "));
    Write::new("events", sql, &values)
}

fn events_as_arrays(at: i64, events: &[PendingEvent]) -> Write {
    let sql = format!(
        "INSERT INTO tenure.events ({EVENT_COLUMNS})
         SELECT $1, nextval('tenure.event_numbers'), given.*, $9
         FROM unnest($2::text[], $3::text[], $4::text[], $5::text[], $6::text[], $7::bigint[], $8::text[]) AS given"
    );
    let kind: Vec<&str> = events.iter().map(|event| event.kind).collect();
    let actor: Vec<String> = events.iter().map(|event| event.actor.clone()).collect();
    let task: Vec<Option<String>> = events.iter().map(|event| event.task.clone()).collect();
    let from: Vec<Option<&str>> = events.iter().map(|event| event.from).collect();
    let to: Vec<Option<&str>> = events.iter().map(|event| event.to).collect();
    let fence: Vec<Option<i64>> = events.iter().map(|event| event.fence).collect();
    let detail: Vec<Option<String>> = events.iter().map(|event| event.detail.clone()).collect();
    Write::new("events", sql, &[&kind, &actor, &task, &from, &to, &fence, &detail, &at])
}

impl PendingEvent {
    fn values(&self) -> [&dyn Value; 7] {
        [&self.kind, &self.actor, &self.task, &self.from, &self.to, &self.fence, &self.detail]
    }
}
