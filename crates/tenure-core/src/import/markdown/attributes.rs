//! Comments of the form `<!-- tenure {…} -->`, which `tasks export` writes: what Markdown itself cannot express.
//!
//! Below an item the object has fields of the item that replace what its text says. Below a heading it describes the
//! section. At the top of the file it applies to all items. In the last two places, `sourceFile` replaces the reference to
//! the file itself.

use serde_json::{Map, Value};

use super::super::collect::Collector;
use super::super::fields::ImportField;
use super::super::json::{NO_EQUAL, read_field};
use super::super::{ImportedSection, ImportedTask};
use super::Scan;

const START: &str = "<!-- tenure {";

/// The text of the object, if the line is such a comment.
pub(super) fn attributes(text: &str) -> Option<&str> {
    let inner = text.trim_end().strip_suffix("-->")?;
    text.starts_with(START).then(|| inner.get(START.len() - 1..).unwrap_or_default().trim_end())
}

impl Scan<'_> {
    /// Applies the object to the item, the section or the file that the comment is in.
    pub(super) fn attribute(&mut self, line: usize, column: usize, object: &str) {
        let Ok(fields) = serde_json::from_str::<Map<String, Value>>(object) else {
            let what = "comment that begins with `tenure`";
            return self.into.note(line, what, "it is not a JSON object, so it was ignored");
        };
        self.close_to(column);
        let owner = self.open.last().and_then(|level| level.owner);
        match owner.and_then(|owner| self.drafts.get_mut(owner)) {
            Some(draft) => describe_item(&mut draft.task, fields, line, &mut self.into),
            None if self.outline.is_empty() => {
                self.file_source = read_source(fields, line, &mut self.into).or(self.file_source.take());
            }
            None => self.describe_section(fields, line),
        }
    }

    fn describe_section(&mut self, fields: Map<String, Value>, line: usize) {
        let mut section = ImportedSection {
            name: self.section.clone().unwrap_or_default(),
            serial: self.section_is_serial,
            priority: None,
        };
        let into = &mut self.into;
        for (name, value) in fields {
            let field = ImportField { name: &name, line };
            match name.as_str() {
                "name" => section.name = field.text(value, into),
                "serial" => section.serial = field.flag(&value, into),
                "priority" => section.priority = field.whole_number(&value, into),
                "sourceFile" => self.section_source = Some(field.optional_text(value, into)),
                _ => field.unmapped(&value, NO_EQUAL, into),
            }
        }
        self.section = Some(section.name.clone()).filter(|name| !name.is_empty());
        self.section_is_serial = section.serial;
        self.section_lines.entry(section.name.clone()).or_insert(self.section_line);
        if self.section.is_some() {
            self.into.add_section(line, section);
        }
    }
}

fn describe_item(task: &mut ImportedTask, fields: Map<String, Value>, line: usize, into: &mut Collector) {
    for (name, value) in fields {
        read_field(task, &ImportField { name: &name, line }, value, into);
    }
}

fn read_source(fields: Map<String, Value>, line: usize, into: &mut Collector) -> Option<Option<String>> {
    let mut source = None;
    for (name, value) in fields {
        let field = ImportField { name: &name, line };
        match name.as_str() {
            "sourceFile" => source = Some(field.optional_text(value, into)),
            _ => field.unmapped(&value, NO_EQUAL, into),
        }
    }
    source
}
