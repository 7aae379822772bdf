//! Applying an outcome that its supervisor kept outside the store (F6).

use super::{attempt, finish};
use crate::context::Context;
use crate::error::Result;
use crate::lease::Lease;
use crate::outcome::AttemptResult;
use crate::store::Tx;

/// Ends the lapsed lease with the outcome that was kept for it, in the name of its holder. False if there is none, or if
/// the hash of its nonce is not the one in the attempt's row.
pub(super) fn apply(tx: &mut dyn Tx, ctx: &Context<'_>, lease: &Lease) -> Result<bool> {
    let Some(kept) = ctx.outcomes.kept(lease.fence) else { return Ok(false) };
    let hash = Some(kept.nonce.hash());
    let attempts = tx.attempts(&lease.resource)?;
    let its_own = |a: &&crate::lease::Attempt| a.id == kept.attempt && a.fence == lease.fence;
    let Some(attempt) = attempts.iter().find(its_own).filter(|a| a.outcome_hash == hash) else {
        return Ok(false);
    };
    let result = match attempt::failed_start(tx, attempt)? {
        Some(why) => AttemptResult::Broken { why },
        None => kept.result,
    };
    finish::settle_result(tx, ctx, lease, &result)?;
    attempt::note_exit_code(tx, attempt, kept.exit_code)?;
    Ok(true)
}
