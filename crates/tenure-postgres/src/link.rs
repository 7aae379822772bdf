//! A live connection: statements go out, answers come back, on the calling thread.
//!
//! Nothing runs in the background, except that a thread waits for rings while nobody talks, if somebody listens.

use std::collections::HashMap;
use std::fmt;
use std::future::poll_fn;
use std::os::fd::OwnedFd;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use tenure_core::Timestamp;
use tokio::runtime::Runtime;
use tokio_postgres::types::{ToSql, Type};
use tokio_postgres::{Client, Row, Statement};
use uuid::Uuid;

use crate::address::Address;
use crate::connect::{self, Connected};
use crate::doorbell::Bell;
use crate::error::Failure;
use crate::readiness::Facts;
use crate::reading::{Ear, Reading, Talk};

/// A client that was stopped in the middle of a transaction keeps others waiting no longer than this.
const PAUSE: Duration = Duration::from_secs(5);

/// For statements that find a few rows by an index: the planner has nothing to weigh, whatever its statistics say.
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

/// The only clock: the server's, at this very moment.
pub(crate) const NOW: &str = "(extract(epoch FROM clock_timestamp()) * 1000)::bigint";

pub(crate) type Sql<T> = Result<T, Failure>;

/// Something to say to the server.
#[derive(Clone, Copy)]
pub(crate) enum Line<'a> {
    /// Statements without parameters, and without an answer.
    Run(&'a str),
    Ask(&'a str, &'a [&'a dyn Value]),
}

type Answer<'a> = Pin<Box<dyn Future<Output = Result<Option<Vec<Row>>, tokio_postgres::Error>> + 'a>>;

/// A statement that was said before.
#[derive(Default)]
struct Known {
    uses: u64,
    statement: Option<Statement>,
}

pub(crate) struct Link {
    runtime: Arc<Runtime>,
    client: Client,
    reading: Arc<Reading>,
    socket: OwnedFd,
    known: HashMap<String, Known>,
    limit: Duration,
    /// Behind a pooler that gives every transaction another server process.
    pub(crate) pooled: bool,
    settings: String,
    /// The server would not wait for the disk unless it is told to.
    lazy: bool,
    /// What the last claim found out about the project.
    pub(crate) assumed: Facts,
    /// The server's time when it began.
    pub(crate) begun_at: Timestamp,
}

impl fmt::Debug for Link {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Link").field("pooled", &self.pooled).finish_non_exhaustive()
    }
}

impl Link {
    /// The first server that answers and is not a standby.
    pub(crate) fn open(runtime: &Arc<Runtime>, address: &Address, patience: Duration) -> Sql<Self> {
        let mut failure = None;
        for (host, port) in address.servers() {
            match Self::open_one(runtime, address, host, port, patience) {
                Ok(link) => return Ok(link),
                // A standby that is refused says more than a server that is away.
                Err(found) if !matches!(failure, Some(Failure::InRecovery)) => failure = Some(found),
                Err(_) => {}
            }
        }
        Err(failure.unwrap_or(Failure::InRecovery))
    }

    fn open_one(
        runtime: &Arc<Runtime>,
        address: &Address,
        host: &tokio_postgres::config::Host,
        port: u16,
        patience: Duration,
    ) -> Sql<Self> {
        let settings = settings(patience);
        let mut ours = address.clone();
        ours.connect_limit = ours.connect_limit.min(patience);
        let mut options: Vec<String> = ours.config.get_options().map(str::to_owned).into_iter().collect();
        options.extend(settings.iter().map(|(name, value)| format!("-c {name}={value}")));
        ours.config.options(options.join(" "));
        let (found, refused_options) = match runtime.block_on(connect::connect(&ours, host, port)) {
            // How poolers answer to settings that they cannot keep apart.
            Err(Failure::Server(e)) if e.code().is_some_and(|c| c.code() == "08P01") => {
                (runtime.block_on(connect::connect(address, host, port))?, true)
            }
            other => (other?, false),
        };
        let Connected { client, connection, socket, given_pid } = found;
        let local: Vec<String> = settings.iter().map(|(n, v)| format!("SET LOCAL {n} = {v};")).collect();
        let mut link = Self {
            runtime: Arc::clone(runtime),
            client,
            reading: Reading::of(connection),
            socket,
            known: HashMap::new(),
            limit: patience.saturating_add(pause(patience)),
            pooled: refused_options,
            settings: local.concat(),
            lazy: false,
            assumed: Facts::QUIET,
            begun_at: Timestamp::from_millis(0),
        };
        let sql = format!(
            "SELECT pg_backend_pid(), pg_is_in_recovery(), {NOW}, current_setting('synchronous_commit') = 'off'"
        );
        let row = link.one(&sql, &[])?;
        link.pooled |= row.try_get::<_, i32>(0)? != given_pid;
        if row.try_get(1)? {
            return Err(Failure::InRecovery);
        }
        link.begun_at = Timestamp::from_millis(row.try_get(2)?);
        link.lazy = row.try_get(3)?;
        Ok(link)
    }

    /// What a transaction must say first, because nothing else will have said it.
    pub(crate) fn settings(&self) -> &str {
        if self.pooled { &self.settings } else { "" }
    }

    /// What a transaction must say whose commit is to last.
    pub(crate) fn lasting(&self) -> &'static str {
        if self.lazy { "SET LOCAL synchronous_commit = on;" } else { "" }
    }

    pub(crate) fn is_closed(&self) -> bool {
        self.client.is_closed()
    }

    /// Statements without parameters, and without an answer.
    pub(crate) fn run(&mut self, sql: &str) -> Sql<()> {
        self.talk(&[Line::Run(sql)]).map(drop)
    }

    pub(crate) fn rows(&mut self, sql: &str, values: &[&dyn Value]) -> Sql<Vec<Row>> {
        self.talk(&[Line::Ask(sql, values)])
    }

    /// The answer to the last question.
    pub(crate) fn talk(&mut self, lines: &[Line<'_>]) -> Sql<Vec<Row>> {
        Ok(self.answers(lines)?.pop().unwrap_or_default())
    }

    /// Everything is sent together, and so is one way to the server and back: the answers to all questions, or the first
    /// thing that went wrong. What comes after that is said in a transaction that has failed.
    pub(crate) fn answers(&mut self, lines: &[Line<'_>]) -> Sql<Vec<Vec<Row>>> {
        let mut known = Vec::with_capacity(lines.len());
        for line in lines {
            known.push(match line {
                Line::Run(_) => None,
                Line::Ask(sql, values) => self.known(sql, values)?,
            });
        }
        let Self { client, reading, runtime, limit, .. } = self;
        let client = &*client;
        let said = lines.iter().zip(&known).map(|(line, known)| -> Answer<'_> {
            match line {
                Line::Run(sql) => Box::pin(async move { client.batch_execute(sql).await.map(|()| None) }),
                Line::Ask(sql, values) => {
                    Box::pin(async move { ask(client, known.as_ref(), sql, values).await.map(Some) })
                }
            }
        });
        let said = in_order(said.collect());
        let mut answers = Vec::new();
        for outcome in drive(runtime, reading, *limit, async { Ok(said.await) })? {
            answers.extend(outcome?);
        }
        Ok(answers)
    }

    pub(crate) fn one(&mut self, sql: &str, values: &[&dyn Value]) -> Sql<Row> {
        let mut rows = self.rows(sql, values)?;
        rows.pop().ok_or_else(|| Failure::Unreadable("no row where one must be".to_owned()))
    }

    /// A statement is prepared when it comes a second time: most processes say most things once. Later it is prepared anew
    /// now and then, because its plan was made for tables as they were: a table that was empty then may be long by now.
    fn known(&mut self, sql: &str, values: &[&dyn Value]) -> Sql<Option<Statement>> {
        if self.pooled {
            return Ok(None);
        }
        let Self { client, reading, runtime, limit, known, .. } = self;
        let found = match known.get_mut(sql) {
            Some(found) => found,
            None => known.entry(sql.to_owned()).or_default(),
        };
        found.uses += 1;
        // The 2nd, 16th, 128th time, and so on.
        if found.uses.is_power_of_two() && found.uses.trailing_zeros() % 3 == 1 {
            let types: Vec<Type> = values.iter().map(|value| value.kind()).collect();
            let statement = drive(runtime, reading, *limit, client.prepare_typed(sql, &types))?;
            found.statement = Some(statement);
        }
        Ok(found.statement.clone())
    }

    /// While this lives, only answers are read from the connection, by who waits for them.
    pub(crate) fn talk_alone(&self) -> Talk {
        self.reading.talk()
    }

    /// From now on `bell` is rung for what comes on `channel`, and for the end of the connection.
    pub(crate) fn listen(&mut self, channel: &str, bell: Bell) -> Sql<()> {
        self.run(&format!("LISTEN \"{channel}\""))?;
        let ear = Ear { channel: channel.to_owned(), bell };
        self.reading.listen(ear, self.socket.try_clone()?, Arc::clone(&self.runtime))?;
        Ok(())
    }
}

impl Drop for Link {
    /// Whoever listens is told that nothing more will come.
    fn drop(&mut self) {
        self.reading.end();
        let _ = rustix::net::shutdown(&self.socket, rustix::net::Shutdown::Both);
    }
}

/// How much longer than its patience a client waits for an answer. Heartbeats have little patience and must notice a server
/// that has fallen silent before their lease ends.
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

async fn ask(
    client: &Client,
    known: Option<&Statement>,
    sql: &str,
    values: &[&dyn Value],
) -> Result<Vec<Row>, tokio_postgres::Error> {
    match known {
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

/// Runs a future and the connection behind it until the future is done.
fn drive<T>(
    runtime: &Runtime,
    reading: &Reading,
    limit: Duration,
    future: impl Future<Output = Result<T, tokio_postgres::Error>>,
) -> Sql<T> {
    let mut state = reading.lock();
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

/// All of them, begun in this order.
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

/// Something that goes into a statement, always as a bound parameter.
pub(crate) trait Value {
    fn kind(&self) -> Type;
    fn bound(&self) -> &(dyn ToSql + Sync);
    /// For a statement that is said later.
    fn kept(&self) -> Box<dyn Value>;
}

macro_rules! values {
    ($($rust:ty => $sql:ident, $kept:expr;)*) => {
        $(impl Value for $rust {
            fn kind(&self) -> Type {
                Type::$sql
            }

            fn bound(&self) -> &(dyn ToSql + Sync) {
                self
            }

            fn kept(&self) -> Box<dyn Value> {
                let keep: fn(&Self) -> _ = $kept;
                Box::new(keep(self))
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
