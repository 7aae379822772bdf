//! The end of a transaction: what was kept back, the note that the request was served, and the commit, sent together.

use tenure_core::Timestamp;
use tenure_core::store::Durability;

use crate::error::Remedy;
use crate::kept::{Change, Together};
use crate::link::{Line, Link, Sql, Value};
use crate::transaction::{Told, Trace, Transaction, Writer};

/// Rows of clients that were last heard of this long ago are of no use to anybody.
const FORGOTTEN_MS: i64 = 24 * 60 * 60 * 1000;

/// Comes back when everything that was committed so far has reached the disk, and the standbys that must have it.
pub(crate) fn flush(link: &Link) -> String {
    format!("{}SELECT pg_logical_emit_message(true, 'tenure', '')", link.lasting())
}

impl Transaction<'_> {
    /// Ends without a trace. What the body said counts, unless the store itself broke under it.
    pub(crate) fn undo(self, outcome: tenure_core::Result<()>) -> Sql<tenure_core::Result<()>> {
        if let Some(failure) = self.broken.into_inner() {
            drop(self.link.into_inner().run("ROLLBACK"));
            return Err(failure);
        }
        self.link.into_inner().run("ROLLBACK")?;
        Ok(outcome)
    }

    /// Where several take turns, or somebody is waiting to be rung, a turn ends without waiting for the disk: else the changes
    /// of a project would wait for it one by one, rather than together. Nobody is told of a change before the disk has it,
    /// and whoever has seen it earlier and builds on it is flushed after it. So is the answer of who may have written
    /// nothing: it may rest on what others did, and a commit of nothing waits for nothing.
    fn last_words(&mut self, writer: Writer, written: bool, rings: bool) -> String {
        let link = self.link.get_mut();
        match writer.durability {
            Durability::Process => "SET LOCAL synchronous_commit = off; COMMIT".to_owned(),
            Durability::Power if !written => format!("COMMIT; {}", flush(link)),
            Durability::Power if self.waited || rings => {
                format!("SET LOCAL synchronous_commit = off; COMMIT; {}", flush(link))
            }
            Durability::Power => format!("{}COMMIT", link.lasting()),
        }
    }

    pub(crate) fn commit(mut self, writer: Writer, sent: &mut Option<Trace>) -> Sql<()> {
        if let Some(failure) = self.broken.take() {
            drop(self.link.into_inner().run("ROLLBACK"));
            return Err(failure);
        }
        let now = self.now.as_millis();
        // A grant is a note of itself.
        let granted = self.granted.take().map(|lease| Trace::Grant(lease.fence.number()));
        let mut changes = self.kept.take();
        // Who only looked, or was seen to be there, may do so again if the answer is lost.
        let noted = self.changed.get();
        changes.extend(told(self.now, &self.events.take()));
        if self.next_task != self.counted {
            changes.push(Change::new("projects", COUNT, &[&self.next_task]));
        }
        let trace = granted.unwrap_or(Trace::Note);
        if noted && matches!(trace, Trace::Note) {
            // A few of many clients tidy up for all.
            if writer.request == 1 && writer.client.as_bytes()[0] < 16 {
                let old: [&dyn Value; 1] = [&now.saturating_sub(FORGOTTEN_MS)];
                changes.push(Change::new("requests", FORGET, &old));
            }
            changes.push(Change::new("requests", NOTE, &[&writer.client, &writer.request, &now]));
        }
        let mut statements = Together::all(self.project, changes);
        let count = statements.len();
        if count == 0 && !self.rings.is_empty() {
            statements.push(Together::new(self.project));
        }
        let rings = std::mem::take(&mut self.rings);
        let said: Vec<String> = statements
            .iter_mut()
            .enumerate()
            .map(|(at, one)| match rings.as_slice() {
                [_, ..] if at + 1 >= count => one.sql(RING, &[&rings]),
                _ => one.sql("SELECT", &[]),
            })
            .collect();
        let values: Vec<Vec<&dyn Value>> = statements.iter().map(Together::values).collect();
        let mut lines: Vec<Line<'_>> =
            said.iter().zip(&values).map(|(sql, values)| Line::Ask(sql, values)).collect();
        let last = self.last_words(writer, noted, !rings.is_empty());
        lines.push(Line::Run(&last));
        *sent = Some(trace);
        let outcome = self.link.into_inner().talk(&lines);
        if let Err(failure) = &outcome
            && failure.remedy() != Remedy::Reconnect
        {
            // The server has answered, and it was no.
            *sent = None;
        }
        outcome.map(drop)
    }
}

const FORGET: &str = "DELETE FROM tenure.requests WHERE project = $1 AND at < $2";
const NOTE: &str = "INSERT INTO tenure.requests (project, client, request, at) VALUES ($1, $2, $3, $4)
     ON CONFLICT (project, client) DO UPDATE SET request = $3, at = $4";
const COUNT: &str = "UPDATE tenure.projects SET next_task = $2 WHERE id = $1";
const RING: &str = "SELECT count(pg_notify(bell, '')) FROM unnest($2::text[]) AS bell";

const EVENT_COLUMNS: &str = "project, seq, kind, actor, task_id, from_status, to_status, fence, detail, at";

/// A few are told one by one, which is the least work for the server; many as columns, so that they are one statement.
pub(crate) fn told(at: Timestamp, events: &[Told]) -> Option<Change> {
    let at = at.as_millis();
    match events {
        [] => None,
        [_] | [_, _] | [_, _, _] => Some(told_in_rows(at, events)),
        _ => Some(told_in_columns(at, events)),
    }
}

fn told_in_rows(at: i64, events: &[Told]) -> Change {
    let mut values: Vec<&dyn Value> = vec![&at];
    let mut rows = Vec::new();
    for event in events {
        let from = values.len() + 2;
        values.extend(event.values());
        let given: Vec<String> = (from..values.len() + 2).map(|number| format!("${number}")).collect();
        rows.push(format!("($1, nextval('tenure.event_numbers'), {}, $2)", given.join(", ")));
    }
    let sql = format!("INSERT INTO tenure.events ({EVENT_COLUMNS}) VALUES {}", rows.join(", "));
    Change::new("events", sql, &values)
}

fn told_in_columns(at: i64, events: &[Told]) -> Change {
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
    Change::new("events", sql, &[&kind, &actor, &task, &from, &to, &fence, &detail, &at])
}

impl Told {
    fn values(&self) -> [&dyn Value; 7] {
        [&self.kind, &self.actor, &self.task, &self.from, &self.to, &self.fence, &self.detail]
    }
}
