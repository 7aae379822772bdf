//! The beginning of a transaction: the turn, the time, and what is likely to be asked first, sent together.

use std::cell::{Cell, OnceCell, RefCell};

use tenure_core::holder::Holder;
use tenure_core::id::SectionId;
use tenure_core::store::{ClaimHint, ClaimTarget, Durability};
use tenure_core::{Clock, Timestamp};
use tokio_postgres::Row;
use uuid::Uuid;

use crate::address::Address;
use crate::error::{Failure, Remedy};
use crate::leases::named_task_tickets_query;
use crate::link::{Line, Link, NOW, Sql, Value};
use crate::readiness::{Facts, Wanted};
use crate::task_query::{GUESSED, guess_query, named_task_query};
use crate::tasks::{Guess, Sought};
use crate::transaction::{Trace, Transaction, Writer};

impl<'a> Transaction<'a> {
    /// None if the database does not have the project.
    pub(crate) fn reading(
        link: &'a mut Link,
        address: &'a Address,
        project: Uuid,
        clock: Option<&dyn Clock>,
    ) -> Sql<Option<Self>> {
        let begin = format!("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY; {}", link.settings());
        let facts = Facts::query(Wanted::Lines);
        let sql = format!("SELECT {NOW}, {facts} FROM tenure.projects WHERE id = $1");
        let lines = [Line::Run(&begin), Line::Ask(&sql, &[&project])];
        let row = first_words(link, &lines)?.pop().and_then(|mut rows| rows.pop());
        let Some(row) = row else { return nobody_there(link) };
        Ok(Some(Self::begun(link, address, project, &row, 0, clock)?))
    }

    pub(crate) fn writing(
        link: &'a mut Link,
        address: &'a Address,
        project: Uuid,
        writer: Writer,
        clock: Option<&dyn Clock>,
        hint: Option<ClaimHint<'_>>,
    ) -> Sql<Option<Self>> {
        let begin = format!("BEGIN ISOLATION LEVEL READ COMMITTED; {}", link.settings());
        let mut values: Vec<&dyn Value> = vec![&project];
        let made = match &writer.again {
            None => "false",
            Some(Trace::Note) => {
                values.extend([&writer.client as &dyn Value, &writer.request]);
                "EXISTS (SELECT 1 FROM tenure.requests WHERE project = $1 AND client = $2 AND request = $3)"
            }
            Some(Trace::Grant(fence)) => {
                values.push(fence);
                "EXISTS (SELECT 1 FROM tenure.leases WHERE project = $1 AND fence = $2)"
            }
        };
        let named = match hint {
            Some(ClaimHint { holder, wants: ClaimTarget::Task(id) }) => Some((holder.id.as_str(), id)),
            _ => None,
        };
        // A heartbeat decides nothing; there may be hundreds of them.
        let wanted = match writer.durability {
            Durability::Power if named.is_some() => Wanted::Lasting,
            Durability::Power => Wanted::All,
            Durability::Process => Wanted::None,
        };
        let sql = format!(
            "SELECT {NOW}, {}, next_task, {made} FROM tenure.projects WHERE id = $1",
            Facts::query(wanted)
        );
        let turn: [&dyn Value; 1] = [&turn_of(project)];
        let mut lines = vec![Line::Run(&begin), Line::Ask(TURN, &turn), Line::Ask(&sql, &values)];
        let assumed = link.assumed;
        let (me, reference) = named.unwrap_or_default();
        let lower = reference.to_ascii_lowercase();
        let (seeking, lining): ([&dyn Value; 4], [&dyn Value; 3]) =
            ([&project, &me, &lower, &reference], [&project, &lower, &reference]);
        let ahead = named.map(|_| (named_task_query(assumed), named_task_tickets_query()));
        if let Some((seek, line)) = &ahead {
            lines.extend([Line::Ask(seek, &seeking), Line::Ask(line, &lining)]);
        }
        let mut answers = first_words(link, &lines)?.into_iter();
        let turn = answers.next().and_then(|mut rows| rows.pop());
        let Some(row) = answers.next().and_then(|mut rows| rows.pop()) else { return nobody_there(link) };
        let mut tx = Self::begun(link, address, project, &row, 0, clock)?;
        tx.next_task = row.try_get(1 + Facts::COLUMNS)?;
        tx.counted = tx.next_task;
        tx.made = row.try_get(2 + Facts::COLUMNS)?;
        tx.waited = turn.map_or(Ok(false), |turn| turn.try_get(1))?;
        tx.writer = Some(writer);
        let found = tx.facts.get();
        if let (Some((me, reference)), Some(task), Some(line)) = (named, answers.next(), answers.next()) {
            tx.link.get_mut().assumed = found;
            if assumed.knows(found) {
                tx.sought = RefCell::new(Some(Sought::new(me, reference, task, line)));
            }
        }
        Ok(Some(tx))
    }

    /// The turn is shared, and what is next is looked for at once: as if the project were quiet, which shows.
    pub(crate) fn claiming(
        link: &'a mut Link,
        address: &'a Address,
        project: Uuid,
        writer: Writer,
        clock: Option<&dyn Clock>,
        holder: &Holder,
        section: Option<&SectionId>,
    ) -> Sql<Self> {
        let begin = format!("BEGIN ISOLATION LEVEL READ COMMITTED; {}", link.settings());
        let assumed = link.assumed;
        let only = section.map(SectionId::as_str);
        let sql = guess_query(only.is_some(), assumed);
        let mut values: Vec<&dyn Value> = vec![&project, &holder.id];
        if only.is_some() {
            values.push(&only);
        }
        let lines =
            [Line::Run(&begin), Line::Ask(SHARED_TURN, &[&turn_of(project)]), Line::Ask(&sql, &values)];
        let row = first_words(link, &lines)?.pop().and_then(|mut rows| rows.pop());
        let row = row.ok_or_else(|| Failure::Unreadable("no row where one must be".to_owned()))?;
        let mut tx = Self::begun(link, address, project, &row, GUESSED, clock)?;
        let found = tx.facts.get();
        tx.link.get_mut().assumed = found;
        tx.writer = Some(writer);
        if assumed.covers(found) {
            tx.guess = RefCell::new(Some(Guess::new(row, holder, section)));
        }
        Ok(tx)
    }

    /// A transaction whose first answer is `row`: the time, and what there is, from column `at` on.
    fn begun(
        link: &'a mut Link,
        address: &'a Address,
        project: Uuid,
        row: &Row,
        at: usize,
        clock: Option<&dyn Clock>,
    ) -> Sql<Self> {
        let now = clock.map_or(Timestamp::from_millis(row.try_get(at)?), Clock::now);
        let (facts, processes) = Facts::read(row, at + 1, now.as_millis())?;
        Ok(Self {
            link: RefCell::new(link),
            address,
            project,
            writer: None,
            now,
            waited: false,
            made: false,
            next_task: 0,
            counted: 0,
            processes: RefCell::new(processes),
            dead_processes: OnceCell::new(),
            facts: Cell::new(facts),
            guess: RefCell::default(),
            sought: RefCell::default(),
            found: RefCell::default(),
            line: RefCell::default(),
            granted: RefCell::default(),
            fence: Cell::default(),
            nothing_ending: RefCell::default(),
            agent: RefCell::default(),
            kept: RefCell::default(),
            changed: Cell::new(false),
            events: RefCell::default(),
            rings: Vec::new(),
            broken: RefCell::new(None),
        })
    }
}

/// The first words of a transaction. If they come to nothing, it is over: the next one has the connection as it was.
fn first_words(link: &mut Link, lines: &[Line<'_>]) -> Sql<Vec<Vec<Row>>> {
    let begun = link.answers(lines);
    if begun.as_ref().is_err_and(|failure| failure.remedy() != Remedy::Reconnect) {
        drop(link.run("ROLLBACK"));
    }
    begun
}

fn nobody_there<T>(link: &mut Link) -> Sql<Option<T>> {
    link.run("ROLLBACK")?;
    Ok(None)
}

/// And whether it had to be waited for.
const TURN: &str =
    "SELECT pg_advisory_xact_lock($1), clock_timestamp() > statement_timestamp() + interval '100 us'";
const SHARED_TURN: &str = "SELECT pg_advisory_xact_lock_shared($1)";

/// The number by which a project's changes take turns. Two projects with the same one only wait for each other.
fn turn_of(project: Uuid) -> i64 {
    let (high, low) = project.as_u64_pair();
    i64::from_ne_bytes((high ^ low).to_ne_bytes())
}
