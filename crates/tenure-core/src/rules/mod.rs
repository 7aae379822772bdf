//! The rules for changing tasks and sections. Each function is one decision inside one transaction.

mod add;
mod agents;
mod depend;
mod edit;
mod import;
mod import_update;
mod jobs;
mod locks;
mod messages;
mod parking;
mod prune;
mod sections;
mod seen;
mod sessions;
mod status;
mod usage;

pub use add::{AddTask, add_task};
pub use agents::{join_agent, join_client, leave_agent, release_claims_of_attempt, tasks_held_by};
pub use depend::{depend, undepend};
pub use edit::{EditTask, delete_task, edit_task};
pub use import::{Imported, import};
pub use import_update::{FieldChange, ImportUpdate, KeptField, UpdateOutcome, UpdatedTask, update_import};
pub use jobs::{
    TakeUp, TakenUp, begin_job, cancel_job, change_definition, drop_items, drop_job, jobs_at_work,
    load_items, publish_job, take_up_job,
};
pub use locks::{LockRef, Release, find_lock, release_lock};
pub use messages::{acknowledge, send_message};
pub use parking::{
    EndedAttempt, Gate, begin_probe, blames_preset, gate, note_ending, park_misconfigured, request_try,
};
pub use prune::{Pruned, has_old_history, prune};
pub use sections::{
    AddSection, EditSection, add_section, delete_section, depend_section, edit_section, undepend_section,
};
pub use seen::{Seen, check_seen};
pub use sessions::{Step, checkpoint, close_session, open_session};
pub use status::{Change, Changed, change_status};
pub use usage::{UsageBy, UsageSum, sum_usage};

use crate::error::{Error, Result};
use crate::task::MAX_PRIORITY;

impl From<crate::text::TextError> for Error {
    fn from(error: crate::text::TextError) -> Self {
        Self::invalid(error.to_string())
    }
}

fn check_priority(priority: i64) -> Result<()> {
    if !(-MAX_PRIORITY..=MAX_PRIORITY).contains(&priority) {
        return Err(Error::invalid(format!(
            "the priority {priority} is out of range; it goes from -{MAX_PRIORITY} to {MAX_PRIORITY}, lower first"
        )));
    }
    Ok(())
}
