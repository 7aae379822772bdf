//! Escapes untrusted text for logs and terminals.

/// Escapes control characters, so that a holder's name cannot forge a log line.
pub(crate) fn printable(text: &str) -> String {
    text.chars().fold(String::with_capacity(text.len()), |mut shown, character| {
        if character.is_control() {
            shown.extend(character.escape_default());
        } else {
            shown.push(character);
        }
        shown
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn control_characters_are_escaped_and_the_rest_is_kept() {
        assert_eq!(printable("vc-executor ä"), "vc-executor ä");
        assert_eq!(printable("a\nb\u{1b}[31m"), "a\\nb\\u{1b}[31m");
    }
}
