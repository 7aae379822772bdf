//! Items of a job: each is held by one worker at a time, taken in order, and finished once.
//!
//! Guarantees: a success is recorded only under the latest grant of its item and is never undone; an item whose lease
//! lapses becomes pending again; a job ends in the transaction that ends the last of its items.

use serde_json::json;

use super::acquire::Terms;
use super::attempt;
use super::end::{close, close_lapsed};
use super::lease_state::state_for_holder;
use super::resource::{acquire_resource, renew_resource};
use crate::clock::Timestamp;
use crate::context::Context;
use crate::error::{Error, Result};
use crate::event::{EventKind, NewEvent};
use crate::holder::Caller;
use crate::job::{Item, ItemState, Job, JobState, OnFailure, item_of};
use crate::lease::{EndReason, Lease, LeaseState};
use crate::outcome::AttemptResult;
use crate::store::{ItemFilter, Tx};

#[derive(Debug, Clone)]
pub struct ItemGrant {
    pub item: Item,
    pub lease: Lease,
}

/// The next thing that a worker of a job can do.
#[derive(Debug, Clone)]
pub enum NextItem {
    Granted(Box<ItemGrant>),
    /// No item can be taken now. The first pending one is due at this time.
    Later(Timestamp),
    /// All unfinished items are held by other workers. Some may become pending again.
    Busy,
    Over(JobState),
}

/// How an item's command ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ItemOutcome<'a> {
    Succeeded,
    /// `for_good`: a retry would fail in the same way, so the item is not retried.
    Failed {
        why: &'a str,
        for_good: bool,
    },
    /// The command was stopped by its worker, or because the job's lease was lost. This does not count as a failure.
    Interrupted {
        why: &'a str,
    },
}

impl ItemOutcome<'_> {
    fn end_reason(self) -> EndReason {
        match self {
            Self::Succeeded | Self::Failed { .. } => EndReason::Completed,
            Self::Interrupted { .. } => EndReason::Released,
        }
    }
}

#[derive(Debug, Clone)]
pub struct FinishedItem {
    pub item: Item,
    pub job: Job,
    /// False if the same lease has already reported the end of this item.
    pub changed: bool,
}

/// Grants the caller the next item of a job that is due. If no pending item is due, grants one whose lease has lapsed.
pub fn take_item(
    tx: &mut dyn Tx,
    ctx: &Context<'_>,
    caller: &Caller,
    job: &str,
    terms: &Terms,
) -> Result<NextItem> {
    let job = read_job(tx, job)?;
    if job.state != JobState::Open {
        return Ok(NextItem::Over(job.state));
    }
    match tx.first_pending(&job.id)? {
        Some(item) if item.due_at <= tx.now() => return grant(tx, ctx, caller, item, terms),
        _ => {}
    }
    for item in tx.items(&ItemFilter::running(Some(&job.id)))? {
        let resource = item.resource();
        let Some(lease) = tx.open_lease(&resource)? else { continue };
        let state = lease.state(tx.now(), ctx.judge);
        if state != LeaseState::Live {
            close_lapsed(tx, ctx, &lease, state, &caller.holder.id)?;
            // An outcome that was kept for it may have ended the item, or postponed it.
            let returned = tx.item(&item.job, item.number)?;
            if let Some(item) = returned.filter(|i| i.state == ItemState::Pending && i.due_at <= tx.now()) {
                return grant(tx, ctx, caller, item, terms);
            }
        }
    }
    let job = read_job(tx, &job.id)?;
    if job.state != JobState::Open {
        return Ok(NextItem::Over(job.state));
    }
    if let Some(item) = tx.first_pending(&job.id)? {
        return Ok(NextItem::Later(item.due_at));
    }
    Ok(match settle_job(tx, &job.id, &caller.holder.id)?.state {
        JobState::Open => NextItem::Busy,
        over => NextItem::Over(over),
    })
}

fn grant(tx: &mut dyn Tx, ctx: &Context<'_>, caller: &Caller, item: Item, terms: &Terms) -> Result<NextItem> {
    let name = format!("{} of job {}", item.number, item.job);
    match acquire_resource(tx, ctx, caller, &item.resource(), &name, terms)? {
        Ok(lease) => {
            let item = Item { state: ItemState::Running, updated_at: tx.now(), ..item };
            tx.save_item(&item)?;
            Ok(NextItem::Granted(Box::new(ItemGrant { item, lease })))
        }
        // Only another program can have left a lease on a pending item.
        Err(_) => Ok(NextItem::Busy),
    }
}

/// Renews the lease of an item, or revives it if it only expired. False if the item is no longer the holder's.
pub fn renew_item(tx: &mut dyn Tx, ctx: &Context<'_>, held: &Lease) -> Result<bool> {
    let Some((job, number)) = item_of(held) else { return Ok(false) };
    let latest = tx.latest_lease(&held.resource)?.filter(|latest| latest.is_same(held));
    if let Some(lease) = latest.filter(|lease| lease.ended.is_some())
        && state_for_holder(&lease, tx.now(), ctx.judge) == LeaseState::Expired
    {
        // A clean-up closed the lease and returned the item. The item was not granted since, because this lease is
        // still the latest.
        let Some(item) = tx.item(job, number)?.filter(|item| item.state == ItemState::Pending) else {
            return Ok(false);
        };
        let running = Item { state: ItemState::Running, updated_at: tx.now(), ..item.clone() };
        save(tx, &item, &running, &held.holder.id, Some(held))?;
        attempt::mark_running(tx, held)?;
    }
    Ok(renew_resource(tx, ctx, held, None)?.is_some())
}

/// The holder's report on its item, accepted only under the latest grant (L8) and applied once.
pub fn finish_item(
    tx: &mut dyn Tx,
    ctx: &Context<'_>,
    held: &Lease,
    outcome: ItemOutcome<'_>,
) -> Result<FinishedItem> {
    let lost = || Error::WorkLost { what: held.resource.to_string() };
    let (job, number) = item_of(held).ok_or_else(lost)?;
    let job = read_job(tx, job)?;
    let item = tx.item(&job.id, number)?.ok_or_else(lost)?;
    let latest = tx.latest_lease(&held.resource)?;
    let lease = latest.filter(|latest| latest.is_same(held)).ok_or_else(lost)?;
    let reason = outcome.end_reason();
    match state_for_holder(&lease, tx.now(), ctx.judge) {
        LeaseState::Live | LeaseState::Expired => {}
        LeaseState::Ended(ended) if ended == reason && item.state != ItemState::Running => {
            return Ok(FinishedItem { item, job, changed: false });
        }
        _ => return Err(lost()),
    }
    if lease.ended.is_some() {
        // The lease was closed as expired. It is reopened, so that it ends with the reason that the holder reports.
        tx.reopen_lease(lease.fence)?;
    }
    settle(tx, &lease, &job, &item, outcome)
}

/// Ends an open lease with the result of its attempt at an item. No effect if the item is no longer there.
pub(super) fn settle_result(tx: &mut dyn Tx, lease: &Lease, result: &AttemptResult) -> Result<()> {
    let outcome = match result {
        AttemptResult::Done => ItemOutcome::Succeeded,
        AttemptResult::Failed { why, .. }
        | AttemptResult::Broken { why }
        | AttemptResult::Unreported { why } => ItemOutcome::Failed { why, for_good: false },
        AttemptResult::Returned { why } => ItemOutcome::Interrupted { why },
    };
    let Some((job, number)) = item_of(lease) else { return Ok(()) };
    let (Some(job), Some(item)) = (tx.job(job)?, tx.item(job, number)?) else { return Ok(()) };
    settle(tx, lease, &job, &item, outcome).map(drop)
}

fn settle(
    tx: &mut dyn Tx,
    lease: &Lease,
    job: &Job,
    item: &Item,
    outcome: ItemOutcome<'_>,
) -> Result<FinishedItem> {
    let actor = lease.holder.id.clone();
    let next = after(job, item, outcome, tx.now());
    let message = next.error.clone().filter(|_| outcome != ItemOutcome::Succeeded);
    close(tx, lease, outcome.end_reason(), message.as_deref(), &actor, false)?;
    save(tx, item, &next, &actor, Some(lease))?;
    if next.state == ItemState::Failed
        && job.definition.options.on_failure == OnFailure::Stop
        && job.state == JobState::Open
    {
        move_job(tx, job, JobState::Failed, &actor, Some(&format!("item {} failed", item.number)))?;
    }
    let job = settle_job(tx, &job.id, &actor)?;
    Ok(FinishedItem { item: next, job, changed: true })
}

/// The item after its command ended with `outcome`.
fn after(job: &Job, item: &Item, outcome: ItemOutcome<'_>, now: Timestamp) -> Item {
    let options = &job.definition.options;
    let mut next = Item { updated_at: now, ..item.clone() };
    match outcome {
        ItemOutcome::Succeeded => {
            next.state = ItemState::Succeeded;
            next.error = None;
        }
        ItemOutcome::Interrupted { .. } => {
            // `due_at` is unchanged, so the item comes before items that have not been started.
            next.state = ItemState::Pending;
        }
        ItemOutcome::Failed { why, for_good } => {
            next.failures = item.failures.saturating_add(1);
            next.error = Some(why.to_owned());
            if for_good || next.failures > options.retries {
                next.state = match options.on_failure {
                    OnFailure::Dlq | OnFailure::Stop => ItemState::Failed,
                    OnFailure::Skip => ItemState::Skipped,
                };
            } else {
                next.state = ItemState::Pending;
                next.due_at = now.after(options.backoff.pause(next.failures));
            }
        }
    }
    next
}

/// Makes the item of a lease pending again if the lease ended without a report from its holder.
pub(super) fn return_item_of(tx: &mut dyn Tx, lease: &Lease, why: &str, actor: &str) -> Result<()> {
    let Some((job, number)) = item_of(lease) else { return Ok(()) };
    match tx.item(job, number)?.filter(|item| item.state == ItemState::Running) {
        Some(item) => return_item(tx, &item, why, actor, Some(lease)),
        None => Ok(()),
    }
}

pub(super) fn return_item(
    tx: &mut dyn Tx,
    item: &Item,
    why: &str,
    actor: &str,
    lease: Option<&Lease>,
) -> Result<()> {
    let (state, updated_at) = (ItemState::Pending, tx.now());
    let next = Item { state, updated_at, error: Some(why.to_owned()), ..item.clone() };
    save(tx, item, &next, actor, lease)
}

fn save(tx: &mut dyn Tx, item: &Item, next: &Item, actor: &str, lease: Option<&Lease>) -> Result<()> {
    tx.save_item(next)?;
    let mut event = NewEvent::new(EventKind::ItemStatus, actor).detail(json!({
        "job": item.job, "item": item.number, "from": item.state.as_str(), "to": next.state.as_str(),
        "failures": next.failures, "message": next.error,
    }));
    event.fence = lease.map(|lease| lease.fence);
    tx.append(event)
}

/// Ends an open job if no item is left to run.
pub(crate) fn settle_job(tx: &mut dyn Tx, id: &str, actor: &str) -> Result<Job> {
    let job = read_job(tx, id)?;
    if job.state != JobState::Open || !job.counts.is_over() {
        return Ok(job);
    }
    let to = if job.counts.failed > 0 { JobState::Failed } else { JobState::Completed };
    move_job(tx, &job, to, actor, None)?;
    read_job(tx, id)
}

pub(crate) fn move_job(
    tx: &mut dyn Tx,
    job: &Job,
    to: JobState,
    actor: &str,
    why: Option<&str>,
) -> Result<()> {
    let event = NewEvent::new(EventKind::JobStatus, actor).detail(json!({
        "job": job.id, "name": job.name, "from": job.state.as_str(), "to": to.as_str(), "message": why,
    }));
    tx.set_job_state(&job.id, to, event)
}

pub(crate) fn read_job(tx: &dyn Tx, id: &str) -> Result<Job> {
    tx.job(id)?.ok_or_else(|| Error::JobNotFound { reference: id.to_owned() })
}
