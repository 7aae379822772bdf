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
///
/// The turn itself ends without waiting for the disk: else the changes of a project would wait for it one by one, rather
/// than together. Nobody is told of a change before this has come back, and whoever has seen it earlier and builds on
/// it is flushed after it.
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

    pub(crate) fn commit(mut self, writer: Writer, sent: &mut Option<Trace>) -> Sql<()> {
        if let Some(failure) = self.broken.into_inner() {
            drop(self.link.into_inner().run("ROLLBACK"));
            return Err(failure);
        }
        let now = self.now.as_millis();
        let granted = self.granted.take().map(|lease| Trace::Grant(lease.fence.number()));
        let mut changes = self.kept.take();
        // Who only looked, or was seen to be there, may do so again if the answer is lost.
        let noted = self.changed.get() || !self.events.borrow().is_empty();
        changes.extend(told(self.now, &self.events.take()));
        if self.next_task != self.counted {
            changes.push(Change::new("projects", COUNT, &[&self.next_task]));
        }
        let trace = granted.filter(|_| writer.shares).unwrap_or(Trace::Note);
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
        let last = match writer.durability {
            Durability::Power if !writer.shares => format!("COMMIT; {}", flush(self.link.get_mut())),
            _ => "COMMIT".to_owned(),
        };
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

/// Events as columns, so that any number of them is one statement.
pub(crate) fn told(at: Timestamp, events: &[Told]) -> Option<Change> {
    let sql = "INSERT INTO tenure.events (project, seq, kind, actor, task_id, from_status, to_status, fence, detail, at)
         SELECT $1, nextval('tenure.event_numbers'), given.*, $9
         FROM unnest($2::text[], $3::text[], $4::text[], $5::text[], $6::text[], $7::bigint[], $8::text[]) AS given";
    let columns = Columns::of(events);
    let mut values = columns.values();
    let at = at.as_millis();
    values.push(&at);
    (!events.is_empty()).then(|| Change::new("events", sql, &values))
}

struct Columns {
    kind: Vec<&'static str>,
    actor: Vec<String>,
    task: Vec<Option<String>>,
    from: Vec<Option<&'static str>>,
    to: Vec<Option<&'static str>>,
    fence: Vec<Option<i64>>,
    detail: Vec<Option<String>>,
}

impl Columns {
    fn of(events: &[Told]) -> Self {
        Self {
            kind: events.iter().map(|event| event.kind).collect(),
            actor: events.iter().map(|event| event.actor.clone()).collect(),
            task: events.iter().map(|event| event.task.clone()).collect(),
            from: events.iter().map(|event| event.from).collect(),
            to: events.iter().map(|event| event.to).collect(),
            fence: events.iter().map(|event| event.fence).collect(),
            detail: events.iter().map(|event| event.detail.clone()).collect(),
        }
    }

    fn values(&self) -> Vec<&dyn Value> {
        vec![&self.kind, &self.actor, &self.task, &self.from, &self.to, &self.fence, &self.detail]
    }
}
