//! A clock that stands still and ids that count.

use std::sync::atomic::{AtomicI64, AtomicU32, Ordering};
use std::time::Duration;

use tenure_core::id::Ids;
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

/// The first is 1, the next 2, and so on, each in a form that passes for the real one.
#[derive(Debug, Default)]
pub(crate) struct CountingIds(AtomicU32);

impl CountingIds {
    fn next(&self) -> u32 {
        self.0.fetch_add(1, Ordering::SeqCst) + 1
    }
}

impl Ids for CountingIds {
    fn uuid(&self) -> String {
        format!("{:08x}-0000-4000-8000-000000000000", self.next())
    }

    fn hex8(&self) -> String {
        format!("{:08X}", self.next())
    }
}
