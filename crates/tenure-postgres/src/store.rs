//! Opening a project's store, and running one transaction until it is known to have happened.

use std::cell::{Cell, RefCell};
use std::fmt;
use std::sync::Arc;
use std::time::{Duration, Instant};

use tenure_core::lease::{Lease, Resource};
use tenure_core::store::{ClaimHint, ClaimTarget, Defect, Durability, Store, Tx, View};
use tenure_core::{Clock, Error, Result, Timestamp};
use tokio::runtime::{Builder, Runtime};
use uuid::Uuid;

use crate::address::Address;
use crate::clock::ServerClock;
use crate::commit::flush;
use crate::doorbell::{Bell, CHANNEL, Doorbell};
use crate::error::{Failure, Remedy};
use crate::leases::keep_place_query;
use crate::link::{Link, NOW, Sql, Value};
use crate::rows::{PgRow, get, millis};
use crate::transaction::{Trace, Transaction, Writer};
use crate::{integrity, migrate};

/// Between two tries to reach a server, at first and at most.
const FIRST_PAUSE: Duration = Duration::from_millis(20);
const LONGEST_PAUSE: Duration = Duration::from_millis(500);

#[derive(Debug, Clone)]
pub struct OpenOptions {
    /// How long to wait for a turn to write, or for a server that is away, before giving up.
    pub patience: Duration,
    /// Every transaction is run and then undone.
    pub dry_run: bool,
    /// Instead of the server's clock, for tests that move time.
    pub clock: Option<Arc<dyn Clock>>,
}

impl Default for OpenOptions {
    fn default() -> Self {
        Self { patience: Duration::from_secs(10), dry_run: false, clock: None }
    }
}

pub struct PostgresStore {
    address: Address,
    pub(crate) options: OpenOptions,
    pub(crate) project: Uuid,
    known: bool,
    /// Who asks, and which of its questions this is: so a commit whose answer was lost is found again.
    client: Uuid,
    request: Cell<i64>,
    runtime: Arc<Runtime>,
    clock: Arc<ServerClock>,
    link: RefCell<Option<Link>>,
    listening: RefCell<Option<(String, Bell)>>,
}

impl fmt::Debug for PostgresStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PostgresStore")
            .field("address", &self.address)
            .field("project", &self.project)
            .finish_non_exhaustive()
    }
}

impl PostgresStore {
    /// Opens a project that the database has. If it does not have it, [`PostgresStore::knows_project`] says so.
    pub fn open(address: Address, project: &str, options: OpenOptions) -> Result<Self> {
        let mut store = Self::new(address, project, options)?;
        store.known = store.keep_trying(|link| {
            let (version, known) = migrate::version(link, store.project)?;
            if known && !migrate::is_latest(version) {
                migrate::migrate(link)?;
            }
            Ok(known)
        })?;
        Ok(store)
    }

    /// Opens a project, making the schema and the project's row where they are missing. Many may do so at once.
    pub fn create(address: Address, project: &str, name: &str, options: OpenOptions) -> Result<Self> {
        let mut store = Self::new(address, project, options)?;
        store.keep_trying(|link| {
            let (version, known) = migrate::version(link, store.project)?;
            if known && migrate::is_latest(version) {
                return Ok(());
            }
            if !migrate::is_latest(version) {
                migrate::migrate(link)?;
            }
            let sql = format!(
                "WITH made AS (
                   INSERT INTO tenure.projects (id, name, created_at) VALUES ($1, $2, {NOW})
                   ON CONFLICT (id) DO NOTHING RETURNING id)
                 INSERT INTO tenure.sections (project, id, name, mode, priority, position, created_at, updated_at)
                 SELECT id, '', '', 'parallel', 100, 0, 0, 0 FROM made"
            );
            link.rows(&sql, &[&store.project, &name]).map(drop)
        })?;
        store.known = true;
        Ok(store)
    }

    fn new(address: Address, project: &str, options: OpenOptions) -> Result<Self> {
        let project = Uuid::parse_str(project)
            .map_err(|_| Error::Config("project.id is not a UUID; `tenure init` writes one".to_owned()))?;
        let runtime = Builder::new_current_thread()
            .enable_all()
            .build()
            .map_err(|e| Error::store(format!("the connection cannot be set up: {e}")))?;
        Ok(Self {
            address,
            options,
            project,
            known: false,
            client: Uuid::new_v4(),
            request: Cell::new(0),
            runtime: Arc::new(runtime),
            clock: Arc::new(ServerClock::new()),
            link: RefCell::new(None),
            listening: RefCell::new(None),
        })
    }

    /// Did the database have this project when it was opened?
    pub fn knows_project(&self) -> bool {
        self.known
    }

    /// The server's time, as this process last heard it.
    pub fn clock(&self) -> Arc<ServerClock> {
        Arc::clone(&self.clock)
    }

    pub fn address(&self) -> &Address {
        &self.address
    }

    /// A bell that others can ring, unless a pooler stands between: then nobody would hear it, and polling serves.
    pub fn doorbell(&self) -> Option<Doorbell> {
        let channel = format!("{CHANNEL}{}", Uuid::new_v4().simple());
        let (doorbell, bell) = Doorbell::new(channel.clone()).ok()?;
        *self.listening.borrow_mut() = Some((channel, bell));
        // The connection that is open does not listen yet.
        *self.link.borrow_mut() = None;
        let pooled = self.with_link(|link| Ok(link.pooled)).ok()?;
        (!pooled).then_some(doorbell)
    }

    /// Runs `work` on a connection, on a new one if there is none that works.
    pub(crate) fn with_link<T>(&self, work: impl FnOnce(&mut Link) -> Sql<T>) -> Sql<T> {
        let mut place = self.link.borrow_mut();
        if place.as_ref().is_some_and(Link::is_closed) {
            *place = None;
        }
        let link = match &mut *place {
            Some(link) => link,
            none => {
                let mut link = Link::open(&self.runtime, &self.address, self.options.patience)?;
                self.clock.set(link.begun_at);
                if let Some((channel, bell)) = &*self.listening.borrow()
                    && !link.pooled
                {
                    link.listen(channel, bell.another()?)?;
                }
                none.insert(link)
            }
        };
        let talk = link.talk_alone();
        let outcome = work(link);
        drop(talk);
        if outcome.as_ref().is_err_and(|failure| failure.remedy() == Remedy::Reconnect) {
            *place = None;
        }
        outcome
    }

    /// Tries again for as long as patience lasts and trying again can help.
    pub(crate) fn keep_trying<T>(&self, mut work: impl FnMut(&mut Link) -> Sql<T>) -> Result<T> {
        let mut turns = Turns::new(self.options.patience);
        loop {
            match self.with_link(&mut work) {
                Ok(done) => return Ok(done),
                Err(failure) => turns.next(failure).map_err(|failure| failure.told(&self.address))?,
            }
        }
    }
}

fn unknown_project() -> Error {
    Error::Store {
        message: "the database does not know this project".to_owned(),
        hint: Some("tenure init".to_owned()),
    }
}

/// The pauses between tries.
struct Turns {
    deadline: Instant,
    pause: Duration,
}

impl Turns {
    fn new(patience: Duration) -> Self {
        Self { deadline: Instant::now() + patience, pause: FIRST_PAUSE }
    }

    /// Waits for the next turn, or gives the failure back if there is none.
    fn next(&mut self, failure: Failure) -> Sql<()> {
        let pause = match failure.remedy() {
            Remedy::None => return Err(failure),
            Remedy::Again | Remedy::Alone => Duration::ZERO,
            Remedy::Reconnect => self.pause,
        };
        if Instant::now() + pause >= self.deadline {
            return Err(failure);
        }
        std::thread::sleep(pause);
        self.pause = (self.pause * 2).min(LONGEST_PAUSE);
        Ok(())
    }
}

impl Store for PostgresStore {
    fn read_with(&self, body: &mut dyn FnMut(&dyn View) -> Result<()>) -> Result<()> {
        let mut turns = Turns::new(self.options.patience);
        let mut alone = false;
        loop {
            let failure = match self.with_link(|link| self.read_once(link, alone, body)) {
                Ok(outcome) => return outcome,
                Err(failure) => failure,
            };
            alone |= failure.remedy() == Remedy::Alone;
            turns.next(failure).map_err(|failure| failure.told(&self.address))?;
        }
    }

    fn write_with(
        &self,
        durability: Durability,
        body: &mut dyn FnMut(&mut dyn Tx) -> Result<()>,
    ) -> Result<()> {
        self.write_until_known(durability, None, false, body)
    }

    fn claim_with(&self, hint: ClaimHint<'_>, body: &mut dyn FnMut(&mut dyn Tx) -> Result<()>) -> Result<()> {
        let sharing = matches!(hint.wants, ClaimTarget::Next(_));
        self.write_until_known(Durability::Power, Some(hint), sharing, body)
    }

    /// In one statement, and whoever's turn it is: a place that is kept was not lost before, so nobody sees a difference.
    fn refresh_ticket(
        &self,
        ticket: i64,
        life: Duration,
        resource: &Resource,
    ) -> Result<Option<(Timestamp, Option<Lease>)>> {
        if self.options.dry_run {
            return Ok(None);
        }
        let test = self.options.clock.as_ref().map(|clock| clock.now().as_millis());
        let values: [&dyn Value; 6] =
            [&self.project, &ticket, &millis(life), &resource.kind.as_str(), &resource.id, &test];
        let row = self.keep_trying(|link| Ok(link.rows(&keep_place_query(), &values)?.pop()))?;
        let Some(row) = row else { return Ok(None) };
        let now = Timestamp::from_millis(get(&row, 0)?);
        self.clock.set(now);
        Ok(Some((now, Lease::read_joined(&PgRow(&row), 1)?)))
    }

    fn check(&self, mend: bool) -> Result<Vec<Defect>> {
        integrity::check(self, mend)
    }
}

fn uncertain(error: &Error) -> Error {
    Error::Store {
        message: format!("{error}; the change was sent, and whether it was made is not known"),
        hint: Some("tenure status".to_owned()),
    }
}

impl PostgresStore {
    fn writer(&self, durability: Durability) -> Writer {
        Writer { client: self.client, durability, request: self.request.get(), again: None, shares: false }
    }

    fn read_once(
        &self,
        link: &mut Link,
        alone: bool,
        body: &mut dyn FnMut(&dyn View) -> Result<()>,
    ) -> Sql<Result<()>> {
        let (clock, writer) = (self.options.clock.as_deref(), self.writer(Durability::Power));
        let begun = if alone {
            Transaction::writing(link, &self.address, self.project, writer, clock, None)?
        } else {
            Transaction::reading(link, &self.address, self.project, clock)?
        };
        let tx = begun.ok_or_else(|| Failure::Refused(unknown_project()))?;
        self.clock.set(tx.now);
        let outcome = body(&tx);
        tx.undo(outcome)
    }

    /// A transaction that is run once: if the connection breaks, that is the answer.
    pub(crate) fn write_untried(
        &self,
        durability: Durability,
        body: &mut dyn FnMut(&mut Transaction<'_>) -> Result<()>,
    ) -> Result<()> {
        self.request.set(self.request.get() + 1);
        let writer = self.writer(durability);
        let outcome = self.with_link(|link| self.write_once(link, writer, None, &mut None, body));
        outcome.unwrap_or_else(|failure| Err(failure.told(&self.address)))
    }

    fn write_until_known(
        &self,
        durability: Durability,
        hint: Option<ClaimHint<'_>>,
        mut shares: bool,
        body: &mut dyn FnMut(&mut dyn Tx) -> Result<()>,
    ) -> Result<()> {
        self.request.set(self.request.get() + 1);
        let first = self.writer(durability);
        let mut turns = Turns::new(self.options.patience);
        // Once a commit was sent, it may have happened although nobody said so.
        let mut sent = None;
        loop {
            let writer = Writer { again: sent, shares, ..first };
            let attempt =
                self.with_link(|link| self.write_once(link, writer, hint, &mut sent, &mut |tx| body(tx)));
            let failure = match attempt {
                Ok(outcome) => return outcome,
                Err(failure) => failure,
            };
            // Only when the turn is nobody else's is it settled what became of an earlier try.
            shares = false;
            if let Err(failure) = turns.next(failure) {
                let error = failure.told(&self.address);
                return Err(if sent.is_some() { uncertain(&error) } else { error });
            }
        }
    }

    fn write_once(
        &self,
        link: &mut Link,
        writer: Writer,
        hint: Option<ClaimHint<'_>>,
        sent: &mut Option<Trace>,
        body: &mut dyn FnMut(&mut Transaction<'_>) -> Result<()>,
    ) -> Sql<Result<()>> {
        let clock = self.options.clock.as_deref();
        let mut tx = match hint {
            Some(ClaimHint { holder, wants: ClaimTarget::Next(section) }) if writer.shares => {
                Transaction::claiming(link, &self.address, self.project, writer, clock, holder, section)?
            }
            _ => Transaction::writing(link, &self.address, self.project, writer, clock, hint)?
                .ok_or_else(|| Failure::Refused(unknown_project()))?,
        };
        self.clock.set(tx.now);
        // It is our turn, so whatever became of the earlier try is settled.
        if tx.made {
            let done = tx.undo(Ok(()))?;
            if writer.durability == Durability::Power {
                let flush = flush(link);
                link.run(&flush)?;
            }
            return Ok(done);
        }
        *sent = None;
        let outcome = body(&mut tx);
        if outcome.is_err() || self.options.dry_run {
            return tx.undo(outcome);
        }
        tx.commit(writer, sent)?;
        Ok(outcome)
    }
}
