//! Sizes in the notation `500KB`, `20MB`, `1GB`.

/// Units by name; a plain number is bytes.
const UNITS: [(&str, u64); 5] = [("", 1), ("B", 1), ("KB", 1_000), ("MB", 1_000_000), ("GB", 1_000_000_000)];

/// Parses a whole number of bytes with an optional unit. `None` for anything else, and for zero.
pub(super) fn parse(text: &str) -> Option<u64> {
    let text = text.trim();
    let (digits, unit) = text.split_at(text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len()));
    let (_, scale) = UNITS.iter().find(|(name, _)| name.eq_ignore_ascii_case(unit.trim_start()))?;
    digits.parse::<u64>().ok()?.checked_mul(*scale).filter(|bytes| *bytes > 0)
}

#[cfg(test)]
mod tests {
    use super::parse;

    #[test]
    fn a_size_is_a_number_with_a_unit() {
        for (text, bytes) in [
            ("1GB", Some(1_000_000_000)),
            ("20 mb", Some(20_000_000)),
            ("4096", Some(4096)),
            ("0", None),
            ("GB", None),
            ("1.5GB", None),
            ("1TB", None),
            ("99999999999GB", None),
        ] {
            assert_eq!(parse(text), bytes, "{text}");
        }
    }
}
