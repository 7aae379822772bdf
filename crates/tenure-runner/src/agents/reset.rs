//! When a usage limit resets, as a program prints it.

use std::time::Duration;

use jiff::civil::{Date, DateTime, Time};
use jiff::tz::TimeZone;
use jiff::{SignedDuration, ToSpan};
use tenure_core::{Clock, Timestamp};

/// Usage limits reset within a month. A later reset is a misread number.
const FURTHEST: Duration = Duration::from_hours(31 * 24);
/// A time without a date that passed less than this long ago is not taken for the next day's: programs leave out the
/// seconds, and the day may have changed since the line was printed.
const JUST_PASSED: SignedDuration = SignedDuration::from_mins(10);

/// When a usage limit resets.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reset {
    At(Timestamp),
    /// A local time of the machine. Without a date, it is the next occurrence of that time.
    Local {
        date: Option<Date>,
        time: Time,
    },
}

/// The current time and the machine's time zone.
#[derive(Debug, Clone)]
pub struct LocalNow {
    pub at: Timestamp,
    pub zone: TimeZone,
}

impl LocalNow {
    pub fn read(clock: &dyn Clock) -> Self {
        Self { at: clock.now(), zone: TimeZone::system() }
    }
}

impl Reset {
    /// Reads `3:05 PM` or `Nov 17th, 2026 3:05 PM`.
    pub(super) fn parse_local(text: &str) -> Option<Self> {
        if let Ok(time) = Time::strptime("%I:%M %p", text) {
            return Some(Self::Local { date: None, time });
        }
        let (day, rest) = text.split_once(',')?;
        let day = day.trim_end_matches(|letter: char| letter.is_ascii_lowercase());
        let found = DateTime::strptime("%b %d,%Y %I:%M %p", format!("{day},{}", rest.trim_start())).ok()?;
        Some(Self::Local { date: Some(found.date()), time: found.time() })
    }

    /// The time of the reset; `None` if it has passed or is implausibly far away.
    pub fn resolve(self, now: &LocalNow) -> Option<Timestamp> {
        let LocalNow { at: now, zone } = now;
        let at = match self {
            Self::At(at) => at,
            Self::Local { date: Some(date), time } => in_zone(date.to_datetime(time), zone)?,
            Self::Local { date: None, time } => {
                let earliest = jiff::Timestamp::from_millisecond(now.as_millis()).ok()? - JUST_PASSED;
                let earliest = earliest.to_zoned(zone.clone()).datetime();
                let same_day = earliest.date().to_datetime(time);
                let next = if same_day < earliest { same_day.checked_add(1.day()).ok()? } else { same_day };
                in_zone(next, zone)?
            }
        };
        Some(at).filter(|at| at > now && at.since(*now) <= FURTHEST)
    }

    /// As it was printed, for people.
    pub fn label(self) -> String {
        match self {
            Self::At(at) => at.to_seconds(),
            Self::Local { date: Some(date), time } => format!("{date} {}", time.strftime("%H:%M")),
            Self::Local { date: None, time } => time.strftime("%H:%M").to_string(),
        }
    }
}

fn in_zone(local: DateTime, zone: &TimeZone) -> Option<Timestamp> {
    let found = zone.to_ambiguous_zoned(local).compatible().ok()?;
    Some(Timestamp::from_millis(found.timestamp().as_millisecond()))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Berlin without a time zone database: CET and CEST, changed on the last Sundays of March and October at 1:00 UTC.
    fn berlin() -> TimeZone {
        TimeZone::posix("CET-1CEST,M3.5.0,M10.5.0/3").unwrap()
    }

    fn at(text: &str) -> Timestamp {
        Timestamp::parse(text).unwrap()
    }

    #[test]
    fn a_local_time_is_the_next_one_that_the_clock_shows() {
        // What was printed, the time in UTC at which it is read, and the reset in UTC.
        let cases = [
            ("3:05 PM", "2026-11-17T10:00:00Z", Some("2026-11-17T14:05:00Z")),
            ("12:00 AM", "2026-11-17T10:00:00Z", Some("2026-11-17T23:00:00Z")),
            ("12:30 PM", "2026-11-17T10:00:00Z", Some("2026-11-17T11:30:00Z")),
            // It has passed today, so it is tomorrow's.
            ("9:00 AM", "2026-11-17T10:00:00Z", Some("2026-11-18T08:00:00Z")),
            ("11:49 AM", "2026-11-17T11:00:00Z", Some("2026-11-18T10:49:00Z")),
            // It has only just passed: the seconds are missing, or the day has changed since.
            ("12:00 PM", "2026-11-17T11:00:30Z", None),
            ("11:55 AM", "2026-11-17T11:00:00Z", None),
            ("11:58 PM", "2026-11-17T23:00:10Z", None),
            // With a date.
            ("Nov 17th, 2026 3:05 PM", "2026-11-16T10:00:00Z", Some("2026-11-17T14:05:00Z")),
            ("Dec 1st, 2026 12:30 AM", "2026-11-17T10:00:00Z", Some("2026-11-30T23:30:00Z")),
            ("Nov 22nd, 2026 9:00 AM", "2026-11-17T10:00:00Z", Some("2026-11-22T08:00:00Z")),
            ("Nov 23, 2026 9:00 AM", "2026-11-17T10:00:00Z", Some("2026-11-23T08:00:00Z")),
            // In the past, and later than any reset can be.
            ("Nov 16th, 2026 3:05 PM", "2026-11-17T10:00:00Z", None),
            ("Nov 17th, 2036 3:05 PM", "2026-11-17T10:00:00Z", None),
            // The clock is set forward that night, and back in autumn.
            ("7:00 AM", "2026-03-28T20:00:00Z", Some("2026-03-29T05:00:00Z")),
            ("2:30 AM", "2026-03-28T20:00:00Z", Some("2026-03-29T01:30:00Z")),
            ("7:00 AM", "2026-10-24T20:00:00Z", Some("2026-10-25T06:00:00Z")),
        ];
        for (printed, now, reset) in cases {
            let found = Reset::parse_local(printed).unwrap_or_else(|| panic!("{printed} is not read"));
            let local = LocalNow { at: at(now), zone: berlin() };
            assert_eq!(found.resolve(&local), reset.map(at), "{printed} at {now}");
        }
    }

    #[test]
    fn the_zone_decides_which_moment_a_local_time_is() {
        let noon = at("2026-11-17T12:00:00Z");
        let reset = Reset::parse_local("3:05 PM").unwrap();
        for (zone, expected) in [
            ("UTC0", "2026-11-17T15:05:00Z"),
            ("EST5", "2026-11-17T20:05:00Z"),
            ("IST-5:30", "2026-11-18T09:35:00Z"),
        ] {
            let zone = TimeZone::posix(zone).unwrap();
            assert_eq!(reset.resolve(&LocalNow { at: noon, zone }), Some(at(expected)));
        }
    }

    #[test]
    fn what_is_not_a_time_is_not_read() {
        for text in
            ["", "later", "25:00", "13:05 PM", "3:05", "3:65 PM", "Nov 31st, 2026 3:05 PM", "tomorrow, 3 PM"]
        {
            assert_eq!(Reset::parse_local(text), None, "{text}");
        }
    }

    #[test]
    fn a_reset_that_has_passed_or_is_years_away_is_dropped() {
        let now = Timestamp::from_millis(1_794_824_450_000);
        for (seconds, believed) in
            [(-1, false), (0, false), (1, true), (7 * 86_400, true), (400 * 86_400, false)]
        {
            let reset = Timestamp::from_millis(now.as_millis() + seconds * 1000);
            let found = Reset::At(reset).resolve(&LocalNow { at: now, zone: TimeZone::UTC });
            assert_eq!(found, believed.then_some(reset), "{seconds}");
        }
    }
}
