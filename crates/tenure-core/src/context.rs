//! What a decision needs besides the rows: who lives, where new ids come from, and the project's policy.

use std::time::Duration;

use crate::error::Result;
use crate::holder::{Holder, Judge};
use crate::id::Ids;
use crate::store::{View, Viewer};

#[derive(Debug, Clone, Copy)]
pub struct Context<'a> {
    pub judge: &'a dyn Judge,
    pub ids: &'a dyn Ids,
    pub policy: Policy,
}

#[derive(Debug, Clone, Copy)]
pub struct Policy {
    /// A waiter that was silent for this long has lost its place: three times `locking.pollInterval`.
    pub ticket_life: Duration,
    pub max_attempts: u32,
    pub max_rejections: u32,
    /// `done` leads to `review` rather than to `completed`.
    pub review: bool,
}

impl Context<'_> {
    pub fn viewer(&self, view: &dyn View, me: Option<&Holder>) -> Result<Viewer> {
        Viewer::open(view, self.judge, me, self.policy.ticket_life)
    }
}
