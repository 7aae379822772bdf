//! A clock that stands still.

use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

use tenure_core::{Clock, Timestamp};

/// Stands at 2026-01-15T11:30:00Z until it is moved.
#[derive(Debug)]
pub(crate) struct FixedClock(AtomicI64);

impl Default for FixedClock {
    fn default() -> Self {
        Self(AtomicI64::new(1_768_476_600_000))
    }
}

impl FixedClock {
    pub(crate) fn advance(&self, by: Duration) {
        self.0.fetch_add(i64::try_from(by.as_millis()).unwrap(), Ordering::SeqCst);
    }
}

impl Clock for FixedClock {
    fn now(&self) -> Timestamp {
        Timestamp::from_millis(self.0.load(Ordering::SeqCst))
    }
}
