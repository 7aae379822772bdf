//! The numbers of a project for `/metrics`, from its rows and its events.
//!
//! Totals count the events since the project's first scrape. They are kept in a file of the server, together with the number of
//! the last event that was counted, so that they do not fall when the server is started again or old events are removed.
//!
//! Guaranteed: the first scrape after a start reads at most [`MOST_MISSED`] events, regardless of the length of the history.
//! If more have happened since the last scrape, only the newest are counted.

use std::collections::{BTreeMap, HashMap};
use std::path::PathBuf;

use serde::{Deserialize, Serialize};
use tenure_core::ending::Ending;
use tenure_core::event::{Event, EventKind};
use tenure_core::holder::Judge;
use tenure_core::lease::{LeaseState, Resource};
use tenure_core::store::{EventFilter, LeaseFilter, View};
use tenure_core::task::TaskStatus;
use tenure_core::{Result, Timestamp};
use tenure_serve::web::{Histogram, Metrics};

use crate::app::Open;
use crate::atomic;

/// How many events are read at a time.
const BATCH: u64 = 5_000;
/// The most events from the time without a server that are counted afterwards.
const MOST_MISSED: u64 = 10_000;
/// The most tasks for which the time at which they became free is remembered.
const MOST_FREE: usize = 10_000;

const COUNTED: [EventKind; 5] = [
    EventKind::LeaseAcquired,
    EventKind::LeaseEnded,
    EventKind::TaskStatus,
    EventKind::AttemptEnded,
    EventKind::WriteRejected,
];

/// The kinds of tokens.
const TOKENS: [&str; 4] = ["input", "output", "cache_read", "cache_write"];

/// The totals in the file.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct SavedTotals {
    store: String,
    seen: i64,
    takeovers: u64,
    rejected_writes: u64,
    attempts: BTreeMap<String, u64>,
    agent_seconds: f64,
    tokens: BTreeMap<String, u64>,
    micro_usd: u64,
    handoffs: Histogram,
}

/// The totals so far.
#[derive(Debug)]
pub(super) struct History {
    file: Option<PathBuf>,
    /// The store whose events were counted. `None` before the first scrape.
    store: Option<String>,
    /// The number of the last event that was counted.
    seen: i64,
    /// When a task became free, by its id: its lease ended, or its status changed.
    free_since: HashMap<String, Timestamp>,
    takeovers: u64,
    rejected_writes: u64,
    attempts: BTreeMap<&'static str, u64>,
    agent_seconds: f64,
    tokens: BTreeMap<&'static str, u64>,
    micro_usd: u64,
    handoffs: Histogram,
}

impl History {
    /// `file` is where the totals are kept, if there is such a place.
    pub(super) fn new(file: Option<PathBuf>) -> Self {
        Self {
            file,
            store: None,
            seen: 0,
            free_since: HashMap::new(),
            takeovers: 0,
            rejected_writes: 0,
            attempts: BTreeMap::new(),
            agent_seconds: 0.0,
            tokens: BTreeMap::new(),
            micro_usd: 0,
            handoffs: Histogram::default(),
        }
    }

    /// Begins where the last server ended. Without totals of this store, counting begins now.
    fn begin(&mut self, open: &Open<'_>) -> Result<()> {
        let store = open.store.id()?.to_string();
        let newest = open.read(|view| {
            let last = EventFilter { last: true, limit: 1, ..EventFilter::default() };
            Ok(view.events(&last)?.last().map_or(0, |event| event.seq))
        })?;
        let text = self.file.as_ref().and_then(|file| std::fs::read(file).ok());
        let saved = text.and_then(|text| serde_json::from_slice::<SavedTotals>(&text).ok());
        match saved.filter(|saved| saved.store == store && saved.seen <= newest) {
            Some(saved) => self.restore(&saved, newest),
            None => self.seen = newest,
        }
        self.store = Some(store);
        Ok(())
    }

    fn restore(&mut self, saved: &SavedTotals, newest: i64) {
        let most = i64::try_from(MOST_MISSED).unwrap_or(i64::MAX);
        self.seen = saved.seen.max(newest.saturating_sub(most));
        self.takeovers = saved.takeovers;
        self.rejected_writes = saved.rejected_writes;
        let ending = |name: &String| Ending::parse(name).map(Ending::as_str);
        self.attempts = saved.attempts.iter().filter_map(|(name, n)| Some((ending(name)?, *n))).collect();
        self.agent_seconds = saved.agent_seconds;
        let kind = |name: &String| TOKENS.into_iter().find(|kind| kind == name);
        self.tokens = saved.tokens.iter().filter_map(|(name, n)| Some((kind(name)?, *n))).collect();
        self.micro_usd = saved.micro_usd;
        self.handoffs = saved.handoffs.clone();
    }

    /// If this fails, the only consequence is that the totals begin anew after the next start.
    fn save(&self) {
        let (Some(store), Some(file)) = (&self.store, &self.file) else { return };
        let named = |map: &BTreeMap<&'static str, u64>| {
            map.iter().map(|(name, count)| ((*name).to_owned(), *count)).collect()
        };
        let saved = SavedTotals {
            store: store.clone(),
            seen: self.seen,
            takeovers: self.takeovers,
            rejected_writes: self.rejected_writes,
            attempts: named(&self.attempts),
            agent_seconds: self.agent_seconds,
            tokens: named(&self.tokens),
            micro_usd: self.micro_usd,
            handoffs: self.handoffs.clone(),
        };
        let written = serde_json::to_string(&saved).map_err(std::io::Error::from).and_then(|text| {
            // Several servers may serve the same project. Each writes a consistent set of totals.
            atomic::write(file, &text, &std::process::id().to_string())
        });
        if let Err(error) = written {
            tracing::debug!(%error, file = %file.display(), "the totals cannot be kept");
        }
    }

    pub(super) fn read(&mut self, open: &Open<'_>) -> Result<Metrics> {
        let is_first = self.store.is_none();
        if is_first {
            self.begin(open)?;
        }
        let before = self.seen;
        loop {
            let since = self.seen;
            let (events, ended) = open.read(|view| {
                let kinds = COUNTED.to_vec();
                let events =
                    view.events(&EventFilter { since, kinds, limit: BATCH, ..EventFilter::default() })?;
                let ended = ended_attempts(view, &events)?;
                Ok((events, ended))
            })?;
            for event in &events {
                self.count(event);
            }
            for attempt in ended {
                self.count_attempt(&attempt);
            }
            match events.last() {
                Some(last) => self.seen = last.seq,
                None => break,
            }
        }
        if is_first || self.seen != before {
            self.save();
        }
        let mut metrics = open.read(|view| current(view, open.env.judge.as_ref()))?;
        let root = || open.paths.root.to_string_lossy().into_owned();
        metrics.project = open.config.project.name.clone().unwrap_or_else(root);
        metrics.takeovers = self.takeovers;
        metrics.rejected_writes = self.rejected_writes;
        metrics.attempts.clone_from(&self.attempts);
        metrics.agent_seconds = self.agent_seconds;
        metrics.tokens.clone_from(&self.tokens);
        #[expect(clippy::cast_precision_loss, reason = "Prometheus has only floating-point numbers")]
        let dollars = self.micro_usd as f64 / 1e6;
        metrics.dollars = dollars;
        metrics.handoffs = self.handoffs.clone();
        Ok(metrics)
    }

    fn count(&mut self, event: &Event) {
        let Some(task) = event.task.as_ref().map(|task| task.as_str().to_owned()) else { return };
        match event.kind {
            EventKind::LeaseAcquired => {
                self.takeovers +=
                    u64::from(event.detail.get("takenOverFrom").is_some_and(|from| !from.is_null()));
                // Only a grant to a waiter is a hand-off. Any other caller found the task free.
                let free = self.free_since.remove(&task);
                if let (Some(free), Some(_)) = (free, event.detail.get("ticket")) {
                    self.handoffs.record(event.at.since(free).as_secs_f64());
                }
            }
            EventKind::WriteRejected => self.rejected_writes += 1,
            EventKind::TaskStatus if event.to == Some(TaskStatus::InProgress) => {}
            EventKind::LeaseEnded | EventKind::TaskStatus => {
                if self.free_since.len() >= MOST_FREE {
                    self.free_since.clear();
                }
                self.free_since.insert(task, event.at);
            }
            _ => {}
        }
    }

    fn count_attempt(&mut self, attempt: &EndedAttempt) {
        *self.attempts.entry(attempt.ending).or_default() += 1;
        self.agent_seconds += attempt.seconds;
        if let Some(used) = attempt.usage {
            let of_kinds =
                [used.input_tokens, used.output_tokens, used.cached_tokens, used.cache_write_tokens];
            for (kind, tokens) in TOKENS.into_iter().zip(of_kinds) {
                *self.tokens.entry(kind).or_default() += tokens;
            }
            self.micro_usd += used.micro_usd.unwrap_or_default();
        }
    }
}

/// The figures of one agent's attempt that are counted.
#[derive(Debug)]
struct EndedAttempt {
    ending: &'static str,
    seconds: f64,
    usage: Option<tenure_core::ending::Usage>,
}

/// The attempts whose end is among the events. Rows that were removed with the history are not counted.
fn ended_attempts(view: &dyn View, events: &[Event]) -> Result<Vec<EndedAttempt>> {
    let mut by_task: HashMap<&str, Vec<&str>> = HashMap::new();
    for event in events.iter().filter(|event| event.kind == EventKind::AttemptEnded) {
        let attempt = event.detail.get("attempt").and_then(|id| id.as_str());
        if let (Some(task), Some(attempt)) = (&event.task, attempt) {
            by_task.entry(task.as_str()).or_default().push(attempt);
        }
    }
    let mut ended = Vec::new();
    for (task, ids) in by_task {
        let rows = view.attempts(&Resource::task(&tenure_core::id::TaskId::new(task)))?;
        for row in rows.iter().filter(|row| ids.contains(&row.id.as_str())) {
            let Some(run) = &row.run else { continue };
            let seconds = row.ended_at.map_or(0.0, |at| at.since(row.started_at).as_secs_f64());
            ended.push(EndedAttempt { ending: run.ending.as_str(), seconds, usage: run.usage });
        }
    }
    Ok(ended)
}

/// The current values.
fn current(view: &dyn View, judge: &dyn Judge) -> Result<Metrics> {
    let now = view.now();
    let tasks = TaskStatus::ALL.iter().map(|status| (status.as_str(), 0)).collect();
    let mut metrics = Metrics { tasks, ..Metrics::default() };
    metrics.tasks.extend(view.count_tasks()?.into_iter().map(|(status, count)| (status.as_str(), count)));
    for lease in view.leases(&LeaseFilter::default())? {
        let state = if lease.state(now, judge) == LeaseState::Live { "live" } else { "lapsed" };
        *metrics.leases.entry((lease.resource.kind.as_str(), state)).or_default() += 1;
    }
    for ticket in view.all_tickets()? {
        let is_live =
            ticket.is_fresh(now) && judge.liveness(&ticket.process) != tenure_core::holder::Liveness::Dead;
        if is_live {
            let waited = now.since(ticket.created_at).as_secs_f64();
            metrics.queue_length += 1;
            metrics.queue_wait_seconds += waited;
            metrics.queue_oldest_seconds = metrics.queue_oldest_seconds.max(waited);
        }
    }
    Ok(metrics)
}
