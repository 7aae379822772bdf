//! Shared by all formats: collects tasks, validates them, and records problems and unmapped parts of the source.
//!
//! Guarantees: [`Collector::finish`] returns either tasks that are all within the limits, or the problems.

use std::collections::{HashMap, HashSet};
use std::hash::Hash;

use super::error::SHOWN_PROBLEMS;
use super::{Import, ImportError, ImportedSection, ImportedTask, Problem, ProblemKind, Unmapped};
use crate::text;

#[derive(Default)]
pub(super) struct Collector {
    tasks: Vec<ImportedTask>,
    sections: Vec<ImportedSection>,
    section_names: HashSet<String>,
    lines_of_keys: HashMap<String, usize>,
    left_out: HashSet<String>,
    problems: Vec<Problem>,
    total_problems: usize,
    notes: Vec<Unmapped>,
    notes_by_text: HashMap<(String, &'static str), usize>,
}

impl Collector {
    /// Adds a task and returns its index.
    pub(super) fn add(&mut self, task: ImportedTask) -> usize {
        let line = task.line;
        self.check(line, text::check_title(&task.title));
        self.check(line, text::check_description(&task.description));
        if let Some(source) = &task.source_file {
            self.check(line, text::check_source_file(source));
        }
        for label in &task.labels {
            self.check(line, text::check_label(label));
        }
        for key in &task.depends_on {
            if let Err(error) = text::check_task_key(key) {
                self.refuse(line, ProblemKind::Dependency(error));
            }
        }
        if let Some(key) = task.key.clone() {
            self.register(key, line);
        }
        if let Some(name) = &task.section {
            self.add_section(line, ImportedSection { name: name.clone(), ..ImportedSection::default() });
        }
        self.tasks.push(task);
        self.tasks.len() - 1
    }

    fn register(&mut self, key: String, line: usize) {
        if let Err(error) = text::check_task_key(&key) {
            self.refuse(line, error.into());
        } else if let Some(&first) = self.lines_of_keys.get(&key) {
            self.refuse(line, ProblemKind::DuplicateKey { key, first });
        } else {
            self.lines_of_keys.insert(key, line);
        }
    }

    /// The first occurrence of a name determines the mode.
    pub(super) fn add_section(&mut self, line: usize, section: ImportedSection) {
        if self.section_names.contains(&section.name) {
            return;
        }
        self.check(line, text::check_section(&section.name));
        self.section_names.insert(section.name.clone());
        self.sections.push(section);
    }

    /// Records an entry that does not become a task. Dependencies on it are dropped.
    pub(super) fn leave_out(&mut self, key: Option<String>, line: usize, what: &str, why: &'static str) {
        self.left_out.extend(key);
        self.note(line, what, why);
    }

    pub(super) fn refuse(&mut self, line: usize, reason: ProblemKind) {
        self.total_problems += 1;
        if self.problems.len() < SHOWN_PROBLEMS {
            self.problems.push(Problem { line, reason });
        }
    }

    pub(super) fn total_problems(&self) -> usize {
        self.total_problems
    }

    fn check(&mut self, line: usize, outcome: Result<(), text::TextError>) {
        if let Err(error) = outcome {
            self.refuse(line, error.into());
        }
    }

    pub(super) fn note(&mut self, line: usize, what: &str, why: &'static str) {
        if let Some(note) =
            self.notes_by_text.get(&(what.to_owned(), why)).and_then(|&at| self.notes.get_mut(at))
        {
            note.count += 1;
            return;
        }
        self.notes_by_text.insert((what.to_owned(), why), self.notes.len());
        let what = what.to_owned();
        self.notes.push(Unmapped { line: Some(line), what, why: why.to_owned(), count: 1 });
    }

    pub(super) fn tasks_mut(&mut self) -> &mut [ImportedTask] {
        &mut self.tasks
    }

    pub(super) fn finish(mut self) -> Result<Import, ImportError> {
        if self.total_problems > 0 {
            return Err(ImportError::Invalid { problems: self.problems, total: self.total_problems });
        }
        if !self.left_out.is_empty() {
            self.drop_dependencies_on_skipped_entries();
        }
        for task in &mut self.tasks {
            keep_first(&mut task.labels);
            keep_first(&mut task.depends_on);
            keep_first(&mut task.depends_on_items);
        }
        Ok(Import { tasks: self.tasks, sections: self.sections, unmapped: self.notes, source: None })
    }

    /// Otherwise the store would refuse the import because of unknown keys.
    fn drop_dependencies_on_skipped_entries(&mut self) {
        let mut tasks = std::mem::take(&mut self.tasks);
        for task in &mut tasks {
            let before = task.depends_on.len();
            task.depends_on
                .retain(|key| !self.left_out.contains(key) || self.lines_of_keys.contains_key(key));
            for _ in task.depends_on.len()..before {
                self.note(task.line, "dependency on an entry that was skipped", "the dependency was dropped");
            }
        }
        self.tasks = tasks;
    }
}

fn keep_first<T: Clone + Eq + Hash>(words: &mut Vec<T>) {
    if words.len() < 2 {
        return;
    }
    let mut seen = HashSet::with_capacity(words.len());
    words.retain(|word| seen.insert(word.clone()));
}
