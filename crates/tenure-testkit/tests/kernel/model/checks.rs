//! The rules stated a second time, as conditions on a step from one state to the next.

use tenure_core::ErrorCode;
use tenure_core::holder::Incarnation;
use tenure_core::id::Fence;
use tenure_core::kernel::{Finished, Grant, Verdict};
use tenure_core::lease::{EndReason, Lease, Resource, ResourceKind, Ticket};
use tenure_core::task::TaskStatus;
use tenure_testkit::memory::State;

use super::Kernel;
use super::actions::{NextOrTicket, try_acquire, try_next};
use super::canonical::now;
use super::snapshot::{Done, Role, Snapshot, TICKET_LIFE, TTL};

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
    }
    let fault = queue_fault(kernel, last, next, done);
    fault.or_else(|| serial_section_fault(kernel, next, &done.rows))
}

/// The live tickets in order of arrival.
fn live_queue<'a>(rows: &'a State, state: &Snapshot) -> Vec<&'a Ticket> {
    let fresh = |ticket: &&Ticket| ticket.refreshed_at.after(TICKET_LIFE) > now();
    let alive = |ticket: &&Ticket| !state.dead.contains(&ticket.process.process.pid);
    rows.tickets.values().filter(fresh).filter(alive).collect()
}

/// Whether a process could take a task if nothing was queued.
fn could_take(kernel: &Kernel, rows: &State, state: &Snapshot, task: usize, process: &Incarnation) -> bool {
    let id = &kernel.scene.tasks[task];
    let startable = matches!(rows.tasks[id].status, TaskStatus::Pending | TaskStatus::InProgress);
    let section = kernel.scene.section_of(task).map(Resource::section);
    let section_free = section.is_none_or(|section| {
        blocking(rows, state, &section).is_none_or(|lease| lease.process.as_ref() == Some(process))
            || continues(rows, state, &section, process)
    });
    startable && live(rows, state, &Resource::task(id)).is_none() && section_free
}

/// Whether the process holds the section, so that it may continue in it.
fn continues(rows: &State, state: &Snapshot, section: &Resource, process: &Incarnation) -> bool {
    live(rows, state, section).is_some_and(|lease| lease.process.as_ref() == Some(process))
}

fn wants(kernel: &Kernel, wish: &Resource, task: usize) -> bool {
    match (wish.task_id(), wish.ready_section()) {
        (Some(id), _) => id == kernel.scene.tasks[task],
        (None, Some(section)) => kernel.scene.section_of(task) == Some(&section),
        (None, None) => wish.is_ready_work(),
    }
}

/// Q1, stated a second time: the task of each live ticket.
fn reserved(kernel: &Kernel, rows: &State, state: &Snapshot) -> Vec<(i64, usize)> {
    given_out(kernel, rows, state, live_queue(rows, state))
}

/// What is reserved for others when a process takes a task. The process counts at the position of its ticket if that is for
/// this task, and last otherwise.
fn reserved_for_others(
    kernel: &Kernel,
    rows: &State,
    state: &Snapshot,
    (process, task): (&Incarnation, usize),
) -> Vec<(i64, usize)> {
    let mut queue = live_queue(rows, state);
    if let Some(place) = queue.iter().position(|ticket| ticket.process == *process) {
        if wants(kernel, &queue[place].resource, task) {
            queue.truncate(place);
        } else {
            queue.remove(place);
        }
    }
    given_out(kernel, rows, state, queue)
}

fn given_out(kernel: &Kernel, rows: &State, state: &Snapshot, queue: Vec<&Ticket>) -> Vec<(i64, usize)> {
    let mut given: Vec<(i64, usize)> = Vec::new();
    for ticket in queue {
        let first = (0..kernel.scene.tasks.len()).find(|task| {
            wants(kernel, &ticket.resource, *task)
                && could_take(kernel, rows, state, *task, &ticket.process)
                && !is_reserved(kernel, &given, *task)
        });
        given.extend(first.map(|task| (ticket.number, task)));
    }
    given
}

fn is_reserved(kernel: &Kernel, given: &[(i64, usize)], task: usize) -> bool {
    let section = kernel.scene.section_of(task);
    given
        .iter()
        .any(|(_, other)| *other == task || (section.is_some() && kernel.scene.section_of(*other) == section))
}

/// A granted task was not reserved for an earlier ticket, and exactly those waiters are woken that get a task only now, or
/// whose task can no longer be started.
fn queue_fault<T>(kernel: &Kernel, last: &Snapshot, next: &Snapshot, done: &Done<T>) -> Option<&'static str> {
    for (task, id) in kernel.scene.tasks.iter().enumerate() {
        let granted = latest(&done.rows, &Resource::task(id))
            .filter(|lease| !last.rows.leases.contains_key(&lease.fence));
        let Some(process) = granted.and_then(|lease| lease.process.as_ref()) else { continue };
        let section = kernel.scene.section_of(task).map(Resource::section);
        let goes_on = section.is_some_and(|section| continues(&last.rows, last, &section, process));
        let others = reserved_for_others(kernel, &last.rows, last, (process, task));
        if !goes_on && is_reserved(kernel, &others, task) {
            return Some("overtaken");
        }
    }
    let before = reserved(kernel, &last.rows, last);
    let after = reserved(kernel, &done.rows, next);
    let bell = |number: i64| done.rows.tickets[&number].doorbell.as_ref().unwrap();
    let got = |given: &[(i64, usize)], number: i64| given.iter().any(|(other, _)| *other == number);
    if after.iter().any(|(number, _)| !got(&before, *number) && !done.rings.contains(bell(*number))) {
        return Some("not woken");
    }
    let over = |ticket: &Ticket| {
        ticket.resource.task_id().is_some_and(|id| done.rows.tasks[&id].status == TaskStatus::Completed)
    };
    let needless = |ticket: &&Ticket| {
        let evicted = done.rows.leases.values().any(|lease| {
            lease.process.as_ref() == Some(&ticket.process)
                && lease.ended.is_some_and(|(_, reason)| reason == EndReason::Forced)
        });
        !got(&after, ticket.number) && !over(ticket) && !evicted && done.rings.contains(bell(ticket.number))
    };
    done.rows.tickets.values().any(|ticket| needless(&ticket)).then_some("woken needlessly")
}

/// Asking for the next task acquires at most the task that is granted (R4).
pub(crate) fn fault_in_asking(
    kernel: &Kernel,
    last: &Snapshot,
    done: &Done<NextOrTicket>,
    actor: usize,
) -> Option<&'static str> {
    let granted = match &done.answer {
        Ok((Some(grant), _)) => Some(grant.lease.fence),
        _ => None,
    };
    let process = kernel.scene.callers[actor].process.as_ref();
    let forgotten = done.rows.leases.values().any(|lease| {
        lease.is_open()
            && lease.resource.kind == ResourceKind::Task
            && lease.process.as_ref() == process
            && Some(lease.fence) != granted
            && !last.rows.leases.contains_key(&lease.fence)
    });
    forgotten.then_some("R4")
}

/// A serial section has one holder at a time, and the section's lease lasts at least as long as those of its tasks.
fn serial_section_fault(kernel: &Kernel, state: &Snapshot, rows: &State) -> Option<&'static str> {
    let section = live(rows, state, &Resource::section(kernel.scene.section.as_ref()?));
    let inside = (0..kernel.scene.tasks.len()).filter(|task| kernel.scene.section_of(*task).is_some());
    let tasks = inside.filter_map(|task| live(rows, state, &Resource::task(&kernel.scene.tasks[task])));
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

/// Each live waiter to which a task goes is granted one when it asks.
pub(crate) fn no_waiter_is_lost(kernel: &Kernel, state: &Snapshot) -> bool {
    let given = reserved(kernel, &state.rows, state);
    (0..kernel.scene.callers.len()).all(|actor| {
        let Some((number, wish)) = &state.beliefs[actor].ticket else { return true };
        if state.is_dead(&kernel.scene.callers[actor]) {
            return true;
        }
        let Some((_, task)) = given.iter().find(|(other, _)| other == number) else { return true };
        if wish.task_id().is_some() {
            let answer = state.transact(|tx, ctx| try_acquire(tx, ctx, kernel, state, (actor, *task))).answer;
            matches!(answer, Ok(Verdict::Granted(_)))
        } else {
            let answer = state.transact(|tx, ctx| try_next(tx, ctx, kernel, state, actor, false)).answer;
            matches!(answer, Ok((Some(_), _)))
        }
    })
}

/// Ready work that is not reserved for a waiter is granted to a newcomer, so a waiter that cannot be satisfied does not
/// block others.
pub(crate) fn no_waiter_starves_others(kernel: &Kernel, state: &Snapshot) -> bool {
    let Some(actor) = kernel.scene.roles.iter().position(|role| *role == Role::Newcomer) else { return true };
    let process = kernel.scene.callers[actor].process.as_ref().unwrap();
    let given = reserved(kernel, &state.rows, state);
    let left = (0..kernel.scene.tasks.len()).any(|task| {
        could_take(kernel, &state.rows, state, task, process) && !is_reserved(kernel, &given, task)
    });
    let dead = state.is_dead(&kernel.scene.callers[actor]);
    !left || dead || {
        let answer = state.transact(|tx, ctx| try_next(tx, ctx, kernel, state, actor, false)).answer;
        matches!(answer, Ok((Some(_), _)))
    }
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
