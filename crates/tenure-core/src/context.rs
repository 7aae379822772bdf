//! What a decision needs besides the rows: liveness of processes, new ids, outcomes that were kept outside the store, and
//! the project's policy.

use std::time::Duration;

use crate::error::Result;
use crate::holder::{Holder, Judge, Liveness};
use crate::id::Ids;
use crate::outcome::{NoOutcomes, Outcomes};
use crate::store::{View, Viewer};

#[derive(Debug, Clone, Copy)]
pub struct Context<'a> {
    pub judge: &'a dyn Judge,
    pub ids: &'a dyn Ids,
    pub outcomes: &'a dyn Outcomes,
    pub policy: Policy,
}

#[derive(Debug, Clone, Copy)]
pub struct Policy {
    /// How long a ticket of this process counts after it was last refreshed: three times `locking.pollInterval`.
    pub ticket_life: Duration,
    pub max_attempts: u32,
    pub max_rejections: u32,
    /// `done` leads to `review` rather than to `completed`.
    pub review: bool,
}

impl<'a> Context<'a> {
    /// Without kept outcomes.
    pub fn new(judge: &'a dyn Judge, ids: &'a dyn Ids, policy: Policy) -> Self {
        Self { judge, ids, outcomes: &NoOutcomes, policy }
    }

    /// The caller `me` and the processes known to be dead. Those are looked up once per transaction, whatever the number of
    /// calls: one query, and one liveness check for each process recorded in an open lease or a ticket. A process that dies
    /// later in the transaction counts as alive until its end.
    pub fn viewer(&self, view: &dyn View, me: Option<&Holder>) -> Result<Viewer> {
        let known = view.dead_processes();
        let dead = match known.get() {
            Some(dead) => dead.clone(),
            None => {
                let mut dead = view.recorded_processes()?;
                dead.retain(|process| self.judge.liveness(process) == Liveness::Dead);
                known.get_or_init(|| dead).clone()
            }
        };
        Ok(Viewer { me: me.cloned(), dead })
    }
}
