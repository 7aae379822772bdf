//! The lease kernel: which holder has a resource, for how long, and what happens when the holder dies or stops
//! renewing.
//!
//! Each function here is one decision inside one transaction. They guarantee, for every resource: at most one open
//! lease (L1, by the store's unique index); fences that only rise (L2); a lapsed lease blocks nothing (L3, L5) and is
//! taken over in the transaction that closes it (L4); only the latest grant may write, and only if its lease has not
//! ended other than by expiry (L8); a section and its task are granted together or not at all (L9).
//!
//! They do not touch processes. The caller kills the processes of a lapsed attempt after the commit.

mod acquire;
mod approval;
mod attempt;
mod disown;
mod end;
mod finish;
mod invariants;
mod item;
mod kept;
mod lease_state;
mod notes;
mod open_section;
mod override_status;
mod queue;
mod reconcile;
mod refusal;
mod rejected;
mod renew;
mod resource;
mod wake;
mod work_queue;

pub use acquire::{Grant, Terms, Verdict, acquire_next, acquire_next_review, acquire_task, name_of};
pub(crate) use approval::check_approver;
pub use attempt::{
    Outcome, begin_attempt, end_attempt, failed_start, leader_of, note_failed_start, note_leader,
    unfinished_attempts,
};
pub use disown::{Disowned, disown};
pub(crate) use end::close_lapsed;
pub use end::{Evicted, close_all_lapsed, end_lock, evict, release};
pub use finish::{Finish, Finished, conclude_attempt, finish};
pub use invariants::{Violation, check_invariants, repair};
pub use item::{FinishedItem, ItemGrant, ItemOutcome, NextItem, finish_item, renew_item, take_item};
pub(crate) use item::{move_job, read_job, settle_job};
pub use lease_state::{Claim, acts_under, claim_of, same_holder};
pub use notes::{Notes, Remark, RemarkKind, is_rejection, notes};
pub(crate) use open_section::open_section;
pub(crate) use override_status::held_error;
pub use override_status::{Overridden, override_status};
pub use queue::{Waiter, count_before, dequeue, enqueue, waiters_before};
pub use reconcile::{Repairs, close_dead_runners, reconcile};
pub use refusal::{in_the_way, locked, reserved_work, sections_in_use};
pub use rejected::{record_rejection, recording_rejection};
pub use renew::{Beat, check, renew, renewable};
pub(crate) use resource::close_if_lapsed;
pub use resource::{
    acquire_resource, evict_unless_alive, is_live, must_hold, release_resource, renew_resource,
};
pub(crate) use wake::work_appeared;
pub use work_queue::{Reservation, Reservations, next_for_newcomer};
