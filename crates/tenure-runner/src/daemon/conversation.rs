//! Finds the id of an agent's conversation in its output; the agent needs it to resume.
//!
//! Claude prints `session_id` in every line of its stream; Codex prints `thread_id` when the thread starts, or
//! `session_id` within `msg` in older versions. Other programs that print JSON lines with such a field are recognised
//! as well; whether the id can be used depends on the preset.

use serde_json::Value;

const FIELDS: [&str; 2] = ["session_id", "thread_id"];

pub(super) fn name_in(line: &[u8]) -> Option<String> {
    // Avoids parsing most lines.
    let starts = line.iter().find(|byte| !byte.is_ascii_whitespace()) == Some(&b'{');
    let holds = |word: &str| line.windows(word.len()).any(|part| part == word.as_bytes());
    if !starts || !FIELDS.iter().any(|field| holds(field)) {
        return None;
    }
    let value: Value = serde_json::from_slice(line).ok()?;
    let objects = [Some(&value), value.get("msg")];
    let mut found = objects.into_iter().flatten().flat_map(|object| FIELDS.map(|field| object.get(field)));
    found.find_map(|field| field?.as_str().filter(|name| is_name(name)).map(str::to_owned))
}

/// It becomes an argument, so it must not look like an option.
fn is_name(text: &str) -> bool {
    let plain = text.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'_' | b'.'));
    plain && !text.starts_with('-') && (1..=128).contains(&text.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_names_that_agents_print_are_found() {
        for (line, name) in [
            (r#"{"type":"system","subtype":"init","session_id":"5f1c-a"}"#, Some("5f1c-a")),
            (r#"{"type":"thread.started","thread_id":"0199-b"}"#, Some("0199-b")),
            (r#"{"id":"0","msg":{"type":"session_configured","session_id":"77-c"}}"#, Some("77-c")),
            (r#"{"type":"assistant","text":"session_id"}"#, None),
            (r#"the session_id is {"session_id":"x"}"#, None),
            (r#"{"session_id":"--dangerous"}"#, None),
            (r#"{"session_id":"a b"}"#, None),
            (r#"{"session_id":7}"#, None),
            (r#"{"session_id":"cut"#, None),
        ] {
            assert_eq!(name_in(line.as_bytes()).as_deref(), name, "{line}");
        }
    }
}
