//! Parses the line of a list item: marker, check box, key and dependencies.

use crate::text::check_task_key;

/// The content of the brackets.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Mark {
    Open,
    Done,
    Skipped,
    Started,
    Other(char),
}

/// The text after `-`, `*`, `+`, `1.` or `1)`, and the width of the marker.
pub(super) fn after_marker(text: &str) -> Option<(usize, &str)> {
    let digits = text.bytes().take_while(u8::is_ascii_digit).count();
    let width = match text.as_bytes().get(digits)? {
        b'-' | b'*' | b'+' if digits == 0 => 1,
        b'.' | b')' if (1..=9).contains(&digits) => digits + 1,
        _ => return None,
    };
    let rest = text.get(width..)?;
    (rest.is_empty() || rest.starts_with([' ', '\t'])).then(|| (width + 1, rest.trim_start()))
}

/// The mark and the text after `[ ]`. `[]` is accepted as `[ ]`; a letter or digit other than `x` in the brackets is
/// a footnote or a link, not a mark.
pub(super) fn after_check_box(text: &str) -> Option<(Mark, &str)> {
    let inner = text.strip_prefix('[')?;
    let (mark, rest) = if let Some(rest) = inner.strip_prefix(']') {
        (Mark::Open, rest)
    } else {
        let mut chars = inner.chars();
        let mark = match chars.next()? {
            ' ' | '\t' => Mark::Open,
            'x' | 'X' => Mark::Done,
            '-' => Mark::Skipped,
            '~' | '/' => Mark::Started,
            c if c.is_alphanumeric() || c == '[' || c == '^' => return None,
            c => Mark::Other(c),
        };
        (mark, chars.as_str().strip_prefix(']')?)
    };
    (rest.is_empty() || rest.starts_with([' ', '\t'])).then(|| (mark, rest.trim()))
}

/// Splits a leading key from the text: `F001: …`, `[F001] …`, `**F001** …`, `` `F001` … `` or `T001 …`. A key has a
/// digit, and a capital or a hyphen (`bd-12`), so `Note: …`, `` `main2.rs` … `` and `2. …` are titles. `None` also if
/// the title would be empty.
pub(super) fn split_key(text: &str) -> Option<(&str, &str)> {
    let (key, rest, is_explicit) = if let Some(inner) = text.strip_prefix('[') {
        let (key, rest) = inner.split_once(']')?;
        (key, rest, !rest.starts_with(['(', '[']))
    } else if let Some(inner) = text.strip_prefix('`') {
        let (key, rest) = inner.split_once('`')?;
        (key, rest, rest.starts_with(':') || starts_with_capital(key))
    } else if let Some(inner) = text.strip_prefix("**") {
        let (key, rest) = inner.split_once("**")?;
        let bare = key.trim_end_matches(':');
        (bare, rest, bare.len() < key.len() || rest.starts_with(':') || starts_with_capital(bare))
    } else {
        let (word, rest) = text.split_once([' ', '\t'])?;
        let key = word.strip_suffix(':');
        (key.unwrap_or(word), rest, key.is_some() || is_numbered(word))
    };
    if !is_explicit || !looks_like_key(key) {
        return None;
    }
    let rest = rest.trim_start();
    let rest = rest.strip_prefix([':', '-', '–', '—']).unwrap_or(rest).trim_start();
    (!rest.is_empty()).then_some((key, rest))
}

fn starts_with_capital(word: &str) -> bool {
    word.starts_with(|c: char| c.is_ascii_uppercase())
}

/// One capital and at least three digits: such a key needs no colon.
fn is_numbered(word: &str) -> bool {
    starts_with_capital(word)
        && word.len() >= 4
        && word.get(1..).is_some_and(|digits| digits.bytes().all(|b| b.is_ascii_digit()))
}

fn looks_like_key(word: &str) -> bool {
    check_task_key(word).is_ok()
        && word.starts_with(|c: char| c.is_ascii_alphabetic())
        && word.ends_with(|c: char| c.is_ascii_alphanumeric())
        && word.contains(|c: char| c.is_ascii_digit())
        && word.contains(|c: char| c.is_ascii_uppercase() || c == '-')
        // A file name ends in letters, a sub-task's number in digits.
        && word.rsplit_once('.').is_none_or(|(_, tail)| tail.starts_with(|c: char| c.is_ascii_digit()))
}

/// Splits `(depends on F001, F002)` or `depends: F001` off the end of a title. Without parentheses the colon is
/// required: "Refactor what depends on V8" is a title.
pub(super) fn split_dependencies(title: &str) -> Option<(&str, Vec<String>)> {
    let title = title.trim_end();
    let (before, keys) = if let Some(inner) = title.strip_suffix(')') {
        let (before, inner) = inner.rsplit_once('(')?;
        (before, keys_after_phrase(inner, false)?)
    } else {
        // Has the same length as the title, so that byte offsets agree.
        let lower = title.to_ascii_lowercase();
        let at = PHRASES.iter().filter_map(|phrase| lower.rfind(phrase)).min()?;
        let (before, phrase) = title.split_at_checked(at)?;
        if before.ends_with(|c: char| c.is_alphanumeric()) {
            return None;
        }
        (before, keys_after_phrase(phrase, true)?)
    };
    let is_separator =
        |c: char| c.is_whitespace() || matches!(c, '-' | '–' | '—' | ',' | ';' | ':' | '|' | '.');
    Some((before.trim_end_matches(is_separator), keys))
}

/// The end of a title: words that are `#tag`, `@name` or `!word`.
#[derive(Debug, Default)]
pub(super) struct Marks {
    pub(super) tags: Vec<String>,
    /// The others, which stay in the title.
    pub(super) others: Vec<String>,
}

/// Splits the marks from the end of a title, unless nothing else is left. A mark begins with a letter, so `#12` is none.
pub(super) fn split_marks(title: &str) -> (&str, Marks) {
    let (mut text, mut marks) = (title.trim_end(), Marks::default());
    while let Some((before, word)) = text.rsplit_once(char::is_whitespace) {
        if is_mention(word, '#') {
            marks.tags.insert(0, word[1..].to_owned());
        } else if is_mention(word, '@') || is_mention(word, '!') {
            marks.others.insert(0, word.to_owned());
        } else {
            break;
        }
        text = before.trim_end();
    }
    if is_mention(text, '#') { (title, Marks::default()) } else { (text, marks) }
}

/// Whether a word is `sign` and a name that begins with a letter.
pub(super) fn is_mention(word: &str, sign: char) -> bool {
    word.strip_prefix(sign).is_some_and(|name| {
        name.starts_with(char::is_alphabetic)
            && name.chars().all(|c| c.is_alphanumeric() || matches!(c, '-' | '_' | '/' | '.'))
            && name.ends_with(char::is_alphanumeric)
    })
}

/// The keys of a line that contains nothing but dependencies.
pub(super) fn dependency_line(text: &str) -> Option<Vec<String>> {
    let text = after_marker(text).map_or(text, |(_, rest)| rest);
    let plain = text.replace("**", "");
    let plain = plain.trim();
    let inner = plain.strip_prefix('(').and_then(|inner| inner.strip_suffix(')'));
    keys_after_phrase(inner.unwrap_or(plain), inner.is_none())
}

const PHRASES: [&str; 6] = ["depends on", "depends_on", "depends-on", "dependson", "depends", "blocked by"];

fn keys_after_phrase(text: &str, needs_colon: bool) -> Option<Vec<String>> {
    let text = text.trim_start();
    let phrase = PHRASES
        .iter()
        .find(|phrase| text.get(..phrase.len()).is_some_and(|start| start.eq_ignore_ascii_case(phrase)))?;
    let rest = text.get(phrase.len()..)?;
    let list = match rest.trim_start().strip_prefix(':') {
        Some(list) => list,
        None if needs_colon || !rest.starts_with([' ', '\t']) => return None,
        None => rest,
    };
    let mut keys = Vec::new();
    for word in list.split(|c: char| c.is_whitespace() || matches!(c, ',' | ';' | '&')) {
        let word = word.trim_matches(['`', '*', '[', ']']).trim_end_matches('.');
        if word.is_empty() || word.eq_ignore_ascii_case("and") {
            continue;
        }
        // Otherwise "(depends on the weather)" would name two tasks.
        if check_task_key(word).is_err() || !word.contains(|c: char| c.is_ascii_digit()) {
            return None;
        }
        keys.push(word.to_owned());
    }
    (!keys.is_empty()).then_some(keys)
}
