//! Opening a project's store, and its connection.

use std::cell::{Cell, RefCell};
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use tenure_core::error::Advice;
use tenure_core::hints;
use tenure_core::holder::Holder;
use tenure_core::id::{Ids, RandomIds, StoreId};
use tenure_core::lease::{Lease, Resource};
use tenure_core::store::{ClaimHint, ClaimTarget, Defect, Durability, Store, StoreHint, Tx, View};
use tenure_core::{Clock, Error, Result, Timestamp};
use tokio::runtime::{Builder, Runtime};
use uuid::Uuid;

use crate::address::Address;
use crate::clock::ServerClock;
use crate::connection::{Connection, NOW, Sql, Value};
use crate::doorbell::{CHANNEL, Doorbell, Doorbells};
use crate::error::Remedy;
use crate::leases::refresh_ticket_query;
use crate::readiness::{MayExist, of_this_boot};
use crate::retries::Retries;
use crate::roster::{Refreshed, Roster, RosterOptions, Waiting};
use crate::rows::{PgRow, get};
use crate::transaction::Transaction;
use crate::{integrity, migrate};

#[derive(Debug, Clone)]
pub struct OpenOptions {
    /// How long to wait for a turn to write, or for a server that is unreachable.
    pub patience: Duration,
    /// Every transaction is run and then rolled back.
    pub dry_run: bool,
    /// Nothing is written: an older schema is refused instead of migrated.
    pub read_only: bool,
    /// How many processes of this machine keep a connection to this project while they sleep. Others connect when they
    /// poll.
    pub max_listeners: u32,
    /// Only processes of this machine and this boot are judged, as by [`tenure_core::holder::AcrossMachines`]. Other processes in
    /// leases are not read.
    pub judges_this_boot: bool,
    /// The waiters of this machine refresh their tickets together. Without it each refreshes its own.
    pub roster: Option<RosterOptions>,
    /// Replaces the server's clock in tests.
    pub clock: Option<Arc<dyn Clock>>,
}

impl Default for OpenOptions {
    fn default() -> Self {
        Self {
            patience: Duration::from_secs(10),
            dry_run: false,
            read_only: false,
            max_listeners: 10,
            judges_this_boot: false,
            roster: None,
            clock: None,
        }
    }
}

pub struct PostgresStore {
    pub(crate) address: Address,
    pub(crate) options: OpenOptions,
    pub(crate) project: Uuid,
    /// `None` if the database does not have the project.
    id: Option<StoreId>,
    /// This client, and the number of its last request, by which a commit whose answer was lost is recognized.
    pub(crate) client: Uuid,
    pub(crate) request: Cell<i64>,
    /// What the last transaction found in the project. The next claim assumes the same and checks it.
    pub(crate) expected: Cell<MayExist>,
    runtime: Arc<Runtime>,
    pub(crate) clock: Arc<ServerClock>,
    connection: RefCell<Option<Connection>>,
    doorbells: Arc<Doorbells>,
    /// Enough processes of this machine listen already. This one polls, and connects for each poll.
    polls: Cell<bool>,
    roster: RefCell<Option<Roster>>,
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
    /// Opens a project. Succeeds even if the database does not have it; see [`PostgresStore::knows_project`].
    pub fn open(address: Address, project: &str, options: OpenOptions) -> Result<Self> {
        let mut store = Self::new(address, project, options)?;
        store.id = store.keep_trying(|connection| {
            let opened = store.read_project(connection)?;
            let is_old = opened.id.is_some() && !migrate::is_latest(opened.version);
            if is_old && !store.options.read_only {
                migrate::migrate(connection)?;
            }
            Ok(opened.id.filter(|_| !is_old || !store.options.read_only))
        })?;
        Ok(store)
    }

    /// Opens a project, and creates the schema and the project's row if they do not exist. Several processes may do so
    /// at once.
    pub fn create(address: Address, project: &str, name: &str, options: OpenOptions) -> Result<Self> {
        let mut store = Self::new(address, project, options)?;
        store.id = store.keep_trying(|connection| {
            let opened = store.read_project(connection)?;
            if opened.id.is_some() && migrate::is_latest(opened.version) {
                return Ok(opened.id);
            }
            if !migrate::is_latest(opened.version) {
                migrate::migrate(connection)?;
            }
            let sql = format!(
                "WITH made AS (
                   INSERT INTO tenure.projects (id, name, store_id, created_at) VALUES ($1, $2, $3, {NOW})
                   ON CONFLICT (id) DO NOTHING RETURNING id)
                 INSERT INTO tenure.sections (project, id, name, mode, priority, position, created_at, updated_at)
                 SELECT id, '', '', 'parallel', 100, 0, 0, 0 FROM made"
            );
            connection.rows(&sql, &[&store.project, &name, &RandomIds.store().as_str()])?;
            // Another process may have been first.
            Ok(store.read_project(connection)?.id)
        })?;
        Ok(store)
    }

    fn read_project(&self, connection: &mut Connection) -> Sql<migrate::ProjectRow> {
        let opened = migrate::read_project(connection, self.project)?;
        self.expected.set(opened.may_exist);
        Ok(opened)
    }

    fn new(address: Address, project: &str, options: OpenOptions) -> Result<Self> {
        let project =
            Uuid::parse_str(project).map_err(|_| Error::Config("project.id is not a UUID".to_owned()))?;
        let runtime = Builder::new_current_thread()
            .enable_all()
            .build()
            .map_err(|e| Error::store(format!("the connection cannot be set up: {e}")))?;
        let roster = options.roster.as_ref().filter(|_| options.clock.is_none());
        let roster = roster.and_then(|options| Roster::open(options, address.url(), project));
        Ok(Self {
            address,
            options,
            project,
            id: None,
            client: Uuid::new_v4(),
            request: Cell::new(0),
            expected: Cell::new(MayExist::UNKNOWN),
            runtime: Arc::new(runtime),
            clock: Arc::new(ServerClock::new()),
            connection: RefCell::new(None),
            doorbells: Arc::default(),
            polls: Cell::new(false),
            roster: RefCell::new(roster),
        })
    }

    /// Whether the database had this project when it was opened.
    pub fn knows_project(&self) -> bool {
        self.id.is_some()
    }

    /// The server's clock, as last read by this process.
    pub fn clock(&self) -> Arc<ServerClock> {
        Arc::clone(&self.clock)
    }

    pub fn address(&self) -> &Address {
        &self.address
    }

    /// A doorbell that other processes can ring. `None` behind a pooler, which does not forward notifications; then a
    /// waiter polls. All doorbells of a store share its connection.
    pub fn doorbell(&self) -> Option<Doorbell> {
        self.listen(format!("{CHANNEL}{}", Uuid::new_v4().simple()))
    }

    /// Receives the notifications of a channel from now on. `None` behind a pooler.
    pub(crate) fn listen(&self, channel: String) -> Option<Doorbell> {
        let doorbell = self.doorbells.add(channel).ok()?;
        let pooled = self.with_connection(|connection| {
            connection.listen(&self.doorbells)?;
            Ok(connection.pooled)
        });
        (!pooled.ok()?).then_some(doorbell)
    }

    /// Runs `work` on the connection, or on a new one if that is closed.
    pub(crate) fn with_connection<T>(&self, work: impl FnOnce(&mut Connection) -> Sql<T>) -> Sql<T> {
        let mut slot = self.connection.borrow_mut();
        if slot.as_ref().is_some_and(Connection::is_closed) {
            *slot = None;
        }
        let connection = match &mut *slot {
            Some(connection) => connection,
            none => {
                let mut connection =
                    Connection::open(&self.runtime, &self.address, self.options.patience, self.project)?;
                self.clock.set(connection.connected_at);
                if self.options.judges_this_boot {
                    connection.judged = of_this_boot();
                }
                if !self.polls.get() {
                    connection.listen(&self.doorbells)?;
                }
                none.insert(connection)
            }
        };
        let pause = connection.pause_reader();
        let outcome = work(connection);
        drop(pause);
        if outcome.as_ref().is_err_and(|failure| failure.remedy() == Remedy::Reconnect) {
            *slot = None;
        }
        outcome
    }

    /// Whether the store has closed its connection because enough processes of this machine listen, so that no doorbell rings.
    pub fn gave_up_listening(&self) -> bool {
        self.polls.get()
    }

    /// How long a waiter that refreshes its ticket every `poll` should sleep between two refreshes. With others on this machine
    /// it refreshes more often, and most of its refreshes do not reach the server.
    pub fn refresh_pause(&self, poll: Duration) -> Duration {
        self.roster.borrow().as_ref().map_or(poll, Roster::pause)
    }

    /// Refreshes the ticket together with those of the other waiters of this machine. `None` if that did not succeed.
    fn refresh_together(&self, ticket: i64, resource: &Resource) -> Result<Option<Refreshed>> {
        let mut roster = self.roster.borrow_mut();
        let Some(roster) = roster.as_mut() else { return Ok(None) };
        let waiting = Waiting {
            ticket,
            resource,
            listens: !self.polls.get(),
            max_listeners: self.options.max_listeners,
        };
        roster
            .refresh(waiting, |request| self.keep_trying(|connection| request.send(connection, self.project)))
    }

    /// Called before the process sleeps until a doorbell rings. Keeps the connection for that if at most
    /// [`OpenOptions::max_listeners`] processes of this machine do, and closes it otherwise.
    fn begin_sleep(&self) {
        let is_connected = self.connection.borrow().is_some();
        if !is_connected || self.doorbells.channels().is_empty() {
            return;
        }
        let may_listen = self.with_connection(|connection| {
            connection.take_listening_place(self.project, self.options.max_listeners)
        });
        match may_listen {
            Ok(true) if !self.polls.replace(false) => {}
            Ok(true) => {
                if self.with_connection(|connection| connection.listen(&self.doorbells)).is_ok() {
                    // Changes before this point have rung no doorbell.
                    self.doorbells.ring_all();
                }
            }
            Ok(false) => {
                self.polls.set(true);
                *self.connection.borrow_mut() = None;
            }
            // A ring may have been lost with the connection, so the caller has to check again.
            Err(_) => self.doorbells.ring_all(),
        }
    }

    /// Begins a claim of a task in a project that does not exist, so that the server has parsed and planned the statements that
    /// begin a claim before the task is free. The project is another one each time, so that no two clients wait for its turn.
    fn rehearse_claim(&self) {
        let nobody = Holder::agent("");
        let hint = ClaimHint { holder: &nobody, wants: ClaimTarget::Task("") };
        let (clock, writer) = (self.options.clock.as_deref(), self.writer(Durability::Power));
        // A failure only makes the claim slower.
        drop(self.with_connection(|connection| {
            Transaction::writing(connection, &self.address, Uuid::new_v4(), writer, clock, Some(hint))
                .map(drop)
        }));
    }

    /// Runs `work` until it succeeds, the patience ends, or a retry cannot help.
    pub(crate) fn keep_trying<T>(&self, mut work: impl FnMut(&mut Connection) -> Sql<T>) -> Result<T> {
        let mut retries = Retries::new(self.options.patience);
        loop {
            match self.with_connection(&mut work) {
                Ok(done) => return Ok(done),
                Err(failure) => retries.next(failure).map_err(|failure| failure.into_error(&self.address))?,
            }
        }
    }
}

pub(crate) fn unknown_project() -> Error {
    Error::Store {
        message: "this project is not in the database".to_owned(),
        advice: Advice::hints([hints::init()]),
    }
}

impl Store for PostgresStore {
    fn id(&self) -> Result<StoreId> {
        self.id.clone().ok_or_else(unknown_project)
    }

    fn read_with(&self, body: &mut dyn FnMut(&dyn View) -> Result<()>) -> Result<()> {
        let _span = tracing::debug_span!("read").entered();
        let mut retries = Retries::new(self.options.patience);
        let mut exclusive = false;
        loop {
            let failure = match self.with_connection(|connection| self.read_once(connection, exclusive, body))
            {
                Ok(outcome) => return outcome,
                Err(failure) => failure,
            };
            exclusive |= failure.remedy() == Remedy::RetryExclusively;
            retries.next(failure).map_err(|failure| failure.into_error(&self.address))?;
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

    /// One statement, outside the turns: it succeeds only if the ticket still counts, so it changes no decision.
    fn refresh_ticket(&self, ticket: i64, resource: &Resource) -> Result<Option<(Timestamp, Option<Lease>)>> {
        if self.options.dry_run {
            return Ok(None);
        }
        if let Some((now, lease)) = self.refresh_together(ticket, resource)? {
            self.clock.set(now);
            return Ok(Some((now, lease)));
        }
        let test = self.options.clock.as_ref().map(|clock| clock.now().as_millis());
        let values: [&dyn Value; 5] = [&self.project, &ticket, &resource.kind.as_str(), &resource.id, &test];
        let row =
            self.keep_trying(|connection| Ok(connection.rows(&refresh_ticket_query(), &values)?.pop()))?;
        let Some(row) = row else { return Ok(None) };
        let now = Timestamp::from_millis(get(&row, 0)?);
        self.clock.set(now);
        Ok(Some((now, Lease::read_joined(&PgRow(&row), 1)?)))
    }

    fn hint(&self, hint: StoreHint) {
        match hint {
            StoreHint::Sleeps => self.begin_sleep(),
            StoreHint::GrantExpected => self.rehearse_claim(),
            StoreHint::EndsWithProcess => {}
        }
    }

    fn check(&self, mend: bool) -> Result<Vec<Defect>> {
        integrity::check(self, mend)
    }
}
