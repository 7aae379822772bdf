//! Edits a JSON text in place. `jsonc-parser` finds the byte ranges; this module splices them.
//!
//! Guarantees: every byte outside the edited entry is preserved, comments included, and removing an entry right after
//! appending it restores the original text. To make that possible, an object or list created here starts a new line
//! after its opening bracket, while an entry appended to an existing empty one follows the bracket directly; `remove`
//! uses the difference to decide whether the emptied container goes too. If another program has reformatted the file
//! in between, an emptied container may stay or go.
//!
//! The crate's CST can append and remove as well, but it normalizes what surrounds an edit: `{ }` becomes `{}`, an object
//! on one line becomes several lines, blank lines before a bracket vanish. That would break the guarantee above.

use std::ops::Range;

use jsonc_parser::ast;
use jsonc_parser::common::Ranged;
use jsonc_parser::tokens::{Token, TokenAndRange};
use jsonc_parser::{CollectOptions, CommentCollectionStrategy, ParseOptions, parse_to_ast};
use serde_json::{Map, Value};

use super::file::newline_of;

const COLLECT: CollectOptions =
    CollectOptions { comments: CommentCollectionStrategy::AsTokens, tokens: true };

/// The text of a JSON object, possibly with comments.
#[derive(Debug, Clone)]
pub(super) struct JsonDocument {
    text: String,
}

/// One step of a path: a key of an object, or an index into a list.
#[derive(Debug, Clone, Copy)]
pub(super) enum Step<'s> {
    Key(&'s str),
    Index(usize),
}

/// What is left of the document after [`JsonDocument::remove`].
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Remaining {
    Something,
    /// The removed entry was the only content of a document that was created for it.
    Nothing,
}

impl JsonDocument {
    pub(super) fn parse(text: &str) -> Result<Self, String> {
        object_of(text)?;
        Ok(Self { text: text.to_owned() })
    }

    /// A new document with one entry.
    pub(super) fn new(key: &str, value: Value) -> Self {
        let root = Value::Object(Map::from_iter([(key.to_owned(), value)]));
        Self { text: format!("{root:#}\n") }
    }

    pub(super) fn text(&self) -> &str {
        &self.text
    }

    pub(super) fn into_text(self) -> String {
        self.text
    }

    /// The values, without comments. Of several entries with the same key the last one counts.
    pub(super) fn root(&self) -> Map<String, Value> {
        object_of(&self.text).unwrap_or_default()
    }

    /// Adds an entry after the last one of the object or list at `path`, formatted like that one. Does nothing if there
    /// is no object or list at `path`.
    pub(super) fn append(&mut self, path: &[Step<'_>], key: Option<&str>, value: &Value) {
        let Some(syntax) = Syntax::of(&self.text) else { return };
        let Some(container) = syntax.find(path) else { return };
        let entries = entries(container);
        let key = key.map(|key| format!("{}: ", Value::from(key))).unwrap_or_default();
        let Some(last) = entries.last() else {
            let at = container.start() + 1;
            let entry = format!("{key}{}", syntax.format(value, syntax.indent_at(at)));
            self.text.insert_str(at, &entry);
            return;
        };
        // A comment on the line of the last entry stays beside it.
        let (mut at, mut follows_line_comment) = (last.range.end, false);
        for (token, range) in syntax.tokens_from(last.range.end) {
            if !is_comment(token) || self.text[at..range.start].contains('\n') {
                break;
            }
            (at, follows_line_comment) = (range.end, matches!(token, Token::CommentLine(_)));
        }
        let gap = &self.text[syntax.end_before(last.range.start).0..last.range.start];
        let gap = if follows_line_comment && !gap.contains('\n') {
            format!("{}{}", newline_of(&self.text), syntax.indent_at(last.range.start))
        } else if entries.len() == 1 && gap.is_empty() {
            " ".to_owned()
        } else {
            gap.to_owned()
        };
        let indent = gap.rfind('\n').map_or(syntax.indent_at(at), |newline| &gap[newline + 1..]);
        let entry = format!("{gap}{key}{}", syntax.format(value, indent));
        let comma = last.range.end;
        self.text.insert_str(at, &entry);
        self.text.insert(comma, ',');
    }

    /// Sets an entry of the object at `path`: replaces the value of `key`, or appends it.
    #[cfg(feature = "serve")]
    pub(super) fn set(&mut self, path: &[Step<'_>], key: &str, value: &Value) {
        let Some(syntax) = Syntax::of(&self.text) else { return };
        let whole: Vec<Step<'_>> = path.iter().copied().chain([Step::Key(key)]).collect();
        let Some(old) = syntax.find(&whole) else { return self.append(path, Some(key), value) };
        let new = syntax.format(value, syntax.indent_at(old.start()));
        let range = old.start()..old.end();
        self.text.replace_range(range, &new);
    }

    /// Removes the entry at `path`, and every object or list around it that was created for it and is empty now. A
    /// comment outside the entry always stays.
    pub(super) fn remove(&mut self, path: &[Step<'_>]) -> Remaining {
        let Some((last, above)) = path.split_last() else { return Remaining::Nothing };
        let Some(syntax) = Syntax::of(&self.text) else { return Remaining::Something };
        let Some(container) = syntax.find(above) else { return Remaining::Something };
        let entries = entries(container);
        let Some(index) = position(&entries, *last) else { return Remaining::Something };
        let gone = entries[index].range.clone();
        // The removed ranges, the later one first.
        let ranges = if index + 1 < entries.len() {
            let comma = syntax.comma_after(gone.end);
            let next = syntax.tokens_from(comma.end).next().map_or(comma.end, |(_, range)| range.start);
            vec![comma.start..next, gone]
        } else if index > 0 {
            let comma = syntax.comma_after(entries[index - 1].range.end);
            vec![syntax.with_space_before(gone), comma]
        } else if !self.text[container.start()..gone.start].contains('\n') {
            vec![gone]
        } else {
            let around =
                if above.is_empty() { 0..self.text.len() } else { container.start()..container.end() };
            if !syntax.has_comment(around.start..gone.start) && !syntax.has_comment(gone.end..around.end) {
                return self.remove(above);
            }
            vec![syntax.with_space_before(gone)]
        };
        for range in ranges {
            self.text.replace_range(range, "");
        }
        Remaining::Something
    }
}

/// A parsed text: its root value and its tokens, comments included.
struct Syntax<'a> {
    text: &'a str,
    root: ast::Value<'a>,
    tokens: Vec<TokenAndRange<'a>>,
}

impl<'a> Syntax<'a> {
    fn of(text: &'a str) -> Option<Self> {
        let parsed = parse_to_ast(text, &COLLECT, &ParseOptions::default()).ok()?;
        Some(Self { text, root: parsed.value?, tokens: parsed.tokens? })
    }

    fn find(&self, path: &[Step<'_>]) -> Option<&ast::Value<'a>> {
        path.iter().try_fold(&self.root, |value, step| {
            let entries = entries(value);
            Some(entries[position(&entries, *step)?].value)
        })
    }

    fn tokens_from(&self, start: usize) -> impl Iterator<Item = (&Token<'a>, Range<usize>)> {
        let first = self.tokens.partition_point(|token| token.start() < start);
        self.tokens[first..].iter().map(|token| (&token.token, token.start()..token.end()))
    }

    /// Where the last token before `start` ends, and whether it is a line comment.
    fn end_before(&self, start: usize) -> (usize, bool) {
        let first = self.tokens.partition_point(|token| token.start() < start);
        let is_line_comment = |token: &TokenAndRange<'_>| matches!(token.token, Token::CommentLine(_));
        self.tokens[..first].last().map_or((0, false), |token| (token.end(), is_line_comment(token)))
    }

    /// An entry with the white space before it, unless a line comment would swallow what follows the entry.
    fn with_space_before(&self, entry: Range<usize>) -> Range<usize> {
        let (end, is_line_comment) = self.end_before(entry.start);
        let ends_line = self.text[entry.end..].trim_start_matches([' ', '\t']).starts_with(['\r', '\n']);
        if is_line_comment && !ends_line { entry } else { end..entry.end }
    }

    /// The comma that follows an entry that ends at `end`.
    fn comma_after(&self, end: usize) -> Range<usize> {
        let mut tokens = self.tokens_from(end);
        tokens.find(|(token, _)| **token == Token::Comma).map_or(end..end, |(_, range)| range)
    }

    fn has_comment(&self, within: Range<usize>) -> bool {
        let mut tokens = self.tokens_from(within.start).take_while(|(_, range)| range.start < within.end);
        tokens.any(|(token, _)| is_comment(token))
    }

    /// The indentation of the line that contains the byte `at`.
    fn indent_at(&self, at: usize) -> &'a str {
        let line = &self.text[self.text[..at].rfind('\n').map_or(0, |newline| newline + 1)..at];
        &line[..line.len() - line.trim_start_matches([' ', '\t']).len()]
    }

    /// One level of indentation: that of the first indented line.
    fn indent_unit(&self) -> &'a str {
        let starts_line = |token: &&TokenAndRange<'_>| {
            !self.indent_at(token.start()).is_empty()
                && self.text[..token.start()].trim_end_matches([' ', '\t']).ends_with('\n')
        };
        self.tokens.iter().find(starts_line).map_or("  ", |token| self.indent_at(token.start()))
    }

    /// The value on several lines, in the document's own indentation. The first line has none; the others begin with
    /// `indent`. JSON strings contain no line breaks, so the white space at the start of a line is always indentation.
    fn format(&self, value: &Value, indent: &str) -> String {
        let unit = self.indent_unit();
        let lines: Vec<String> = format!("{value:#}")
            .lines()
            .map(|line| {
                let rest = line.trim_start_matches(' ');
                format!("{}{rest}", unit.repeat((line.len() - rest.len()) / 2))
            })
            .collect();
        lines.join(&format!("{}{indent}", newline_of(self.text)))
    }
}

/// An entry of an object or list: the range that includes its key, and its value.
struct JsonEntry<'s, 'a> {
    key: Option<String>,
    range: Range<usize>,
    value: &'s ast::Value<'a>,
}

fn entries<'s, 'a>(value: &'s ast::Value<'a>) -> Vec<JsonEntry<'s, 'a>> {
    match value {
        ast::Value::Object(object) => {
            let entry = |property: &'s ast::ObjectProp<'a>| JsonEntry {
                key: Some(property.name.clone().into_string()),
                range: property.start()..property.end(),
                value: &property.value,
            };
            object.properties.iter().map(entry).collect()
        }
        ast::Value::Array(list) => {
            let entry =
                |value: &'s ast::Value<'a>| JsonEntry { key: None, range: value.start()..value.end(), value };
            list.elements.iter().map(entry).collect()
        }
        _ => Vec::new(),
    }
}

fn position(entries: &[JsonEntry<'_, '_>], step: Step<'_>) -> Option<usize> {
    match step {
        Step::Index(index) => (index < entries.len()).then_some(index),
        // JSON readers take the last of several entries with the same key.
        Step::Key(key) => entries.iter().rposition(|entry| entry.key.as_deref() == Some(key)),
    }
}

fn is_comment(token: &Token<'_>) -> bool {
    matches!(token, Token::CommentLine(_) | Token::CommentBlock(_))
}

/// Comments are the only extension of JSON that is accepted, because clients differ in the others. `jsonc-parser` is more
/// lenient than that, so it only finds the comments; `serde_json` reads the text with the comments blanked out.
fn object_of(text: &str) -> Result<Map<String, Value>, String> {
    let parsed = parse_to_ast(text, &COLLECT, &ParseOptions::default())
        .map_err(|e| format!("this is not JSON: {e}"))?;
    let mut plain = text.to_owned();
    for token in parsed.tokens.iter().flatten().filter(|token| is_comment(&token.token)) {
        let blank =
            text[token.start()..token.end()].bytes().map(|byte| if byte == b'\n' { '\n' } else { ' ' });
        plain.replace_range(token.start()..token.end(), &blank.collect::<String>());
    }
    match serde_json::from_str(&plain) {
        Ok(Value::Object(root)) => Ok(root),
        Ok(_) => Err("this is not a JSON object".to_owned()),
        Err(e) => Err(format!("this is not JSON: {e}")),
    }
}

#[cfg(test)]
mod tests;
