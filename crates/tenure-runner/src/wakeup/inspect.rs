//! Reads the state of a project: its runners, what dead processes left, and whether work is ready. Reads only.

use tenure_core::holder::{Holder, Liveness};
use tenure_core::lease::{Lease, LeaseState, Resource};
use tenure_core::reference;
use tenure_core::rules::{Gate, gate};
use tenure_core::runner::Runner;
use tenure_core::store::{LeaseFilter, TaskFilter, View, Viewer};
use tenure_core::task::TaskStatus;
use tenure_core::{Result, Timestamp, kernel};

use super::Target;
use super::decide::{InspectedRunner, Inspection, PendingWork};

/// When an idle project must be inspected again if its files do not change.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Recheck {
    /// At the next wake-up: processes are recorded in it, and their death changes no file.
    Unknown,
    /// At this moment, when a lease expires; never if None.
    Until(Option<Timestamp>),
}

/// Most projects have nothing to do, and queries are most of the cost, so the most expensive query, for the next
/// ready task, runs only if there can be one.
pub(super) fn inspect(
    view: &dyn View,
    target: &Target<'_>,
    locked: Option<String>,
) -> Result<(Inspection, Recheck)> {
    let now = view.now();
    let leases = view.leases(&LeaseFilter::default())?;
    let runners = view.runners(0)?;
    let attempts = view.open_attempts()?;
    let recorded =
        !runners.is_empty() || !attempts.is_empty() || leases.iter().any(|lease| lease.process.is_some());
    let recheck = if recorded || view.count_tickets()? > 0 {
        Recheck::Unknown
    } else {
        Recheck::Until(leases.iter().map(|lease| lease.expires_at).min())
    };
    let viewer = match recheck {
        Recheck::Unknown => target.ctx.viewer(view, None)?,
        Recheck::Until(_) => Viewer::default(),
    };
    let runners =
        runners.into_iter().map(|runner| inspect_runner(view, target, runner)).collect::<Result<Vec<_>>>()?;
    let leftovers = !viewer.dead.is_empty()
        || runners.iter().any(|r| r.liveness == Liveness::Dead)
        || attempts.iter().any(|a| target.ctx.judge.liveness(&a.owner) == Liveness::Dead);
    let work = work(view, target, &viewer)?;
    let mut parked = None;
    if leftovers || matches!(work, PendingWork::Ready(_)) {
        for scope in &target.scopes {
            if let Gate::Closed(parking) = gate(view, target.ctx.judge, scope)? {
                parked = Some(*parking);
            }
        }
    }
    let (enabled, slots) = (target.enabled, target.slots);
    Ok((Inspection { now, enabled, locked, slots, runners, leftovers, work, parked }, recheck))
}

pub(super) fn inspect_runner(
    view: &dyn View,
    target: &Target<'_>,
    runner: Runner,
) -> Result<InspectedRunner> {
    // A runner at work always has an open lease, that of its slot. The ended ones are not searched, because they grow with
    // the history of the project.
    let filter = LeaseFilter { holder: Some(Holder::runner(&runner.id)), ..LeaseFilter::default() };
    let leases = view.leases(&filter)?;
    let last_beat = leases.iter().map(|lease| lease.heartbeat_at).fold(runner.heartbeat_at, Timestamp::max);
    let has_doorbell = |lease: &&Lease| lease.doorbell.is_some();
    Ok(InspectedRunner {
        liveness: target.ctx.judge.liveness(&runner.process),
        stale: view.now().since(last_beat) >= target.stale_after,
        doorbell: leases.iter().find(has_doorbell).and_then(|lease| lease.doorbell.clone()),
        last_beat,
        runner,
    })
}

fn work(view: &dyn View, target: &Target<'_>, viewer: &Viewer) -> Result<PendingWork> {
    let counts = view.count_tasks()?;
    let count = |status: TaskStatus| counts.iter().find(|(s, _)| *s == status).map_or(0, |(_, n)| *n);
    let (pending, held) = (count(TaskStatus::Pending), count(TaskStatus::InProgress));
    let mut reserved = false;
    if pending + held > 0 {
        if let Some(id) = kernel::next_for_newcomer(view, &target.ctx, viewer, None)? {
            return Ok(PendingWork::Ready(reference::task(view, id.as_str())?.key));
        }
        reserved = kernel::reserved_work(view, &target.ctx, None, None)?.is_some();
    }
    if target.reviewing && count(TaskStatus::Review) > 0 {
        let filter =
            TaskFilter { statuses: Some(vec![TaskStatus::Review]), limit: 50, ..TaskFilter::default() };
        for task in view.list_tasks(&filter, viewer)?.0 {
            let lease = view.open_lease(&Resource::task(&task.id))?;
            if lease.is_none_or(|lease| lease.state(view.now(), target.ctx.judge) != LeaseState::Live) {
                return Ok(PendingWork::Ready(task.key));
            }
        }
    }
    Ok(PendingWork::None(match (pending, held) {
        (0, 0) if counts.iter().all(|(_, n)| *n == 0) => "there are no tasks".to_owned(),
        (0, 0) => "nothing is left to do".to_owned(),
        _ if reserved => "all ready work goes to processes that wait for it".to_owned(),
        (0, held) => format!("all remaining tasks are held ({held})"),
        (pending, _) => format!("nothing is ready ({pending} pending)"),
    }))
}
