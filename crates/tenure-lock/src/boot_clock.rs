//! A clock that starts with the boot, never steps, and keeps running while the machine is suspended.

use std::ops::Add;
use std::time::Duration;

use crate::sys::process;

/// A moment on the boot clock.
///
/// Guarantees: later readings are never smaller, setting the date does not change it, and time spent in suspend counts (Linux
/// `CLOCK_BOOTTIME`, macOS `CLOCK_MONOTONIC`, elsewhere what [`std::time::Instant`] counts).
/// Comparable within one process only.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct BootTime(Duration);

impl BootTime {
    pub fn now() -> Self {
        Self(process::boot_time())
    }

    /// The moment this long after the boot.
    pub const fn after_boot(elapsed: Duration) -> Self {
        Self(elapsed)
    }

    pub const fn since_boot(self) -> Duration {
        self.0
    }

    /// Zero if `earlier` is in fact later.
    pub const fn since(self, earlier: Self) -> Duration {
        self.0.saturating_sub(earlier.0)
    }
}

impl Add<Duration> for BootTime {
    type Output = Self;

    fn add(self, more: Duration) -> Self {
        Self(self.0.saturating_add(more))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn readings_never_go_back() {
        let first = BootTime::now();
        let second = BootTime::now();
        assert!(second >= first);
        assert_eq!(first.since(second + Duration::from_secs(1)), Duration::ZERO);
    }
}
