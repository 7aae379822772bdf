//! The possible actions, and their effect according to the real kernel.

use tenure_core::error::TaskName;
use tenure_core::holder::{Caller, Holder};
use tenure_core::kernel::{self, Beat, Finish, Grant, Terms, Verdict, Waiter};
use tenure_core::lease::{Resource, Ticket};
use tenure_core::store::{Tx, View, Viewer};
use tenure_core::task::TaskStatus;
use tenure_core::{Error, Result};

use super::canonical::now;
use super::snapshot::{Done, Role, Snapshot};
use super::{Kernel, Mutant, checks};
use crate::full;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Action {
    /// Without waiting.
    Acquire {
        actor: usize,
        task: usize,
    },
    /// It is granted, but the reply is lost: the holder does not know its fence.
    AcquireUnheard {
        actor: usize,
        task: usize,
    },
    /// Acquires, or enqueues for the task, in one transaction, as a waiter does when it is woken.
    AcquireOrWait {
        actor: usize,
        task: usize,
    },
    /// Acquires the first task that the actor may take, without waiting.
    Next {
        actor: usize,
    },
    /// Acquires the first task that the actor may take, or enqueues for it.
    NextOrWait {
        actor: usize,
    },
    LeaveQueue {
        actor: usize,
    },
    Renew {
        actor: usize,
        task: usize,
        revive: bool,
    },
    /// May be repeated, or come long after the expiry.
    Done {
        actor: usize,
        task: usize,
    },
    Release {
        actor: usize,
        task: usize,
    },
    Force {
        task: usize,
    },
    ForceSection,
    Cleanup,
    /// A person reopens a completed task.
    Reopen {
        task: usize,
    },
    Crash {
        actor: usize,
    },
    /// The clock advances. A holder that does nothing meanwhile is paused past its expiry.
    Tick,
    StepBack,
}

pub(crate) fn possible(kernel: &Kernel, state: &Snapshot, actions: &mut Vec<Action>) {
    let bounds = &kernel.bounds;
    let rows = &state.rows;
    for actor in 0..kernel.scene.callers.len() {
        let belief = &state.beliefs[actor];
        let alive = !state.is_dead(&kernel.scene.callers[actor]);
        let role = kernel.scene.roles[actor];
        match role {
            Role::Everything | Role::Named(_) => {}
            Role::Newcomer if alive => actions.push(Action::Next { actor }),
            _ if alive => actions.push(Action::NextOrWait { actor }),
            _ => {}
        }
        for task in 0..kernel.scene.tasks.len() {
            let everything = alive && role == Role::Everything;
            if everything || (alive && role == Role::Newcomer && full()) {
                actions.push(Action::Acquire { actor, task });
            }
            if everything && bounds.lost_replies {
                actions.push(Action::AcquireUnheard { actor, task });
            }
            if (everything && bounds.waiting) || (alive && role == Role::Named(task)) {
                actions.push(Action::AcquireOrWait { actor, task });
            }
            // The fence outlives the process: an agent whose runner has died still presents it.
            if belief.fences[task].is_some() {
                actions.push(Action::Done { actor, task });
                actions.push(Action::Release { actor, task });
                if alive && bounds.renewing {
                    actions.push(Action::Renew { actor, task, revive: false });
                    actions.push(Action::Renew { actor, task, revive: true });
                }
            }
        }
        if alive && belief.ticket.is_some() {
            actions.push(Action::LeaveQueue { actor });
        }
        if alive && state.dead.len() < bounds.crashes {
            actions.push(Action::Crash { actor });
        }
    }
    if bounds.force {
        for (task, id) in kernel.scene.tasks.iter().enumerate() {
            if rows.open_lease(&Resource::task(id)).is_some() {
                actions.push(Action::Force { task });
            }
        }
        if kernel.scene.section.as_ref().is_some_and(|id| rows.open_lease(&Resource::section(id)).is_some()) {
            actions.push(Action::ForceSection);
        }
    }
    actions.push(Action::Cleanup);
    for (task, id) in kernel.scene.tasks.iter().enumerate() {
        if rows.tasks[id].status == TaskStatus::Completed {
            actions.push(Action::Reopen { task });
        }
    }
    actions.push(Action::Tick);
    if bounds.back_steps && state.may_step_back() {
        actions.push(Action::StepBack);
    }
}

pub(crate) fn perform(kernel: &Kernel, last: &Snapshot, action: Action) -> Snapshot {
    let mut next = last.clone();
    match action {
        Action::Tick => next.tick(),
        Action::StepBack => next.step_back(),
        Action::Crash { actor } => {
            let process = kernel.scene.callers[actor].process.as_ref();
            next.dead.extend(process.map(|process| process.process.pid));
        }
        Action::Acquire { actor, task } => acquire(kernel, last, &mut next, (actor, task), true),
        Action::AcquireUnheard { actor, task } => acquire(kernel, last, &mut next, (actor, task), false),
        Action::AcquireOrWait { actor, task } => acquire_or_wait(kernel, last, &mut next, actor, task),
        Action::Next { actor } => next_or_wait(kernel, last, &mut next, actor, false),
        Action::NextOrWait { actor } => next_or_wait(kernel, last, &mut next, actor, true),
        Action::LeaveQueue { actor } => dequeue(kernel, last, &mut next, actor),
        Action::Renew { actor, task, revive } => renew(kernel, last, &mut next, (actor, task), revive),
        Action::Done { actor, task } => finish(kernel, last, &mut next, (actor, task), Finish::Done),
        Action::Release { actor, task } => {
            finish(kernel, last, &mut next, (actor, task), Finish::Release(None));
        }
        Action::Force { task } => force(kernel, last, &mut next, &Resource::task(&kernel.scene.tasks[task])),
        Action::ForceSection => {
            if let Some(id) = &kernel.scene.section {
                force(kernel, last, &mut next, &Resource::section(id));
            }
        }
        Action::Reopen { task } => {
            let person = Caller::new(Holder::person("boss"));
            let done = last.transact(|tx, ctx| {
                let id = &kernel.scene.tasks[task];
                kernel::override_status(tx, ctx, &person, id, TaskStatus::Pending, None, false)
            });
            check_step(kernel, last, &mut next, done);
        }
        Action::Cleanup => {
            let done = last.transact(|tx, ctx| kernel::close_all_lapsed(tx, ctx, "janitor"));
            check_step(kernel, last, &mut next, done);
        }
    }
    next
}

/// Stores the new rows and checks the step.
fn check_step<T>(kernel: &Kernel, last: &Snapshot, next: &mut Snapshot, done: Done<T>) -> Option<T> {
    let fault = checks::fault_in(kernel, last, next, &done);
    next.fault = next.fault.or(fault);
    next.rows = done.rows;
    done.answer.ok()
}

pub(crate) fn try_acquire(
    tx: &mut dyn Tx,
    ctx: &tenure_core::Context<'_>,
    kernel: &Kernel,
    state: &Snapshot,
    (actor, task): (usize, usize),
) -> Result<Verdict> {
    let (caller, id) = (&kernel.scene.callers[actor], &kernel.scene.tasks[task]);
    kernel::acquire_task(tx, ctx, caller, id, &state.terms(actor))
}

fn acquire(
    kernel: &Kernel,
    last: &Snapshot,
    next: &mut Snapshot,
    (actor, task): (usize, usize),
    heard: bool,
) {
    let done = last.transact(|tx, ctx| try_acquire(tx, ctx, kernel, last, (actor, task)));
    if let Some(Verdict::Granted(grant)) = check_step(kernel, last, next, done) {
        if heard {
            next.beliefs[actor].fences[task] = Some(grant.lease.fence);
            next.beliefs[actor].ticket = None;
        }
        let fault = checks::fault_in_grant(kernel, last, next, (actor, task), &grant);
        next.fault = next.fault.or(fault);
    }
}

fn acquire_or_wait(kernel: &Kernel, last: &Snapshot, next: &mut Snapshot, actor: usize, task: usize) {
    let done = last.transact(|tx, ctx| {
        let verdict = try_acquire(tx, ctx, kernel, last, (actor, task))?;
        let Verdict::Refused(_) = &verdict else { return Ok((verdict, None)) };
        let ticket = enqueue(tx, ctx, kernel, last, actor, &kernel.scene.wish(actor, task))?;
        Ok((verdict, Some(ticket)))
    });
    match check_step(kernel, last, next, done) {
        Some((Verdict::Granted(grant), _)) => {
            if last.beliefs[actor].ticket.is_some() {
                kernel.seen.served();
            }
            next.beliefs[actor].fences[task] = Some(grant.lease.fence);
            next.beliefs[actor].ticket = None;
            let fault = checks::fault_in_grant(kernel, last, next, (actor, task), &grant);
            next.fault = next.fault.or(fault);
        }
        Some((_, ticket)) => next.beliefs[actor].ticket = ticket,
        // A task that cannot be claimed at all is not waited for.
        None => {}
    }
}

fn enqueue(
    tx: &mut dyn Tx,
    ctx: &tenure_core::Context<'_>,
    kernel: &Kernel,
    last: &Snapshot,
    actor: usize,
    wish: &Resource,
) -> Result<(i64, Resource)> {
    let caller = &kernel.scene.callers[actor];
    let process = caller.process.clone().unwrap();
    let bell = super::Scene::bell(actor);
    let waiter = Waiter { caller, process: &process, doorbell: Some(&bell), review: false };
    let ticket = last.beliefs[actor].ticket.as_ref().map(|(number, of)| (*number, of));
    Ok((kernel::enqueue(tx, ctx, &waiter, wish, ticket)?, wish.clone()))
}

/// The grant of the next task, or the ticket of an actor that waits.
pub(crate) type NextOrTicket = (Option<Grant>, Option<(i64, Resource)>);

pub(crate) fn try_next(
    tx: &mut dyn Tx,
    ctx: &tenure_core::Context<'_>,
    kernel: &Kernel,
    state: &Snapshot,
    actor: usize,
    waits: bool,
) -> Result<NextOrTicket> {
    let caller = &kernel.scene.callers[actor];
    let terms = state.terms(actor);
    let wish = kernel.scene.wish(actor, 0);
    let section = wish.ready_section();
    let one_queue = matches!(kernel.mutant, Some(Mutant::OneQueue | Mutant::AskingAcquires));
    if !one_queue || !others_wait(tx, state, actor)? {
        let granted = kernel::acquire_next(tx, ctx, caller, section.as_ref(), &terms)?;
        if granted.is_some() || !waits {
            return Ok((granted, None));
        }
    } else if !waits {
        return Ok((None, None));
    }
    if kernel.scene.roles[actor] == Role::Runner && !is_hindered(tx, ctx, kernel, actor, &terms)? {
        return Ok((None, None));
    }
    Ok((None, Some(enqueue(tx, ctx, kernel, state, actor, &wish)?)))
}

/// Asks why nothing was granted, as a runner does: whether work is reserved for others or held by them.
fn is_hindered(
    tx: &mut dyn Tx,
    ctx: &tenure_core::Context<'_>,
    kernel: &Kernel,
    actor: usize,
    terms: &Terms,
) -> Result<bool> {
    let caller = &kernel.scene.callers[actor];
    let mine = terms.ticket.as_ref().map(|(number, _)| *number);
    let mut hindered = kernel::reserved_work(tx, ctx, None, mine)?.is_some();
    let viewer = ctx.viewer(tx, Some(&caller.holder))?;
    for id in &kernel.scene.tasks {
        let Some(task) = tx.task(id, &viewer)?.filter(|task| task.status == TaskStatus::Pending) else {
            continue;
        };
        hindered |= if kernel.mutant == Some(Mutant::AskingAcquires) {
            matches!(kernel::acquire_task(tx, ctx, caller, id, terms)?, Verdict::Refused(_))
        } else {
            kernel::in_the_way(tx, ctx, caller, &task, terms)?.is_some()
        };
    }
    Ok(hindered)
}

/// The mutants' rule: a live ticket comes first, no matter what it is for.
fn others_wait(tx: &dyn Tx, state: &Snapshot, actor: usize) -> Result<bool> {
    let mine = state.beliefs[actor].ticket.as_ref().map_or(i64::MAX, |(number, _)| *number);
    let live =
        |ticket: &Ticket| ticket.is_fresh(tx.now()) && !state.dead.contains(&ticket.process.process.pid);
    Ok(tx.work_tickets()?.iter().any(|ticket| ticket.number < mine && live(ticket)))
}

fn next_or_wait(kernel: &Kernel, last: &Snapshot, next: &mut Snapshot, actor: usize, waits: bool) {
    let done = last.transact(|tx, ctx| try_next(tx, ctx, kernel, last, actor, waits));
    let fault = checks::fault_in_asking(kernel, last, &done, actor);
    next.fault = next.fault.or(fault);
    match check_step(kernel, last, next, done) {
        Some((Some(grant), _)) => {
            if last.beliefs[actor].ticket.is_some() {
                kernel.seen.served();
            }
            let task = kernel.scene.tasks.iter().position(|id| *id == grant.task.id).unwrap();
            next.beliefs[actor].fences[task] = Some(grant.lease.fence);
            next.beliefs[actor].ticket = None;
            let fault = checks::fault_in_grant(kernel, last, next, (actor, task), &grant);
            next.fault = next.fault.or(fault);
        }
        Some((None, Some(ticket))) => next.beliefs[actor].ticket = Some(ticket),
        // A runner without work does not wait in the queue.
        Some((None, None)) if waits => dequeue(kernel, &next.clone(), next, actor),
        _ => {}
    }
}

fn dequeue(kernel: &Kernel, last: &Snapshot, next: &mut Snapshot, actor: usize) {
    let Some((number, resource)) = last.beliefs[actor].ticket.clone() else { return };
    let done = last.transact(|tx, ctx| kernel::dequeue(tx, ctx, number, &resource));
    check_step(kernel, last, next, done);
    next.beliefs[actor].ticket = None;
}

fn renew(kernel: &Kernel, last: &Snapshot, next: &mut Snapshot, (actor, task): (usize, usize), revive: bool) {
    let caller = credential(kernel, last, actor, task);
    let beat = Beat { revive, ..Beat::default() };
    let done = last.transact(|tx, ctx| {
        let name = name(tx, kernel, task)?;
        kernel::renew(tx, ctx, &caller, &name, beat)
    });
    let fault = checks::fault_in_renewal(kernel, last, &done, (actor, task), revive);
    next.fault = next.fault.or(fault);
    if let Some(lease) = check_step(kernel, last, next, done) {
        let before = last.rows.leases.get(&lease.fence);
        if before.is_some_and(|before| before.expires_at <= now()) {
            kernel.seen.revived();
        }
    }
}

fn finish(
    kernel: &Kernel,
    last: &Snapshot,
    next: &mut Snapshot,
    (actor, task): (usize, usize),
    word: Finish<'_>,
) {
    let mut caller = credential(kernel, last, actor, task);
    let shown = caller.fence;
    if kernel.mutant == Some(Mutant::Unfenced) {
        // Acts under the latest lease, no matter which fence the caller presents.
        let resource = Resource::task(&kernel.scene.tasks[task]);
        if let Some(latest) = last.rows.leases.values().rfind(|lease| lease.resource == resource) {
            caller = Caller { process: caller.process, ..Caller::holding(latest) };
        }
    }
    let done = last.transact(|tx, ctx| {
        let name = name(tx, kernel, task)?;
        kernel::finish(tx, ctx, &caller, &name, word, false)
    });
    if matches!(&done.answer, Err(Error::LeaseLost(_))) {
        kernel.seen.late();
    }
    let fault = checks::fault_in_finish(kernel, last, &done, shown, task);
    next.fault = next.fault.or(fault);
    check_step(kernel, last, next, done);
}

fn force(kernel: &Kernel, last: &Snapshot, next: &mut Snapshot, resource: &Resource) {
    let Some(shown) = last.rows.open_lease(resource).cloned() else { return };
    let done = last.transact(|tx, ctx| kernel::evict(tx, ctx, "boss", &shown));
    check_step(kernel, last, next, done);
}

/// A caller that acts under a lease presents its fence, unless its process has died.
fn credential(kernel: &Kernel, state: &Snapshot, actor: usize, task: usize) -> Caller {
    let caller = kernel.scene.callers[actor].clone();
    let caller = if state.is_dead(&caller) { Caller::new(caller.holder) } else { caller };
    caller.with_fence(state.beliefs[actor].fences[task])
}

fn name(tx: &dyn Tx, kernel: &Kernel, task: usize) -> Result<TaskName> {
    let id = &kernel.scene.tasks[task];
    let viewer = Viewer::default();
    let view: &dyn View = tx;
    let found = view.task(id, &viewer)?;
    Ok(found.map_or_else(
        || TaskName {
            id: id.to_string(),
            key: String::new(),
            title: String::new(),
            status: TaskStatus::Pending,
        },
        |task| kernel::name_of(&task),
    ))
}
