//! The lease kernel: who holds a resource, for how long, and what happens when the holder vanishes.
//!
//! Each function here is one decision inside one transaction. They guarantee, for every resource: at most one open
//! lease (L1, by the store's unique index); fences that only rise (L2); a lapsed lease blocks nobody (L3, L5) and is
//! taken over in the transaction that closes it (L4); only the latest grant may write, and nothing but time may have
//! ended it (L8); a section and its task are granted together or not at all (L9).
//!
//! They do not touch processes. Ending the processes of a lapsed attempt is the caller's work, after the commit.

mod acquire;
mod attempt;
mod end;
mod item;
mod line;
mod reconcile;
mod refusal;
mod renew;
mod resource;
mod settle;
mod standing;
mod wake;
mod word;

pub use acquire::{Grant, Terms, Verdict, acquire_next, acquire_task, name_of};
pub use attempt::{
    Outcome, begin_attempt, end_attempt, ending_attempts, failed_start, note_failed_start, note_pid,
    unfinished_attempts,
};
pub use end::{Finished, Forced, break_off, bury_lapsed, finish, force, let_go};
pub use item::{FinishedItem, ItemGrant, ItemOutcome, NextItem, finish_item, renew_item, take_item};
pub(crate) use item::{lock_job, move_job, settle_job};
pub use line::{join_line, leave_line, waiting_before};
pub use reconcile::{Repairs, reconcile};
pub use refusal::locked;
pub use renew::{Beat, check, renew};
pub(crate) use resource::close_lapsed;
pub use resource::{acquire_resource, is_live, must_hold, release_resource, renew_resource};
pub(crate) use settle::held_error;
pub use settle::settle;
pub use standing::{Claim, claim_of, same_holder};
pub use wake::message_line;
pub(crate) use wake::{message_arrived, work_appeared};
pub use word::Finish;
