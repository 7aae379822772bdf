//! Placeholders: `{item}` and `{item.a.b}` in the arguments of a command are replaced by the item, or by a field of
//! it.
//!
//! Guaranteed: a single pass, so substituted text is never expanded again; no shell; a missing field is an error that
//! names it.

use serde_json::Value;

use crate::sys::LONGEST_ARGUMENT;

/// How every placeholder begins.
pub(super) const PLACEHOLDER: &str = "{item";

/// The command for one item, or why it cannot be built.
pub fn fill(command: &[String], payload: &str) -> Result<Vec<String>, String> {
    if !command.iter().any(|word| word.contains(PLACEHOLDER)) {
        return Ok(command.to_vec());
    }
    let item: Value = serde_json::from_str(payload).map_err(|e| format!("the item cannot be read: {e}"))?;
    let mut filled = Vec::with_capacity(command.len());
    for (index, word) in command.iter().enumerate() {
        let word = fill_word(word, &item, payload)?;
        if word.contains('\0') {
            return Err(format!("argument {index} would contain a NUL character"));
        }
        if word.len() >= LONGEST_ARGUMENT {
            return Err(format!(
                "argument {index} would have {} bytes, and the system takes at most {}: the item is also on the \
                 command's standard input",
                word.len(),
                LONGEST_ARGUMENT - 1
            ));
        }
        filled.push(word);
    }
    Ok(filled)
}

fn fill_word(word: &str, item: &Value, payload: &str) -> Result<String, String> {
    let mut text = String::with_capacity(word.len());
    let mut rest = word;
    while let Some(at) = rest.find(PLACEHOLDER) {
        let (before, from) = rest.split_at(at);
        text.push_str(before);
        let after = &from[PLACEHOLDER.len()..];
        let end = after.find('}');
        match end.map(|end| (&after[..end], &after[end + 1..])) {
            Some(("", behind)) => {
                match item {
                    Value::String(_) => text.push_str(&plain(item)),
                    // As it was given: a number keeps its digits.
                    _ => text.push_str(payload),
                }
                rest = behind;
            }
            Some((field, behind)) if field.starts_with('.') && field.len() > 1 => {
                let field = &field[1..];
                let found = lookup(item, field).ok_or_else(|| format!("the item has no field {field}"))?;
                text.push_str(&plain(found));
                rest = behind;
            }
            // Another word with the same beginning, such as `{items}`.
            _ => {
                text.push_str("{item");
                rest = after;
            }
        }
    }
    text.push_str(rest);
    Ok(text)
}

/// A field of a field: `a.b`, or `a.0` in a list.
pub(super) fn lookup<'a>(value: &'a Value, path: &str) -> Option<&'a Value> {
    path.split('.').try_fold(value, |value, step| match value {
        Value::Object(fields) => fields.get(step),
        Value::Array(items) => items.get(step.parse::<usize>().ok()?),
        _ => None,
    })
}

/// Text as it is, everything else as JSON.
pub(super) fn plain(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn filled(words: &[&str], payload: &str) -> Result<Vec<String>, String> {
        let words: Vec<_> = words.iter().map(|&word| word.to_owned()).collect();
        fill(&words, payload)
    }

    #[test]
    fn placeholders_are_replaced_inside_any_argument_once() {
        let item = r#"{"a": {"b": "x {item} $(rm) \"'\n"}, "n": 12, "l": [true, null], "o": {}}"#;
        assert_eq!(
            filled(&["p", "-{item.a.b}-{item.n}", "{item.l.0}{item.l.1}", "{item.o}"], item).unwrap(),
            ["p", "-x {item} $(rm) \"'\n-12", "truenull", "{}"]
        );
        assert_eq!(filled(&["{item}"], "\"plain\"").unwrap(), ["plain"]);
        assert_eq!(filled(&["{item}"], "1.50").unwrap(), ["1.50"], "as it was given");
        assert_eq!(filled(&["{items} {item {item.} {x}"], "1").unwrap(), ["{items} {item {item.} {x}"]);
        assert_eq!(filled(&["no placeholder"], "not even JSON").unwrap(), ["no placeholder"]);
    }

    #[test]
    fn a_missing_field_is_named() {
        assert_eq!(filled(&["{item.a.c}"], r#"{"a": {"b": 1}}"#).unwrap_err(), "the item has no field a.c");
        assert_eq!(filled(&["{item.a}"], "\"text\"").unwrap_err(), "the item has no field a");
        assert_eq!(filled(&["{item.7}"], "[1]").unwrap_err(), "the item has no field 7");
    }

    #[test]
    fn an_argument_that_is_too_long_or_contains_nul_is_refused() {
        let long = format!("\"{}\"", "x".repeat(1 << 20));
        let why = filled(&["echo", "{item}"], &long).unwrap_err();
        assert!(why.starts_with("argument 1 would have 1048576 bytes"), "{why}");
        assert!(filled(&["{item}"], r#""a\u0000b""#).unwrap_err().contains("NUL"));
    }
}
