//! Acquiring: a grant, or a refusal that names the holder, its expiry, and the number of waiters.

use std::time::Duration;

use serde_json::json;

use super::approval::check_approver;
use super::attempt;
use super::end::close_lapsed;
use super::lease_state::{same_holder, section_state};
use super::notes::{Notes, notes};
use super::queue::dequeue;
use super::refusal::{held, may_continue_in, reserved};
use super::work_queue::{Reservations, in_review, place_for, place_for_next};
use crate::context::Context;
use crate::error::{Error, Locked, Result, TaskName};
use crate::event::{EventKind, NewEvent};
use crate::hints::{self, Hint};
use crate::holder::{Caller, HolderKind};
use crate::id::{LeaseKey, LeaseProof, SectionId, TaskId};
use crate::lease::{Attempt, Lease, LeaseState, Resource};
use crate::store::{Agent, LeaseBeat, NewLease, Tx};
use crate::task::{Task, TaskStatus};

const CLAIMED: &str = "claimed";

/// The terms of a claim.
#[derive(Debug, Clone)]
pub struct Terms {
    pub ttl: Duration,
    /// How long the section is kept after the last heartbeat, at least `ttl`.
    pub section_ttl: Duration,
    pub doorbell: Option<String>,
    /// The caller's ticket, if it has one, and what it queues for.
    pub ticket: Option<(i64, Resource)>,
    /// The task is claimed for review: it may be in `review`, and returns there if the lease ends without a result.
    pub review: bool,
    /// The holder is shown the notes on the task, so finishing it acknowledges the messages among them.
    pub shows_notes: bool,
}

impl Terms {
    pub fn new(ttl: Duration) -> Self {
        Self { ttl, section_ttl: ttl, doorbell: None, ticket: None, review: false, shows_notes: true }
    }
}

/// A lease that the caller now holds. Dropping this value does not release it.
#[must_use = "the task is held from now on: work on it, or release it"]
#[derive(Debug, Clone)]
pub struct Grant {
    pub task: Task,
    pub lease: Lease,
    /// The key of the lease. A caller that held it already has its key, and gets `None` unless it presented the key.
    pub key: Option<LeaseKey>,
    /// The caller held the lease already.
    pub reacquired: bool,
    /// The lapsed lease that was taken over.
    pub taken_over: Option<(Lease, LeaseState)>,
    /// Earlier attempts whose processes may still run. They must have ended before a new process is started.
    pub leftovers: Vec<Attempt>,
    /// What earlier holders left on the task, if the terms say that it is shown.
    pub notes: Notes,
}

impl Grant {
    /// The holder's credential, if the key is known.
    pub fn proof(&self) -> Option<LeaseProof> {
        self.key.clone().map(|key| LeaseProof { lease: self.lease.id.clone(), key })
    }
}

#[must_use = "a granted task is held from now on: work on it, or release it"]
#[derive(Debug, Clone)]
pub enum Verdict {
    Granted(Box<Grant>),
    Refused(Box<Locked>),
    /// The task had a lapsed lease, and after closing it the task cannot be started: it has failed, or it returned to
    /// `review`. Not an error, because the transaction has to commit the closing.
    CannotStart {
        task: TaskName,
        hint: Option<Box<Hint>>,
    },
}

impl Verdict {
    pub fn granted(self) -> Result<Grant> {
        match self {
            Self::Granted(grant) => Ok(*grant),
            Self::Refused(locked) => Err(Error::Locked(locked)),
            Self::CannotStart { task, hint } => Err(Error::InvalidTransition { task, verb: CLAIMED, hint }),
        }
    }
}

pub fn name_of(task: &Task) -> TaskName {
    TaskName {
        id: task.id.to_string(),
        key: task.key.clone(),
        title: task.title.clone(),
        status: task.status,
    }
}

/// Acquires one task, together with its section if that is serial, unless it is reserved for an earlier waiter (Q1).
pub fn acquire_task(
    tx: &mut dyn Tx,
    ctx: &Context<'_>,
    caller: &Caller,
    id: &TaskId,
    terms: &Terms,
) -> Result<Verdict> {
    acquire(tx, ctx, caller, id, terms, None)
}

/// Acquires one task. `reservations` are those of earlier waiters, if they are known.
fn acquire(
    tx: &mut dyn Tx,
    ctx: &Context<'_>,
    caller: &Caller,
    id: &TaskId,
    terms: &Terms,
    reservations: Option<&Reservations>,
) -> Result<Verdict> {
    let viewer = ctx.viewer(tx, Some(&caller.holder))?;
    let missing = || Error::TaskNotFound { reference: id.to_string() };
    let mut task = tx.task_row(id, &viewer)?.ok_or_else(missing)?;
    let section = task.section.clone().filter(|s| s.serial);
    let resource = Resource::task(id);

    let mut taken_over = None;
    if let Some(lease) = task.lease.clone() {
        match lease.state(tx.now(), ctx.judge) {
            LeaseState::Live => {
                let running = attempt::is_running(tx, &lease)?;
                if same_holder(&lease, caller, running) {
                    return reacquire(tx, ctx, caller, task, lease, terms);
                }
                return Ok(Verdict::Refused(Box::new(held(tx, ctx, &task, lease, terms)?)));
            }
            state => {
                close_lapsed(tx, ctx, &lease, state, &caller.holder.id)?;
                taken_over = Some((lease, state));
                task = tx.task_row(id, &viewer)?.ok_or_else(missing)?;
            }
        }
    }
    match may_start(&task, terms.review) {
        Err(Error::InvalidTransition { task, hint, .. }) if taken_over.is_some() => {
            return Ok(Verdict::CannotStart { task, hint });
        }
        other => other?,
    }
    if task.status == TaskStatus::Review {
        check_approver(tx, caller, &task)?;
    }

    let kept = match &section {
        Some(section) => match free_section(tx, ctx, caller, &section.id)? {
            FreeSection::Free => None,
            FreeSection::Own(lease) => Some(lease),
            FreeSection::Held(lease) => {
                return Ok(Verdict::Refused(Box::new(held(tx, ctx, &task, lease, terms)?)));
            }
        },
        None => None,
    };
    // The holder of a serial section may continue in it.
    if kept.is_none()
        && let Some(refused) = reserved_for_another(tx, ctx, &task, terms, reservations)?
    {
        return Ok(Verdict::Refused(Box::new(refused)));
    }
    let notes = notes_for(tx, caller, &task, terms)?;
    if let Some(section) = &section {
        take_section(tx, ctx, caller, &section.id, kept.as_ref(), terms)?;
    }

    let new = NewLease {
        id: ctx.ids.lease(),
        key: ctx.ids.lease_key(),
        resource,
        holder: caller.holder.clone(),
        process: caller.process.clone(),
        doorbell: terms.doorbell.clone(),
        ttl: terms.ttl,
        expires_at: tx.now().after(terms.ttl),
        // A task that another program left in progress without a lease returns to `pending`.
        claimed_from: Some(match task.status {
            TaskStatus::InProgress => TaskStatus::Pending,
            status => status,
        }),
        messages_through: notes.messages_through(),
    };
    let key = Some(new.key.clone());
    let lease = grant(tx, ctx, new)?;
    let mut event = acquired(&lease, taken_over.as_ref()).task(&task.id);
    if let Some((number, _)) = &terms.ticket {
        event.detail["ticket"] = json!(number);
    }
    tx.append(event)?;
    let event = NewEvent::new(EventKind::TaskStatus, &caller.holder.id)
        .task(&task.id)
        .status(task.status, TaskStatus::InProgress)
        .fence(lease.fence);
    tx.set_status(&task.id, TaskStatus::InProgress, event)?;
    register_agent(tx, caller)?;
    remove_own_ticket(tx, ctx, terms)?;
    let (status, updated_at) = (TaskStatus::InProgress, tx.now());
    let task = Task { status, ready: false, lease: Some(lease.clone()), updated_at, ..task };
    let leftovers = tx.ending_attempts(&lease.resource)?;
    let grant = Grant { task, lease, key, reacquired: false, taken_over, leftovers, notes };
    Ok(Verdict::Granted(Box::new(grant)))
}

/// Acquires the first ready task in working order that is not reserved for an earlier waiter (Q1).
pub fn acquire_next(
    tx: &mut dyn Tx,
    ctx: &Context<'_>,
    caller: &Caller,
    section: Option<&SectionId>,
    terms: &Terms,
) -> Result<Option<Grant>> {
    let mut viewer = ctx.viewer(tx, Some(&caller.holder))?;
    let reservations = Reservations::before_claim(tx, ctx, terms, place_for_next(terms, section))?;
    let reserved = reservations.reserved();
    // Each round returns, clears `viewer.me`, or makes a task unready, so the loop ends. The bound stops a store that
    // keeps offering a task that cannot be claimed.
    for _ in 0..1000 {
        let Some(id) = tx.next_unreserved(section, &reserved, &viewer)? else { return Ok(None) };
        match acquire(tx, ctx, caller, &id, terms, Some(&reservations))? {
            Verdict::Granted(grant) => return Ok(Some(*grant)),
            // The search counted a serial section as the caller's by name, but another process holds it. The next round
            // ignores the name.
            Verdict::Refused(_) if viewer.me.is_some() => viewer.me = None,
            Verdict::Refused(_) => return Ok(None),
            Verdict::CannotStart { .. } => {}
        }
    }
    Ok(None)
}

/// Acquires the first task in review, in working order, that is not held or reserved for an earlier waiter (Q1).
pub fn acquire_next_review(
    tx: &mut dyn Tx,
    ctx: &Context<'_>,
    caller: &Caller,
    section: Option<&SectionId>,
    terms: &Terms,
) -> Result<Option<Grant>> {
    let viewer = ctx.viewer(tx, Some(&caller.holder))?;
    let tasks = in_review(tx, &viewer, section)?;
    if tasks.is_empty() {
        return Ok(None);
    }
    let reservations = Reservations::before_claim(tx, ctx, terms, place_for_next(terms, section))?;
    let terms = Terms { review: true, ..terms.clone() };
    for task in tasks {
        match acquire(tx, ctx, caller, &task.id, &terms, Some(&reservations)) {
            Ok(Verdict::Granted(grant)) => return Ok(Some(*grant)),
            // Held, or no longer in review because its lapsed lease was closed in this transaction.
            Ok(Verdict::Refused(_) | Verdict::CannotStart { .. })
            | Err(Error::NotReady { .. } | Error::InvalidTransition { .. }) => {}
            Err(error) => return Err(error),
        }
    }
    Ok(None)
}

/// The refusal because the task is reserved for an earlier waiter.
fn reserved_for_another(
    tx: &dyn Tx,
    ctx: &Context<'_>,
    task: &Task,
    terms: &Terms,
    known: Option<&Reservations>,
) -> Result<Option<Locked>> {
    let read;
    let reservations = match known {
        Some(known) => known,
        None => {
            read = Reservations::before_claim(tx, ctx, terms, place_for(terms, task))?;
            &read
        }
    };
    reservations.of(task).map(|made| reserved(tx, ctx, task, made, terms)).transpose()
}

fn notes_for(tx: &dyn Tx, caller: &Caller, task: &Task, terms: &Terms) -> Result<Notes> {
    if terms.shows_notes { notes(tx, task, &caller.holder) } else { Ok(Notes::default()) }
}

fn may_start(task: &Task, review: bool) -> Result<()> {
    let name = name_of(task);
    let hint = match task.status {
        TaskStatus::Review if review => return Ok(()),
        TaskStatus::Pending | TaskStatus::InProgress => None,
        TaskStatus::Failed | TaskStatus::Skipped => Some(hints::retry(&task.key)),
        TaskStatus::Review => Some(hints::reject(&task.key)),
        TaskStatus::Completed => Some(hints::reopen(&task.key)),
    };
    if hint.is_some() {
        return Err(Error::InvalidTransition { task: name, verb: CLAIMED, hint: hint.map(Box::new) });
    }
    if !task.blocked_by.is_empty() {
        return Err(Error::NotReady { task: name, blocked_by: task.blocked_by.clone() });
    }
    Ok(())
}

fn reacquire(
    tx: &mut dyn Tx,
    ctx: &Context<'_>,
    caller: &Caller,
    task: Task,
    mut lease: Lease,
    terms: &Terms,
) -> Result<Verdict> {
    // The lease was claimed without a process. It now records the caller's, so the death of that process ends it.
    if lease.process.is_none() && caller.process.is_some() {
        lease.process.clone_from(&caller.process);
        lease.doorbell.clone_from(&terms.doorbell);
        lease.ttl = terms.ttl;
        lease.heartbeat_at = tx.now();
        lease.expires_at = lease.expires_at.max(tx.now().after(terms.ttl));
        tx.beat(
            lease.fence,
            &LeaseBeat {
                process: lease.process.clone(),
                doorbell: lease.doorbell.clone(),
                ttl: lease.ttl,
                heartbeat_at: lease.heartbeat_at,
                expires_at: lease.expires_at,
            },
        )?;
        if let Some(section) = task.section.as_ref().filter(|s| s.serial) {
            super::renew::renew_section(tx, ctx, &section.id, &lease, terms.section_ttl)?;
        }
    }
    let notes = notes_for(tx, caller, &task, terms)?;
    if notes.messages_through() > lease.messages_through {
        lease.messages_through = notes.messages_through();
        tx.set_messages_through(lease.fence, lease.messages_through)?;
    }
    remove_own_ticket(tx, ctx, terms)?;
    let leftovers = tx.ending_attempts(&lease.resource)?;
    let key = caller.key.clone().filter(|_| caller.presents(&lease));
    let grant = Grant { task, lease, key, reacquired: true, taken_over: None, leftovers, notes };
    Ok(Verdict::Granted(Box::new(grant)))
}

/// Whether a caller may take a section.
enum FreeSection {
    Free,
    /// The caller holds it already.
    Own(Lease),
    Held(Lease),
}

/// Closes a lapsed lease of the section.
fn free_section(tx: &mut dyn Tx, ctx: &Context<'_>, caller: &Caller, id: &SectionId) -> Result<FreeSection> {
    let Some(lease) = tx.open_lease(&Resource::section(id))? else { return Ok(FreeSection::Free) };
    if may_continue_in(tx, ctx, caller, &lease) {
        return Ok(FreeSection::Own(lease));
    }
    match section_state(tx, ctx, &lease)? {
        LeaseState::Live => Ok(FreeSection::Held(lease)),
        state => {
            close_lapsed(tx, ctx, &lease, state, &caller.holder.id)?;
            Ok(FreeSection::Free)
        }
    }
}

/// Renews the section's lease `kept` of the caller, or acquires the free section.
fn take_section(
    tx: &mut dyn Tx,
    ctx: &Context<'_>,
    caller: &Caller,
    id: &SectionId,
    kept: Option<&Lease>,
    terms: &Terms,
) -> Result<()> {
    let ttl = terms.section_ttl.max(terms.ttl);
    if let Some(lease) = kept {
        return super::renew::renew_section(tx, ctx, id, lease, ttl).map(drop);
    }
    let new = NewLease {
        id: ctx.ids.lease(),
        key: ctx.ids.lease_key(),
        resource: Resource::section(id),
        holder: caller.holder.clone(),
        process: caller.process.clone(),
        doorbell: terms.doorbell.clone(),
        ttl,
        expires_at: tx.now().after(ttl),
        claimed_from: None,
        messages_through: 0,
    };
    let lease = grant(tx, ctx, new)?;
    tx.append(acquired(&lease, None))
}

/// Ids of leases are short, so that they can be typed. If another lease already has the id, a new one is drawn.
pub(super) fn grant(tx: &mut dyn Tx, ctx: &Context<'_>, mut lease: NewLease) -> Result<Lease> {
    for _ in 0..100 {
        if let Some(granted) = tx.grant(&lease)? {
            return Ok(granted);
        }
        lease.id = ctx.ids.lease();
    }
    Err(Error::store("could not draw an unused id for a lease"))
}

pub(super) fn own_ticket(terms: &Terms, resource: &Resource) -> Option<i64> {
    terms.ticket.as_ref().filter(|(_, of)| of == resource).map(|(number, _)| *number)
}

/// Removes the ticket of a caller that was granted a lease. If that leaves work to later waiters, wakes them.
pub(super) fn remove_own_ticket(tx: &mut dyn Tx, ctx: &Context<'_>, terms: &Terms) -> Result<()> {
    let Some((number, resource)) = &terms.ticket else { return Ok(()) };
    if tx.open_lease(resource)?.is_some() {
        return tx.delete_ticket(*number);
    }
    dequeue(tx, ctx, *number, resource)
}

pub(super) fn acquired<'a>(lease: &'a Lease, taken_over: Option<&(Lease, LeaseState)>) -> NewEvent<'a> {
    NewEvent::new(EventKind::LeaseAcquired, &lease.holder.id).fence(lease.fence).detail(json!({
        "lease": lease.id,
        "resource": lease.resource.to_string(),
        "holder": lease.holder.to_string(),
        "expiresAt": lease.expires_at,
        "takenOverFrom": taken_over.map(|(old, _)| json!({"holder": old.holder.to_string(), "fence": old.fence})),
    }))
}

/// Registers the caller as an agent at its first use.
fn register_agent(tx: &mut dyn Tx, caller: &Caller) -> Result<()> {
    if caller.holder.kind != HolderKind::Agent {
        return Ok(());
    }
    if tx.see_agent(&caller.holder.id)? {
        return Ok(());
    }
    let now = tx.now();
    tx.save_agent(&Agent {
        id: caller.holder.id.clone(),
        name: None,
        capabilities: Vec::new(),
        joined_at: now,
        last_seen_at: now,
        left_at: None,
        active_claims: 0,
    })?;
    tx.append(NewEvent::new(EventKind::AgentJoined, &caller.holder.id))
}
