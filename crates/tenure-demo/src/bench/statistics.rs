//! Medians and percentiles.

use std::time::Duration;

pub(super) fn percentile(times: &mut [Duration], percent: usize) -> Duration {
    times.sort_unstable();
    times.get(times.len().saturating_sub(1) * percent / 100).copied().unwrap_or_default()
}

/// In seconds.
pub(super) fn median(times: &mut [Duration]) -> f64 {
    percentile(times, 50).as_secs_f64()
}

pub(super) fn to_millis(time: Duration) -> f64 {
    time.as_secs_f64() * 1000.0
}
