//! The arguments that `claim` and `run` share: the task, and the terms on which it is claimed.

use std::time::Duration;

use tenure_core::kernel::Terms;

use crate::app::{App, Open, parse_duration, parse_ttl};

#[derive(Debug, clap::Args)]
pub(super) struct ClaimArgs {
    /// The task
    pub(super) task: String,
    /// How long the lease lasts without renewal (default: locking.leaseTtl)
    #[arg(long, value_name = "DUR", value_parser = parse_ttl)]
    pub(super) ttl: Option<Duration>,
    /// Wait for the task, at most this long (default: locking.waitTimeout)
    #[arg(long, value_name = "DUR", num_args = 0..=1, value_parser = parse_duration)]
    wait: Option<Option<Duration>>,
}

impl ClaimArgs {
    pub(super) fn terms(&self, open: &Open<'_>) -> Terms {
        Terms::new(self.ttl.unwrap_or(open.config.locking.lease_ttl))
    }

    /// How long to wait while the task is held; `None` means not to wait.
    pub(super) fn patience(&self, app: &App<'_>, open: &Open<'_>) -> Option<Duration> {
        app.asked_patience(open, self.wait)
    }
}
