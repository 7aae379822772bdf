//! The anchors that GitHub generates for headings.
//!
//! Guarantees: lower case, spaces become hyphens, punctuation is removed, and the second of equal anchors gets `-1`.
//! Not guaranteed: combining marks outside the common block, which would need a full Unicode table.

use std::collections::HashMap;

#[derive(Default)]
pub(super) struct Anchors {
    used: HashMap<String, usize>,
}

impl Anchors {
    pub(super) fn of(&mut self, heading: &str) -> String {
        let base = slug(heading);
        let mut anchor = base.clone();
        if let Some(mut count) = self.used.get(&base).copied() {
            while self.used.contains_key(&anchor) {
                count += 1;
                anchor = format!("{base}-{count}");
            }
            self.used.insert(base, count);
        }
        self.used.insert(anchor.clone(), 0);
        anchor
    }
}

fn slug(heading: &str) -> String {
    let kept = |c: &char| c.is_alphanumeric() || matches!(c, ' ' | '-' | '_' | '\u{300}'..='\u{36f}');
    heading
        .trim()
        .chars()
        .filter(kept)
        .flat_map(char::to_lowercase)
        .map(|c| if c == ' ' { '-' } else { c })
        .collect()
}

/// The text of a heading without links, emphasis and code marks, in a single pass.
pub(super) fn plain(heading: &str) -> String {
    let mut out = String::with_capacity(heading.len());
    let mut last_open = None;
    let mut rest = heading;
    while let Some(c) = rest.chars().next() {
        let tail = &rest[c.len_utf8()..];
        match c {
            '\\' if tail.starts_with(|c: char| c.is_ascii_punctuation()) => {
                out.extend(tail.chars().next());
                rest = &tail[1..];
                continue;
            }
            '`' | '*' => {}
            '[' => {
                last_open = Some(out.len());
                out.push(c);
            }
            ']' if tail.starts_with('(') && last_open.is_some() => {
                let Some((_, after)) = tail.split_once(')') else {
                    out.push_str(rest);
                    break;
                };
                if let Some(at) = last_open.take() {
                    out.remove(at);
                    if out.get(..at).is_some_and(|before| before.ends_with('!')) {
                        out.remove(at - 1);
                    }
                }
                rest = after;
                continue;
            }
            _ => out.push(c),
        }
        rest = tail;
    }
    out.trim().to_owned()
}
