//! Changes to a job as a whole, made by its coordinator under the job's lease.

use std::collections::BTreeSet;

use serde_json::json;

use crate::context::Context;
use crate::error::{Error, Locked, Result};
use crate::event::{EventKind, NewEvent};
use crate::hints;
use crate::holder::Caller;
use crate::job::{Definition, ItemState, Job, JobState};
use crate::kernel::{self, Terms, move_job, read_job, settle_job};
use crate::lease::{EndReason, Lease, ResourceKind};
use crate::shell_quote::quote;
use crate::store::{ItemFilter, JobLookup, LeaseFilter, NewJob, Tx, View};
use crate::text;

/// Creates a job in state `loading` and grants its lease. The job is invisible to others until [`publish_job`].
pub fn begin_job(
    tx: &mut dyn Tx,
    ctx: &Context<'_>,
    caller: &Caller,
    id: &str,
    name: &str,
    definition: &Definition,
    terms: &Terms,
) -> Result<(Job, Lease)> {
    text::check_job_name(name)?;
    for job in tx.loading_jobs()? {
        remove_unpublished(tx, ctx, &job, &caller.holder.id)?;
    }
    refuse_duplicate_name(tx, ctx, name, definition)?;
    let new = NewJob { id: id.to_owned(), name: name.to_owned(), definition: definition.clone() };
    tx.insert_job(&new)?;
    let job = read_job(tx, id)?;
    match kernel::acquire_resource(tx, ctx, caller, &job.resource(), name, terms)? {
        Ok(lease) => Ok((job, lease)),
        Err(locked) => Err(Error::Locked(locked)),
    }
}

/// The name of an unfinished job is unique, so that a reference by name is unambiguous.
fn refuse_duplicate_name(
    tx: &mut dyn Tx,
    ctx: &Context<'_>,
    name: &str,
    definition: &Definition,
) -> Result<()> {
    let Some(job) = tx.find_jobs(JobLookup::Name(name), 1)?.pop().filter(|job| job.state == JobState::Open)
    else {
        return match tx.loading_jobs()?.into_iter().find(|job| job.name == name) {
            Some(job) => Err(held(tx, ctx, &job)?),
            None => Ok(()),
        };
    };
    if tx.open_lease(&job.resource())?.is_some_and(|lease| kernel::is_live(tx, ctx, &lease)) {
        return Err(held(tx, ctx, &job)?);
    }
    let changes = job.definition.changes_to(definition);
    if changes.is_empty() {
        return Err(Error::invalid_with_hint(
            format!("job {name} is unfinished and can be resumed"),
            hints::resume(quote(name)),
        ));
    }
    Err(Error::DefinitionChanged { what: format!("job {name}"), changes })
}

fn held(tx: &dyn Tx, ctx: &Context<'_>, job: &Job) -> Result<Error> {
    let resource = job.resource();
    let lease = tx.open_lease(&resource)?;
    let viewer = ctx.viewer(tx, None)?;
    let queue = kernel::waiters_before(tx, &viewer, &resource, None)?;
    Ok(Error::Locked(Box::new(kernel::locked(tx, resource, &job.name, None, lease, &queue)?)))
}

/// Adds items to a job that is loading or being extended.
pub fn load_items(
    tx: &mut dyn Tx,
    ctx: &Context<'_>,
    lease: &Lease,
    first: u64,
    payloads: &[String],
) -> Result<()> {
    kernel::must_hold(tx, ctx, lease)?;
    tx.insert_items(&lease.resource.id, first, payloads)
}

/// Makes a job visible once all its items are written.
pub fn publish_job(tx: &mut dyn Tx, ctx: &Context<'_>, lease: &Lease) -> Result<Job> {
    let job = read_job(tx, &lease.resource.id)?;
    kernel::must_hold(tx, ctx, lease)?;
    let event = NewEvent::new(EventKind::JobCreated, &lease.holder.id)
        .fence(lease.fence)
        .detail(json!({"job": job.id, "name": job.name, "items": job.counts.total}));
    tx.set_job_state(&job.id, JobState::Open, event)?;
    settle_job(tx, &job.id, &lease.holder.id)
}

/// Deletes a job whose items could not all be read.
pub fn drop_job(tx: &mut dyn Tx, ctx: &Context<'_>, lease: &Lease) -> Result<()> {
    let job = read_job(tx, &lease.resource.id)?;
    kernel::must_hold(tx, ctx, lease)?;
    if job.state == JobState::Loading {
        tx.delete_job(&job.id)?;
    }
    kernel::release_resource(tx, ctx, lease, EndReason::Released)
}

/// Deletes a job whose creator died before publishing it.
fn remove_unpublished(tx: &mut dyn Tx, ctx: &Context<'_>, job: &Job, actor: &str) -> Result<()> {
    let resource = job.resource();
    if tx.open_lease(&resource)?.is_some_and(|lease| kernel::is_live(tx, ctx, &lease)) {
        return Ok(());
    }
    kernel::close_if_lapsed(tx, ctx, &resource, actor)?;
    tx.delete_job(&job.id)
}

/// How to resume a job.
#[derive(Debug, Clone, Copy, Default)]
pub struct TakeUp {
    /// Also retry the items in the dead-letter list, with a new count of failures.
    pub retry_failed: bool,
}

#[derive(Debug, Clone)]
pub enum TakenUp {
    /// The caller is now the coordinator.
    Yours(Box<Job>, Box<Lease>),
    /// No item is left to run, or the job was cancelled.
    Finished(Box<Job>),
    Refused(Box<Locked>),
}

/// Makes the caller the coordinator of the job.
pub fn take_up_job(
    tx: &mut dyn Tx,
    ctx: &Context<'_>,
    caller: &Caller,
    id: &str,
    terms: &Terms,
    how: TakeUp,
) -> Result<TakenUp> {
    let job = read_job(tx, id)?;
    let lease = match kernel::acquire_resource(tx, ctx, caller, &job.resource(), &job.name, terms)? {
        Ok(lease) => lease,
        Err(locked) => return Ok(TakenUp::Refused(locked)),
    };
    let actor = &caller.holder.id;
    let mut requeued = 0;
    if how.retry_failed && job.state != JobState::Cancelled {
        requeued = tx.requeue_items(id, ItemState::Failed, tx.now())?;
    }
    let left = requeued + job.counts.pending + job.counts.running;
    if job.state == JobState::Failed && left > 0 {
        let why = format!("resumed with {left} items left");
        move_job(tx, &job, JobState::Open, actor, Some(&why))?;
    }
    let job = settle_job(tx, id, actor)?;
    if job.state == JobState::Open {
        return Ok(TakenUp::Yours(Box::new(job), Box::new(lease)));
    }
    kernel::release_resource(tx, ctx, &lease, EndReason::Released)?;
    Ok(TakenUp::Finished(Box::new(job)))
}

/// Applies an accepted change of the definition: adds new items, and drops unfinished ones that are no longer in the
/// source.
pub fn change_definition(
    tx: &mut dyn Tx,
    ctx: &Context<'_>,
    lease: &Lease,
    definition: &Definition,
    changes: &[String],
) -> Result<Job> {
    let job = read_job(tx, &lease.resource.id)?;
    kernel::must_hold(tx, ctx, lease)?;
    tx.set_definition(&job.id, definition)?;
    let event = NewEvent::new(EventKind::JobChanged, &lease.holder.id)
        .fence(lease.fence)
        .detail(json!({"job": job.id, "name": job.name, "changes": changes}));
    tx.append(event)?;
    settle_job(tx, &job.id, &lease.holder.id)
}

/// Drops items that are neither held nor finished.
pub fn drop_items(tx: &mut dyn Tx, ctx: &Context<'_>, lease: &Lease, numbers: &[u64]) -> Result<()> {
    kernel::must_hold(tx, ctx, lease)?;
    tx.delete_items(&lease.resource.id, numbers)
}

/// Cancels the job permanently and evicts the workers that hold its items.
pub fn cancel_job(tx: &mut dyn Tx, ctx: &Context<'_>, lease: &Lease) -> Result<Job> {
    let job = read_job(tx, &lease.resource.id)?;
    kernel::must_hold(tx, ctx, lease)?;
    let actor = &lease.holder.id;
    for item in tx.items(&ItemFilter::running(Some(&job.id)))? {
        if let Some(held) = tx.open_lease(&item.resource())? {
            kernel::evict(tx, ctx, actor, &held)?;
        }
    }
    move_job(tx, &job, JobState::Cancelled, actor, None)?;
    kernel::release_resource(tx, ctx, lease, EndReason::Released)?;
    read_job(tx, &job.id)
}

/// The ids of the jobs that have a live coordinator, or a worker with a live lease on one of their items.
pub fn jobs_at_work(view: &dyn View, ctx: &Context<'_>) -> Result<BTreeSet<String>> {
    let kinds = Some(vec![ResourceKind::Job, ResourceKind::Item]);
    let mut leases = view.leases(&LeaseFilter { kinds, ..LeaseFilter::default() })?;
    leases.retain(|lease| kernel::is_live(view, ctx, lease));
    Ok(leases.into_iter().filter_map(|lease| lease.resource.job_id().map(str::to_owned)).collect())
}
