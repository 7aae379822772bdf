//! Ends the processes that earlier attempts left behind, before new work on the same task begins.

use tenure_core::Result;
use tenure_core::holder::Caller;
use tenure_core::kernel::{self, Beat, Finish, Grant};
use tenure_core::store::Durability;
use tenure_runner::{Reaped, Scope, reap_attempts, reap_earlier_attempts};

use crate::app::{App, Open};
use crate::report::CommandResult;

/// Reaps earlier attempts at the task before the grant is returned to the caller. If a process survives, the task is
/// released.
pub(crate) fn before(app: &App<'_>, open: &Open<'_>, mut grant: Grant) -> CommandResult<Grant> {
    if app.global.dry_run {
        return Ok(grant);
    }
    let (failed, why) = match reap_earlier_attempts(open.store.as_ref(), &open.context(), &grant)
        .and_then(Reaped::or_survivors)
    {
        Ok(cleared) if cleared.ended.is_empty() => return Ok(grant),
        // Reaping may have taken longer than a short lease lasts.
        Ok(_) => match renew(open, &grant) {
            Ok(lease) => {
                grant.lease = lease;
                return Ok(grant);
            }
            Err(error) => (error, "the lease could not be renewed after reaping"),
        },
        Err(error) => (error, "an earlier attempt still runs"),
    };
    // A grant that is not returned must not stay open.
    if !grant.reacquired {
        release_grant(open, &grant, why);
    }
    Err(failed.into())
}

/// Reaps the attempts of leases that were ended without a new grant.
pub(crate) fn after(app: &mut App<'_>, open: &Open<'_>, scope: Scope<'_>, actor: &str) -> CommandResult<()> {
    if app.global.dry_run {
        return Ok(());
    }
    let cleared = reap_attempts(open.store.as_ref(), &open.context(), scope, actor)?;
    for survivor in &cleared.survivors {
        app.printer.warn(&format!("a process of an ended attempt cannot be killed: {survivor}"));
    }
    Ok(())
}

/// The holder, acting as its own supervisor, so that a return is not charged to an attempt.
fn holder_of(grant: &Grant) -> Caller {
    Caller { process: grant.lease.process.clone(), ..Caller::holding(&grant.lease) }
}

fn renew(open: &Open<'_>, grant: &Grant) -> Result<tenure_core::lease::Lease> {
    let name = kernel::name_of(&grant.task);
    let beat = Beat { revive: true, ..Beat::default() };
    let ctx = open.context();
    open.store.write(Durability::Process, |tx| kernel::renew(tx, &ctx, &holder_of(grant), &name, beat))
}

/// Releases the grant. An error is ignored, because the lease expires anyway.
pub(crate) fn release_grant(open: &Open<'_>, grant: &Grant, why: &str) {
    let name = kernel::name_of(&grant.task);
    let ctx = open.context();
    let word = Finish::Release(Some(why));
    let _ = open.write(|tx| kernel::finish(tx, &ctx, &holder_of(grant), &name, word, false));
}
