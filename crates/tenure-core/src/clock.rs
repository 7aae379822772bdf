//! Timestamps and the clock that they are read from.
//!
//! All times are milliseconds since the Unix epoch in UTC, displayed as RFC 3339 ending in `Z`. Timeouts do not use
//! this clock: they are measured with the monotonic clock.
//!
//! The wall clock can be set, and a process can have a wrong one. So SQLite stores the times by which leases, tickets
//! and pauses end ([`CellKind::StoreTime`](crate::store::CellKind::StoreTime)) on the *store clock*, which runs with
//! the time since the boot, and converts them to and from the caller's wall clock as it reads and writes rows. All
//! code above the store uses the wall clock.

use std::fmt;
use std::time::Duration;

use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

/// A moment, in milliseconds since the Unix epoch.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Timestamp(i64);

impl Timestamp {
    pub const fn from_millis(millis: i64) -> Self {
        Self(millis)
    }

    pub const fn as_millis(self) -> i64 {
        self.0
    }

    /// This moment plus `duration`, saturating at the greatest representable time.
    #[must_use]
    pub fn after(self, duration: Duration) -> Self {
        Self(self.0.saturating_add(millis(duration)))
    }

    /// This moment minus `duration`.
    #[must_use]
    pub fn before(self, duration: Duration) -> Self {
        Self(self.0.saturating_sub(millis(duration)))
    }

    /// The time elapsed since `earlier`; zero if `earlier` is later.
    pub fn since(self, earlier: Self) -> Duration {
        Duration::from_millis(u64::try_from(self.0.saturating_sub(earlier.0)).unwrap_or(0))
    }

    /// Without fractions of a second, for display: `2026-01-15T11:30:00Z`.
    pub fn to_seconds(self) -> String {
        self.zoned().map_or_else(|| self.0.to_string(), |t| format!("{t:.0}"))
    }

    /// Parses RFC 3339.
    pub fn parse(text: &str) -> Option<Self> {
        text.parse::<jiff::Timestamp>().ok().map(|t| Self(t.as_millisecond()))
    }

    fn zoned(self) -> Option<jiff::Timestamp> {
        jiff::Timestamp::from_millisecond(self.0).ok()
    }
}

fn millis(duration: Duration) -> i64 {
    i64::try_from(duration.as_millis()).unwrap_or(i64::MAX)
}

impl fmt::Display for Timestamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.zoned() {
            Some(t) => write!(f, "{t:.3}"),
            None => write!(f, "{}", self.0),
        }
    }
}

impl fmt::Debug for Timestamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self}")
    }
}

impl<'de> Deserialize<'de> for Timestamp {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        Self::parse(&text).ok_or_else(|| de::Error::custom("not a time in RFC 3339"))
    }
}

impl Serialize for Timestamp {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

/// A source of the current time.
pub trait Clock: Send + Sync + fmt::Debug {
    fn now(&self) -> Timestamp;

    /// The time since the boot, on a clock that cannot be set. `None` if there is none; then stored durations use
    /// [`Clock::now`].
    fn since_boot(&self) -> Option<SinceBoot> {
        None
    }
}

/// A reading of the clock that all processes of one boot share.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SinceBoot {
    /// The id of the boot.
    pub boot: String,
    pub millis: i64,
}

/// The machine's wall clock.
#[derive(Debug, Clone, Copy, Default)]
pub struct SystemClock;

impl Clock for SystemClock {
    fn now(&self) -> Timestamp {
        #[expect(clippy::disallowed_methods, reason = "all other code reads the time through this clock")]
        let now = jiff::Timestamp::now();
        Timestamp(now.as_millisecond())
    }

    fn since_boot(&self) -> Option<SinceBoot> {
        let boot = tenure_lock::boot_id();
        if boot.is_empty() {
            return None;
        }
        Some(SinceBoot { boot, millis: tenure_lock::millis_since_boot()? })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_timestamp_is_displayed_as_rfc_3339_utc_and_parses_back() {
        let t = Timestamp::from_millis(1_705_318_200_123);
        assert_eq!(t.to_string(), "2024-01-15T11:30:00.123Z");
        assert_eq!(t.to_seconds(), "2024-01-15T11:30:00Z");
        assert_eq!(Timestamp::parse(&t.to_string()), Some(t));
    }

    #[test]
    fn arithmetic_never_overflows() {
        let t = Timestamp::from_millis(i64::MAX);
        assert_eq!(t.after(Duration::MAX), t);
        assert_eq!(Timestamp::from_millis(0).since(t), Duration::ZERO);
    }
}
