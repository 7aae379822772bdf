//! A clock that only the test moves, forward or back.

use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

use tenure_core::{Clock, Timestamp};

/// 2026-01-15T11:30:00Z, an arbitrary time that is readable in failure messages.
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

    /// Simulates a correction of the wall clock by NTP or a user.
    pub fn step_back(&self, by: Duration) {
        self.set(self.now().before(by));
    }
}

impl Clock for ManualClock {
    fn now(&self) -> Timestamp {
        Timestamp::from_millis(self.0.load(Ordering::SeqCst))
    }
}
