//! The possible actions, and their effect according to the real kernel.

use tenure_core::error::TaskName;
use tenure_core::holder::{Caller, Holder};
use tenure_core::kernel::{self, Beat, Finish, Verdict};
use tenure_core::lease::Resource;
use tenure_core::store::{Tx, View, Viewer};
use tenure_core::task::TaskStatus;
use tenure_core::{Error, Result};

use super::canonical::now;
use super::snapshot::{Done, Snapshot};
use super::{Kernel, checks};

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
    /// Acquires, or enqueues for the resource that was refused, in one transaction, as a waiter does when it is
    /// woken.
    AcquireOrWait {
        actor: usize,
        task: usize,
    },
    LeaveQueue {
        actor: usize,
    },
    Renew {
        actor: usize,
        task: usize,
        revive: bool,
    },
    /// Also repeated, or long after the expiry.
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
        for task in 0..kernel.scene.tasks.len() {
            if alive {
                actions.push(Action::Acquire { actor, task });
            }
            if alive && bounds.lost_replies {
                actions.push(Action::AcquireUnheard { actor, task });
            }
            if alive && bounds.waiting {
                actions.push(Action::AcquireOrWait { actor, task });
            }
            // The fence outlives the process: an agent whose runner has died still presents it.
            if belief.fences[task].is_some() {
                actions.push(Action::Done { actor, task });
                actions.push(Action::Release { actor, task });
                if alive {
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
    let caller = &kernel.scene.callers[actor];
    let process = caller.process.clone().unwrap();
    let bell = super::Scene::bell(actor);
    let done = last.transact(|tx, ctx| {
        let verdict = try_acquire(tx, ctx, kernel, last, (actor, task))?;
        let Verdict::Refused(locked) = &verdict else { return Ok((verdict, None)) };
        let ticket = last.beliefs[actor].ticket.as_ref().map(|(number, of)| (*number, of));
        let viewer = ctx.viewer(tx, None)?;
        let number = kernel::enqueue(tx, &viewer, &locked.resource, caller, &process, Some(&bell), ticket)?;
        let ticket = (number, locked.resource.clone());
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

fn dequeue(kernel: &Kernel, last: &Snapshot, next: &mut Snapshot, actor: usize) {
    let Some((number, resource)) = last.beliefs[actor].ticket.clone() else { return };
    let done = last.transact(|tx, ctx| {
        let viewer = ctx.viewer(tx, None)?;
        kernel::dequeue(tx, &viewer, number, &resource)
    });
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
    if !kernel.fenced {
        // The mutant: acts under the latest lease, whatever the caller presents.
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
    let viewer = Viewer { me: None, dead: Vec::new(), ticket_life: std::time::Duration::ZERO };
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
