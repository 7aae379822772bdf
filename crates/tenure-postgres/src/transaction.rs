//! One transaction under way: rows go through here.
//!
//! The changes of a project take turns, by an advisory lock that ends with the transaction. So a body never sees a row
//! change under it, and what a rule has read stays true until it commits, exactly as behind SQLite's gate. The clock is
//! read once it is our turn. Events are kept back and written with the commit; so are changes whose answer nobody needs.

use std::cell::{Cell, RefCell};

use tenure_core::holder::Holder;
use tenure_core::id::SectionId;
use tenure_core::lease::{Lease, Ticket};
use tenure_core::store::{Claimant, Durability, Tx, View, Wants};
use tenure_core::{Clock, Error, Result, Timestamp};
use tokio_postgres::Row;
use uuid::Uuid;

use crate::address::Address;
use crate::commit::told;
use crate::error::{Failure, Remedy};
use crate::kept::{Change, Together};
use crate::leases::line_query;
use crate::link::{Line, Link, NOW, Sql, Value};
use crate::readiness::{Facts, Wanted};
use crate::task_query::{GUESSED, guess_query, sought_query};
use crate::tasks::{Found, Guess, Sought};

pub(crate) struct Transaction<'a> {
    pub(crate) link: RefCell<&'a mut Link>,
    address: &'a Address,
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
    /// Processes recorded in open leases and tickets; none once a change may have made them others.
    pub(crate) processes: RefCell<Option<Vec<String>>>,
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
        claimant: Option<Claimant<'_>>,
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
        let named = match claimant {
            Some(Claimant { holder, wants: Wants::Task(id) }) => Some((holder.id.as_str(), id.as_str())),
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
        let assumed = link.assumed.get();
        let (me, id) = named.unwrap_or_default();
        let (seeking, lining): ([&dyn Value; 3], [&dyn Value; 3]) =
            ([&project, &me, &id], [&project, &"task", &id]);
        let ahead = named.map(|_| (sought_query(assumed, true), line_query()));
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
        if let (Some((me, id)), Some(task), Some(line)) = (named, answers.next(), answers.next()) {
            tx.link.get_mut().assumed.set(found);
            if assumed.knows(found) {
                tx.sought = RefCell::new(Some(Sought::new(me, id, task, line)));
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
        let assumed = link.assumed.get();
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
        tx.link.get_mut().assumed.set(found);
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
            facts: Cell::new(facts),
            guess: RefCell::default(),
            sought: RefCell::default(),
            found: RefCell::default(),
            line: RefCell::default(),
            granted: RefCell::default(),
            fence: Cell::default(),
            agent: RefCell::default(),
            kept: RefCell::default(),
            changed: Cell::new(false),
            events: RefCell::default(),
            rings: Vec::new(),
            broken: RefCell::new(None),
        })
    }

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

/// The first words of a transaction. If they come to nothing, it is over: the next one has the connection as it was.
fn first_words(link: &mut Link, lines: &[Line<'_>]) -> Sql<Vec<Vec<Row>>> {
    let begun = link.answers(lines);
    if begun.is_err() {
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

impl View for Transaction<'_> {
    fn now(&self) -> Timestamp {
        self.now
    }
}

impl Tx for Transaction<'_> {}
