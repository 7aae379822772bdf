//! Quoting for a shell, so that hints work when pasted.

pub fn quote(word: &str) -> String {
    let plain = !word.is_empty()
        && word.bytes().all(|b| b.is_ascii_alphanumeric() || b"._-/:@%+=,".contains(&b))
        && !word.starts_with('-');
    if plain { word.to_owned() } else { format!("'{}'", word.replace('\'', r"'\''")) }
}

/// Quotes the last argument of a command, after `--` if it would be parsed as a flag.
pub fn last_arg(word: &str) -> String {
    let dashes = if word.starts_with('-') { "-- " } else { "" };
    format!("{dashes}{}", quote(word))
}

#[cfg(test)]
mod tests {
    use super::{last_arg, quote};

    #[test]
    fn a_word_is_quoted_only_when_it_must_be() {
        assert_eq!(quote("T1"), "T1");
        assert_eq!(quote("two words"), "'two words'");
        assert_eq!(quote("it's"), r"'it'\''s'");
        assert_eq!(quote(""), "''");
        assert_eq!(last_arg("--flag"), "-- '--flag'");
    }
}
