//! Parsing task lists from other tools and formats.
//!
//! Guarantees: pure (text in, values out), linear in the size of the text, never panics, and all or nothing: on an
//! error there is no [`Import`]. Every title, key, description, label and section name in an [`Import`] is within the
//! limits of [`crate::text`], and no key occurs twice. Parts of the source that an [`Import`] cannot represent are
//! listed in [`Import::unmapped`], never dropped silently.
//! Not checked here: whether a dependency's key exists (it may be in the store), and whether dependencies form a
//! cycle.

mod backlog_md;
mod beads;
mod collect;
mod csv;
mod detect;
mod error;
mod fields;
mod github;
mod json;
mod lodestar;
pub mod markdown;
mod raw;
mod spec;
mod task_master;
mod vibe_kanban;
mod words;

pub use error::{ImportError, Problem, ProblemKind};

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
    /// Backlog.md's files, one per task.
    BacklogMd,
    /// Task Master's `tasks.json`.
    TaskMaster,
    /// vibe-kanban's exported CSV files, or the tasks of its API.
    VibeKanban,
    /// What `gh issue list --json` prints.
    Github,
}

impl Format {
    pub const ALL: [Self; 8] = [
        Self::Markdown,
        Self::Json,
        Self::Lodestar,
        Self::Beads,
        Self::BacklogMd,
        Self::TaskMaster,
        Self::VibeKanban,
        Self::Github,
    ];

    pub fn name(self) -> &'static str {
        match self {
            Self::Markdown => "markdown",
            Self::Json => "json",
            Self::Lodestar => "lodestar",
            Self::Beads => "beads",
            Self::BacklogMd => "backlog-md",
            Self::TaskMaster => "task-master",
            Self::VibeKanban => "vibe-kanban",
            Self::Github => "github",
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
    /// The file, if its tasks refer to it with `sourceFile`. Then a task that refers to another file does not count as
    /// missing from this one.
    pub source: Option<String>,
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
        Format::BacklogMd => backlog_md::parse(&[(file_name, text)]),
        Format::TaskMaster => task_master::parse(text),
        Format::VibeKanban => vibe_kanban::parse(&[(file_name, text)]),
        Format::Github => github::parse(text),
    }
}

/// Parses the files of a folder, or one file. Only Backlog.md and vibe-kanban have several.
pub fn parse_files(format: Option<Format>, files: &[(&str, &str)]) -> Result<Import, ImportError> {
    if let [(file_name, text)] = files {
        return parse(format, file_name, text);
    }
    let is_csv = |(name, _): &(&str, &str)| name.to_ascii_lowercase().ends_with(".csv");
    match format {
        Some(Format::VibeKanban) => vibe_kanban::parse(files),
        None if files.iter().any(is_csv) => vibe_kanban::parse(files),
        None if !files.iter().any(|(_, text)| backlog_md::is_task(text)) => Err(ImportError::UnknownFormat),
        None | Some(Format::BacklogMd) => backlog_md::parse(files),
        Some(_) => Err(ImportError::OneFile),
    }
}

#[cfg(test)]
mod tests;
