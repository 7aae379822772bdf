//! Durations in the notation `30s`, `5m`, `1h`, `7d`, `1h30m`, `250ms`.
//!
//! Guarantees that every accepted duration is a whole number of milliseconds and at most [`MAX`], so that adding it
//! to any clock reading cannot overflow, and that `parse(&format_short(d)) == d` for each of them.

use std::fmt::Write as _;
use std::time::Duration;

/// The longest accepted duration: one hundred years.
pub const MAX: Duration = Duration::from_hours(36_500 * 24);
/// The shortest ttl of a lease.
pub const TTL_MIN: Duration = Duration::from_secs(1);
/// The longest ttl of a lease.
pub const TTL_MAX: Duration = Duration::from_hours(30 * 24);

const FORM: &str = "write it like 30s, 5m, 1h, 7d or 1h30m";
const UNITS: [(&str, u64); 5] = [("d", 86_400_000), ("h", 3_600_000), ("m", 60_000), ("s", 1_000), ("ms", 1)];

/// Why a text was not accepted as a duration.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum DurationError {
    #[error("the duration is empty; {FORM}")]
    Empty,
    #[error("a duration cannot be negative, but {text:?} is; {FORM}")]
    Negative { text: String },
    #[error("{text:?} has no unit; {FORM}")]
    NoUnit { text: String },
    #[error("{text:?} is not a duration; {FORM}")]
    Malformed { text: String },
    #[error("{text:?} is longer than the longest duration, 36500d")]
    TooLong { text: String },
    #[error("{text:?} must be longer than 0s")]
    Zero { text: String },
    #[error("a ttl must be between 1s and 30d, not {text:?}")]
    NotATtl { text: String },
}

/// Parses one or more numbers, each with a unit (`d`, `h`, `m`, `s`, `ms`), optionally separated by spaces.
///
/// Accepts zero; use [`parse_ttl`] where zero is not meaningful.
pub fn parse(text: &str) -> Result<Duration, DurationError> {
    let mut rest = text.trim();
    if rest.is_empty() {
        return Err(DurationError::Empty);
    }
    if rest.starts_with('-') {
        return Err(DurationError::Negative { text: shortened(text) });
    }
    let mut total: u64 = 0;
    while !rest.is_empty() {
        let (digits, after) = split_while(rest, |c| c.is_ascii_digit());
        let (unit, after) = split_while(after, |c| c.is_ascii_alphabetic());
        if digits.is_empty() {
            return Err(DurationError::Malformed { text: shortened(text) });
        }
        if unit.is_empty() && after.trim_start().is_empty() {
            return Err(DurationError::NoUnit { text: shortened(text) });
        }
        let Some((_, scale)) = UNITS.iter().find(|(name, _)| *name == unit) else {
            return Err(DurationError::Malformed { text: shortened(text) });
        };
        let part = digits.parse::<u64>().ok().and_then(|number| number.checked_mul(*scale));
        total = part
            .and_then(|part| total.checked_add(part))
            .ok_or_else(|| DurationError::TooLong { text: shortened(text) })?;
        rest = after.trim_start();
    }
    let duration = Duration::from_millis(total);
    if duration > MAX { Err(DurationError::TooLong { text: shortened(text) }) } else { Ok(duration) }
}

/// Like [`parse`], but rejects zero.
pub(crate) fn parse_positive(text: &str) -> Result<Duration, DurationError> {
    let duration = parse(text)?;
    if duration.is_zero() { Err(DurationError::Zero { text: shortened(text) }) } else { Ok(duration) }
}

/// Like [`parse`], but rejects durations outside [`TTL_MIN`] to [`TTL_MAX`].
pub fn parse_ttl(text: &str) -> Result<Duration, DurationError> {
    parse(text).and_then(check_ttl)
}

/// Returns the duration if it is a valid ttl, between [`TTL_MIN`] and [`TTL_MAX`].
pub(crate) fn check_ttl(ttl: Duration) -> Result<Duration, DurationError> {
    if (TTL_MIN..=TTL_MAX).contains(&ttl) {
        Ok(ttl)
    } else {
        Err(DurationError::NotATtl { text: format_short(ttl) })
    }
}

/// The shortest exact notation: `45s`, `15m`, `1h30m`, `7d`, `0s`. Fractions of a millisecond are dropped.
pub fn format_short(duration: Duration) -> String {
    let mut left = u64::try_from(duration.as_millis()).unwrap_or(u64::MAX);
    if left == 0 {
        return "0s".to_owned();
    }
    let mut text = String::new();
    for (unit, scale) in UNITS {
        if left >= scale {
            // Writing to a String cannot fail.
            let _ = write!(text, "{}{unit}", left / scale);
            left %= scale;
        }
    }
    text
}

/// [`format_short`] rounded to whole seconds, so that a remaining time is displayed as `15m`, not `14m59s998ms`.
pub fn format_rounded(duration: Duration) -> String {
    let carry = u64::from(duration.subsec_millis() >= 500);
    format_short(Duration::from_secs(duration.as_secs().saturating_add(carry)))
}

fn split_while(text: &str, keep: impl Fn(char) -> bool) -> (&str, &str) {
    text.split_at(text.find(|c| !keep(c)).unwrap_or(text.len()))
}

/// Truncates the input before it is quoted in an error message.
fn shortened(text: &str) -> String {
    match text.char_indices().nth(40) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn seconds(n: u64) -> Duration {
        Duration::from_secs(n)
    }

    #[test]
    fn durations_in_the_usual_notation_are_parsed() {
        for (text, expected) in [
            ("30s", seconds(30)),
            ("5m", seconds(300)),
            ("1h", seconds(3_600)),
            ("7d", seconds(604_800)),
            ("1h30m", seconds(5_400)),
            (" 1h 30m ", seconds(5_400)),
            ("250ms", Duration::from_millis(250)),
            ("0s", seconds(0)),
        ] {
            assert_eq!(parse(text), Ok(expected), "{text}");
        }
    }

    #[test]
    fn an_invalid_duration_is_refused_with_the_accepted_form() {
        for text in
            ["", "  ", "-5m", "5", "1h30", "m", "5 m", "1.5h", "5x", "1h-5m", "٣s", "5S", "１s", "5m,"]
        {
            let error = parse(text).expect_err(text);
            assert!(error.to_string().ends_with(FORM), "{text:?}: {error}");
        }
        assert!(matches!(parse("-1s"), Err(DurationError::Negative { .. })));
        assert!(matches!(parse("15"), Err(DurationError::NoUnit { .. })));
    }

    #[test]
    fn overflowing_durations_are_refused() {
        for text in ["36501d", "18446744073709551616s", "18446744073709551615s1000ms", &"9".repeat(1_000_000)]
        {
            let error = parse(&format!("{text}d")).expect_err("too long");
            assert!(error.to_string().len() < 150, "{error}");
        }
        assert_eq!(parse("36500d"), Ok(MAX));
    }

    #[test]
    fn a_ttl_is_from_one_second_to_thirty_days() {
        for text in ["1s", "15m", "30d"] {
            assert!(parse_ttl(text).is_ok(), "{text}");
        }
        for text in ["0s", "999ms", "30d1ms", "31d"] {
            assert!(matches!(parse_ttl(text), Err(DurationError::NotATtl { .. })), "{text}");
        }
        assert!(matches!(parse_positive("0s"), Err(DurationError::Zero { .. })));
    }

    #[test]
    fn durations_are_printed_as_the_seeds_print_them() {
        for text in ["15m", "1h30m", "45s", "10m", "7d", "0s", "1d2h3m4s5ms"] {
            assert_eq!(format_short(parse(text).unwrap()), text);
        }
        assert_eq!(format_short(parse("120m").unwrap()), "2h");
        assert_eq!(format_rounded(parse("14m59s998ms").unwrap()), "15m");
        assert_eq!(format_rounded(parse("14m59s400ms").unwrap()), "14m59s");
    }

    proptest! {
        #[test]
        fn a_printed_duration_reads_back_as_itself(ms in 0..=36_500u64 * 86_400_000) {
            let duration = Duration::from_millis(ms);
            prop_assert_eq!(parse(&format_short(duration)), Ok(duration));
        }

        #[test]
        fn no_text_makes_the_parser_panic(text in ".{0,40}") {
            if let Ok(duration) = parse(&text) {
                prop_assert!(duration <= MAX);
            }
        }
    }
}
