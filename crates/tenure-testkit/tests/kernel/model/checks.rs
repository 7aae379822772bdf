//! The rules stated a second time, as conditions on a step from one state to the next.

use tenure_core::ErrorCode;
use tenure_core::holder::Judge;
use tenure_core::id::Fence;
use tenure_core::kernel::{Finished, Grant, Verdict};
use tenure_core::lease::{EndReason, Lease, Resource, ResourceKind, Ticket};
use tenure_core::task::TaskStatus;
use tenure_testkit::memory::State;

use super::Kernel;
use super::actions::try_acquire;
use super::canonical::now;
use super::snapshot::{Done, Snapshot, TICKET_LIFE, TTL};

/// The live lease of a resource: open, not expired, and not of a dead process.
fn live<'a>(rows: &'a State, state: &Snapshot, resource: &Resource) -> Option<&'a Lease> {
    rows.open_lease(resource).filter(|lease| !is_dead(state, lease) && lease.expires_at > now())
}

/// The lease that excludes other holders. A section's lease does so while its holder works there or is between two
/// tasks.
fn blocking<'a>(rows: &'a State, state: &Snapshot, resource: &Resource) -> Option<&'a Lease> {
    let lease = live(rows, state, resource)?;
    if resource.kind != ResourceKind::Section {
        return Some(lease);
    }
    let mut under = rows
        .leases
        .values()
        .filter(|task| {
            task.resource.kind == ResourceKind::Task && task.is_open() && task.process == lease.process
        })
        .peekable();
    let at_work =
        under.peek().is_none() || under.any(|task| !is_dead(state, task) && task.expires_at > now());
    at_work.then_some(lease)
}

fn is_dead(state: &Snapshot, lease: &Lease) -> bool {
    lease.process.as_ref().is_some_and(|process| state.dead.contains(&process.process.pid))
}

fn latest<'a>(rows: &'a State, resource: &Resource) -> Option<&'a Lease> {
    rows.leases.values().rfind(|lease| lease.resource == *resource)
}

fn live_queue<'a>(rows: &'a State, state: &Snapshot, resource: &Resource) -> Vec<&'a Ticket> {
    let fresh = |ticket: &&Ticket| ticket.refreshed_at.after(TICKET_LIFE) > now();
    let alive = |ticket: &&Ticket| !state.dead.contains(&ticket.process.process.pid);
    rows.tickets.values().filter(|t| t.resource == *resource).filter(fresh).filter(alive).collect()
}

/// Conditions that every transaction has to preserve.
pub(crate) fn fault_in<T>(
    kernel: &Kernel,
    last: &Snapshot,
    next: &Snapshot,
    done: &Done<T>,
) -> Option<&'static str> {
    if done.answer.as_ref().is_err_and(|error| error.code() == ErrorCode::Store) {
        return Some("store");
    }
    for resource in kernel.scene.resources() {
        let open = done.rows.leases.values().filter(|l| l.resource == resource && l.is_open()).count();
        if open > 1 {
            return Some("L1");
        }
        let greatest = latest(&last.rows, &resource).map(|lease| lease.fence);
        let granted: Vec<&Lease> = done
            .rows
            .leases
            .values()
            .filter(|lease| lease.resource == resource && !last.rows.leases.contains_key(&lease.fence))
            .collect();
        if granted.iter().any(|lease| Some(lease.fence) <= greatest) {
            return Some("L2");
        }
        // A live lease ends only by its holder's finish or by force, never to make room for a grant.
        if let Some(before) = blocking(&last.rows, last, &resource)
            && !granted.is_empty()
            && granted.iter().any(|lease| lease.process != before.process)
        {
            return Some("L4");
        }
        if let Some(lease) = granted.first()
            && overtaken(last, lease, &resource)
        {
            return Some("overtaken");
        }
        if !woken(last, next, done, &resource) {
            return Some("not woken");
        }
    }
    serial_section_fault(kernel, next, &done.rows)
}

/// Whether the grant overtook a live earlier ticket of another waiter.
fn overtaken(last: &Snapshot, lease: &Lease, resource: &Resource) -> bool {
    let queue = live_queue(&last.rows, last, resource);
    // A holder that revives its lease keeps it; no waiter has waited for longer than it has held the lease.
    queue.first().is_some_and(|first| Some(&first.process) != lease.process.as_ref())
        && !was_its_own(last, lease)
}

fn was_its_own(last: &Snapshot, lease: &Lease) -> bool {
    latest(&last.rows, &lease.resource)
        .is_some_and(|before| before.process == lease.process && lease.resource.kind == ResourceKind::Section)
}

/// Freeing a resource, or removing the first ticket of a free one, must ring the first remaining waiter.
fn woken<T>(last: &Snapshot, next: &Snapshot, done: &Done<T>, resource: &Resource) -> bool {
    let was_open = last.rows.open_lease(resource).is_some();
    let is_open = done.rows.open_lease(resource).is_some();
    let queue = live_queue(&done.rows, next, resource);
    let Some(first) = queue.first() else { return true };
    let freed = was_open && !is_open;
    let head_left =
        !is_open && live_queue(&last.rows, last, resource).first().is_some_and(|t| t.number < first.number);
    let rung = first.doorbell.as_ref().is_none_or(|bell| done.rings.contains(bell));
    rung || !(freed || head_left)
}

/// A serial section has one holder at a time, and the section's lease lasts at least as long as those of its tasks.
fn serial_section_fault(kernel: &Kernel, state: &Snapshot, rows: &State) -> Option<&'static str> {
    let section = live(rows, state, &Resource::section(kernel.scene.section.as_ref()?));
    let tasks = kernel.scene.tasks.iter().filter_map(|id| live(rows, state, &Resource::task(id)));
    let covered = |task: &Lease| {
        section.is_some_and(|s| {
            s.holder == task.holder && s.process == task.process && s.expires_at >= task.expires_at
        })
    };
    (!tasks.into_iter().all(covered)).then_some("L9")
}

/// A grant excludes all other holders at that time, and repeating it returns the same grant.
pub(crate) fn fault_in_grant(
    kernel: &Kernel,
    last: &Snapshot,
    next: &Snapshot,
    (actor, task): (usize, usize),
    grant: &Grant,
) -> Option<&'static str> {
    let resource = Resource::task(&kernel.scene.tasks[task]);
    let before = live(&last.rows, last, &resource);
    if grant.reacquired != before.is_some() || before.is_some_and(|lease| lease.fence != grant.lease.fence) {
        return Some("L6");
    }
    for other in (0..kernel.scene.callers.len()).filter(|other| *other != actor) {
        let answer = next.transact(|tx, ctx| try_acquire(tx, ctx, kernel, next, (other, task))).answer;
        if !matches!(answer, Ok(Verdict::Refused(_))) {
            return Some("L4");
        }
    }
    None
}

/// Whether this is the latest lease on its resource, ended only by expiry, with the task unchanged since.
fn still_its_own(kernel: &Kernel, last: &Snapshot, fence: Option<Fence>, task: usize) -> bool {
    let id = &kernel.scene.tasks[task];
    let Some(lease) = latest(&last.rows, &Resource::task(id)).filter(|l| Some(l.fence) == fence) else {
        return false;
    };
    let by_time_only = lease.ended.is_none_or(|(_, reason)| reason == EndReason::Expired);
    let status = last.rows.tasks[id].status;
    let left_alone = matches!(status, TaskStatus::InProgress | TaskStatus::Pending);
    by_time_only && !is_dead(last, lease) && left_alone
}

pub(crate) fn fault_in_renewal(
    kernel: &Kernel,
    last: &Snapshot,
    done: &Done<Lease>,
    (actor, task): (usize, usize),
    revive: bool,
) -> Option<&'static str> {
    let fence = last.beliefs[actor].fences[task];
    let resource = Resource::task(&kernel.scene.tasks[task]);
    let is_live = live(&last.rows, last, &resource).is_some_and(|lease| Some(lease.fence) == fence);
    let own = still_its_own(kernel, last, fence, task);
    let kept = if let Ok(lease) = &done.answer {
        let moved = lease.expires_at == now().after(TTL) && lease.heartbeat_at == now();
        let stored = done.rows.open_lease(&resource) == Some(lease);
        let allowed = is_live || (own && revive);
        allowed && moved && stored && Some(lease.fence) == fence
    } else {
        // In a section, another holder may work or wait by now, and takes precedence.
        let due = is_live || (own && revive && kernel.scene.section.is_none());
        !due && done.rows == last.rows
    };
    (!kept).then_some("L7")
}

pub(crate) fn fault_in_finish(
    kernel: &Kernel,
    last: &Snapshot,
    done: &Done<Finished>,
    shown: Option<Fence>,
    task: usize,
) -> Option<&'static str> {
    let own = still_its_own(kernel, last, shown, task);
    let fault = match &done.answer {
        Ok(finished) if finished.changed => !own,
        // A repeated finish under the same fence writes nothing.
        Ok(_) => {
            let lease = shown.and_then(|fence| last.rows.leases.get(&fence));
            let said = lease.and_then(|lease| lease.ended).map(|(_, reason)| reason);
            !matches!(said, Some(EndReason::Completed | EndReason::Released)) || done.rows != last.rows
        }
        Err(_) => own || done.rows != last.rows,
    };
    fault.then_some("L8")
}

/// The first live waiter for a free resource is granted it when it asks.
pub(crate) fn no_waiter_is_lost(kernel: &Kernel, state: &Snapshot) -> bool {
    (0..kernel.scene.callers.len()).all(|actor| {
        let Some((number, resource)) = &state.beliefs[actor].ticket else { return true };
        let first = live_queue(&state.rows, state, resource).first().is_some_and(|t| t.number == *number);
        let judge = state.judge();
        let lives = kernel.scene.callers[actor]
            .process
            .as_ref()
            .is_some_and(|process| judge.liveness(process) != tenure_core::holder::Liveness::Dead);
        if !first || !lives || blocking(&state.rows, state, resource).is_some() {
            return true;
        }
        // There must be a task to grant: the requested one, or one of the section that it waits for.
        (0..kernel.scene.tasks.len()).all(|task| {
            let id = &kernel.scene.tasks[task];
            let wanted = resource.kind == ResourceKind::Section || *resource == Resource::task(id);
            let startable =
                matches!(state.rows.tasks[id].status, TaskStatus::Pending | TaskStatus::InProgress);
            let task_free = live(&state.rows, state, &Resource::task(id)).is_none();
            let elsewhere = others_come_first(kernel, state, actor, id);
            !wanted || !startable || !task_free || elsewhere || {
                let answer =
                    state.transact(|tx, ctx| try_acquire(tx, ctx, kernel, state, (actor, task))).answer;
                matches!(answer, Ok(Verdict::Granted(_)))
            }
        })
    })
}

/// Whether the section, its queue or the task's queue belongs to another waiter, which is then served first.
fn others_come_first(kernel: &Kernel, state: &Snapshot, actor: usize, id: &tenure_core::id::TaskId) -> bool {
    let me = kernel.scene.callers[actor].process.as_ref();
    let others_wait = |resource: &Resource| {
        live_queue(&state.rows, state, resource).iter().any(|ticket| Some(&ticket.process) != me)
            && state.beliefs[actor].ticket.as_ref().is_none_or(|(_, of)| of != resource)
    };
    let section = kernel.scene.section.as_ref().map(Resource::section);
    let section_held =
        section.as_ref().is_some_and(|section| blocking(&state.rows, state, section).is_some());
    section_held || others_wait(&Resource::task(id)) || section.as_ref().is_some_and(others_wait)
}

pub(crate) fn in_progress_is_leased(_: &Kernel, state: &Snapshot) -> bool {
    state.rows.tasks.iter().all(|(id, task)| {
        let leased = state.rows.open_lease(&Resource::task(id)).is_some();
        leased == (task.status == TaskStatus::InProgress)
    })
}

pub(crate) fn anything_done(state: &Snapshot) -> bool {
    state.rows.tasks.values().any(|task| task.status == TaskStatus::Completed)
}
