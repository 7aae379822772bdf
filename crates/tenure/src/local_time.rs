//! Times as text for people: in their time zone, or in UTC.
//!
//! Guarantees: a time in UTC ends in `Z`, a local one does not. JSON, logs and error messages always have UTC.

use std::path::{Path, PathBuf};

use jiff::tz::TimeZone;
use tenure_core::Timestamp;

use crate::env::Env;

/// Where systems keep the rules of time zones, unless `TZDIR` names another folder.
const ZONES: &str = "/usr/share/zoneinfo";
/// The machine's time zone.
const MACHINE: &str = "/etc/localtime";

/// Shows times in one time zone; `None` is UTC.
#[derive(Debug, Clone)]
pub(crate) struct LocalTime {
    zone: Option<TimeZone>,
}

impl LocalTime {
    pub(crate) fn utc() -> Self {
        Self { zone: None }
    }

    /// The zone of the variable `TZ`, else the machine's. UTC if neither can be read.
    pub(crate) fn of(env: &Env) -> Self {
        let zone = match env.vars.get(std::ffi::OsStr::new("TZ")) {
            None => read(Path::new(MACHINE)),
            Some(name) => name.to_str().and_then(|name| named(env, name.strip_prefix(':').unwrap_or(name))),
        };
        Self { zone: zone.filter(|zone| !is_utc(zone)) }
    }

    /// `2026-01-15 12:30:00`, or `2026-01-15T11:30:00Z` in UTC.
    pub(crate) fn seconds(&self, at: Timestamp) -> String {
        self.format(at, "%Y-%m-%d %H:%M:%S").unwrap_or_else(|| at.to_seconds())
    }

    /// `12:30:00`.
    pub(crate) fn time_of_day(&self, at: Timestamp) -> String {
        self.format(at, "%H:%M:%S")
            .unwrap_or_else(|| at.to_seconds().get(11..19).unwrap_or_default().to_owned())
    }

    /// `None` in UTC, and for a time beyond the calendar.
    fn format(&self, at: Timestamp, format: &str) -> Option<String> {
        let zone = self.zone.clone()?;
        let at = jiff::Timestamp::from_millisecond(at.as_millis()).ok()?;
        Some(at.to_zoned(zone).strftime(format).to_string())
    }
}

/// The name of a zone (`Europe/Berlin`), a file, or a rule (`CET-1CEST`), as the variable `TZ` has it.
fn named(env: &Env, name: &str) -> Option<TimeZone> {
    if name.is_empty() {
        return None;
    }
    let folder = env.var("TZDIR").map_or_else(|| PathBuf::from(ZONES), PathBuf::from);
    read(&folder.join(name)).or_else(|| TimeZone::posix(name).ok())
}

fn read(path: &Path) -> Option<TimeZone> {
    TimeZone::tzif("", &std::fs::read(path).ok()?).ok()
}

fn is_utc(zone: &TimeZone) -> bool {
    let now_and_then = [0, 1_700_000_000, 1_720_000_000].map(jiff::Timestamp::from_second);
    now_and_then.into_iter().flatten().all(|at| zone.to_offset(at) == jiff::tz::Offset::UTC)
}
