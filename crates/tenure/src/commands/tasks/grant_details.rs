//! What the text of a claim shows besides the lease: the description, the source, dependencies, messages and the last
//! remark.

use tenure_core::kernel::{Grant, Notes};
use tenure_core::task::Task;

use crate::text::{Style, Text};
use tenure_core::short_id::ShortIds;

/// How many lines of a description a claim shows, and how long it may be.
const LINES: usize = 40;
const CHARS: usize = 4000;

/// What a new holder has to know about its task.
pub(crate) fn append(text: &mut Text, grant: &Grant) {
    let task = &grant.task;
    if let Some(source) = &task.source_file {
        text.line(format!("  Source: {source}"));
    }
    if !task.depends_on.is_empty() {
        text.line(format!("  Depends on: {}", task.depends_on.join(", ")));
    }
    description(text, task);
    notes(text, &task.key, &grant.notes);
}

fn description(text: &mut Text, task: &Task) {
    if task.description.trim().is_empty() {
        return;
    }
    let shown = beginning(&task.description);
    text.blank().styled(Style::Bold, "Description");
    text.block(2, shown);
    if shown.len() < task.description.trim_end().len() {
        text.line(format!("  … (full text: tenure tasks show {})", task.key));
    }
}

/// The messages and the last remark. Messages are shown in full, because finishing the task acknowledges them.
pub(crate) fn notes(text: &mut Text, key: &str, notes: &Notes) {
    if let Some(remark) = &notes.last_remark {
        text.blank().styled(Style::Bold, "Last remark");
        let by = ShortIds::of([]).show(&remark.by);
        text.line(format!("  {} by {by}, {}:", remark.kind.as_str(), remark.at.to_seconds()));
        text.block(4, beginning(&remark.text));
    }
    if notes.messages.is_empty() {
        return;
    }
    text.blank().styled(Style::Bold, "Messages");
    for message in &notes.messages {
        text.line(format!("  #{} from {}, {}:", message.id, message.from, message.sent_at.to_seconds()));
        text.block(4, &message.text);
    }
    if notes.more_messages {
        text.line(format!("  … (full list: tenure msg list --task {key})"));
    }
}

/// At most the first [`LINES`] lines and [`CHARS`] characters.
fn beginning(text: &str) -> &str {
    let text = text.trim_end();
    let by_lines = text.match_indices('\n').nth(LINES - 1).map_or(text.len(), |(at, _)| at);
    let by_chars = text.char_indices().nth(CHARS).map_or(text.len(), |(at, _)| at);
    &text[..by_lines.min(by_chars)]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_text_is_cut_after_a_line_or_between_characters() {
        assert_eq!(beginning("one\ntwo\n"), "one\ntwo");
        assert_eq!(beginning(&"x\n".repeat(100)).lines().count(), LINES);
        assert_eq!(beginning(&"ü".repeat(5000)).chars().count(), CHARS);
    }
}
