//! Markdown check lists.
//!
//! Mapping:
//! - `- [ ]`, `* [x]`, `+ [X]`, `1. [ ]` are tasks. `[-]` is skipped; `[~]`, `[/]` and any other sign in the brackets
//!   become pending, with a note.
//! - The nearest `#` or `##` heading above is the section, parallel unless the heading ends with `(serial)`. A deeper
//!   heading only makes the anchor in `sourceFile` more precise, unless there is no other.
//! - Nested check items are separate tasks, and the outer task depends on them. If an inner item names the outer one
//!   as its dependency, that dependency is used instead.
//! - Indented text, plain list items and code below an item are its description. Text outside of items is not copied;
//!   `sourceFile` refers to it.
//! - `#tag` at the end of an item is a label. `@name`, `!word` and `~~struck~~` text stay in the title, with a note.
//! - A comment `<!-- tenure {…} -->` has fields of the item, the section or the file; `tasks export` writes it.
//! - Code blocks, other HTML comments, quotations and front matter are not searched for items.
//!
//! Guarantees: a single pass over the lines, without recursion for any nesting.

mod attributes;
mod item;
mod lines;
mod nested;
mod outline;
mod slug;

pub use outline::{OutlineHeading, outline, section};

use std::collections::HashMap;

use super::collect::Collector;
use super::{Import, ImportError, ImportedSection, ImportedStatus, ImportedTask};
use attributes::attributes;
use item::{
    Mark, Marks, after_check_box, after_marker, dependency_line, is_mention, split_dependencies, split_key,
    split_marks,
};
use lines::{
    CodeFence, HeadingLine, comment_at_start, dedent, front_matter, heading, indent, is_break,
    without_comments,
};
use nested::{Draft, link};
use slug::{Anchors, plain};

/// Whether a line is an item with a check box.
pub(super) fn is_check_item(line: &str) -> bool {
    let (_, text) = indent(line);
    after_marker(text).and_then(|(_, rest)| after_check_box(rest)).is_some()
}

pub(super) fn parse(file_name: &str, text: &str) -> Result<Import, ImportError> {
    let mut scan = Scan { file_name, ..Scan::default() };
    for (number, line) in (1..).zip(text.lines()).skip(front_matter(text)) {
        scan.line(number, line);
    }
    scan.finish()
}

/// An open list item.
struct Level {
    column: usize,
    /// The innermost task that contains text at this level.
    owner: Option<usize>,
}

impl Level {
    /// Two columns suffice, also below `1. `, where strict Markdown requires three.
    fn contains(&self, column: usize) -> bool {
        column >= self.column + 2
    }
}

#[derive(Default)]
struct Scan<'a> {
    file_name: &'a str,
    into: Collector,
    drafts: Vec<Draft>,
    open: Vec<Level>,
    fence: Option<(usize, CodeFence)>,
    comment_since: Option<usize>,
    /// A line of text that becomes a heading if an underline follows.
    paragraph: Option<(usize, String)>,
    /// The previous line belongs to an item, so text at any column continues it.
    continues_item: bool,
    after_blank: bool,
    section: Option<String>,
    section_is_deep: bool,
    section_is_serial: bool,
    section_line: usize,
    section_lines: HashMap<String, usize>,
    /// What items have as `sourceFile` instead of a reference to this file.
    file_source: Option<Option<String>>,
    section_source: Option<Option<String>>,
    is_below_deep_heading: bool,
    anchor: Option<String>,
    anchors: Anchors,
    outline: Vec<OutlineHeading>,
}

impl Scan<'_> {
    fn line(&mut self, number: usize, line: &str) {
        let (column, text) = indent(line);
        if let Some((_, fence)) = &self.fence {
            // A list item ends where its indentation does, and an open code block in it ends with it.
            if text.is_empty() || column >= fence.column {
                if fence.is_closed_by(text) {
                    self.fence = None;
                }
                return self.describe(line);
            }
            self.fence = None;
        }
        if let Some(object) = attributes(text).filter(|_| self.comment_since.is_none()) {
            return self.attribute(number, column, object);
        }
        let rest;
        let line = if self.comment_since.is_some() || text.starts_with("<!--") {
            let Some(after) = comment_at_start(text, self.comment_since.is_some()) else {
                self.comment_since.get_or_insert(number);
                return;
            };
            self.comment_since = None;
            if after.trim().is_empty() {
                return;
            }
            rest = " ".repeat(column) + after.trim_start();
            &rest
        } else {
            line
        };
        let line = without_comments(line);
        let (column, text) = indent(&line);
        if text.is_empty() {
            self.end_paragraph();
            self.continues_item = false;
            self.after_blank = true;
        } else {
            self.content(number, column, text.trim_end(), &line);
        }
    }

    fn content(&mut self, number: usize, column: usize, text: &str, line: &str) {
        let is_inside = self.open.first().is_some_and(|outermost| outermost.contains(column));
        if !is_inside && column < 4 {
            if let Some(found) = self.heading_here(number, text) {
                return self.begin_section(found);
            }
            if is_break(text) {
                self.end_paragraph();
                self.open.clear();
                self.continues_item = false;
                return;
            }
        }
        if let Some((width, rest)) = after_marker(text) {
            self.end_paragraph();
            return self.item(number, column, width, rest, line);
        }
        let fence = CodeFence::opened_by(text);
        if fence.is_some() || !self.continues_item {
            self.close_to(column);
        }
        if let Some(mut fence) = fence {
            self.end_paragraph();
            fence.column = self.open.last().map_or(0, |level| level.column + 2);
            self.fence = Some((number, fence));
            self.continues_item = false;
            return self.describe(line);
        }
        if self.open.is_empty() {
            self.end_paragraph();
            let quoted = text.trim_start_matches(['>', ' ']);
            if quoted.len() < text.len() && is_check_item(quoted) {
                self.into.note(number, "check item in a quotation", "quoted items are not tasks");
            }
            self.paragraph = Some((number, text.to_owned()));
        } else {
            self.continues_item = true;
            self.depend_or_describe(text, line);
        }
    }

    fn heading_here(&mut self, number: usize, text: &str) -> Option<HeadingLine> {
        if let Some(found) = heading(number, text) {
            self.end_paragraph();
            return Some(found);
        }
        let level = match text.bytes().next()? {
            b'=' if text.bytes().all(|b| b == b'=') => 1,
            b'-' if text.bytes().all(|b| b == b'-') => 2,
            _ => return None,
        };
        let (line, text) = self.paragraph.take()?;
        Some(HeadingLine { line, level, text })
    }

    fn begin_section(&mut self, HeadingLine { line, level, text }: HeadingLine) {
        self.open.clear();
        self.continues_item = false;
        let name = plain(&text);
        self.anchor = (!name.is_empty()).then(|| self.anchors.of(&name));
        self.outline.push(OutlineHeading { line, level, anchor: self.anchor.clone() });
        let is_deep = level > 2;
        self.section_source = None;
        self.is_below_deep_heading = is_deep && self.section.is_some() && !self.section_is_deep;
        if !is_deep || self.section.is_none() || self.section_is_deep {
            let (name, serial) = split_serial(&name);
            self.section = Some(name.to_owned()).filter(|name| !name.is_empty());
            self.section_is_serial = serial;
            self.section_is_deep = is_deep;
            self.section_line = line;
        }
    }

    fn item(&mut self, number: usize, column: usize, width: usize, rest: &str, line: &str) {
        let check = after_check_box(rest);
        if self.open.is_empty() && column >= 4 {
            let what =
                if check.is_some() { "check item in an indented code block" } else { "indented code block" };
            return self.into.note(number, what, "code is not searched for tasks");
        }
        self.close_to(column);
        let parent = self.open.last().and_then(|level| level.owner);
        if let Some((mark, text)) = check {
            let task = self.task(number, mark, text);
            self.open.push(Level { column, owner: Some(self.drafts.len()) });
            self.drafts.push(Draft { task, parent, content: column + width });
            self.after_blank = false;
        } else {
            if parent.is_some() {
                self.depend_or_describe(rest, line);
            } else {
                self.into.note(number, "list item without a check box", "only check items are tasks");
            }
            self.open.push(Level { column, owner: parent });
        }
        self.continues_item = true;
    }

    fn task(&mut self, line: usize, mark: Mark, text: &str) -> ImportedTask {
        let begun = "an import grants no lease; it is pending";
        let status = match mark {
            Mark::Open => ImportedStatus::Pending,
            Mark::Done => ImportedStatus::Completed,
            Mark::Skipped => ImportedStatus::Skipped,
            Mark::Started => {
                self.into.note(line, "item that was begun (`[~]` or `[/]`)", begun);
                ImportedStatus::Pending
            }
            Mark::Other(sign) => {
                self.into.note(line, &format!("check box `[{sign}]`"), "unknown sign; it is pending");
                ImportedStatus::Pending
            }
        };
        let (key, title) = split_key(text).map_or((None, text), |(key, title)| (Some(key.to_owned()), title));
        let (text, mut marks) = split_marks(title);
        let parts = match split_dependencies(text) {
            Some((before, keys)) => {
                let (before, earlier) = split_marks(before);
                marks.tags.splice(0..0, earlier.tags);
                marks.others.splice(0..0, earlier.others);
                (titled(before, &marks), marks.tags, keys)
            }
            None if marks.tags.is_empty() => (title.to_owned(), Vec::new(), Vec::new()),
            None => (titled(text, &marks), marks.tags, Vec::new()),
        };
        self.item_task(line, status, key, parts)
    }

    fn item_task(
        &mut self,
        line: usize,
        status: ImportedStatus,
        key: Option<String>,
        (title, labels, depends_on): (String, Vec<String>, Vec<String>),
    ) -> ImportedTask {
        for (found, what) in [
            (title.split_whitespace().any(|word| is_mention(word, '@')), "`@name` in a title"),
            (title.split_whitespace().any(|word| is_mention(word, '!')), "`!word` in a title"),
            (title.contains("~~"), "struck-through text in a title"),
        ] {
            if found {
                self.into.note(line, what, "it has no meaning to tenure and stays in the title");
            }
        }
        if self.is_below_deep_heading {
            let why = "`#` and `##` make sections; `sourceFile` refers to the deeper heading";
            self.into.note(line, "task below a heading of level 3 or deeper", why);
        }
        let here = match &self.anchor {
            Some(anchor) => format!("{}#{anchor}", self.file_name),
            None => self.file_name.to_owned(),
        };
        let given = self.section_source.as_ref().or(self.file_source.as_ref());
        let source_file = given.cloned().unwrap_or(Some(here));
        if let Some(name) = &self.section {
            let serial = self.section_is_serial;
            self.into.add_section(line, ImportedSection { name: name.clone(), serial, priority: None });
            let first = *self.section_lines.entry(name.clone()).or_insert(self.section_line);
            if first != self.section_line {
                let what = "task below a second heading of the same name";
                self.into.note(line, what, "sections with the same name are merged");
            }
        }
        ImportedTask {
            key,
            title,
            status,
            section: self.section.clone(),
            source_file: source_file.filter(|source| !source.is_empty()),
            depends_on,
            labels,
            line,
            ..ImportedTask::default()
        }
    }

    fn depend_or_describe(&mut self, text: &str, line: &str) {
        let owner = self.open.last().and_then(|level| level.owner);
        let draft = owner.and_then(|owner| self.drafts.get_mut(owner));
        match (draft, dependency_line(text)) {
            (Some(draft), Some(keys)) => draft.task.depends_on.extend(keys),
            _ => self.describe(line),
        }
    }

    /// Appends a line to the description of the enclosing item, if any.
    fn describe(&mut self, line: &str) {
        let owner = self.open.last().and_then(|level| level.owner);
        let Some(draft) = owner.and_then(|owner| self.drafts.get_mut(owner)) else { return };
        let description = &mut draft.task.description;
        if !description.is_empty() {
            description.push_str(if self.after_blank { "\n\n" } else { "\n" });
        }
        description.push_str(dedent(line, draft.content).trim_end());
        self.after_blank = false;
    }

    /// Closes the items that do not contain text at this column.
    fn close_to(&mut self, column: usize) {
        while self.open.last().is_some_and(|level| !level.contains(column)) {
            self.open.pop();
        }
    }

    fn end_paragraph(&mut self) {
        if let Some((line, _)) = self.paragraph.take() {
            self.into.note(
                line,
                "text outside of check items",
                "it is not imported; `sourceFile` refers to it",
            );
        }
    }

    fn finish(mut self) -> Result<Import, ImportError> {
        self.end_paragraph();
        if let Some((line, _)) = self.fence.take() {
            self.into.note(line, "code block without an end", "nothing below it was read");
        }
        if let Some(line) = self.comment_since {
            self.into.note(line, "comment without an end", "nothing below it was read");
        }
        link(&mut self.drafts, &mut self.into);
        for draft in self.drafts {
            self.into.add(draft.task);
        }
        let own = self.file_source.is_none() && !self.file_name.is_empty();
        Ok(Import { source: own.then(|| self.file_name.to_owned()), ..self.into.finish()? })
    }
}

/// A title without its tags.
fn titled(text: &str, marks: &Marks) -> String {
    let mut title = text.to_owned();
    for word in &marks.others {
        title.push(' ');
        title.push_str(word);
    }
    title
}

/// The name of a section without a mark at its end that makes it serial, and whether it has that mark.
fn split_serial(heading: &str) -> (&str, bool) {
    let mark = "(serial)";
    let at = heading.len().checked_sub(mark.len()).filter(|at| heading.is_char_boundary(*at));
    match at.map(|at| heading.split_at(at)) {
        Some((name, end)) if end.eq_ignore_ascii_case(mark) => (name.trim_end(), true),
        _ => (heading, false),
    }
}
