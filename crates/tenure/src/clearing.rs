//! Ends the processes that earlier attempts have left behind, before anything new starts on the same task.

use tenure_core::Result;
use tenure_core::holder::Caller;
use tenure_core::kernel::{self, Beat, Finish, Grant};
use tenure_core::store::Durability;
use tenure_runner::{Cleared, Scope, end_leftovers, finish_ending};

use crate::app::{App, Open};
use crate::report::Outcome;

/// Before a grant is answered. If a process does not die, the task is returned.
pub(crate) fn before(app: &App<'_>, open: &Open<'_>, mut grant: Grant) -> Outcome<Grant> {
    if app.global.dry_run {
        return Ok(grant);
    }
    match end_leftovers(open.store.as_ref(), &open.context(), &grant).and_then(Cleared::or_survivors) {
        Ok(cleared) if cleared.ended.is_empty() => {}
        // The killing may have taken longer than a short lease lasts.
        Ok(_) => grant.lease = renew(open, &grant)?,
        Err(error) => {
            if !grant.reacquired {
                give_back(open, &grant, "an earlier attempt still runs");
            }
            return Err(error.into());
        }
    }
    Ok(grant)
}

/// After leases were ended by a caller that does not claim them.
pub(crate) fn after(app: &mut App<'_>, open: &Open<'_>, scope: Scope<'_>, actor: &str) -> Outcome<()> {
    if app.global.dry_run {
        return Ok(());
    }
    let cleared = finish_ending(open.store.as_ref(), &open.context(), scope, actor)?;
    for survivor in &cleared.survivors {
        app.printer.warn(&format!("a process of an ended attempt does not die: {survivor}"));
    }
    Ok(())
}

/// The fence proves the holder, whatever name the claim was made under.
fn holder_of(grant: &Grant) -> Caller {
    Caller::new(grant.lease.holder.clone()).with_fence(Some(grant.lease.fence))
}

fn renew(open: &Open<'_>, grant: &Grant) -> Result<tenure_core::lease::Lease> {
    let name = kernel::name_of(&grant.task);
    let beat = Beat { revive: true, ..Beat::default() };
    let ctx = open.context();
    open.store.write(Durability::Process, |tx| kernel::renew(tx, &ctx, &holder_of(grant), &name, beat))
}

/// Best effort: a lease that cannot be returned expires.
pub(crate) fn give_back(open: &Open<'_>, grant: &Grant, why: &str) {
    let name = kernel::name_of(&grant.task);
    let ctx = open.context();
    let word = Finish::Release(Some(why));
    let _ = open.write(|tx| kernel::finish(tx, &ctx, &holder_of(grant), &name, word, false));
}
