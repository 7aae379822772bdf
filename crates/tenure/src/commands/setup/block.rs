//! A marked block in a Markdown file.
//!
//! Guarantees: every byte outside the markers is preserved; putting the block in again changes nothing; taking it out
//! restores the original text, or deletes the file if it was created for the block. To make that possible, a file that
//! did not end with a line break does not end with one afterwards either. A file with unbalanced markers is refused.

use std::ops::Range;

use tenure_core::text::fingerprint;

use super::file::{FileChange, newline_of};

const BEGIN: &str = "<!-- tenure:begin ";
const END: &str = "<!-- tenure:end -->";

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum BlockState {
    Absent,
    Current,
    /// Written by another version of tenure.
    Outdated,
    /// Changed since tenure wrote it: the fingerprint does not match.
    Edited,
}

impl BlockState {
    pub(super) fn as_str(self) -> &'static str {
        match self {
            Self::Absent => "absent",
            Self::Current => "current",
            Self::Outdated => "outdated",
            Self::Edited => "edited",
        }
    }
}

pub(super) fn state(text: &str, body: &str) -> Result<BlockState, String> {
    let Some(at) = find(text)? else { return Ok(BlockState::Absent) };
    let there = text[at].replace("\r\n", "\n");
    if there == block(body) {
        return Ok(BlockState::Current);
    }
    let mut lines = there.lines();
    let mark = lines.next().and_then(|line| line.strip_prefix(BEGIN)).unwrap_or_default();
    let inside = there.split_once('\n').map_or("", |(_, rest)| rest.strip_suffix(END).unwrap_or_default());
    Ok(if mark.split(' ').next() == Some(&*mark_of(inside)) {
        BlockState::Outdated
    } else {
        BlockState::Edited
    })
}

/// Replaces the block, or appends it to the end of the text.
pub(super) fn put(text: Option<&str>, body: &str) -> Result<FileChange, String> {
    let block = block(body);
    let Some(text) = text else { return Ok(FileChange::Write(format!("{block}\n"))) };
    if state(text, body)? == BlockState::Current {
        return Ok(FileChange::Nothing);
    }
    let newline = newline_of(text);
    let block = block.replace('\n', newline);
    Ok(FileChange::Write(match find(text)? {
        Some(at) => format!("{}{block}{}", &text[..at.start], &text[at.end..]),
        None if text.is_empty() => block,
        None if text.ends_with('\n') => format!("{text}{newline}{block}{newline}"),
        None => format!("{text}{newline}{newline}{block}"),
    }))
}

pub(super) fn take_out(text: Option<&str>) -> Result<FileChange, String> {
    let text = text.unwrap_or_default();
    let Some(at) = find(text)? else { return Ok(FileChange::Nothing) };
    let (before, after) = (&text[..at.start], &text[at.end..]);
    let rest = without_first_break(after);
    if before.is_empty() && rest.is_empty() && !after.is_empty() {
        return Ok(FileChange::Delete);
    }
    let shorter = without_last_break(before);
    let before = match (after.is_empty(), shorter.ends_with('\n')) {
        (true, true) => without_last_break(shorter),
        (false, true) => shorter,
        // The empty line that `put` adds before the block is missing.
        (_, false) => before,
    };
    Ok(FileChange::Write(format!("{before}{rest}")))
}

pub(super) fn block(body: &str) -> String {
    let mark = mark_of(body);
    format!("{BEGIN}{mark} (managed by `tenure setup`; --remove deletes it) -->\n{body}{END}")
}

fn mark_of(body: &str) -> String {
    format!("{:08x}", fingerprint(body.as_bytes()))
}

/// The range from the start of the first marker to the end of the last one.
fn find(text: &str) -> Result<Option<Range<usize>>, String> {
    let (mut begin, mut whole) = (None, None);
    let mut at = 0;
    for (number, line) in (1..).zip(text.split_inclusive('\n')) {
        let trimmed = line.trim_end();
        match (begin, &whole) {
            (None, None) if trimmed.starts_with(BEGIN) => begin = Some((number, at)),
            (Some((_, start)), None) if trimmed == END => whole = Some(start..at + trimmed.len()),
            _ if trimmed == END => {
                return Err(format!("line {number} has an end marker of tenure without a begin marker"));
            }
            _ if trimmed.starts_with(BEGIN) => {
                return Err(format!("line {number} begins a second tenure block"));
            }
            _ => {}
        }
        at += line.len();
    }
    match (begin, whole) {
        (Some((number, _)), None) => {
            Err(format!("line {number} begins a tenure block without a line `{END}`"))
        }
        (_, whole) => Ok(whole),
    }
}

fn without_first_break(text: &str) -> &str {
    text.strip_prefix("\r\n").or_else(|| text.strip_prefix('\n')).unwrap_or(text)
}

fn without_last_break(text: &str) -> &str {
    text.strip_suffix("\r\n").or_else(|| text.strip_suffix('\n')).unwrap_or(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    const BODY: &str = "# Work\n\nTake one.\n";

    fn written(change: FileChange) -> String {
        let FileChange::Write(text) = change else { panic!("{change:?}") };
        text
    }

    const FILES: &[&str] = &[
        "",
        "\n",
        "\n\n\n",
        "# Mine",
        "# Mine\n",
        "# Mine\n\n",
        "# Mine\r\n",
        "# Mine\r\nmore\r\n\r\n",
        "# Mine\r\nno end",
        "\u{feff}",
        "\u{feff}# Mine\n",
        "mixed\r\nends\nhere",
        "a <!-- tenure:end --> in a sentence\n",
        "trailing spaces   \n\t\n",
        "old\rmac",
    ];

    #[test]
    fn whatever_the_file_was_it_is_the_same_again() {
        for before in FILES {
            let after = written(put(Some(before), BODY).unwrap());
            assert!(after.starts_with(before), "{before:?}: {after:?}");
            assert_eq!(put(Some(&after), BODY).unwrap(), FileChange::Nothing, "{before:?}");
            assert_eq!(state(&after, BODY).unwrap(), BlockState::Current);
            let added = &after[before.len()..];
            let (breaks, crlf) = (added.matches('\n').count(), added.matches("\r\n").count());
            assert_eq!(crlf, if newline_of(before) == "\r\n" { breaks } else { 0 }, "{after:?}");
            assert_eq!(take_out(Some(&after)).unwrap(), FileChange::Write((*before).to_owned()), "{after:?}");
        }
        let own = written(put(None, BODY).unwrap());
        assert_eq!(take_out(Some(&own)).unwrap(), FileChange::Delete);
        assert_eq!(take_out(None).unwrap(), FileChange::Nothing);
        assert_eq!(take_out(Some("# Mine\n")).unwrap(), FileChange::Nothing);
    }

    #[test]
    fn a_new_text_takes_the_place_of_the_old_one_and_its_surroundings_stay() {
        for before in FILES {
            let old = written(put(Some(before), "another\ntext\n").unwrap());
            for end in ["", "\n", "\r\n\r\n", "\nbelow", "\n\n## Below\n"] {
                let around = format!("{}{end}", old.trim_end());
                assert_eq!(state(&around, BODY).unwrap(), BlockState::Outdated, "{around:?}");
                let new = written(put(Some(&around), BODY).unwrap());
                assert_eq!(state(&new, BODY).unwrap(), BlockState::Current, "{new:?}");
                let (was, is) = (find(&around).unwrap().unwrap(), find(&new).unwrap().unwrap());
                assert_eq!((&around[..was.start], &around[was.end..]), (&new[..is.start], &new[is.end..]));
            }
        }
    }

    #[test]
    fn what_is_written_around_it_later_stays_when_it_goes() {
        let block = block(BODY);
        for (around, left) in [
            (format!("# T\n\n{block}\n\nmore\n"), "# T\n\nmore\n"),
            (format!("# T\n{block}\nmore"), "# T\nmore"),
            (format!("{block}\n\nmore\n"), "\nmore\n"),
            (format!("# T\n\n{block}\nmore"), "# T\nmore"),
        ] {
            assert_eq!(take_out(Some(&around)).unwrap(), FileChange::Write(left.to_owned()), "{around:?}");
        }
    }

    #[test]
    fn a_word_changed_by_hand_is_seen_and_line_ends_do_not_count() {
        let own = written(put(None, BODY).unwrap());
        assert_eq!(state(&own.replace("Take", "Leave"), BODY).unwrap(), BlockState::Edited);
        assert_eq!(state(&own.replace("begin ", "begin x"), BODY).unwrap(), BlockState::Edited);
        assert_eq!(state(&own.replace('\n', "\r\n"), BODY).unwrap(), BlockState::Current);
        assert_eq!(state("nothing", BODY).unwrap(), BlockState::Absent);
    }

    #[test]
    fn markers_that_do_not_fit_together_are_refused() {
        let block = block(BODY);
        let cut = block.strip_suffix(END).unwrap().to_owned();
        for text in [
            cut,
            format!("{END}\n"),
            format!("{block}\n{block}\n"),
            format!("{END}\n{block}"),
            format!("{BEGIN}1 -->\n{block}"),
        ] {
            for refused in [put(Some(&text), BODY), take_out(Some(&text))] {
                assert!(refused.unwrap_err().starts_with("line "), "{text}");
            }
        }
    }
}
