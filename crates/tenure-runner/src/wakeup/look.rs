//! Looking at a project: who is at work in it, who is dead, and what there is to do. Reads only.

use tenure_core::holder::{Holder, Liveness};
use tenure_core::lease::{Lease, LeaseState, Resource};
use tenure_core::reference;
use tenure_core::runner::Runner;
use tenure_core::store::{LeaseFilter, TaskFilter, View, Viewer};
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

/// Nearly always there is nothing, and a look is mostly the reading of statements; so the question for the next task,
/// which is the longest of them, is asked only where there could be one.
pub(super) fn look(view: &dyn View, ward: &Ward<'_>, locked: Option<String>) -> Result<(Seen, Rest)> {
    let now = view.now();
    let leases = view.leases(&LeaseFilter::default())?;
    let runners = view.runners(0)?;
    let attempts = view.open_attempts()?;
    let recorded =
        !runners.is_empty() || !attempts.is_empty() || leases.iter().any(|lease| lease.process.is_some());
    let rest = if recorded || view.count_tickets()? > 0 {
        Rest::Unknown
    } else {
        Rest::Until(leases.iter().map(|lease| lease.expires_at).min())
    };
    let viewer = match rest {
        Rest::Unknown => ward.ctx.viewer(view, None)?,
        Rest::Until(_) => Viewer { me: None, dead: Vec::new(), ticket_life: ward.ctx.policy.ticket_life },
    };
    let runners =
        runners.into_iter().map(|runner| seen_runner(view, ward, runner)).collect::<Result<Vec<_>>>()?;
    let litter = !viewer.dead.is_empty()
        || runners.iter().any(|r| r.liveness == Liveness::Dead)
        || attempts.iter().any(|a| ward.ctx.judge.liveness(&a.owner) == Liveness::Dead);
    let work = work(view, ward, &viewer)?;
    let mut parked = Vec::new();
    if litter || matches!(work, Work::Ready(_)) {
        parked = view.parked_presets()?;
        parked.retain(|health| ward.presets.contains(&health.preset));
    }
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
        liveness: ward.ctx.judge.liveness(&runner.process),
        stale: view.now().since(last_beat) >= ward.stale_after,
        doorbell: leases.iter().find(own).and_then(|lease| lease.doorbell.clone()),
        last_beat,
        runner,
    })
}

fn work(view: &dyn View, ward: &Ward<'_>, viewer: &Viewer) -> Result<Work> {
    let counts = view.count_tasks()?;
    let count = |status: TaskStatus| counts.iter().find(|(s, _)| *s == status).map_or(0, |(_, n)| *n);
    let (pending, held) = (count(TaskStatus::Pending), count(TaskStatus::InProgress));
    if pending + held > 0
        && let Some(id) = view.next_ready(None, viewer)?
    {
        return Ok(Work::Ready(reference::task(view, id.as_str())?.key));
    }
    if ward.reviewing && count(TaskStatus::Review) > 0 {
        let filter =
            TaskFilter { statuses: Some(vec![TaskStatus::Review]), limit: 50, ..TaskFilter::default() };
        for task in view.list_tasks(&filter, viewer)?.0 {
            let lease = view.open_lease(&Resource::task(&task.id))?;
            if lease.is_none_or(|lease| lease.state(view.now(), ward.ctx.judge) != LeaseState::Live) {
                return Ok(Work::Ready(task.key));
            }
        }
    }
    Ok(Work::None(match (pending, held) {
        (0, 0) if counts.iter().all(|(_, n)| *n == 0) => "there are no tasks".to_owned(),
        (0, 0) => "nothing is left to do".to_owned(),
        (0, held) => format!("all that is left is held by others ({held})"),
        (pending, _) => format!("nothing is ready ({pending} pending)"),
    }))
}
