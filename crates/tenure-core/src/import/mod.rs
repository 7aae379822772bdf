//! Reading task lists that other tools and people wrote.
//!
//! Guarantees: pure (text in, values out), linear in the size of the text, never panics, and all or nothing: an
//! error means that no [`Import`] exists. Every title, key, description, label and section name in an [`Import`]
//! keeps the limits of [`crate::text`], and no key occurs twice. What the source says and an [`Import`] cannot
//! is listed in [`Import::unmapped`], never dropped in silence.
//! Not decided here: whether a dependency's key exists (the store may know it), and whether dependencies form a
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

/// The kinds of file that can be read.
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

/// A whole file, in its own order.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Import {
    pub tasks: Vec<ImportedTask>,
    /// In order of appearance; each name once. Every section that a task names is here.
    pub sections: Vec<ImportedSection>,
    pub unmapped: Vec<Unmapped>,
}

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ImportedTask {
    /// `None`: the store gives one.
    pub key: Option<String>,
    pub title: String,
    pub description: String,
    pub status: ImportedStatus,
    pub section: Option<String>,
    pub source_file: Option<String>,
    /// Lower comes first, as in lodestar and beads.
    pub priority: Option<i64>,
    /// Keys, of this file or of the store.
    pub depends_on: Vec<String>,
    /// Positions in [`Import::tasks`]: dependencies on tasks of this file that have no key.
    pub depends_on_items: Vec<usize>,
    pub labels: Vec<String>,
    /// Where it begins in the file, from 1.
    pub line: usize,
}

/// There is no "in progress": that needs a lease, and an import grants none. Such tasks come in as pending, and
/// [`Import::unmapped`] says so.
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
    pub parallel: bool,
    pub priority: Option<i64>,
}

/// Something in the source that has no place in an [`Import`], or not its whole meaning. Equal remarks are
/// grouped. `what` may quote the source: it is shown escaped, like all text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unmapped {
    /// Where it first occurs.
    pub line: Option<usize>,
    pub what: String,
    pub why: String,
    /// How often it occurs.
    pub count: usize,
}

/// Reads `text`. `file_name` serves to recognise the format and, for Markdown, as the path in `sourceFile`.
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
