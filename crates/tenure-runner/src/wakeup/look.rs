//! Looking at a project: who is at work in it, who is dead, and what there is to do. Reads only.

use tenure_core::holder::{Holder, Liveness};
use tenure_core::lease::{Lease, Resource, Standing};
use tenure_core::reference;
use tenure_core::runner::Runner;
use tenure_core::store::{Eyes, LeaseFilter, TaskFilter, View};
use tenure_core::task::TaskStatus;
use tenure_core::{Result, Timestamp};

use super::Ward;
use super::chart::{Seen, SeenRunner, Work};

/// For how long a project that has nothing to do stays so, if nobody writes to it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Rest {
    /// Processes are recorded in it, and their death is written nowhere.
    Unknown,
    /// Until this moment, when a lease runs out; or for ever.
    Until(Option<Timestamp>),
}

pub(super) fn look(view: &dyn View, ward: &Ward<'_>, locked: Option<String>) -> Result<(Seen, Rest)> {
    let now = view.now();
    let judge = ward.world.judge;
    let eyes = ward.world.eyes(view, None)?;
    let runners = view
        .runners(0)?
        .into_iter()
        .map(|runner| seen_runner(view, ward, runner))
        .collect::<Result<Vec<_>>>()?;
    let attempts = view.open_attempts()?;
    let litter = !eyes.dead.is_empty()
        || runners.iter().any(|r| r.liveness == Liveness::Dead)
        || attempts.iter().any(|a| judge.liveness(&a.owner) == Liveness::Dead);
    let mut parked = view.parked_presets()?;
    parked.retain(|health| ward.presets.contains(&health.preset));
    let rest = if runners.is_empty() && attempts.is_empty() && view.recorded_processes()?.is_empty() {
        Rest::Until(view.leases(&LeaseFilter::default())?.iter().map(|lease| lease.expires_at).min())
    } else {
        Rest::Unknown
    };
    let work = work(view, ward, &eyes)?;
    Ok((Seen { now, enabled: ward.enabled, locked, runners, litter, work, parked }, rest))
}

pub(super) fn seen_runner(view: &dyn View, ward: &Ward<'_>, runner: Runner) -> Result<SeenRunner> {
    let leases = view.leases(&LeaseFilter {
        holder: Some(Holder::runner(&runner.id)),
        include_ended: true,
        newest_first: true,
        limit: Some(8),
        ..LeaseFilter::default()
    })?;
    let last_beat = leases.iter().map(|lease| lease.heartbeat_at).fold(runner.heartbeat_at, Timestamp::max);
    let own = |lease: &&Lease| lease.doorbell.is_some();
    Ok(SeenRunner {
        liveness: ward.world.judge.liveness(&runner.process),
        stale: view.now().since(last_beat) >= ward.stale_after,
        doorbell: leases.iter().find(own).and_then(|lease| lease.doorbell.clone()),
        last_beat,
        runner,
    })
}

fn work(view: &dyn View, ward: &Ward<'_>, eyes: &Eyes) -> Result<Work> {
    if let Some(id) = view.next_ready(None, eyes)? {
        return Ok(Work::Ready(reference::task(view, id.as_str())?.key));
    }
    if ward.reviewing {
        let filter =
            TaskFilter { statuses: Some(vec![TaskStatus::Review]), limit: 50, ..TaskFilter::default() };
        for task in view.list_tasks(&filter, eyes)?.0 {
            let lease = view.open_lease(&Resource::task(&task.id))?;
            if lease.is_none_or(|lease| lease.standing(view.now(), ward.world.judge) != Standing::Live) {
                return Ok(Work::Ready(task.key));
            }
        }
    }
    let counts = view.count_tasks()?;
    let count = |status: TaskStatus| counts.iter().find(|(s, _)| *s == status).map_or(0, |(_, n)| *n);
    let all: u64 = counts.iter().map(|(_, n)| n).sum();
    Ok(Work::None(match (count(TaskStatus::Pending), count(TaskStatus::InProgress)) {
        (0, 0) if all == 0 => "there are no tasks".to_owned(),
        (0, 0) => "nothing is left to do".to_owned(),
        (0, held) => format!("all that is left is held by others ({held})"),
        (pending, _) => format!("nothing is ready ({pending} pending)"),
    }))
}
