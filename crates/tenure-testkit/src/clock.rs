//! A clock that stands still until the test moves it, forward or back.

use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

use tenure_core::{Clock, Timestamp};

/// 2026-01-15T11:30:00Z: any moment will do, but a readable one helps in failure messages.
const START: i64 = 1_768_476_600_000;

#[derive(Debug)]
pub struct ManualClock(AtomicI64);

impl Default for ManualClock {
    fn default() -> Self {
        Self::at(Timestamp::from_millis(START))
    }
}

impl ManualClock {
    pub fn at(now: Timestamp) -> Self {
        Self(AtomicI64::new(now.as_millis()))
    }

    pub fn set(&self, now: Timestamp) {
        self.0.store(now.as_millis(), Ordering::SeqCst);
    }

    pub fn advance(&self, by: Duration) {
        self.set(self.now().after(by));
    }

    /// What NTP or a person does to a wall clock.
    pub fn step_back(&self, by: Duration) {
        self.set(self.now().before(by));
    }
}

impl Clock for ManualClock {
    fn now(&self) -> Timestamp {
        Timestamp::from_millis(self.0.load(Ordering::SeqCst))
    }
}
