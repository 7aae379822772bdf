//! One transaction under way: rows go through here.
//!
//! The changes of a project take turns, by an advisory lock that ends with the transaction. So a body never sees a row
//! change under it, and what a rule has read stays true until it commits, exactly as behind SQLite's gate. The clock is
//! read once it is our turn. Events are kept back and written with the commit; so are changes whose answer nobody needs.

use std::cell::{Cell, OnceCell, RefCell};

use tenure_core::holder::Incarnation;
use tenure_core::lease::{Lease, Ticket};
use tenure_core::store::{Durability, Tx, View};
use tenure_core::{Error, Result, Timestamp};
use tokio_postgres::Row;
use uuid::Uuid;

use crate::address::Address;
use crate::commit::told;
use crate::error::{Failure, Remedy};
use crate::kept::{Change, Together};
use crate::link::{Line, Link, Value};
use crate::readiness::Facts;
use crate::tasks::{Found, Guess, Sought};

pub(crate) struct Transaction<'a> {
    pub(crate) link: RefCell<&'a mut Link>,
    pub(crate) address: &'a Address,
    pub(crate) project: Uuid,
    /// None if it only reads.
    pub(crate) writer: Option<Writer>,
    pub(crate) now: Timestamp,
    /// Others were there first, so others may come after.
    pub(crate) waited: bool,
    /// What an earlier try has sent was committed.
    pub(crate) made: bool,
    pub(crate) next_task: i64,
    pub(crate) counted: i64,
    /// The processes recorded in open leases and tickets, read when the transaction began. Cleared by a change of either.
    pub(crate) processes: RefCell<Option<Vec<String>>>,
    pub(crate) dead_processes: OnceCell<Vec<Incarnation>>,
    pub(crate) facts: Cell<Facts>,
    /// What is next, looked for before anybody asked.
    pub(crate) guess: RefCell<Option<Guess>>,
    /// The task that a claim names, looked for in the same way.
    pub(crate) sought: RefCell<Option<Sought>>,
    /// The next ready task as it was found, for whoever asks for it right after.
    pub(crate) found: RefCell<Option<Found>>,
    /// The line before a task, asked for with the task.
    pub(crate) line: RefCell<Option<(String, Vec<Ticket>)>>,
    /// The lease that was granted here, while it is as it was.
    pub(crate) granted: RefCell<Option<Lease>>,
    /// A fence that was drawn for the grant that is likely to come.
    pub(crate) fence: Cell<Option<i64>>,
    /// A task that is known to have no attempt that is ending.
    pub(crate) nothing_ending: RefCell<Option<String>>,
    /// When the agent of this name was last seen; none if it is not here.
    pub(crate) agent: RefCell<Option<(String, Option<i64>)>>,
    pub(crate) kept: RefCell<Vec<Change>>,
    /// Was anything done that must not be done twice?
    pub(crate) changed: Cell<bool>,
    pub(crate) events: RefCell<Vec<Told>>,
    pub(crate) rings: Vec<String>,
    /// Set when a statement failed for a reason that is the store's to mend, whatever the body made of it.
    pub(crate) broken: RefCell<Option<Failure>>,
}

/// Who changes something, and how.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Writer {
    pub(crate) client: Uuid,
    pub(crate) durability: Durability,
    pub(crate) request: i64,
    /// It was tried before, and this would show that it was done.
    pub(crate) again: Option<Trace>,
    /// The turn is shared with others that claim. See `docs/decisions/0012`.
    pub(crate) shares: bool,
}

/// What is there if a change was made, although the answer to its commit was lost.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Trace {
    /// The client's note of its last request.
    Note,
    /// The lease with this fence, which was drawn for nobody else.
    Grant(i64),
}

/// An event that is not yet written.
pub(crate) struct Told {
    pub(crate) kind: &'static str,
    pub(crate) actor: String,
    pub(crate) task: Option<String>,
    pub(crate) from: Option<&'static str>,
    pub(crate) to: Option<&'static str>,
    pub(crate) fence: Option<i64>,
    pub(crate) detail: Option<String>,
}

impl Transaction<'_> {
    /// Rows of an answer, asked after all that was kept back. `$1` is always the project.
    pub(crate) fn rows(&self, sql: &str, values: &[&dyn Value]) -> Result<Vec<Row>> {
        debug_assert!(["SELECT", "WITH RECURSIVE"].iter().any(|word| sql.starts_with(word)), "{sql}");
        self.with_project(sql, values)
    }

    pub(crate) fn row(&self, sql: &str, values: &[&dyn Value]) -> Result<Option<Row>> {
        Ok(self.rows(sql, values)?.into_iter().next())
    }

    /// Rows of a statement without parameters, as the protocol's own commands have none.
    pub(crate) fn bare(&self, sql: &str) -> Result<Vec<Row>> {
        self.say(Line::Ask(sql, &[]))
    }

    pub(crate) fn run(&self, sql: &str) -> Result<()> {
        self.say(Line::Run(sql)).map(drop)
    }

    /// A change whose answer matters: what it returns.
    pub(crate) fn change(&self, sql: &str, values: &[&dyn Value]) -> Result<Vec<Row>> {
        self.changed.set(true);
        self.repeat(sql, values)
    }

    /// A change that may be made twice, if the answer to the first was lost: to be seen twice is to be seen.
    pub(crate) fn repeat(&self, sql: &str, values: &[&dyn Value]) -> Result<Vec<Row>> {
        self.alone()?;
        self.forget();
        self.with_project(sql, values)
    }

    /// A change of one table whose answer does not matter. It is made before anything else is asked.
    pub(crate) fn keep(&self, table: &'static str, sql: &str, values: &[&dyn Value]) -> Result<()> {
        self.changed.set(true);
        self.keep_repeatable(table, sql, values)
    }

    /// One that may be made twice.
    pub(crate) fn keep_repeatable(
        &self,
        table: &'static str,
        sql: &str,
        values: &[&dyn Value],
    ) -> Result<()> {
        self.alone()?;
        self.keep_shared(table, sql, values);
        Ok(())
    }

    /// One that a claim makes of rows that no other claim looks at.
    pub(crate) fn keep_shared(&self, table: &'static str, sql: &str, values: &[&dyn Value]) {
        self.forget();
        self.kept.borrow_mut().push(Change::new(table, sql, values));
    }

    pub(crate) fn shares(&self) -> bool {
        self.writer.is_some_and(|writer| writer.shares)
    }

    /// What follows must not be done while others claim. If they may, this comes to nothing and is done again, alone.
    pub(crate) fn alone(&self) -> Result<()> {
        if self.shares() { Err(self.fail(Failure::Crowded)) } else { Ok(()) }
    }

    /// What was found out may be otherwise after a change.
    fn forget(&self) {
        self.facts.set(Facts { lines: self.facts.get().lines, ..Facts::UNKNOWN });
        self.guess.take();
        self.sought.take();
        self.found.take();
    }

    fn with_project(&self, sql: &str, values: &[&dyn Value]) -> Result<Vec<Row>> {
        let mut all: Vec<&dyn Value> = Vec::with_capacity(values.len() + 1);
        all.push(&self.project);
        all.extend_from_slice(values);
        self.say(Line::Ask(sql, &all))
    }

    /// Two questions on one way.
    pub(crate) fn two(
        &self,
        first: (&str, &[&dyn Value]),
        second: (&str, &[&dyn Value]),
    ) -> Result<(Vec<Row>, Vec<Row>)> {
        let project: [&dyn Value; 1] = [&self.project];
        let (one, two) = ([&project, first.1].concat(), [&project, second.1].concat());
        let mut answers = self.say_all(&[Line::Ask(first.0, &one), Line::Ask(second.0, &two)])?;
        let second = answers.pop().unwrap_or_default();
        Ok((answers.pop().unwrap_or_default(), second))
    }

    fn say(&self, line: Line<'_>) -> Result<Vec<Row>> {
        Ok(self.say_all(&[line])?.pop().unwrap_or_default())
    }

    fn say_all(&self, last: &[Line<'_>]) -> Result<Vec<Vec<Row>>> {
        let mut statements = Together::all(self.project, self.kept.take());
        let said: Vec<String> = statements.iter_mut().map(|one| one.sql("SELECT", &[])).collect();
        let values: Vec<Vec<&dyn Value>> = statements.iter().map(Together::values).collect();
        let mut lines: Vec<Line<'_>> =
            said.iter().zip(&values).map(|(sql, values)| Line::Ask(sql, values)).collect();
        lines.extend(last);
        let outcome = self.link.borrow_mut().answers(&lines);
        outcome.map_err(|failure| self.fail(failure))
    }

    pub(crate) fn fail(&self, failure: Failure) -> Error {
        if failure.remedy() == Remedy::None {
            return failure.told(self.address);
        }
        *self.broken.borrow_mut() = Some(failure);
        Error::store("the transaction has to begin again")
    }

    /// What was told so far is written before the next question, so that one about events finds it.
    pub(crate) fn tell(&self) {
        let told = told(self.now, &self.events.take());
        self.kept.borrow_mut().extend(told);
    }
}

impl View for Transaction<'_> {
    fn now(&self) -> Timestamp {
        self.now
    }

    fn dead_processes(&self) -> &OnceCell<Vec<Incarnation>> {
        &self.dead_processes
    }
}

impl Tx for Transaction<'_> {}
