//! Waiting for a task: one ticket in the queue, woken by the doorbell, the holder's death, the expiry, or polling.
//!
//! A waiter holds a ticket and nothing else. A wake-up is only a hint: the waiter runs the acquire transaction again.
//! When it is interrupted, it removes its ticket and exits with the signal's code. When it is killed, its ticket is dead.

use std::cell::OnceCell;
use std::time::{Duration, Instant};

use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use tenure_core::error::{Locked, ReservedWork, TaskName};
use tenure_core::holder::{Caller, Holder, Incarnation, Judge, Liveness};
use tenure_core::id::{SectionId, TaskId};
use tenure_core::kernel::{self, Grant, Terms, Verdict};
use tenure_core::lease::{LeaseState, Resource, ResourceKind, Ticket};
use tenure_core::rules::{Seen, check_seen};
use tenure_core::store::{ClaimHint, ClaimTarget, Durability, LeaseFilter, StoreHint, Tx, View};
use tenure_core::{Context, Error, Timestamp, reference};
use tenure_runner::{Process, until_any};

use crate::app::{App, Open};
use crate::interrupt::Interrupts;
use crate::reap;
use crate::report::{CommandResult, Report};
use crate::store::Doorbell;
use crate::wait_bar::Bar;

/// What to claim.
#[derive(Debug, Clone)]
pub(crate) enum ClaimRequest {
    Task(NamedTask),
    /// Any ready task, of this section if one is named.
    Next(Option<SectionId>),
}

/// A task as the user named it.
///
/// An id or a key is resolved inside the claim's transaction. Anything else may need a scan of all titles, so it is resolved
/// before that, and checked again inside.
#[derive(Debug, Clone)]
pub(crate) struct NamedTask {
    reference: String,
    found: OnceCell<TaskName>,
}

impl NamedTask {
    pub(crate) fn new(reference: &str) -> Self {
        Self { reference: reference.to_owned(), found: OnceCell::new() }
    }

    fn id_or_key(&self) -> &str {
        self.found.get().map_or(&self.reference, |name| &name.id)
    }

    fn title(&self) -> &str {
        self.found.get().map_or(&self.reference, |name| &name.title)
    }

    fn resolve(&self, view: &dyn View) -> tenure_core::Result<TaskName> {
        if let Some(known) = self.found.get() {
            return reference::task_again(view, &known.id, &self.reference);
        }
        let found = reference::task_by_id_or_key(view, &self.reference)?
            .ok_or_else(|| Error::TaskNotFound { reference: self.reference.clone() })?;
        Ok(self.found.get_or_init(|| found).clone())
    }
}

/// A step in the transaction of a grant. If it fails, nothing was granted.
pub(crate) type Then<'a> = dyn Fn(&mut dyn Tx, &Caller, &mut Grant) -> tenure_core::Result<()> + 'a;

/// A claim: the request, its caller, and a step to run with the grant.
pub(crate) struct Claim<'a> {
    pub(crate) request: &'a ClaimRequest,
    /// Returns the caller for a claim of this task, or of any task. They can differ: a fence from the environment applies to
    /// one task only.
    pub(crate) caller: &'a dyn Fn(Option<&TaskName>) -> Caller,
    pub(crate) then: Option<&'a Then<'a>>,
    /// Refuse the claim of a named task if the task no longer has this state.
    pub(crate) seen: Option<&'a Seen>,
}

impl<'a> Claim<'a> {
    pub(crate) fn new(request: &'a ClaimRequest, caller: &'a dyn Fn(Option<&TaskName>) -> Caller) -> Self {
        Self { request, caller, then: None, seen: None }
    }

    /// Resolves the task and acquires it in the transaction `tx`. The verdict is `None` if any task was requested and
    /// none is ready.
    fn acquire(
        &self,
        tx: &mut dyn Tx,
        ctx: &Context<'_>,
        terms: &Terms,
    ) -> tenure_core::Result<(Caller, Option<Verdict>)> {
        let (caller, mut verdict) = match self.request {
            ClaimRequest::Task(task) => {
                let name = task.resolve(tx)?;
                self.seen.map_or(Ok(()), |seen| check_seen(tx, &name, seen))?;
                let caller = (self.caller)(Some(&name));
                let verdict = kernel::acquire_task(tx, ctx, &caller, &TaskId::new(name.id), terms)?;
                (caller, Some(verdict))
            }
            ClaimRequest::Next(section) => {
                let caller = (self.caller)(None);
                let grant = kernel::acquire_next(tx, ctx, &caller, section.as_ref(), terms)?;
                (caller, grant.map(|grant| Verdict::Granted(Box::new(grant))))
            }
        };
        if let (Some(Verdict::Granted(grant)), Some(then)) = (&mut verdict, self.then) {
            then(tx, &caller, grant)?;
        }
        Ok((caller, verdict))
    }

    /// Runs `body` in a transaction that begins with this claim. `queueing` means that `body` may write a ticket.
    pub(crate) fn transact<T>(
        &self,
        open: &Open<'_>,
        queueing: bool,
        mut body: impl FnMut(&mut dyn Tx) -> tenure_core::Result<T>,
    ) -> tenure_core::Result<T> {
        let holder = (self.caller)(None).holder;
        let task = match self.request {
            // Writing a ticket needs the project's exclusive turn. With the hint, a claim of the next task would begin in a
            // shared one.
            ClaimRequest::Next(_) if queueing => return open.write(body),
            ClaimRequest::Next(section) => {
                let wants = ClaimTarget::Next(section.as_ref());
                return open.store.claim(ClaimHint { holder: &holder, wants }, body);
            }
            ClaimRequest::Task(task) => task,
        };
        let hint = |task| ClaimHint { holder: &holder, wants: ClaimTarget::Task(task) };
        match open.store.claim(hint(task.id_or_key()), &mut body) {
            Err(Error::TaskNotFound { .. }) if task.found.get().is_none() => {
                let found = open.resolve(&task.reference)?;
                let found = task.found.get_or_init(|| found);
                open.store.claim(hint(&found.id), body)
            }
            outcome => outcome,
        }
    }
}

/// One try: granted, or what to wait for.
#[derive(Debug)]
pub(crate) enum TryResult {
    Granted(Box<Grant>),
    /// The request cannot be granted by waiting. The transaction is committed nevertheless.
    Impossible(Error),
    Wait {
        locked: Option<Box<Locked>>,
        /// Ready work that goes to earlier waiters, if any task was requested.
        reserved: Option<ReservedWork>,
        ticket: (i64, Resource),
        until: Option<Timestamp>,
        watch: Vec<Incarnation>,
    },
}

/// Makes the claim, waiting at most `patience`, or not at all if that is `None`. When this returns a grant, no process of an
/// earlier attempt at the task is alive on this host.
pub(crate) fn acquire(
    app: &mut App<'_>,
    open: &Open<'_>,
    claim: &Claim<'_>,
    terms: Terms,
    patience: Option<Duration>,
) -> CommandResult<Grant> {
    let grant = acquire_or_wait(app, open, claim, terms, patience)?;
    reap::before(app, open, grant)
}

fn acquire_or_wait(
    app: &mut App<'_>,
    open: &Open<'_>,
    claim: &Claim<'_>,
    mut terms: Terms,
    patience: Option<Duration>,
) -> CommandResult<Grant> {
    let Some(patience) = patience else { return Ok(try_once(open, claim, &terms)?) };
    let request = claim.request;
    let patience = app.global.timeout.map_or(patience, |limit| patience.min(limit));
    let begun = Instant::now();
    let deadline = begun + patience;
    // Those of an earlier wait in this process.
    let kept = app.wait_handles.pop();
    let (interrupts, doorbell) = match kept {
        Some(handles) => handles,
        None => (Interrupts::listen().map_err(Report::from)?, open.store.doorbell(app.env)),
    };
    let me = Incarnation::current();
    // The preceding waiter may die after its doorbell was rung and before it claims the task. Then no process would ring
    // this one, so the preceding waiter is watched like the holder. New tickets are added at the end, so none can come
    // between the two.
    let mut before = None;
    let mut bar = Bar::default();
    loop {
        if let Some(bell) = &doorbell {
            bell.silence();
        }
        let bell = doorbell.as_ref();
        let outcome = try_and_queue(open, claim, &terms, &me, bell, &mut before);
        let (locked, reserved, ticket, until, watch) = match outcome {
            Ok(TryResult::Granted(grant)) => {
                bar.end(app);
                bar.released(app, request);
                app.wait_handles.push((interrupts, doorbell));
                return Ok(*grant);
            }
            Ok(TryResult::Wait { locked, reserved, ticket, until, watch }) => {
                (locked, reserved, ticket, until, watch)
            }
            Ok(TryResult::Impossible(error)) | Err(error) => {
                // The ticket was not consumed by a grant, so it has to be removed.
                leave(open, &terms)?;
                bar.end(app);
                return Err(error.into());
            }
        };
        terms.ticket = Some(ticket);
        let now = Instant::now();
        if now >= deadline {
            leave(open, &terms)?;
            bar.end(app);
            return Err(timed_out(request, patience, locked).into());
        }
        if bar.begin(app, request, locked.as_deref(), reserved.as_ref()) {
            open.store.hint(StoreHint::GrantExpected);
        }
        let watched: Vec<OwnedFd> =
            watch.iter().filter_map(|who| watch_exit(who, app.env.judge.as_ref())).collect();
        let mut until = until;
        loop {
            let sleep_started = Instant::now();
            let left = deadline.saturating_duration_since(sleep_started);
            open.store.hint(StoreHint::Sleeps);
            let expiry = until.map(|at| at.since(app.env.clock.now()) + Duration::from_millis(1));
            let pause = open.store.refresh_pause(open.config.locking.poll_interval);
            let nap = left.min(pause).min(expiry.unwrap_or(Duration::MAX));
            if let Some(code) = sleep(&interrupts, doorbell.as_ref(), &watched, nap, &mut bar, app, begun) {
                leave(open, &terms)?;
                bar.end(app);
                return Err(Report::interrupted(code));
            }
            // After a ring or a death, try again. If only time has passed, refreshing the ticket may be enough.
            if sleep_started.elapsed() < nap || Instant::now() >= deadline {
                break;
            }
            match still_held(open, locked.as_deref(), &terms)? {
                Some(expires_at) => until = Some(expires_at),
                None => break,
            }
        }
    }
}

/// Refreshes the ticket without a new claim, if the same process still holds the task under the same lease, and returns
/// when that lease expires. A claim would probe every waiter's process, which is slow with a hundred of them.
fn still_held(
    open: &Open<'_>,
    locked: Option<&Locked>,
    terms: &Terms,
) -> tenure_core::Result<Option<Timestamp>> {
    let (Some(lease), Some((number, _))) = (locked.and_then(|l| l.lease.as_ref()), &terms.ticket) else {
        return Ok(None);
    };
    // If the section is held, the task may be finished or blocked meanwhile, so it has to be claimed again.
    if lease.resource.kind != ResourceKind::Task {
        return Ok(None);
    }
    let ctx = open.context();
    let seen = open.store.refresh_ticket(*number, &lease.resource)?;
    let same = seen.and_then(|(now, found)| {
        found.filter(|found| {
            found.is_same(lease)
                && found.process == lease.process
                && found.state(now, ctx.judge) == LeaseState::Live
        })
    });
    Ok(same.map(|lease| lease.expires_at))
}

/// One try without a ticket. A refusal still commits, so a lapsed lease that was closed in the transaction
/// stays closed.
pub(crate) fn try_once(open: &Open<'_>, claim: &Claim<'_>, terms: &Terms) -> tenure_core::Result<Grant> {
    let ctx = open.context();
    claim.transact(open, false, |tx| {
        let section = match (claim.acquire(tx, &ctx, terms)?.1, claim.request) {
            (Some(verdict), _) => return Ok(verdict.granted()),
            (None, ClaimRequest::Next(section)) => section.as_ref(),
            (None, ClaimRequest::Task(_)) => None,
        };
        nothing_for_newcomer(tx, &ctx, section, &(claim.caller)(None).holder).map(Err)
    })?
}

/// Why a caller without a ticket is granted nothing: nothing is ready, or all ready tasks are reserved for earlier waiters.
pub(crate) fn nothing_for_newcomer(
    view: &dyn View,
    ctx: &Context<'_>,
    section: Option<&SectionId>,
    me: &Holder,
) -> tenure_core::Result<Error> {
    let reserved = kernel::reserved_work(view, ctx, section, None)?.map(Box::new);
    let in_use = kernel::sections_in_use(view, ctx, section, &ctx.viewer(view, Some(me))?)?;
    Ok(Error::NothingReady { reserved, in_use })
}

/// Tries once. If it is refused, it takes or keeps a ticket in the same transaction.
pub(crate) fn try_and_queue(
    open: &Open<'_>,
    claim: &Claim<'_>,
    terms: &Terms,
    me: &Incarnation,
    doorbell: Option<&Doorbell>,
    before: &mut Option<Incarnation>,
) -> tenure_core::Result<TryResult> {
    let ctx = open.context();
    claim.transact(open, true, |tx| try_in(tx, &ctx, claim, terms, me, doorbell, before))
}

fn try_in(
    tx: &mut dyn Tx,
    ctx: &Context<'_>,
    claim: &Claim<'_>,
    terms: &Terms,
    me: &Incarnation,
    doorbell: Option<&Doorbell>,
    before: &mut Option<Incarnation>,
) -> tenure_core::Result<TryResult> {
    let (caller, verdict) = claim.acquire(tx, ctx, terms)?;
    let locked = match verdict {
        Some(Verdict::Refused(locked)) => Some(locked),
        Some(verdict) => {
            return Ok(verdict
                .granted()
                .map_or_else(TryResult::Impossible, |grant| TryResult::Granted(Box::new(grant))));
        }
        None => None,
    };
    let wish = match claim.request {
        ClaimRequest::Task(task) => Resource::new(ResourceKind::Task, task.id_or_key()),
        ClaimRequest::Next(section) => Resource::ready(section.as_ref()),
    };
    let address = doorbell.map(Doorbell::address);
    let held = terms.ticket.as_ref().map(|(number, of)| (*number, of));
    let waiter = kernel::Waiter { caller: &caller, process: me, doorbell: address.as_deref(), review: false };
    let number = kernel::enqueue(tx, ctx, &waiter, &wish, held)?;
    let reserved = match claim.request {
        ClaimRequest::Next(section) => kernel::reserved_work(tx, ctx, section.as_ref(), Some(number))?,
        ClaimRequest::Task(_) => None,
    };
    let (until, mut watch): (Option<Timestamp>, Vec<Incarnation>) = match &locked {
        Some(locked) => match &locked.lease {
            Some(lease) => (Some(lease.expires_at), lease.process.iter().cloned().collect()),
            None => (None, locked.first.iter().map(|first| first.process.clone()).collect()),
        },
        // The end of any lease may make a task ready.
        None => {
            let leases = tx.leases(&LeaseFilter { limit: Some(256), ..LeaseFilter::default() })?;
            let until = leases.iter().map(|l| l.expires_at).filter(|at| *at > tx.now()).min();
            (until, leases.into_iter().filter_map(|l| l.process).take(64).collect())
        }
    };
    let lives = |who: &Incarnation| ctx.judge.liveness(who) == Liveness::Alive;
    let earlier = |ticket: &Ticket| ticket.number < number;
    if wish.is_ready_work() {
        // The death of an earlier waiter may free its task for this one, and rings no doorbell.
        let earlier = tx.work_tickets()?.into_iter().filter(earlier);
        watch.extend(earlier.map(|ticket| ticket.process).filter(lives).take(32));
    } else if !before.as_ref().is_some_and(lives) {
        let same = tx.work_tickets()?.into_iter().filter(|ticket| ticket.resource == wish && earlier(ticket));
        *before = same.map(|ticket| ticket.process).rev().find(lives);
    }
    watch.extend(before.iter().cloned());
    // A waiter does not survive a power failure, so its ticket need not either.
    tx.skip_sync();
    Ok(TryResult::Wait { locked, reserved, ticket: (number, wish), until, watch })
}

pub(crate) fn leave(open: &Open<'_>, terms: &Terms) -> CommandResult<()> {
    let Some((number, resource)) = &terms.ticket else { return Ok(()) };
    let ctx = open.context();
    Ok(open.store.write(Durability::Process, |tx| kernel::dequeue(tx, &ctx, *number, resource))?)
}

pub(crate) fn timed_out(request: &ClaimRequest, waited: Duration, locked: Option<Box<Locked>>) -> Error {
    let what = match request {
        ClaimRequest::Task(task) => format!("task {:?}", task.title()),
        ClaimRequest::Next(_) => "a task to become ready".to_owned(),
    };
    Error::WaitTimeout { what, waited, locked }
}

/// A descriptor that is readable once the process has exited. Without one, the exit is noticed at the next poll.
pub(crate) fn watch_exit(who: &Incarnation, judge: &dyn Judge) -> Option<OwnedFd> {
    Process::open_alive(who, judge)?.into_fd()
}

/// Sleeps until a signal comes, the doorbell rings, a watched process exits, or `nap` is over. Returns the exit code of the
/// signal, if one came.
pub(crate) fn sleep(
    interrupts: &Interrupts,
    doorbell: Option<&Doorbell>,
    watched: &[OwnedFd],
    nap: Duration,
    bar: &mut Bar,
    app: &mut App<'_>,
    begun: Instant,
) -> Option<u8> {
    let end = Instant::now() + nap;
    loop {
        bar.draw(app, begun.elapsed());
        let left = end.saturating_duration_since(Instant::now());
        let slice = if bar.is_live { left.min(Duration::from_secs(1)) } else { left };
        let mut fds: Vec<BorrowedFd<'_>> = vec![interrupts.fd()];
        fds.extend(doorbell.map(Doorbell::fd));
        fds.extend(watched.iter().map(AsFd::as_fd));
        let ready = until_any(&fds, slice);
        if let Some(code) = interrupts.caught() {
            return Some(code);
        }
        if ready.contains(&true) || Instant::now() >= end {
            return None;
        }
    }
}
