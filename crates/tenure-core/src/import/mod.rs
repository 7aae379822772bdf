//! Parsing task lists from other tools and formats.
//!
//! Guarantees: pure (text in, values out), linear in the size of the text, never panics, and all or nothing: on an
//! error there is no [`Import`]. Every title, key, description, label and section name in an [`Import`] is within the
//! limits of [`crate::text`], and no key occurs twice. Parts of the source that an [`Import`] cannot represent are
//! listed in [`Import::unmapped`], never dropped silently.
//! Not checked here: whether a dependency's key exists (it may be in the store), and whether dependencies form a
//! cycle.

mod beads;
mod collect;
mod detect;
mod error;
mod fields;
mod json;
mod lodestar;
pub mod markdown;
mod raw;
mod spec;

pub use error::{ImportError, Problem, Reason};

/// The supported formats.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Format {
    /// Check lists under headings.
    Markdown,
    /// An array of task objects, or what `tenure tasks list --json` prints.
    Json,
    /// lodestar's `spec.yaml`.
    Lodestar,
    /// beads' `issues.jsonl`, or the array that `bd list --json` prints.
    Beads,
}

impl Format {
    pub const ALL: [Self; 4] = [Self::Markdown, Self::Json, Self::Lodestar, Self::Beads];

    pub fn name(self) -> &'static str {
        match self {
            Self::Markdown => "markdown",
            Self::Json => "json",
            Self::Lodestar => "lodestar",
            Self::Beads => "beads",
        }
    }
}

impl std::fmt::Display for Format {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name())
    }
}

/// The content of a file, in file order.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Import {
    pub tasks: Vec<ImportedTask>,
    /// In order of appearance, without duplicates. Contains every section that a task names.
    pub sections: Vec<ImportedSection>,
    pub unmapped: Vec<Unmapped>,
}

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ImportedTask {
    /// `None` if the store should assign one.
    pub key: Option<String>,
    pub title: String,
    pub description: String,
    pub status: ImportedStatus,
    pub section: Option<String>,
    pub source_file: Option<String>,
    /// A lower priority comes first, as in lodestar and beads.
    pub priority: Option<i64>,
    /// Keys of tasks in this file or in the store.
    pub depends_on: Vec<String>,
    /// Indexes into [`Import::tasks`]: dependencies on tasks of this file that have no key.
    pub depends_on_items: Vec<usize>,
    pub labels: Vec<String>,
    /// The first line of the task, counted from 1.
    pub line: usize,
}

/// There is no "in progress", because that needs a lease, and an import grants none. Such tasks become pending, with
/// a note in [`Import::unmapped`].
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub enum ImportedStatus {
    #[default]
    Pending,
    Review,
    Completed,
    Failed,
    Skipped,
}

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ImportedSection {
    pub name: String,
    /// Only if the file says so: a heading or a list groups tasks, and does not exclude other workers.
    pub serial: bool,
    pub priority: Option<i64>,
}

/// A part of the source that an [`Import`] cannot represent, or not completely. Equal notes are grouped. `what` may
/// quote the source; it is displayed escaped, like all text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unmapped {
    /// The first occurrence.
    pub line: Option<usize>,
    pub what: String,
    pub why: String,
    /// The number of occurrences.
    pub count: usize,
}

/// Parses `text`. `file_name` is used to detect the format and, for Markdown, as the path in `sourceFile`.
pub fn parse(format: Option<Format>, file_name: &str, text: &str) -> Result<Import, ImportError> {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let format = match format {
        Some(format) => format,
        None => detect::format_of(file_name, text).ok_or(ImportError::UnknownFormat)?,
    };
    match format {
        Format::Markdown => markdown::parse(file_name, text),
        Format::Json => json::parse(text),
        Format::Lodestar => lodestar::parse(text),
        Format::Beads => beads::parse(text),
    }
}

#[cfg(test)]
mod tests;
