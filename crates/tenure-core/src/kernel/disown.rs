//! Making a copied store independent of the processes that work in the original.

use super::attempt::{Outcome, end_attempt};
use super::end::end_by_force;
use super::reconcile::reconcile;
use crate::context::Context;
use crate::error::Result;
use crate::holder::{Incarnation, Judge, Liveness};
use crate::store::{LeaseFilter, Tx};

/// What was closed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Disowned {
    pub leases: usize,
    pub attempts: usize,
    pub runners: usize,
}

/// Reports every process as gone, and none as killed by its attempt.
#[derive(Debug)]
struct OfTheOriginal;

impl Judge for OfTheOriginal {
    fn liveness(&self, _process: &Incarnation) -> Liveness {
        Liveness::Dead
    }

    fn is_this_boot(&self, _process: &Incarnation) -> bool {
        false
    }
}

/// Closes every open lease, attempt, runner and ticket, because their processes work in the store that this one was
/// copied from. Tasks return to the status they were claimed from, uncharged. No process is killed and no doorbell is
/// rung.
pub fn disown(tx: &mut dyn Tx, ctx: &Context<'_>, actor: &str) -> Result<Disowned> {
    let ctx = Context { judge: &OfTheOriginal, ..*ctx };
    for ticket in tx.all_tickets()? {
        tx.delete_ticket(ticket.number)?;
    }
    let leases = tx.leases(&LeaseFilter::default())?;
    for lease in &leases {
        // The end of an earlier one may have ended this one too.
        if tx.open_lease(&lease.resource)?.is_some_and(|open| open.fence == lease.fence) {
            end_by_force(tx, &ctx, lease, actor)?;
        }
    }
    let repairs = reconcile(tx, &ctx, actor)?;
    let outcome = Outcome { reason: "the project was copied".to_owned(), ..Outcome::default() };
    for attempt in &repairs.attempts {
        end_attempt(tx, &ctx, attempt, &outcome, actor)?;
    }
    Ok(Disowned { leases: leases.len(), attempts: repairs.attempts.len(), runners: repairs.runners.len() })
}
