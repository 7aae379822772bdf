//! The end of a transaction: what was kept back, the note that the request was served, and the commit, sent together.

use tenure_core::store::Durability;

use crate::error::Remedy;
use crate::kept::{Change, Together};
use crate::link::{Line, NOW, Sql, Value};
use crate::transaction::{Told, Transaction, Writer};

/// Rows of clients that were last heard of this long ago are of no use to anybody.
const FORGOTTEN_MS: i64 = 24 * 60 * 60 * 1000;

/// Comes back when everything that was committed so far has reached the disk, and the standbys that must have it.
///
/// The turn itself ends without waiting for the disk: else the changes of a project would wait for it one by one, rather
/// than together. Nobody is told of a change before this has come back, and whoever has seen it earlier and builds on
/// it is flushed after it.
pub(crate) const FLUSH: &str = "SELECT set_config('synchronous_commit', 'on', true)
         WHERE current_setting('synchronous_commit') = 'off';
     SELECT pg_logical_emit_message(true, 'tenure', '')";

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

    pub(crate) fn commit(mut self, writer: Writer, request: i64, sent: &mut bool) -> Sql<()> {
        if let Some(failure) = self.broken.into_inner() {
            drop(self.link.into_inner().run("ROLLBACK"));
            return Err(failure);
        }
        let now = self.now.as_millis();
        // Who only looked, or was seen to be there, may do so again if the answer is lost.
        let noted = self.changed.get() || self.last_event != self.counted.1;
        let mut changes = Vec::new();
        if writer.shares {
            // The server begins with what is said last, and nobody else goes on once this has begun.
            changes.extend(told_together(&self.events.take(), self.counted.1));
            changes.extend(self.kept.take());
        } else {
            changes.extend(self.kept.take());
            changes.extend(told(now, &self.events.take()));
            if (self.next_task, self.last_event) != self.counted {
                changes.push(Change::new("projects", COUNT, &[&self.next_task, &self.last_event]));
            }
        }
        if noted {
            // A few of many clients tidy up for all.
            if request == 1 && writer.client.as_bytes()[0] < 16 && !writer.shares {
                let old: [&dyn Value; 1] = [&now.saturating_sub(FORGOTTEN_MS)];
                changes.push(Change::new("requests", FORGET, &old));
            }
            changes.push(Change::new("requests", NOTE, &[&writer.client, &request, &now]));
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
            Durability::Process => "COMMIT".to_owned(),
            Durability::Power => format!("COMMIT; {FLUSH}"),
        };
        lines.push(Line::Run(&last));
        *sent = true;
        let outcome = self.link.into_inner().talk(&lines);
        if let Err(failure) = &outcome
            && failure.remedy() != Remedy::Reconnect
        {
            // The server has answered, and it was no.
            *sent = false;
        }
        outcome.map(drop)
    }
}

const FORGET: &str = "DELETE FROM tenure.requests WHERE project = $1 AND at < $2";
const NOTE: &str = "INSERT INTO tenure.requests (project, client, request, at) VALUES ($1, $2, $3, $4)
     ON CONFLICT (project, client) DO UPDATE SET request = $3, at = $4";
const COUNT: &str = "UPDATE tenure.projects SET next_task = $2, last_event = $3 WHERE id = $1";
const RING: &str = "SELECT count(pg_notify(bell, '')) FROM unnest($2::text[]) AS bell";

/// Events as columns, so that any number of them is one statement.
pub(crate) fn told(at: i64, events: &[Told]) -> Option<Change> {
    let sql = format!("INSERT INTO tenure.events ({EVENT_COLUMNS}, at) SELECT $1, given.*, $10 {GIVEN}");
    let columns = Columns::of(events, 0);
    let mut values = columns.values();
    values.push(&at);
    (!events.is_empty()).then(|| Change::new("events", sql, &values))
}

/// The same, while others may tell something as well: the numbers, and the time that goes with them, are drawn in the order
/// of the commits, because whoever draws one keeps the project's row until it has committed.
fn told_together(events: &[Told], last_event: i64) -> Vec<Change> {
    let count = i64::try_from(events.len()).unwrap_or(i64::MAX);
    let draw = "UPDATE tenure.projects SET last_event = last_event + $2 WHERE id = $1
         RETURNING last_event - $2 AS last_event";
    let sql = format!(
        "INSERT INTO tenure.events ({EVENT_COLUMNS}, at)
         SELECT $1, projects.last_event + given.seq, given.kind, given.actor, given.task, given.was, given.becomes,
                given.fence, given.detail, {NOW}
         FROM projects CROSS JOIN LATERAL (SELECT * {GIVEN}) AS given"
    );
    let columns = Columns::of(events, last_event);
    vec![Change::new("projects", draw, &[&count]), Change::new("events", sql, &columns.values())]
}

const EVENT_COLUMNS: &str = "project, seq, kind, actor, task_id, from_status, to_status, fence, detail";
const GIVEN: &str =
    "FROM unnest($2::bigint[], $3::text[], $4::text[], $5::text[], $6::text[], $7::text[], $8::bigint[],
                 $9::text[]) AS given (seq, kind, actor, task, was, becomes, fence, detail)";

struct Columns {
    seq: Vec<i64>,
    kind: Vec<&'static str>,
    actor: Vec<String>,
    task: Vec<Option<String>>,
    from: Vec<Option<&'static str>>,
    to: Vec<Option<&'static str>>,
    fence: Vec<Option<i64>>,
    detail: Vec<Option<String>>,
}

impl Columns {
    fn of(events: &[Told], after: i64) -> Self {
        Self {
            seq: events.iter().map(|event| event.seq - after).collect(),
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
        vec![&self.seq, &self.kind, &self.actor, &self.task, &self.from, &self.to, &self.fence, &self.detail]
    }
}
