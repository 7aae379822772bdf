//! A connection to the server, driven by the calling thread.
//!
//! Nothing runs in the background, except a thread that waits for notifications between two statements, if there is a
//! doorbell.

use std::collections::{BTreeSet, HashMap};
use std::fmt;
use std::future::poll_fn;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use rustix::fd::OwnedFd;
use tenure_core::Timestamp;
use tenure_core::holder::Incarnation;
use tokio::runtime::Runtime;
use tokio_postgres::types::{ToSql, Type};
use tokio_postgres::{Client, Row, Statement as Prepared};
use uuid::Uuid;

use crate::address::{Address, Server};
use crate::connect::{self, Connected};
use crate::doorbell::Doorbells;
use crate::error::Failure;
use crate::migrate::{self, ProjectRow};
use crate::notifications::{Reader, ReaderPause};

/// The longest that a client stopped in the middle of a transaction can delay others.
const PAUSE: Duration = Duration::from_secs(5);

/// How long a migration, or a transaction over all rows of a project, may take.
const LONG: Duration = Duration::from_mins(30);

/// Every statement finds a few rows by an index, so all other plans are disabled, whatever the statistics say.
const PLANNING: [(&str, &str); 8] = [
    ("jit", "off"),
    ("enable_seqscan", "off"),
    ("enable_bitmapscan", "off"),
    ("enable_hashjoin", "off"),
    ("enable_mergejoin", "off"),
    ("plan_cache_mode", "force_generic_plan"),
    // Joins are made in the order in which they are written.
    ("join_collapse_limit", "1"),
    ("from_collapse_limit", "1"),
];

/// The current time of the server's clock, the only one that is used.
pub(crate) const NOW: &str = "(extract(epoch FROM clock_timestamp()) * 1000)::bigint";

pub(crate) type Sql<T> = Result<T, Failure>;

/// Something to send to the server.
#[derive(Clone, Copy)]
pub(crate) enum Statement<'a> {
    /// One or more statements without parameters, whose rows are ignored.
    Batch(&'a str),
    Query(&'a str, &'a [&'a dyn Value]),
}

/// The rows of a query, and nothing of other statements.
type Outcome = Result<Option<Vec<Row>>, tokio_postgres::Error>;

type Answer<'a> = Pin<Box<dyn Future<Output = Outcome> + 'a>>;

/// A query that was sent before.
#[derive(Default)]
struct Known {
    uses: u64,
    statement: Option<Prepared>,
}

pub(crate) struct Connection {
    runtime: Arc<Runtime>,
    client: Client,
    reader: Arc<Reader>,
    socket: OwnedFd,
    known: HashMap<String, Known>,
    /// The channels on which the connection listens.
    listening: BTreeSet<String>,
    /// See [`Connection::take_listening_place`].
    has_listening_place: bool,
    limit: Duration,
    /// The connection goes through a pooler, which may give every transaction another server process.
    pub(crate) pooled: bool,
    settings: String,
    /// The server's default is a commit that does not wait for the disk.
    asynchronous_commit: bool,
    /// The server's time when the connection was made.
    pub(crate) connected_at: Timestamp,
    /// A condition on the processes in leases: only these can be known to be dead.
    pub(crate) judged: String,
    /// What [`migrate::read_project`] reads, if it was read when the connection was made and has not been used since.
    pub(crate) prefetched_project: Option<Sql<ProjectRow>>,
}

impl fmt::Debug for Connection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Connection").field("pooled", &self.pooled).finish_non_exhaustive()
    }
}

impl Connection {
    /// Connects to the first server that answers and is not a standby, and reads the state of the project in the same round
    /// trip as that of the server.
    pub(crate) fn open(
        runtime: &Arc<Runtime>,
        address: &Address,
        patience: Duration,
        project: Uuid,
    ) -> Sql<Self> {
        let mut failure = None;
        for server in address.servers() {
            match Self::open_one(runtime, address, server, patience, project) {
                Ok(connection) => return Ok(connection),
                // An error about a standby is more informative than one about an unreachable server.
                Err(found) if !matches!(failure, Some(Failure::InRecovery)) => failure = Some(found),
                Err(_) => {}
            }
        }
        Err(failure.unwrap_or(Failure::InRecovery))
    }

    fn open_one(
        runtime: &Arc<Runtime>,
        address: &Address,
        server: Server<'_>,
        patience: Duration,
        project: Uuid,
    ) -> Sql<Self> {
        let settings = settings(patience);
        let mut ours = address.clone();
        ours.connect_limit = ours.connect_limit.min(patience);
        let mut options: Vec<String> = ours.config.get_options().map(str::to_owned).into_iter().collect();
        options.extend(settings.iter().map(|(name, value)| format!("-c {name}={value}")));
        ours.config.options(options.join(" "));
        let (found, refused_options) = match runtime.block_on(connect::connect(&ours, server)) {
            // The answer of poolers to startup options that they do not support.
            Err(Failure::Server(e)) if e.code().is_some_and(|c| c.code() == "08P01") => {
                (runtime.block_on(connect::connect(address, server))?, true)
            }
            other => (other?, false),
        };
        let Connected { client, connection, socket, given_pid } = found;
        let local: Vec<String> = settings.iter().map(|(n, v)| format!("SET LOCAL {n} = {v};")).collect();
        let mut ours = Self {
            runtime: Arc::clone(runtime),
            client,
            reader: Reader::of(connection),
            socket,
            known: HashMap::new(),
            listening: BTreeSet::new(),
            has_listening_place: false,
            limit: patience.saturating_add(pause(patience)),
            pooled: refused_options,
            settings: local.concat(),
            asynchronous_commit: false,
            connected_at: Timestamp::from_millis(0),
            judged: String::new(),
            prefetched_project: None,
        };
        let sql = format!(
            "SELECT pg_backend_pid(), pg_is_in_recovery(), {NOW}, current_setting('synchronous_commit') = 'off'"
        );
        let mut answers = ours
            .each(&[Statement::Query(&sql, &[]), Statement::Query(migrate::PROJECT_QUERY, &[&project])])?
            .into_iter();
        let row = only_row(answers.next().transpose()?.flatten())?;
        ours.prefetched_project = answers.next().map(migrate::parse_project);
        ours.pooled |= row.try_get::<_, i32>(0)? != given_pid;
        if row.try_get(1)? {
            return Err(Failure::InRecovery);
        }
        ours.connected_at = Timestamp::from_millis(row.try_get(2)?);
        ours.asynchronous_commit = row.try_get(3)?;
        Ok(ours)
    }

    /// The settings that every transaction must begin with. They are needed behind a pooler, where the session's
    /// settings do not apply.
    pub(crate) fn settings(&self) -> &str {
        if self.pooled { &self.settings } else { "" }
    }

    /// Runs `work` without the limits of ordinary statements. Its transaction begins with these settings.
    pub(crate) fn at_length<T>(&mut self, work: impl FnOnce(&mut Self, &str) -> T) -> T {
        let names = ["lock_timeout", "statement_timeout", "idle_in_transaction_session_timeout"];
        let settings = names.map(|name| format!("SET LOCAL {name} = {};", LONG.as_millis())).concat();
        let before = std::mem::replace(&mut self.limit, LONG);
        let done = work(self, &settings);
        self.limit = before;
        done
    }

    /// The setting for a transaction whose commit must wait for the disk.
    pub(crate) fn durable(&self) -> &'static str {
        if self.asynchronous_commit { "SET LOCAL synchronous_commit = on;" } else { "" }
    }

    pub(crate) fn is_closed(&self) -> bool {
        self.client.is_closed()
    }

    /// Runs statements without parameters, and ignores their rows.
    pub(crate) fn batch(&mut self, sql: &str) -> Sql<()> {
        self.pipeline(&[Statement::Batch(sql)]).map(drop)
    }

    pub(crate) fn rows(&mut self, sql: &str, values: &[&dyn Value]) -> Sql<Vec<Row>> {
        Ok(self.pipeline(&[Statement::Query(sql, values)])?.pop().unwrap_or_default())
    }

    /// Sends all statements in one round trip. Returns the rows of every query, or the first failure; the statements after
    /// that one fail too, because their transaction has.
    pub(crate) fn pipeline(&mut self, statements: &[Statement<'_>]) -> Sql<Vec<Vec<Row>>> {
        let mut answers = Vec::new();
        for outcome in self.each(statements)? {
            answers.extend(outcome?);
        }
        Ok(answers)
    }

    /// Sends all statements in one round trip. Returns the outcome of each.
    fn each(&mut self, statements: &[Statement<'_>]) -> Sql<Vec<Outcome>> {
        let _span = tracing::trace_span!("round_trip", statements = statements.len()).entered();
        let mut prepared = Vec::with_capacity(statements.len());
        for statement in statements {
            prepared.push(match statement {
                Statement::Batch(_) => None,
                Statement::Query(sql, values) => self.prepared(sql, values)?,
            });
        }
        let Self { client, reader, runtime, limit, .. } = self;
        let client = &*client;
        let sent = statements.iter().zip(&prepared).map(|(statement, prepared)| -> Answer<'_> {
            match statement {
                Statement::Batch(sql) => {
                    Box::pin(async move { client.batch_execute(sql).await.map(|()| None) })
                }
                Statement::Query(sql, values) => {
                    Box::pin(async move { query(client, prepared.as_ref(), sql, values).await.map(Some) })
                }
            }
        });
        let sent = in_order(sent.collect());
        drive(runtime, reader, *limit, async { Ok(sent.await) })
    }

    pub(crate) fn one(&mut self, sql: &str, values: &[&dyn Value]) -> Sql<Row> {
        only_row(Some(self.rows(sql, values)?))
    }

    /// Prepares a query when it is sent a second time, because most processes send most queries once. From time to time
    /// it is prepared again, because its plan was made for the tables as they were at that time.
    fn prepared(&mut self, sql: &str, values: &[&dyn Value]) -> Sql<Option<Prepared>> {
        if self.pooled {
            return Ok(None);
        }
        let Self { client, reader, runtime, limit, known, .. } = self;
        let found = match known.get_mut(sql) {
            Some(found) => found,
            None => known.entry(sql.to_owned()).or_default(),
        };
        found.uses += 1;
        // At the 2nd, 16th, 128th use, and so on.
        if found.uses.is_power_of_two() && found.uses.trailing_zeros() % 3 == 1 {
            let types: Vec<Type> = values.iter().map(|value| value.kind()).collect();
            let statement = drive(runtime, reader, *limit, client.prepare_typed(sql, &types))?;
            found.statement = Some(statement);
        }
        Ok(found.statement.clone())
    }

    /// Keeps the thread that waits for notifications from reading the connection, until this is dropped.
    pub(crate) fn pause_reader(&self) -> ReaderPause {
        self.reader.pause()
    }

    /// Whether the connection may be kept while the process sleeps: at most `limit` processes of this machine may do so for one
    /// project. Behind a pooler all may, because that costs the server nothing.
    pub(crate) fn take_listening_place(&mut self, project: Uuid, limit: u32) -> Sql<bool> {
        if self.pooled || self.has_listening_place {
            return Ok(true);
        }
        let place = format!("{} {project}", Incarnation::current().process.host_id);
        // Locks of the session, which the server releases when the connection ends.
        let sql = "SELECT 1 FROM generate_series(1, $2) AS place
                   WHERE pg_try_advisory_lock(hashtext($1), place::int) LIMIT 1";
        let free = self.rows(sql, &[&place, &i64::from(limit)])?;
        self.has_listening_place = !free.is_empty();
        Ok(self.has_listening_place)
    }

    /// Listens on the channels of `doorbells` from now on, and on no others. Behind a pooler, nothing is received.
    pub(crate) fn listen(&mut self, doorbells: &Arc<Doorbells>) -> Sql<()> {
        let wanted = doorbells.channels();
        if self.pooled || wanted == self.listening {
            return Ok(());
        }
        self.reader.start(doorbells, &self.socket, &self.runtime)?;
        let old = self.listening.difference(&wanted).map(|channel| format!("UNLISTEN \"{channel}\";"));
        let new = wanted.difference(&self.listening).map(|channel| format!("LISTEN \"{channel}\";"));
        let statements: String = old.chain(new).collect();
        self.batch(&statements)?;
        self.listening = wanted;
        Ok(())
    }
}

impl Drop for Connection {
    /// Ends the thread that waits for notifications.
    fn drop(&mut self) {
        self.reader.end();
        let _ = rustix::net::shutdown(&self.socket, rustix::net::Shutdown::Both);
    }
}

pub(crate) fn only_row(rows: Option<Vec<Row>>) -> Sql<Row> {
    let row = rows.and_then(|mut rows| rows.pop());
    row.ok_or_else(|| Failure::Unreadable("a query returned no row".to_owned()))
}

/// How much longer than its patience a client waits for an answer. Heartbeats have little patience and must notice a
/// silent server before their lease ends.
fn pause(patience: Duration) -> Duration {
    PAUSE.min(patience / 2)
}

fn settings(patience: Duration) -> Vec<(&'static str, String)> {
    let mut all: Vec<_> = PLANNING.iter().map(|(name, value)| (*name, (*value).to_owned())).collect();
    let millis = |d: Duration| d.as_millis().max(1).to_string();
    all.push(("lock_timeout", millis(patience)));
    all.push(("statement_timeout", millis(patience.saturating_add(pause(patience) / 2))));
    all.push(("idle_in_transaction_session_timeout", millis(PAUSE)));
    all
}

async fn query(
    client: &Client,
    prepared: Option<&Prepared>,
    sql: &str,
    values: &[&dyn Value],
) -> Result<Vec<Row>, tokio_postgres::Error> {
    match prepared {
        Some(statement) => {
            let values: Vec<&(dyn ToSql + Sync)> = values.iter().map(|value| value.bound()).collect();
            client.query(statement, &values).await
        }
        None => {
            let values: Vec<(&(dyn ToSql + Sync), Type)> =
                values.iter().map(|value| (value.bound(), value.kind())).collect();
            client.query_typed(sql, &values).await
        }
    }
}

/// Polls a future together with the connection that it waits for, until the future is done.
fn drive<T>(
    runtime: &Runtime,
    reader: &Reader,
    limit: Duration,
    future: impl Future<Output = Result<T, tokio_postgres::Error>>,
) -> Sql<T> {
    let mut state = reader.lock();
    let work = async {
        let mut future = pin!(future);
        poll_fn(|cx| {
            let first = future.as_mut().poll(cx);
            if first.is_ready() {
                return first;
            }
            state.read(cx);
            future.as_mut().poll(cx)
        })
        .await
    };
    match runtime.block_on(async { tokio::time::timeout(limit, work).await }) {
        Ok(outcome) => Ok(outcome?),
        Err(_) => Err(Failure::Silent(limit)),
    }
}

/// Polls all futures until all are done. The first poll of each is in this order, so the statements are sent in this
/// order.
async fn in_order<T>(mut futures: Vec<Pin<Box<dyn Future<Output = T> + '_>>>) -> Vec<T> {
    let mut done: Vec<Option<T>> = futures.iter().map(|_| None).collect();
    poll_fn(|cx| {
        for (future, done) in futures.iter_mut().zip(&mut done) {
            if done.is_none()
                && let Poll::Ready(outcome) = future.as_mut().poll(cx)
            {
                *done = Some(outcome);
            }
        }
        if done.iter().all(Option::is_some) { Poll::Ready(()) } else { Poll::Pending }
    })
    .await;
    done.into_iter().flatten().collect()
}

/// A parameter of a query.
pub(crate) trait Value {
    fn kind(&self) -> Type;
    fn bound(&self) -> &(dyn ToSql + Sync);
    /// An owned copy, for a write that is sent later.
    fn boxed(&self) -> Box<dyn Value>;
}

macro_rules! values {
    ($($rust:ty => $sql:ident, $own:expr;)*) => {
        $(impl Value for $rust {
            fn kind(&self) -> Type {
                Type::$sql
            }

            fn bound(&self) -> &(dyn ToSql + Sync) {
                self
            }

            fn boxed(&self) -> Box<dyn Value> {
                let own: fn(&Self) -> _ = $own;
                Box::new(own(self))
            }
        })*
    };
}

values! {
    i64 => INT8, |v| *v;
    Option<i64> => INT8, |v| *v;
    &str => TEXT, |v| (*v).to_owned();
    Option<&str> => TEXT, |v| v.map(str::to_owned);
    String => TEXT, Clone::clone;
    Option<String> => TEXT, Clone::clone;
    Uuid => UUID, |v| *v;
    Vec<i64> => INT8_ARRAY, Clone::clone;
    Vec<Option<i64>> => INT8_ARRAY, Clone::clone;
    Vec<&str> => TEXT_ARRAY, |v| v.iter().map(|text| (*text).to_owned()).collect::<Vec<String>>();
    Vec<String> => TEXT_ARRAY, Clone::clone;
    Vec<Option<&str>> => TEXT_ARRAY, |v| v.iter().map(|text| text.map(str::to_owned)).collect::<Vec<Option<String>>>();
    Vec<Option<String>> => TEXT_ARRAY, Clone::clone;
}
