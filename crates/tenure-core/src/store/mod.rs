//! The interface of a store. A store keeps rows and decides nothing.
//!
//! It runs a body inside one transaction, passes it a [`View`] or a [`Tx`], and commits everything or nothing. A body may
//! run more than once, so it must have no effect except through its `Tx`.
//!
//! **A write transaction is alone in its project**: from its first statement to its commit no other transaction writes
//! there, so what a rule has read stays true until it commits, and no rule takes a lock. There are two exceptions, both
//! on PostgreSQL. [`Store::claim_with`] for [`ClaimTarget::Next`] may run beside other such claims; the store then
//! locks the row of the task that it offers and refuses every step that would touch anything else, after which the body
//! runs again alone. [`Store::refresh_ticket`] updates one ticket, which changes no other transaction's decision.

use std::cell::OnceCell;
use std::fmt;

use crate::clock::Timestamp;
use crate::error::Result;
use crate::holder::{Holder, Incarnation};
use crate::id::{SectionId, StoreId};
use crate::lease::{Lease, Resource};

pub mod columns;
mod copying;
mod feed;
mod jobs;
mod leases;
mod notes;
mod pruning;
mod readiness;
mod rows;
mod runners;
mod sections;
mod sessions;
mod sql;
mod task_filter;
mod tasks;

pub use columns::{Cell, CellKind, Column, Table};
pub use copying::{
    BATCH, COPIED_TABLES, CopiedRow, Counters, FENCES_SKIPPED, Movable, OtherStore, Put, RowCounts, Standing,
    StoreAt, StoreContents, Transfer, contents_of, count_movable_rows, export_store, move_store,
    restore_store,
};
pub use feed::{Agent, EventFilter, Message, MessageFilter, ReadFeed, WriteFeed};
pub use jobs::{ItemFilter, JobLookup, NewJob, ReadJobs, WriteJobs};
pub use leases::{AttemptUsage, LeaseBeat, LeaseFilter, NewLease, NewTicket, ReadLeases, WriteLeases};
pub use notes::{CHANGES_READ, MESSAGES_SHOWN, StatusChange, TaskNotes};
pub use pruning::{History, LastStatus, PruneHistory, ReadHistory, Stretch};
pub use readiness::{HAS_WORK, OpenLease, ProjectContents, ViewerValues};
pub use rows::{Reader, Record, Row, Values, unexpected};
pub use runners::{ReadRunners, WriteRunners};
pub use sections::{NewSection, ReadSections, SectionEdit, WriteSections};
pub use sessions::{ReadSessions, WriteSessions};
pub use sql::{
    Counting, Dialect, FINISHED, Known, KnownAgent, SqlTx, Statement, StoredCount, TaskQueries, TxState,
    UNFINISHED, grant_statements, notes_as_json, notes_from_json, stored_counts, work_tickets_query,
};
pub use task_filter::{ComputedState, SortBy, TaskFilter, TaskOrder};
pub use tasks::{
    NewTask, ReadTasks, Reserved, TASK_WIDTH, TaskEdit, TaskLookup, WriteTasks, name_columns, read_name,
    read_task, section_column,
};

/// What a commit must survive.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Durability {
    /// Power loss: grants, status changes, finishes, messages, checkpoints.
    Power,
    /// The death of any process: renewals, heartbeats, tickets.
    Process,
}

/// A store of one project.
pub trait Store: Send + fmt::Debug {
    /// The id of this store, read when it was opened.
    fn id(&self) -> Result<StoreId>;

    fn read_with(&self, body: &mut dyn FnMut(&dyn View) -> Result<()>) -> Result<()>;

    /// Returns when the commit survives what `durability` says. Other processes may see it before.
    fn write_with(
        &self,
        durability: Durability,
        body: &mut dyn FnMut(&mut dyn Tx) -> Result<()>,
    ) -> Result<()>;

    /// A transaction that begins by claiming a task, so that a store may prefetch it. One for [`ClaimTarget::Next`]
    /// calls [`crate::kernel::acquire_next`] and writes nothing else but the rows of the caller's own runner and session. A
    /// store may run several of these at once if each decides as if it were alone.
    fn claim_with(
        &self,
        _hint: ClaimHint<'_>,
        body: &mut dyn FnMut(&mut dyn Tx) -> Result<()>,
    ) -> Result<()> {
        self.write_with(Durability::Power, body)
    }

    /// Refreshes a ticket and returns the store's time and the open lease of `resource`; `None` if the ticket no longer
    /// counts, because it was not refreshed within its life. This is a separate method because hundreds of waiters may
    /// call it every few seconds, and it makes no decision.
    fn refresh_ticket(&self, ticket: i64, resource: &Resource) -> Result<Option<(Timestamp, Option<Lease>)>> {
        let mut seen = None;
        self.write_with(Durability::Process, &mut |tx| {
            seen = if tx.refresh_ticket(ticket)? { Some((tx.now(), tx.open_lease(resource)?)) } else { None };
            Ok(())
        })?;
        Ok(seen)
    }

    /// A hint that may make the store faster. It has no effect on any result.
    fn hint(&self, _hint: StoreHint) {}

    /// Defects below the level of rows that the store itself detects. With `mend` it corrects those that it can.
    fn check(&self, _mend: bool) -> Result<Vec<Defect>> {
        Ok(Vec::new())
    }
}

/// See [`Store::hint`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StoreHint {
    /// The process ends together with the use of the store, so the store need not be closed properly.
    EndsWithProcess,
    /// The caller waits for a grant and wants it to be fast once its turn has come.
    GrantExpected,
    /// The caller now sleeps until its doorbell rings, or for some seconds. A store may release what it keeps only to be
    /// faster, such as one of a server's few connections.
    Sleeps,
}

/// The holder that claims a task, and the task that it wants. See [`Store::claim_with`].
#[derive(Debug, Clone, Copy)]
pub struct ClaimHint<'a> {
    pub holder: &'a Holder,
    pub wants: ClaimTarget<'a>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ClaimTarget<'a> {
    /// The next ready task, in this section or in any.
    Next(Option<&'a SectionId>),
    /// The task with this id or key.
    Task(&'a str),
}

/// A defect of a store that no rule can have caused.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Defect {
    pub what: String,
    /// The store can correct it by itself.
    pub mendable: bool,
}

impl dyn Store + '_ {
    /// One read transaction: a consistent snapshot.
    pub fn read<T>(&self, mut body: impl FnMut(&dyn View) -> Result<T>) -> Result<T> {
        let mut answer = None;
        self.read_with(&mut |view| {
            answer = Some(body(view)?);
            Ok(())
        })?;
        answer.ok_or_else(unanswered)
    }

    /// One transaction. If `body` fails, nothing was written.
    pub fn write<T>(
        &self,
        durability: Durability,
        mut body: impl FnMut(&mut dyn Tx) -> Result<T>,
    ) -> Result<T> {
        let mut answer = None;
        self.write_with(durability, &mut |tx| {
            answer = Some(body(tx)?);
            Ok(())
        })?;
        answer.ok_or_else(unanswered)
    }

    /// One transaction that claims a task. See [`Store::claim_with`].
    pub fn claim<T>(&self, hint: ClaimHint<'_>, mut body: impl FnMut(&mut dyn Tx) -> Result<T>) -> Result<T> {
        let mut answer = None;
        self.claim_with(hint, &mut |tx| {
            answer = Some(body(tx)?);
            Ok(())
        })?;
        answer.ok_or_else(unanswered)
    }
}

fn unanswered() -> crate::Error {
    crate::Error::store("the store committed without running the transaction")
}

/// The caller and the processes known to be dead; readiness is evaluated against both. Made by [`crate::Context::viewer`].
#[derive(Debug, Clone, Default)]
pub struct Viewer {
    pub me: Option<Holder>,
    /// Processes that are proven dead. Their leases and tickets block nothing.
    pub dead: Vec<Incarnation>,
}

impl Viewer {
    pub fn is_dead(&self, process: &Incarnation) -> bool {
        self.dead.contains(process)
    }
}

/// Reading.
pub trait View:
    ReadTasks + ReadSections + ReadLeases + ReadFeed + ReadRunners + ReadJobs + ReadSessions + ReadHistory
{
    /// The time of this transaction. A write transaction reads the clock after its turn has begun.
    fn now(&self) -> Timestamp;

    /// The dead processes that [`crate::Context::viewer`] has found in this transaction, empty until then.
    fn dead_processes(&self) -> &OnceCell<Vec<Incarnation>>;
}

/// Writing: everything a [`View`] can, and changes that are committed together.
pub trait Tx:
    View
    + WriteTasks
    + WriteSections
    + WriteLeases
    + WriteFeed
    + WriteRunners
    + WriteJobs
    + WriteSessions
    + PruneHistory
{
    /// Commits as with [`Durability::Process`], because the body has found that it grants nothing and has to wait.
    fn skip_sync(&mut self);
}
