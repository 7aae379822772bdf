//! A transaction in progress, through which all rows are read and written.
//!
//! The write transactions of a project take turns, by an advisory lock that ends with the transaction. So no row
//! changes while a body runs, and what a rule has read stays true until the commit, exactly as behind SQLite's gate.
//! The clock is read after the turn has begun. Events, and writes whose result is not needed, are buffered and sent
//! with the next query or with the commit.
//!
//! A claim of the next task may share its turn with other such claims (`docs/decisions/0012`). It may then write only what
//! no other claim reads: the lease and the status of a task whose row it has locked, the time at which a known agent was
//! seen, the rows of the caller's own runner and session, and events. Every other write, and every answer that another
//! claim could change before this one commits, begins with `require_exclusive_turn`, which fails in a shared turn. The
//! transaction is then rolled back, and its body runs again in an exclusive turn.

use std::cell::{Cell, RefCell};

use tenure_core::store::{Durability, SqlTx, TxState};
use tenure_core::{Error, Result};
use tokio_postgres::Row;
use uuid::Uuid;

use crate::address::Address;
use crate::connection::{Connection, Statement, Value};
use crate::error::{Failure, Remedy};
use crate::prefetched::{Prefetched, table_of};
use crate::readiness::MayExist;
use crate::write_buffer::{Combined, Write};

pub(crate) struct Transaction<'a> {
    pub(crate) connection: RefCell<&'a mut Connection>,
    pub(crate) address: &'a Address,
    pub(crate) project: Uuid,
    /// `None` if the transaction only reads.
    pub(crate) writer: Option<Writer>,
    pub(crate) state: TxState,
    /// The turn had to be waited for, so other transactions may be waiting now.
    pub(crate) waited: bool,
    /// A reader wants to be notified of this change. See `follow.rs`.
    pub(crate) followed: bool,
    /// An earlier try of the same request has been committed.
    pub(crate) already_committed: bool,
    pub(crate) next_task: i64,
    /// `next_task` as it was read.
    pub(crate) stored_next_task: i64,
    pub(crate) prefetched: RefCell<Prefetched>,
    pub(crate) writes: RefCell<Vec<Write>>,
    /// Something was written.
    pub(crate) wrote: Cell<bool>,
    /// Something was written that must not be written twice, so the request is recorded.
    pub(crate) changed: Cell<bool>,
    pub(crate) events: RefCell<Vec<PendingEvent>>,
    /// A failure that the store can remedy by running the body again, even if the body has ignored the error.
    pub(crate) failure: RefCell<Option<Failure>>,
}

/// The client and the request of a write transaction.
#[derive(Debug, Clone)]
pub(crate) struct Writer {
    pub(crate) client: Uuid,
    pub(crate) durability: Durability,
    pub(crate) request: i64,
    /// Set if an earlier try may have been committed: the trace that it would have left.
    pub(crate) again: Option<Trace>,
    /// The turn is shared with other claims.
    pub(crate) shares: bool,
    /// The commit rings no doorbell.
    pub(crate) silent: bool,
    /// The transaction runs also if the store does not serve.
    pub(crate) any_standing: bool,
    /// What the client found in the project last.
    pub(crate) expected: MayExist,
}

/// What a committed transaction leaves behind, by which it is recognized if the answer to its commit was lost.
#[derive(Debug, Clone)]
pub(crate) enum Trace {
    /// The row of the client's last request.
    Note,
    /// The lease with this fence and this hash of its random key. The fence alone is not enough: a number that was drawn
    /// and not committed may be drawn again after a crash of the server.
    Grant { fence: i64, key_hash: String },
}

/// An event that is not written yet.
pub(crate) struct PendingEvent {
    pub(crate) kind: &'static str,
    pub(crate) actor: String,
    pub(crate) task: Option<String>,
    pub(crate) from: Option<&'static str>,
    pub(crate) to: Option<&'static str>,
    pub(crate) fence: Option<i64>,
    pub(crate) detail: Option<String>,
}

impl Transaction<'_> {
    /// The rows of a query, after all buffered writes. `$1` is always the project.
    pub(crate) fn rows(&self, sql: &str, values: &[&dyn Value]) -> Result<Vec<Row>> {
        debug_assert!(["SELECT", "WITH RECURSIVE"].iter().any(|word| sql.starts_with(word)), "{sql}");
        self.with_project(sql, values)
    }

    pub(crate) fn row(&self, sql: &str, values: &[&dyn Value]) -> Result<Option<Row>> {
        Ok(self.rows(sql, values)?.into_iter().next())
    }

    /// The rows of a statement without parameters. For commands that do not accept any.
    pub(crate) fn bare(&self, sql: &str) -> Result<Vec<Row>> {
        self.send(Statement::Query(sql, &[]))
    }

    pub(crate) fn run(&self, sql: &str) -> Result<()> {
        self.send(Statement::Batch(sql)).map(drop)
    }

    /// A write whose result is needed: the rows that it returns.
    pub(crate) fn change(&self, sql: &str, values: &[&dyn Value]) -> Result<Vec<Row>> {
        self.changed.set(true);
        self.repeat(sql, values)
    }

    /// A write that may be repeated if the answer to the first one was lost.
    pub(crate) fn repeat(&self, sql: &str, values: &[&dyn Value]) -> Result<Vec<Row>> {
        self.require_exclusive_turn()?;
        self.wrote.set(true);
        self.prefetched.borrow_mut().invalidate(table_of(sql));
        self.with_project(sql, values)
    }

    /// A write to one table whose result is not needed. It is buffered, and sent before the next query.
    pub(crate) fn keep(&self, table: &'static str, sql: &str, values: &[&dyn Value]) -> Result<()> {
        self.changed.set(true);
        self.keep_repeatable(table, sql, values)
    }

    /// A buffered write that may be repeated.
    pub(crate) fn keep_repeatable(
        &self,
        table: &'static str,
        sql: &str,
        values: &[&dyn Value],
    ) -> Result<()> {
        self.require_exclusive_turn()?;
        self.keep_shared(table, sql, values);
        Ok(())
    }

    /// A buffered write that is allowed in a shared turn, because no other claim reads its rows.
    pub(crate) fn keep_shared(&self, table: &'static str, sql: &str, values: &[&dyn Value]) {
        self.wrote.set(true);
        self.prefetched.borrow_mut().invalidate(table);
        self.writes.borrow_mut().push(Write::new(table, sql, values));
    }

    pub(crate) fn shares(&self) -> bool {
        self.writer.as_ref().is_some_and(|writer| writer.shares)
    }

    fn with_project(&self, sql: &str, values: &[&dyn Value]) -> Result<Vec<Row>> {
        let mut all: Vec<&dyn Value> = Vec::with_capacity(values.len() + 1);
        all.push(&self.project);
        all.extend_from_slice(values);
        self.send(Statement::Query(sql, &all))
    }

    /// Two queries in one round trip.
    pub(crate) fn two(
        &self,
        first: (&str, &[&dyn Value]),
        second: (&str, &[&dyn Value]),
    ) -> Result<(Vec<Row>, Vec<Row>)> {
        let project: [&dyn Value; 1] = [&self.project];
        let (one, two) = ([&project, first.1].concat(), [&project, second.1].concat());
        let mut answers =
            self.send_all(&[Statement::Query(first.0, &one), Statement::Query(second.0, &two)])?;
        let second = answers.pop().unwrap_or_default();
        Ok((answers.pop().unwrap_or_default(), second))
    }

    fn send(&self, statement: Statement<'_>) -> Result<Vec<Row>> {
        Ok(self.send_all(&[statement])?.pop().unwrap_or_default())
    }

    /// Sends the buffered writes, and these statements after them.
    fn send_all(&self, last: &[Statement<'_>]) -> Result<Vec<Vec<Row>>> {
        let mut writes = Combined::all(self.project, self.writes.take());
        let texts: Vec<String> = writes.iter_mut().map(|one| one.sql("SELECT", &[])).collect();
        let values: Vec<Vec<&dyn Value>> = writes.iter().map(Combined::values).collect();
        let mut statements: Vec<Statement<'_>> =
            texts.iter().zip(&values).map(|(sql, values)| Statement::Query(sql, values)).collect();
        statements.extend(last);
        let outcome = self.connection.borrow_mut().pipeline(&statements);
        outcome.map_err(|failure| self.fail(failure))
    }

    pub(crate) fn fail(&self, failure: Failure) -> Error {
        if failure.remedy() == Remedy::None {
            return failure.into_error(self.address);
        }
        *self.failure.borrow_mut() = Some(failure);
        Error::store("the transaction has to be retried")
    }
}
