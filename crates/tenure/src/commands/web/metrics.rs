//! The numbers of a project for `/metrics`, from its rows and its events.
//!
//! Totals count everything that the events tell since the first of them that is kept. Each event is read once, so a total does not fall
//! when old events are removed while the server runs.

use std::collections::{BTreeMap, HashMap};

use tenure_core::event::{Event, EventKind};
use tenure_core::holder::Judge;
use tenure_core::lease::{LeaseState, Resource};
use tenure_core::store::{EventFilter, LeaseFilter, View};
use tenure_core::task::TaskStatus;
use tenure_core::{Result, Timestamp};
use tenure_serve::web::{Histogram, Metrics};

use crate::app::Open;

/// How many events are read at a time.
const BATCH: u64 = 5_000;

const COUNTED: [EventKind; 5] = [
    EventKind::LeaseAcquired,
    EventKind::LeaseEnded,
    EventKind::TaskStatus,
    EventKind::AttemptEnded,
    EventKind::WriteRejected,
];

/// The totals so far.
#[derive(Debug, Default)]
pub(super) struct History {
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
    pub(super) fn read(&mut self, open: &Open<'_>) -> Result<Metrics> {
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
                // Only a waiter is handed something; another caller came when it was free.
                let free = self.free_since.remove(&task);
                if let (Some(free), Some(_)) = (free, event.detail.get("ticket")) {
                    self.handoffs.record(event.at.since(free).as_secs_f64());
                }
            }
            EventKind::WriteRejected => self.rejected_writes += 1,
            EventKind::TaskStatus if event.to == Some(TaskStatus::InProgress) => {}
            EventKind::LeaseEnded | EventKind::TaskStatus => {
                self.free_since.insert(task, event.at);
            }
            _ => {}
        }
    }

    fn count_attempt(&mut self, attempt: &EndedAttempt) {
        *self.attempts.entry(attempt.ending).or_default() += 1;
        self.agent_seconds += attempt.seconds;
        if let Some(used) = attempt.usage {
            for (kind, tokens) in [
                ("input", used.input_tokens),
                ("output", used.output_tokens),
                ("cache_read", used.cached_tokens),
                ("cache_write", used.cache_write_tokens),
            ] {
                *self.tokens.entry(kind).or_default() += tokens;
            }
            self.micro_usd += used.micro_usd.unwrap_or_default();
        }
    }
}

/// What is counted of an attempt by an agent.
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

/// What is true now.
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
        if is_live && ticket.resource != Resource::messages() {
            let waited = now.since(ticket.created_at).as_secs_f64();
            metrics.queue_length += 1;
            metrics.queue_wait_seconds += waited;
            metrics.queue_oldest_seconds = metrics.queue_oldest_seconds.max(waited);
        }
    }
    Ok(metrics)
}
