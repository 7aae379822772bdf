//! The roster: the waiters of one machine refresh their tickets together.
//!
//! Each waiter records in a folder of its user when it was last awake. The first one that finds the last refresh too old
//! refreshes the tickets of all, each as of the time when its waiter was last awake, and records the server's answer for the
//! others. So the cost of idle waiters grows with the number of machines rather than with the number of waiters, and a waiter
//! without a connection does not have to make one.
//!
//! No waiter depends on another one. If a ticket is not in the recorded answer, or the answer is old, its waiter asks the
//! server. A waiter that was stopped or killed is no longer awake, so its ticket loses its place as if nothing were shared.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::{Deserialize, Serialize, de::DeserializeOwned};
use serde_json::Value as Json;
use tenure_core::lease::{Lease, Resource};
use tenure_core::store::columns::leases;
use tenure_core::store::{CellKind, Record, Row as CoreRow, unexpected};
use tenure_core::{Result, Timestamp, text};
use tenure_lock::{create_private_folder, millis_since_boot, open_private};
use tokio_postgres::Row;
use uuid::Uuid;

use crate::connection::{Connection, NOW, Sql, Statement};
use crate::migrate::LATEST;
use crate::sys;

/// Where the waiters of one machine meet, and how often each of them polls.
#[derive(Debug, Clone)]
pub struct RosterOptions {
    /// A folder on this machine that only this user can access. It is created if it does not exist.
    pub folder: PathBuf,
    pub poll_interval: Duration,
}

/// The recorded answer of the server to the last refresh.
const ANSWER: &str = "answer";
/// The first part of the name of the file that the waiter which refreshes has locked.
const ASKING: &str = "asking";

/// The roster of one project.
#[derive(Debug)]
pub(crate) struct Roster {
    folder: PathBuf,
    poll: i64,
    /// The entry of the ticket that this process has refreshed last.
    own: Option<i64>,
    /// When this process last looked for a free listening place.
    looked: Option<i64>,
    /// Whether the last answer was about other tickets too.
    has_others: bool,
}

/// What a waiter records about itself.
#[derive(Debug, Serialize, Deserialize)]
struct Entry {
    /// When it was last awake, on the clock of the machine's boot.
    awake: i64,
    /// It keeps a connection while it sleeps.
    listens: bool,
    kind: String,
    id: String,
}

/// A refresh of all tickets, as the server answered it.
#[derive(Debug, Serialize, Deserialize)]
struct SharedAnswer {
    /// When it was asked for, on the clock of the machine's boot.
    at: i64,
    /// The ticket of the waiter that asked.
    asker: i64,
    /// The server's time.
    now: i64,
    /// The tickets that count, and as of when they were refreshed, on the clock of the machine's boot.
    tickets: BTreeMap<i64, i64>,
    /// The open leases of the resources that the tickets are for.
    leases: Vec<Vec<Json>>,
    listening: u32,
    /// The tickets whose waiters have no connection, in order of arrival.
    polling: Vec<i64>,
}

/// What a refresh found: the server's time, and the open lease.
pub(crate) type Refreshed = (Timestamp, Option<Lease>);

/// The waiter that refreshes its ticket.
#[derive(Clone, Copy)]
pub(crate) struct Waiting<'a> {
    pub(crate) ticket: i64,
    pub(crate) resource: &'a Resource,
    /// It keeps a connection while it sleeps, as up to `max_listeners` waiters may.
    pub(crate) listens: bool,
    pub(crate) max_listeners: u32,
}

impl Roster {
    /// `None` if this machine has no place for it.
    pub(crate) fn open(options: &RosterOptions, server: &str, project: Uuid) -> Option<Self> {
        millis_since_boot()?;
        // Another version of tenure may not be able to read a lease.
        let name = format!("roster-{LATEST}-{:08x}-{project}", text::fingerprint(server.as_bytes()));
        let poll = i64::try_from(options.poll_interval.as_millis()).ok()?;
        let folder = options.folder.join(name);
        Some(Self { folder, poll, own: None, looked: None, has_others: false })
    }

    /// Refreshes the ticket, with `ask` if no waiter has asked the server for long. `None` if it was not refreshed together with
    /// others.
    pub(crate) fn refresh(
        &mut self,
        waiting: Waiting<'_>,
        ask: impl FnOnce(&Request) -> Result<Asked>,
    ) -> Result<Option<Refreshed>> {
        let (Some(()), Some(now)) = (self.sign(waiting), millis_since_boot()) else { return Ok(None) };
        let mut found = self.answer();
        let is_next = found.as_ref().is_some_and(|answer| self.should_listen(answer, waiting, now));
        if is_next {
            self.looked = Some(now);
        }
        if let Some(answer) = &found
            && !is_next
            && answer.is_recent(now, self.patience(answer, waiting))
        {
            return Ok(self.read(answer, waiting, now));
        }
        let right = self.right_to_ask(now);
        // Another waiter may have refreshed all tickets meanwhile, or be about to.
        found = self.answer();
        let patience = if right.is_some() { self.poll / 3 } else { self.poll * 3 / 2 };
        let found = found.filter(|answer| !is_next && answer.is_recent(now, patience));
        if found.is_some() || right.is_none() {
            return Ok(found.and_then(|answer| self.read(&answer, waiting, now)));
        }
        let entries = self.entries();
        let answer = SharedAnswer::new(waiting.ticket, &entries, ask(&Request::new(&entries))?);
        // Others ask for themselves if they cannot read it.
        drop(self.record(&answer));
        for gone in entries.keys().filter(|ticket| !answer.tickets.contains_key(ticket)) {
            drop(fs::remove_file(self.folder.join(gone.to_string())));
        }
        drop(right);
        Ok(self.read(&answer, waiting, answer.at))
    }

    /// How long a waiter sleeps before it looks again, so that it acts on no answer that is older than the poll interval.
    pub(crate) fn pause(&self) -> Duration {
        let pause = if self.has_others { self.poll * 3 / 10 } else { self.poll };
        Duration::from_millis(u64::try_from(pause).unwrap_or(0))
    }

    /// How old an answer may be. The waiter that has asked the server asks again before any other one does, because its
    /// connection has the statements prepared; unless it has to make a connection each time.
    fn patience(&self, answer: &SharedAnswer, waiting: Waiting<'_>) -> i64 {
        if waiting.listens && answer.polling.contains(&answer.asker) {
            self.poll * 7 / 20
        } else if waiting.listens && answer.asker == waiting.ticket {
            self.poll * 11 / 20
        } else {
            self.poll * 7 / 10
        }
    }

    /// Whether the waiter should connect, because fewer listen than may and it is the next one of those that poll. Other
    /// processes may have the places, so it is not tried at every poll.
    fn should_listen(&self, answer: &SharedAnswer, waiting: Waiting<'_>, now: i64) -> bool {
        let free = usize::try_from(waiting.max_listeners.saturating_sub(answer.listening)).unwrap_or(0);
        let is_next = answer.polling.iter().take(free).any(|ticket| *ticket == waiting.ticket);
        !waiting.listens && is_next && self.looked.is_none_or(|looked| now - looked >= self.poll * 12)
    }

    /// What the answer says about the waiter, if its ticket has been refreshed for long enough.
    fn read(&mut self, answer: &SharedAnswer, waiting: Waiting<'_>, now: i64) -> Option<Refreshed> {
        self.has_others = answer.tickets.len() > 1;
        answer.tickets.get(&waiting.ticket).filter(|awake| now - *awake <= self.poll * 3 / 2)?;
        let leases = answer.leases.iter().map(|cells| Lease::load(&Cells(cells), 0));
        let leases: Vec<Lease> = leases.collect::<Result<_>>().ok()?;
        let lease = leases.into_iter().find(|lease| lease.resource == *waiting.resource);
        Some((Timestamp::from_millis(answer.now + (now - answer.at)), lease))
    }

    /// Records that this waiter is awake.
    fn sign(&mut self, waiting: Waiting<'_>) -> Option<()> {
        let entry = Entry {
            awake: millis_since_boot()?,
            listens: waiting.listens,
            kind: waiting.resource.kind.as_str().to_owned(),
            id: waiting.resource.id.clone(),
        };
        // The length never changes, so it need not be truncated, and no reader finds it empty.
        let text = format!("{:<1$}", serde_json::to_string(&entry).ok()?, entry.id.len() + 120);
        if self.own != Some(waiting.ticket) {
            self.leave();
            let parent = self.folder.parent()?;
            create_private_folder(parent).ok()?;
            if !sys::is_private(&fs::symlink_metadata(parent).ok()?) {
                return None;
            }
            create_private_folder(&self.folder).ok()?;
        }
        let path = self.folder.join(waiting.ticket.to_string());
        let mut file = open_private(&path, File::options().write(true).create(true)).ok()?;
        file.write_all(text.as_bytes()).ok()?;
        self.own = Some(waiting.ticket);
        Some(())
    }

    /// Removes this waiter's entry.
    fn leave(&mut self) {
        if let Some(ticket) = self.own.take() {
            drop(fs::remove_file(self.folder.join(ticket.to_string())));
        }
    }

    fn entries(&self) -> BTreeMap<i64, Entry> {
        let files = fs::read_dir(&self.folder).into_iter().flatten().flatten();
        let ticket = |entry: &fs::DirEntry| entry.file_name().to_str().and_then(|name| name.parse().ok());
        files.filter_map(|entry| Some((ticket(&entry)?, parse(&entry.path())?))).collect()
    }

    fn answer(&self) -> Option<SharedAnswer> {
        parse(&self.folder.join(ANSWER))
    }

    fn record(&self, answer: &SharedAnswer) -> io::Result<()> {
        let new = self.folder.join(format!("{ANSWER}.{}", Uuid::new_v4()));
        let mut file = open_private(&new, File::options().write(true).create_new(true))?;
        let written = file.write_all(&serde_json::to_vec(answer)?);
        written
            .and_then(|()| fs::rename(&new, self.folder.join(ANSWER)))
            .inspect_err(|_| drop(fs::remove_file(&new)))
    }

    /// The right to ask the server for all. `None` if another waiter has it. One that is stopped while it has it does so for at most
    /// one poll interval, because the file is another one then.
    fn right_to_ask(&self, now: i64) -> Option<File> {
        let name = format!("{ASKING}-{}", now / self.poll.max(1));
        let file = open_private(&self.folder.join(&name), File::options().write(true).create(true)).ok()?;
        file.try_lock().ok()?;
        let names = fs::read_dir(&self.folder).into_iter().flatten().flatten().map(|entry| entry.file_name());
        for old in names.filter(|old| old.to_string_lossy().starts_with(ASKING) && *old != *name) {
            drop(fs::remove_file(self.folder.join(old)));
        }
        Some(file)
    }
}

impl Drop for Roster {
    fn drop(&mut self) {
        self.leave();
    }
}

fn parse<T: DeserializeOwned>(path: &Path) -> Option<T> {
    let mut text = String::new();
    io::Read::read_to_string(&mut open_private(path, File::options().read(true)).ok()?, &mut text).ok()?;
    serde_json::from_str(&text).ok()
}

/// What the server is asked: to refresh these tickets.
#[derive(Debug)]
pub(crate) struct Request {
    tickets: Vec<i64>,
    /// When the waiter of each ticket was awake.
    awake: Vec<i64>,
    kinds: Vec<String>,
    ids: Vec<String>,
}

/// What the server answered.
#[derive(Debug)]
pub(crate) struct Asked {
    /// When it was asked, on the clock of the machine's boot.
    at: i64,
    /// The tickets that count: the number, the server's time, and how long ago it was refreshed.
    tickets: Vec<Row>,
    leases: Vec<Row>,
}

impl Request {
    fn new(entries: &BTreeMap<i64, Entry>) -> Self {
        let mut resources: Vec<(&str, &str)> =
            entries.values().map(|entry| (entry.kind.as_str(), entry.id.as_str())).collect();
        resources.sort_unstable();
        resources.dedup();
        Self {
            tickets: entries.keys().copied().collect(),
            awake: entries.values().map(|entry| entry.awake).collect(),
            kinds: resources.iter().map(|(kind, _)| (*kind).to_owned()).collect(),
            ids: resources.iter().map(|(_, id)| (*id).to_owned()).collect(),
        }
    }

    /// Refreshes the tickets, and reads them and the leases, in one round trip.
    pub(crate) fn send(&self, connection: &mut Connection, project: Uuid) -> Sql<Asked> {
        // Connecting may have taken seconds, so the time is read here.
        let at = millis_since_boot().unwrap_or(i64::MAX);
        let ages: Vec<i64> = self.awake.iter().map(|awake| at.saturating_sub(*awake).max(0)).collect();
        let (refresh, leases) = (refresh_query(), leases_query());
        let mut answers = connection.pipeline(&[
            Statement::Query(&refresh, &[&project, &self.tickets, &ages]),
            Statement::Query(COUNTING, &[&project, &self.tickets]),
            Statement::Query(&leases, &[&project, &self.kinds, &self.ids]),
        ])?;
        let leases = answers.pop().unwrap_or_default();
        Ok(Asked { at, tickets: answers.pop().unwrap_or_default(), leases })
    }
}

impl SharedAnswer {
    fn new(asker: i64, entries: &BTreeMap<i64, Entry>, asked: Asked) -> Self {
        let at = asked.at;
        let leases = asked.leases.iter().map(cells).collect();
        let mut answer =
            Self { at, asker, now: 0, tickets: BTreeMap::new(), leases, listening: 0, polling: Vec::new() };
        for row in &asked.tickets {
            let (Ok(ticket), Ok(now), Ok(age)) = (row.try_get(0), row.try_get(1), row.try_get::<_, i64>(2))
            else {
                continue;
            };
            let Some(entry) = entries.get(&ticket) else { continue };
            answer.now = now;
            answer.tickets.insert(ticket, at - age);
            if entry.listens {
                answer.listening += 1;
            } else {
                answer.polling.push(ticket);
            }
        }
        answer.polling.sort_unstable();
        answer
    }

    fn is_recent(&self, now: i64, patience: i64) -> bool {
        (0..=patience).contains(&(now - self.at))
    }
}

/// Refreshes the tickets `$2` that count, as of `$3` milliseconds ago. The writes need not survive power loss. A ticket that a
/// transaction has locked is left out, so that the statement never waits for a transaction that waits for it.
fn refresh_query() -> String {
    format!(
        "WITH moment AS MATERIALIZED (SELECT set_config('synchronous_commit', 'off', true), {NOW} AS now),
         counting AS MATERIALIZED (
           SELECT t.number, moment.now - given.age AS awake
           FROM moment CROSS JOIN unnest($2::bigint[], $3::bigint[]) AS given (number, age)
             JOIN tenure.tickets t ON t.project = $1 AND t.number = given.number
           WHERE t.refreshed_at + t.life_ms > moment.now AND t.refreshed_at < moment.now - given.age
             AND (SELECT 1 FROM tenure.projects WHERE id = $1 AND schema = {LATEST} AND standing IS NULL) IS NOT NULL
           FOR UPDATE OF t SKIP LOCKED)
         UPDATE tenure.tickets SET refreshed_at = counting.awake
         FROM counting WHERE tickets.project = $1 AND tickets.number = counting.number"
    )
}

/// Those of the tickets `$2` that count, the time, and how long ago they were refreshed.
const COUNTING: &str = "SELECT t.number, moment.now, moment.now - t.refreshed_at
     FROM (SELECT (extract(epoch FROM clock_timestamp()) * 1000)::bigint AS now OFFSET 0) AS moment
       CROSS JOIN unnest($2::bigint[]) AS given (number)
       JOIN tenure.tickets t ON t.project = $1 AND t.number = given.number
     WHERE t.refreshed_at + t.life_ms > moment.now";

/// The open leases of the resources `$2`, `$3`.
fn leases_query() -> String {
    format!(
        "SELECT {} FROM unnest($2::text[], $3::text[]) AS given (kind, id)
           JOIN tenure.leases o ON o.project = $1 AND o.resource_kind = given.kind AND o.resource_id = given.id
             AND o.ended_at IS NULL",
        leases::TABLE.of("o")
    )
}

/// A lease as the values of its columns.
fn cells(row: &Row) -> Vec<Json> {
    let columns = leases::TABLE.columns.iter().enumerate();
    let cell = |(at, column): (usize, &tenure_core::store::Column)| match column.kind {
        CellKind::Text => row.try_get::<_, Option<&str>>(at).ok().flatten().map_or(Json::Null, Json::from),
        CellKind::Int | CellKind::StoreTime => {
            row.try_get::<_, Option<i64>>(at).ok().flatten().map_or(Json::Null, Json::from)
        }
    };
    columns.map(cell).collect()
}

struct Cells<'a>(&'a [Json]);

impl CoreRow for Cells<'_> {
    fn int(&self, at: usize) -> Result<Option<i64>> {
        match self.0.get(at) {
            Some(Json::Null) => Ok(None),
            Some(Json::Number(number)) => Ok(number.as_i64()),
            _ => Err(unexpected("a recorded lease")),
        }
    }

    fn text(&self, at: usize) -> Result<Option<&str>> {
        match self.0.get(at) {
            Some(Json::Null) => Ok(None),
            Some(Json::String(text)) => Ok(Some(text)),
            _ => Err(unexpected("a recorded lease")),
        }
    }
}
