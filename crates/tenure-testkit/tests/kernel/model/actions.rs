//! What can happen next, and what the real kernel makes of it.

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
        who: usize,
        task: usize,
    },
    /// It is granted, but the reply is lost: the holder does not know its fence.
    AcquireUnheard {
        who: usize,
        task: usize,
    },
    /// Acquire, or stand in the line that refused it, in one transaction: what a waiter does whenever it wakes.
    AcquireOrWait {
        who: usize,
        task: usize,
    },
    LeaveLine {
        who: usize,
    },
    Renew {
        who: usize,
        task: usize,
        revive: bool,
    },
    /// Also when it was said before, or is long too late.
    Done {
        who: usize,
        task: usize,
    },
    Release {
        who: usize,
        task: usize,
    },
    Force {
        task: usize,
    },
    ForceSection,
    Cleanup,
    /// A person opens what was completed.
    Reopen {
        task: usize,
    },
    Crash {
        who: usize,
    },
    /// The clock goes on. Whoever does nothing meanwhile is paused past its expiry.
    Tick,
    StepBack,
}

pub(crate) fn possible(kernel: &Kernel, state: &Snapshot, actions: &mut Vec<Action>) {
    let bounds = &kernel.bounds;
    let rows = &state.rows;
    for who in 0..kernel.scene.callers.len() {
        let belief = &state.beliefs[who];
        let alive = !state.is_dead(&kernel.scene.callers[who]);
        for task in 0..kernel.scene.tasks.len() {
            if alive {
                actions.push(Action::Acquire { who, task });
            }
            if alive && bounds.lost_replies {
                actions.push(Action::AcquireUnheard { who, task });
            }
            if alive && bounds.waiting {
                actions.push(Action::AcquireOrWait { who, task });
            }
            // The fence outlives the process: an agent that its runner has left behind still shows it.
            if belief.fences[task].is_some() {
                actions.push(Action::Done { who, task });
                actions.push(Action::Release { who, task });
                if alive {
                    actions.push(Action::Renew { who, task, revive: false });
                    actions.push(Action::Renew { who, task, revive: true });
                }
            }
        }
        if alive && belief.ticket.is_some() {
            actions.push(Action::LeaveLine { who });
        }
        if alive && state.dead.len() < bounds.crashes {
            actions.push(Action::Crash { who });
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
        Action::Crash { who } => {
            let process = kernel.scene.callers[who].process.as_ref();
            next.dead.extend(process.map(|process| process.process.pid));
        }
        Action::Acquire { who, task } => acquire(kernel, last, &mut next, (who, task), true),
        Action::AcquireUnheard { who, task } => acquire(kernel, last, &mut next, (who, task), false),
        Action::AcquireOrWait { who, task } => acquire_or_wait(kernel, last, &mut next, who, task),
        Action::LeaveLine { who } => dequeue(kernel, last, &mut next, who),
        Action::Renew { who, task, revive } => renew(kernel, last, &mut next, (who, task), revive),
        Action::Done { who, task } => finish(kernel, last, &mut next, (who, task), Finish::Done),
        Action::Release { who, task } => finish(kernel, last, &mut next, (who, task), Finish::Release(None)),
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
            settle(kernel, last, &mut next, done);
        }
        Action::Cleanup => {
            let done = last.transact(|tx, ctx| kernel::close_all_lapsed(tx, ctx, "janitor"));
            settle(kernel, last, &mut next, done);
        }
    }
    next
}

/// Takes the rows over and judges the step by them.
fn settle<T>(kernel: &Kernel, last: &Snapshot, next: &mut Snapshot, done: Done<T>) -> Option<T> {
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
    (who, task): (usize, usize),
) -> Result<Verdict> {
    let (caller, id) = (&kernel.scene.callers[who], &kernel.scene.tasks[task]);
    kernel::acquire_task(tx, ctx, caller, id, &state.terms(who))
}

fn acquire(kernel: &Kernel, last: &Snapshot, next: &mut Snapshot, (who, task): (usize, usize), heard: bool) {
    let done = last.transact(|tx, ctx| try_acquire(tx, ctx, kernel, last, (who, task)));
    if let Some(Verdict::Granted(grant)) = settle(kernel, last, next, done) {
        if heard {
            next.beliefs[who].fences[task] = Some(grant.lease.fence);
            next.beliefs[who].ticket = None;
        }
        let fault = checks::fault_in_grant(kernel, last, next, (who, task), &grant);
        next.fault = next.fault.or(fault);
    }
}

fn acquire_or_wait(kernel: &Kernel, last: &Snapshot, next: &mut Snapshot, who: usize, task: usize) {
    let caller = &kernel.scene.callers[who];
    let process = caller.process.clone().unwrap();
    let bell = super::Scene::bell(who);
    let done = last.transact(|tx, ctx| {
        let verdict = try_acquire(tx, ctx, kernel, last, (who, task))?;
        let Verdict::Refused(locked) = &verdict else { return Ok((verdict, None)) };
        let ticket = last.beliefs[who].ticket.as_ref().map(|(number, of)| (*number, of));
        let viewer = ctx.viewer(tx, None)?;
        let number = kernel::enqueue(tx, &viewer, &locked.resource, caller, &process, Some(&bell), ticket)?;
        let ticket = (number, locked.resource.clone());
        Ok((verdict, Some(ticket)))
    });
    match settle(kernel, last, next, done) {
        Some((Verdict::Granted(grant), _)) => {
            if last.beliefs[who].ticket.is_some() {
                kernel.seen.served();
            }
            next.beliefs[who].fences[task] = Some(grant.lease.fence);
            next.beliefs[who].ticket = None;
            let fault = checks::fault_in_grant(kernel, last, next, (who, task), &grant);
            next.fault = next.fault.or(fault);
        }
        Some((_, ticket)) => next.beliefs[who].ticket = ticket,
        // What cannot be claimed at all is not waited for either.
        None => {}
    }
}

fn dequeue(kernel: &Kernel, last: &Snapshot, next: &mut Snapshot, who: usize) {
    let Some((number, resource)) = last.beliefs[who].ticket.clone() else { return };
    let done = last.transact(|tx, ctx| {
        let viewer = ctx.viewer(tx, None)?;
        kernel::dequeue(tx, &viewer, number, &resource)
    });
    settle(kernel, last, next, done);
    next.beliefs[who].ticket = None;
}

fn renew(kernel: &Kernel, last: &Snapshot, next: &mut Snapshot, (who, task): (usize, usize), revive: bool) {
    let caller = credential(kernel, last, who, task);
    let beat = Beat { revive, ..Beat::default() };
    let done = last.transact(|tx, ctx| {
        let name = name(tx, kernel, task)?;
        kernel::renew(tx, ctx, &caller, &name, beat)
    });
    let fault = checks::fault_in_renewal(kernel, last, &done, (who, task), revive);
    next.fault = next.fault.or(fault);
    if let Some(lease) = settle(kernel, last, next, done) {
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
    (who, task): (usize, usize),
    word: Finish<'_>,
) {
    let mut caller = credential(kernel, last, who, task);
    let shown = caller.fence;
    if !kernel.fenced {
        // The mutant: whatever fence was shown, the latest is taken for it.
        let resource = Resource::task(&kernel.scene.tasks[task]);
        let latest = last.rows.leases.values().rfind(|lease| lease.resource == resource);
        caller.fence = latest.map(|lease| lease.fence);
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
    settle(kernel, last, next, done);
}

fn force(kernel: &Kernel, last: &Snapshot, next: &mut Snapshot, resource: &Resource) {
    let Some(shown) = last.rows.open_lease(resource).cloned() else { return };
    let done = last.transact(|tx, ctx| kernel::evict(tx, ctx, "boss", &shown));
    settle(kernel, last, next, done);
}

/// Who acts for a lease shows its fence; a process that has died has left that to others.
fn credential(kernel: &Kernel, state: &Snapshot, who: usize, task: usize) -> Caller {
    let caller = kernel.scene.callers[who].clone();
    let caller = if state.is_dead(&caller) { Caller::new(caller.holder) } else { caller };
    caller.with_fence(state.beliefs[who].fences[task])
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
