//! Templates: text with `{{placeholders}}` and optionally `${VARIABLES}`.
//!
//! Guarantees: a single pass over the text. Substituted text is never expanded again, so a title that contains
//! `${TOKEN}` or `{{spec}}` is kept literally. Text that only resembles a placeholder (`{{ }}`, `$NAME`, an unclosed
//! `{{`) is kept; `$${` produces `${`.

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Piece<'t> {
    Text(&'t str),
    /// `{{name}}`.
    Placeholder(&'t str),
    /// `${NAME}`.
    Variable(&'t str),
}

/// The pieces of a template, in order.
pub(crate) fn pieces(text: &str) -> Vec<Piece<'_>> {
    let mut found = Vec::new();
    let mut plain = 0;
    let mut at = 0;
    while let Some(step) = text.get(at..).and_then(|rest| rest.find(['{', '$'])) {
        at += step;
        let rest = &text[at..];
        if rest.starts_with("$${") {
            found.push(Piece::Text(&text[plain..at]));
            plain = at + 1;
            at += 3;
        } else if let Some((piece, length)) = special(rest) {
            found.push(Piece::Text(&text[plain..at]));
            found.push(piece);
            at += length;
            plain = at;
        } else {
            at += 1;
        }
    }
    found.push(Piece::Text(&text[plain..]));
    found.retain(|piece| *piece != Piece::Text(""));
    found
}

/// The longest accepted name; an end further away does not belong to this placeholder.
const MAX_NAME: usize = 200;

fn special(rest: &str) -> Option<(Piece<'_>, usize)> {
    if let Some(inner) = rest.strip_prefix("{{") {
        let end = find_near(inner, "}}")?;
        let name = inner[..end].trim();
        return is_dotted(name).then_some((Piece::Placeholder(name), end + 4));
    }
    let inner = rest.strip_prefix("${")?;
    let end = find_near(inner, "}")?;
    let name = &inner[..end];
    is_variable(name).then_some((Piece::Variable(name), end + 3))
}

fn find_near(text: &str, end: &str) -> Option<usize> {
    text[..text.floor_char_boundary(MAX_NAME)].find(end)
}

fn is_dotted(name: &str) -> bool {
    let word = |word: &str| !word.is_empty() && word.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
    name.split('.').all(word)
}

fn is_variable(name: &str) -> bool {
    name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
        && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
}

#[cfg(test)]
mod tests {
    use super::Piece::{Placeholder, Text, Variable};
    use super::*;

    #[test]
    fn placeholders_and_variables_are_found_between_text() {
        assert_eq!(
            pieces("a {{task.title}} b ${TOKEN}{{ key }}"),
            [Text("a "), Placeholder("task.title"), Text(" b "), Variable("TOKEN"), Placeholder("key")]
        );
    }

    #[test]
    fn text_that_only_resembles_a_placeholder_is_kept() {
        for text in ["", "{{", "{{}}", "{{ }}", "{{a b}}", "${", "${}", "${1}", "$HOME", "$", "{", "{{a..b}}"]
        {
            let found: String = pieces(text)
                .into_iter()
                .map(|piece| match piece {
                    Text(text) => text,
                    other => panic!("{text}: {other:?}"),
                })
                .collect();
            assert_eq!(found, text);
        }
    }

    #[test]
    fn a_doubled_dollar_escapes_a_variable() {
        assert_eq!(pieces("$${TOKEN}"), [Text("${TOKEN}")]);
        assert_eq!(pieces("$$ 5"), [Text("$$ 5")]);
    }

    #[test]
    fn the_end_of_a_placeholder_is_searched_only_nearby() {
        let far = format!("{{{{{}}}}}", "a".repeat(10_000));
        assert_eq!(pieces(&far), [Text(&far)]);
        let many = "{{ü".repeat(50_000);
        assert_eq!(pieces(&many).len(), 1);
    }
}
