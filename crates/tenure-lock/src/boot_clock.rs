//! A clock that starts with the boot, never steps, and keeps running while the machine is suspended.

use std::ops::Add;
use std::time::Duration;

use crate::sys::process;

/// A moment on the boot clock.
///
/// Guarantees: later readings are never smaller, setting the date does not change it, and time spent in suspend counts (Linux
/// `CLOCK_BOOTTIME`, macOS `CLOCK_MONOTONIC`, elsewhere what [`std::time::Instant`] counts).
/// Comparable within one process only; see [`millis_since_boot`] for a clock that processes share.
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

/// The time since the boot in milliseconds, including suspend: the same clock for all processes of one boot, also in
/// containers whose time namespace has an offset. `None` if the system has no such clock.
pub fn millis_since_boot() -> Option<i64> {
    let offset = process::boot_time_offset()?;
    i64::try_from(process::boot_time().as_millis()).ok()?.checked_sub(offset)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[cfg(target_os = "linux")]
    #[test]
    fn the_shared_clock_is_the_uptime_of_the_machine() {
        let uptime = || {
            let text = std::fs::read_to_string("/proc/uptime").unwrap();
            let hundredths = text.split(' ').next().unwrap().replace('.', "");
            hundredths.parse::<i64>().unwrap() * 10
        };
        let before = uptime();
        let shared = millis_since_boot().unwrap();
        assert!(before - 20 <= shared && shared <= uptime() + 20, "{before} {shared}");
    }

    #[test]
    fn readings_never_go_back() {
        let first = BootTime::now();
        let second = BootTime::now();
        assert!(second >= first);
        assert_eq!(first.since(second + Duration::from_secs(1)), Duration::ZERO);
    }
}
