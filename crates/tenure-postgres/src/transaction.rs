//! One transaction under way: rows go through here.
//!
//! The changes of a project take turns, by an advisory lock that ends with the transaction. So a body never sees a row
//! change under it, and what a rule has read stays true until it commits, exactly as behind SQLite's gate. The clock is
//! read once it is our turn. Events are kept back and written with the commit, under numbers that nobody else can have.

use std::cell::{Cell, RefCell};

use tenure_core::store::{Durability, Tx, View};
use tenure_core::{Clock, Error, Result, Timestamp};
use tokio_postgres::Row;
use uuid::Uuid;

use crate::address::Address;
use crate::error::{Failure, Remedy};
use crate::link::{Link, NOW, Sql, Value};

/// The processes that stand behind open leases and tickets: nearly every decision asks.
const PROCESSES: &str = "ARRAY(SELECT process FROM tenure.leases
           WHERE project = $1 AND ended_at IS NULL AND process IS NOT NULL
           UNION SELECT process FROM tenure.tickets WHERE project = $1)";

/// Does anybody wait?
const LINES: &str = "EXISTS (SELECT 1 FROM tenure.tickets WHERE project = $1)";

/// Rows of clients that were last heard of this long ago are of no use to anybody.
const FORGOTTEN_MS: i64 = 24 * 60 * 60 * 1000;

pub(crate) struct Transaction<'a> {
    link: RefCell<&'a mut Link>,
    address: &'a Address,
    pub(crate) project: Uuid,
    client: Uuid,
    pub(crate) now: Timestamp,
    pub(crate) last_request: Option<i64>,
    pub(crate) next_task: i64,
    pub(crate) last_event: i64,
    counted: (i64, i64),
    /// Processes recorded in open leases and tickets; none once a change may have made them others.
    pub(crate) processes: RefCell<Option<Vec<String>>>,
    /// Does anybody stand in any line?
    pub(crate) lines: Cell<bool>,
    pub(crate) events: RefCell<Vec<Told>>,
    pub(crate) rings: Vec<String>,
    /// Set when a statement failed for a reason that is the store's to mend, whatever the body made of it.
    broken: RefCell<Option<Failure>>,
}

/// An event that is not yet written.
pub(crate) struct Told {
    pub(crate) seq: i64,
    pub(crate) kind: &'static str,
    pub(crate) actor: String,
    pub(crate) task: Option<String>,
    pub(crate) from: Option<&'static str>,
    pub(crate) to: Option<&'static str>,
    pub(crate) fence: Option<i64>,
    pub(crate) detail: Option<String>,
}

impl<'a> Transaction<'a> {
    /// None if the database does not have the project.
    pub(crate) fn reading(
        link: &'a mut Link,
        address: &'a Address,
        project: Uuid,
        clock: Option<&dyn Clock>,
    ) -> Sql<Option<Self>> {
        let begin = format!("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY; {}", link.settings());
        let sql = format!(
            "SELECT {NOW}, next_task, last_event, NULL::bigint, {PROCESSES}, {LINES}
                           FROM tenure.projects WHERE id = $1"
        );
        let rows = link.run_then_ask(&begin, &sql, &[&project])?;
        Self::begun(link, address, project, Uuid::nil(), rows, clock)
    }

    pub(crate) fn writing(
        link: &'a mut Link,
        address: &'a Address,
        project: Uuid,
        client: Uuid,
        durability: Durability,
        clock: Option<&dyn Clock>,
    ) -> Sql<Option<Self>> {
        // A heartbeat, or a place in line that is kept, decides nothing; there may be hundreds of them.
        let processes = match durability {
            Durability::Power => PROCESSES,
            Durability::Process => "NULL::text[]",
        };
        let begin = format!(
            "BEGIN ISOLATION LEVEL READ COMMITTED; {} SET LOCAL synchronous_commit = off;
             SELECT pg_advisory_xact_lock({})",
            link.settings(),
            turn_of(project),
        );
        let sql = format!(
            "SELECT {NOW}, next_task, last_event,
                    (SELECT request FROM tenure.requests WHERE project = $1 AND client = $2), {processes}, {LINES}
             FROM tenure.projects WHERE id = $1"
        );
        let rows = link.run_then_ask(&begin, &sql, &[&project, &client])?;
        Self::begun(link, address, project, client, rows, clock)
    }

    fn begun(
        link: &'a mut Link,
        address: &'a Address,
        project: Uuid,
        client: Uuid,
        mut rows: Vec<Row>,
        clock: Option<&dyn Clock>,
    ) -> Sql<Option<Self>> {
        let Some(row) = rows.pop() else {
            link.run("ROLLBACK")?;
            return Ok(None);
        };
        let now = Timestamp::from_millis(row.try_get(0)?);
        let counted = (row.try_get(1)?, row.try_get(2)?);
        Ok(Some(Self {
            link: RefCell::new(link),
            address,
            project,
            client,
            now: clock.map_or(now, Clock::now),
            last_request: row.try_get(3)?,
            next_task: counted.0,
            last_event: counted.1,
            counted,
            processes: RefCell::new(row.try_get(4)?),
            lines: Cell::new(row.try_get(5)?),
            events: RefCell::default(),
            rings: Vec::new(),
            broken: RefCell::new(None),
        }))
    }

    /// Rows of an answer. `$1` is always the project.
    pub(crate) fn rows(&self, sql: &str, values: &[&dyn Value]) -> Result<Vec<Row>> {
        let mut all: Vec<&dyn Value> = Vec::with_capacity(values.len() + 1);
        all.push(&self.project);
        all.extend_from_slice(values);
        let outcome = self.link.borrow_mut().rows(sql, &all);
        outcome.map_err(|failure| self.fail(failure))
    }

    /// Rows of a statement without parameters, as the protocol's own commands have none.
    pub(crate) fn bare(&self, sql: &str) -> Result<Vec<Row>> {
        let outcome = self.link.borrow_mut().rows(sql, &[]);
        outcome.map_err(|failure| self.fail(failure))
    }

    pub(crate) fn run(&self, sql: &str) -> Result<()> {
        let outcome = self.link.borrow_mut().run(sql);
        outcome.map_err(|failure| self.fail(failure))
    }

    pub(crate) fn row(&self, sql: &str, values: &[&dyn Value]) -> Result<Option<Row>> {
        Ok(self.rows(sql, values)?.into_iter().next())
    }

    /// How many rows a change has touched. The statement must say `RETURNING 1`.
    pub(crate) fn change(&self, sql: &str, values: &[&dyn Value]) -> Result<usize> {
        Ok(self.rows(sql, values)?.len())
    }

    pub(crate) fn fail(&self, failure: Failure) -> Error {
        if failure.remedy() == Remedy::None {
            return failure.told(self.address);
        }
        *self.broken.borrow_mut() = Some(failure);
        Error::store("the transaction has to begin again")
    }

    /// What was kept back, so that a question about events finds it.
    pub(crate) fn tell(&self) -> Result<()> {
        if self.events.borrow().is_empty() {
            return Ok(());
        }
        let columns = Columns::of(&self.events.borrow_mut().split_off(0));
        self.rows(&format!("{TELL} RETURNING 1"), &columns.values(&self.now.as_millis())).map(drop)
    }

    /// Ends without a trace. What the body said counts, unless the store itself broke under it.
    pub(crate) fn undo(self, outcome: Result<()>) -> Sql<Result<()>> {
        if let Some(failure) = self.broken.into_inner() {
            drop(self.link.into_inner().run("ROLLBACK"));
            return Err(failure);
        }
        self.link.into_inner().run("ROLLBACK")?;
        Ok(outcome)
    }

    /// Writes what was kept back, notes that this request was served, rings, and commits: sent together.
    pub(crate) fn commit(self, request: i64, durability: Durability, sent: &mut bool) -> Sql<()> {
        if let Some(failure) = self.broken.into_inner() {
            drop(self.link.into_inner().run("ROLLBACK"));
            return Err(failure);
        }
        let link = self.link.into_inner();
        let now = self.now.as_millis();
        let columns = Columns::of(&self.events.into_inner());
        let mut values: Vec<&dyn Value> = vec![&self.project];
        values.extend(columns.values(&now));
        let forgotten = now.saturating_sub(FORGOTTEN_MS);
        let served: [&dyn Value; 4] = [&self.client, &request, &self.rings, &forgotten];
        values.extend(served);
        // A few of many clients tidy up for all.
        let tidy = if request == 1 && self.client.as_bytes()[0] < 16 {
            ", gone AS (DELETE FROM tenure.requests WHERE project = $1 AND at < $14)"
        } else {
            ", gone AS (SELECT $14)"
        };
        let counted = if (self.next_task, self.last_event) == self.counted {
            ", counted AS (SELECT $15, $16)"
        } else {
            ", counted AS (UPDATE tenure.projects SET next_task = $15, last_event = $16 WHERE id = $1)"
        };
        values.push(&self.next_task);
        values.push(&self.last_event);
        let sql = format!(
            "WITH told AS ({TELL}),
             noted AS (INSERT INTO tenure.requests (project, client, request, at) VALUES ($1, $11, $12, $2)
                       ON CONFLICT (project, client) DO UPDATE SET request = $12, at = $2)
             {tidy} {counted}
             SELECT count(pg_notify(bell, '')) FROM unnest($13::text[]) AS bell"
        );
        *sent = true;
        let last = match durability {
            Durability::Process => "COMMIT".to_owned(),
            Durability::Power => format!("COMMIT; {FLUSH}"),
        };
        let outcome = link.ask_then_run(&sql, &values, &last);
        if let Err(failure) = &outcome
            && failure.remedy() != Remedy::Reconnect
        {
            // The server has answered, and it was no.
            *sent = false;
        }
        outcome.map(drop)
    }
}

const TELL: &str = "INSERT INTO tenure.events
       (project, at, seq, kind, actor, task_id, from_status, to_status, fence, detail)
     SELECT $1, $2, * FROM unnest($3::bigint[], $4::text[], $5::text[], $6::text[], $7::text[], $8::text[],
                                  $9::bigint[], $10::text[])";

/// Events as columns, so that any number of them is one statement.
#[derive(Default)]
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
    fn of(events: &[Told]) -> Self {
        let mut columns = Self::default();
        for event in events {
            columns.seq.push(event.seq);
            columns.kind.push(event.kind);
            columns.actor.push(event.actor.clone());
            columns.task.push(event.task.clone());
            columns.from.push(event.from);
            columns.to.push(event.to);
            columns.fence.push(event.fence);
            columns.detail.push(event.detail.clone());
        }
        columns
    }

    /// From `$2` on.
    fn values<'v>(&'v self, at: &'v i64) -> Vec<&'v dyn Value> {
        vec![
            at,
            &self.seq,
            &self.kind,
            &self.actor,
            &self.task,
            &self.from,
            &self.to,
            &self.fence,
            &self.detail,
        ]
    }
}

/// The number by which a project's changes take turns. Two projects with the same one only wait for each other.
fn turn_of(project: Uuid) -> i64 {
    let (high, low) = project.as_u64_pair();
    i64::from_ne_bytes((high ^ low).to_ne_bytes())
}

/// Comes back when everything that was committed so far has reached the disk, and the standbys that must have it.
///
/// The turn itself ends without waiting for the disk: else the changes of a project would wait for it one by one, rather
/// than together. Nobody is told of a change before this has come back, and whoever has seen it earlier and builds on
/// it is flushed after it.
pub(crate) const FLUSH: &str = "SELECT set_config('synchronous_commit', 'on', true)
         WHERE current_setting('synchronous_commit') = 'off';
     SELECT pg_logical_emit_message(true, 'tenure', '')";

impl View for Transaction<'_> {
    fn now(&self) -> Timestamp {
        self.now
    }
}

impl Tx for Transaction<'_> {}
