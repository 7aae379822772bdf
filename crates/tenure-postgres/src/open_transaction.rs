//! The first round trip of a transaction: the turn, the time, and the rows that its decision is likely to read first.

use std::cell::{Cell, RefCell};

use tenure_core::holder::Holder;
use tenure_core::id::SectionId;
use tenure_core::store::{
    ClaimHint, ClaimTarget, Dialect, Durability, Standing, TxState, work_tickets_query,
};
use tenure_core::{Clock, Timestamp};
use tokio_postgres::Row;
use uuid::Uuid;

use crate::address::Address;
use crate::connection::{Connection, NOW, Sql, Statement, Value, only_row};
use crate::error::{Failure, Remedy};
use crate::migrate;
use crate::prefetched::{NamedTask, NextTask, Prefetched};
use crate::readiness::MayExist;
use crate::task_query::{NEXT_TASK_COLUMNS, named_task_query, next_task_query};
use crate::transaction::{Trace, Transaction, Writer};

impl<'a> Transaction<'a> {
    /// `None` if the database does not have the project.
    pub(crate) fn reading(
        connection: &'a mut Connection,
        address: &'a Address,
        project: Uuid,
        clock: Option<&dyn Clock>,
    ) -> Sql<Option<Self>> {
        let begin = format!("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY; {}", connection.settings());
        let columns = MayExist::query(&connection.judged);
        let sql = format!("SELECT {NOW}, {columns}, schema, standing FROM tenure.projects WHERE id = $1");
        let statements = [Statement::Batch(&begin), Statement::Query(&sql, &[&project])];
        let row = begin_with(connection, &statements)?.pop().and_then(|mut rows| rows.pop());
        let Some(row) = row else { return no_such_project(connection) };
        check_serving(connection, &row, 1 + MayExist::COLUMNS)?;
        Ok(Some(Self::begun(connection, address, project, &row, 0, clock)?))
    }

    /// Takes the exclusive turn. `None` if the database does not have the project. The task that a claim names is read
    /// under the assumption that no dependencies exist but those that the writer expects.
    pub(crate) fn writing(
        connection: &'a mut Connection,
        address: &'a Address,
        project: Uuid,
        writer: Writer,
        clock: Option<&dyn Clock>,
        hint: Option<ClaimHint<'_>>,
    ) -> Sql<Option<Self>> {
        let (begin, turn) = (begin(connection), turn_of(project));
        let mut values: Vec<&dyn Value> = vec![&project];
        let committed = match &writer.again {
            None => "false",
            Some(Trace::Note) => {
                values.extend([&writer.client as &dyn Value, &writer.request]);
                "EXISTS (SELECT 1 FROM tenure.requests WHERE project = $1 AND client = $2 AND request = $3)"
            }
            Some(Trace::Grant { fence, key_hash }) => {
                values.extend([fence as &dyn Value, key_hash]);
                "EXISTS (SELECT 1 FROM tenure.leases WHERE project = $1 AND fence = $2 AND key_hash = $3)"
            }
        };
        let named = match hint {
            Some(ClaimHint { holder, wants: ClaimTarget::Task(reference) }) => Some((&holder.id, reference)),
            _ => None,
        };
        let columns = match writer.durability {
            Durability::Power => MayExist::query(&connection.judged),
            // Hundreds of heartbeats may arrive at once, and none of them needs to know what is ready.
            Durability::Process => MayExist::unknown(),
        };
        let sql = format!(
            "SELECT {NOW}, {columns}, next_task, {committed}, schema, standing, followed
             FROM tenure.projects WHERE id = $1",
        );
        let key: [&dyn Value; 1] = [&turn];
        let mut statements = vec![
            Statement::Batch(&begin),
            Statement::Query(EXCLUSIVE_TURN, &key),
            Statement::Query(&sql, &values),
        ];
        let reference = named.map_or("", |(_, reference)| reference);
        let id = reference.to_ascii_lowercase();
        let holder = named.map_or("", |(holder, _)| holder);
        let (of_task, of_tickets): ([&dyn Value; 4], [&dyn Value; 1]) =
            ([&project, &holder, &id, &reference], [&project]);
        let prefetch =
            named.map(|_| (named_task_query(writer.expected), work_tickets_query(Dialect::Postgres)));
        if let Some((task, tickets)) = &prefetch {
            statements.extend([Statement::Query(task, &of_task), Statement::Query(tickets, &of_tickets)]);
        }
        let mut answers = begin_with(connection, &statements)?.into_iter();
        let waited = only_row(answers.next())?.try_get(0)?;
        let Some(row) = answers.next().and_then(|mut rows| rows.pop()) else {
            return no_such_project(connection);
        };
        let already_committed: bool = row.try_get(2 + MayExist::COLUMNS)?;
        if !writer.any_standing && !already_committed {
            check_serving(connection, &row, 3 + MayExist::COLUMNS)?;
        }
        let mut tx = Self::begun(connection, address, project, &row, 0, clock)?;
        tx.next_task = row.try_get(1 + MayExist::COLUMNS)?;
        tx.stored_next_task = tx.next_task;
        tx.already_committed = already_committed;
        tx.waited = waited;
        tx.followed = row.try_get(5 + MayExist::COLUMNS)?;
        let expected = writer.expected;
        tx.writer = Some(writer);
        if let (Some((holder, reference)), Some(rows), Some(tickets)) =
            (named, answers.next(), answers.next())
        {
            let (holder, reference) = (holder.clone(), reference.to_owned());
            let prefetched = tx.prefetched.get_mut();
            if expected.covers_dependencies_of(prefetched.may_exist) {
                prefetched.named = Some(NamedTask { holder, reference, rows, tickets });
            }
        }
        Ok(Some(tx))
    }

    /// Takes a shared turn, and reads the next task under the assumption that no ticket and no lease of a section
    /// exists, and no dependencies but those that the writer expects. The same statement checks that assumption. `None`
    /// if the database does not have the project.
    pub(crate) fn claiming(
        connection: &'a mut Connection,
        address: &'a Address,
        project: Uuid,
        writer: Writer,
        clock: Option<&dyn Clock>,
        holder: &Holder,
        section: Option<&SectionId>,
    ) -> Sql<Option<Self>> {
        let (begin, turn) = (begin(connection), turn_of(project));
        let only = section.map(SectionId::as_str);
        let sql = next_task_query(only.is_some(), writer.expected, &connection.judged);
        let mut values: Vec<&dyn Value> = vec![&project, &holder.id];
        if only.is_some() {
            values.push(&only);
        }
        let key: [&dyn Value; 1] = [&turn];
        let statements =
            [Statement::Batch(&begin), Statement::Query(SHARED_TURN, &key), Statement::Query(&sql, &values)];
        let row = begin_with(connection, &statements)?.pop().and_then(|mut rows| rows.pop());
        let Some(row) = row else { return no_such_project(connection) };
        check_serving(connection, &row, NEXT_TASK_COLUMNS + 1 + MayExist::COLUMNS)?;
        let mut tx = Self::begun(connection, address, project, &row, NEXT_TASK_COLUMNS, clock)?;
        tx.followed = row.try_get(NEXT_TASK_COLUMNS + 3 + MayExist::COLUMNS)?;
        let expected = writer.expected;
        tx.writer = Some(writer);
        let prefetched = tx.prefetched.get_mut();
        let found = prefetched.may_exist;
        if !found.tickets && !found.section_leases && expected.covers_dependencies_of(found) {
            prefetched.next = Some(NextTask::new(row, holder, section));
        }
        Ok(Some(tx))
    }

    /// A transaction whose first answer is `row`: from column `at` on the time and what [`MayExist::read`] reads.
    fn begun(
        connection: &'a mut Connection,
        address: &'a Address,
        project: Uuid,
        row: &Row,
        at: usize,
        clock: Option<&dyn Clock>,
    ) -> Sql<Self> {
        let now = clock.map_or(Timestamp::from_millis(row.try_get(at)?), Clock::now);
        let (may_exist, processes) = MayExist::read(row, at + 1, now.as_millis())?;
        Ok(Self {
            connection: RefCell::new(connection),
            address,
            project,
            writer: None,
            state: TxState::new(now),
            waited: false,
            followed: false,
            already_committed: false,
            next_task: 0,
            stored_next_task: 0,
            prefetched: RefCell::new(Prefetched::new(may_exist, processes)),
            writes: RefCell::default(),
            wrote: Cell::new(false),
            changed: Cell::new(false),
            events: RefCell::default(),
            failure: RefCell::new(None),
        })
    }
}

/// Sends the first statements of a transaction, and rolls it back if one of them fails.
fn begin_with(connection: &mut Connection, statements: &[Statement<'_>]) -> Sql<Vec<Vec<Row>>> {
    let begun = connection.pipeline(statements);
    if begun.as_ref().is_err_and(|failure| failure.remedy() != Remedy::Reconnect) {
        drop(connection.batch("ROLLBACK"));
    }
    begun
}

/// Another client may have migrated the database, or copied the project to another store, since this one opened it. The row
/// has the version of the schema and the project's standing from column `at` on.
fn check_serving(connection: &mut Connection, row: &Row, at: usize) -> Sql<()> {
    let found: i64 = row.try_get(at)?;
    let standing: Option<&str> = row.try_get(at + 1)?;
    let serving =
        migrate::check_version(found).and_then(|()| Standing::from_text(standing)?.require_serving());
    if let Err(error) = serving {
        connection.batch("ROLLBACK")?;
        return Err(Failure::Refused(error));
    }
    Ok(())
}

fn no_such_project<T>(connection: &mut Connection) -> Sql<Option<T>> {
    connection.batch("ROLLBACK")?;
    Ok(None)
}

/// The statements that begin a transaction and take its exclusive turn. The statements after them see everything that was
/// committed before the turn.
pub(crate) fn begin_turn(connection: &Connection, project: Uuid) -> String {
    format!("{} SELECT pg_advisory_xact_lock({})", begin(connection), turn_of(project))
}

fn begin(connection: &Connection) -> String {
    format!("BEGIN ISOLATION LEVEL READ COMMITTED; {}", connection.settings())
}

/// Takes the exclusive turn `$1`, and returns whether it had to be waited for. A separate statement, so that a reused
/// connection has it prepared.
const EXCLUSIVE_TURN: &str = "SELECT CASE WHEN pg_try_advisory_xact_lock($1) THEN false
     ELSE pg_advisory_xact_lock($1)::text IS NOT NULL END";
const SHARED_TURN: &str = "SELECT pg_advisory_xact_lock_shared($1)";

/// The key of a project's advisory lock. Two projects with the same key wait for each other, which is harmless.
fn turn_of(project: Uuid) -> i64 {
    let (high, low) = project.as_u64_pair();
    i64::from_ne_bytes((high ^ low).to_ne_bytes())
}
