//! Rows of sections and of their dependencies.

use super::columns::{Table, sections};
use super::rows::{Reader, Record, Values};
use crate::clock::Timestamp;
use crate::error::Result;
use crate::event::NewEvent;
use crate::id::SectionId;
use crate::section::{Section, SectionMode};

#[derive(Debug, Clone)]
pub struct NewSection {
    pub id: SectionId,
    pub name: String,
    pub mode: SectionMode,
    pub priority: i64,
    pub position: i64,
}

#[derive(Debug, Clone, Default)]
pub struct SectionEdit {
    pub name: Option<String>,
    pub mode: Option<SectionMode>,
    pub priority: Option<i64>,
    pub position: Option<i64>,
}

pub trait ReadSections {
    fn section(&self, id: &SectionId) -> Result<Option<Section>>;
    fn section_by_name(&self, name: &str) -> Result<Option<Section>>;
    fn sections(&self) -> Result<Vec<Section>>;
}

pub trait WriteSections {
    fn insert_section(&mut self, section: &NewSection, event: NewEvent<'_>) -> Result<()>;
    fn edit_section(&mut self, id: &SectionId, edit: &SectionEdit, event: NewEvent<'_>) -> Result<()>;
    fn delete_section(&mut self, id: &SectionId, event: NewEvent<'_>) -> Result<()>;
    fn add_section_dependency(&mut self, section: &SectionId, on: &SectionId) -> Result<bool>;
    fn remove_section_dependency(&mut self, section: &SectionId, on: &SectionId) -> Result<bool>;
}

/// Reads the columns of the table. The store adds the dependencies and the lease.
impl Record for Section {
    const TABLE: &'static Table = &sections::TABLE;

    fn read(row: Reader<'_>) -> Result<Self> {
        let count = |column| -> Result<u64> { Ok(u64::try_from(row.int(column)?).unwrap_or(0)) };
        let open_tasks = count(sections::open_tasks)?;
        Ok(Self {
            id: SectionId::new(row.text(sections::id)?),
            name: row.string(sections::name)?,
            mode: row.parsed(sections::mode, SectionMode::parse)?,
            priority: row.int(sections::priority)?,
            position: row.int(sections::position)?,
            depends_on: Vec::new(),
            tasks: open_tasks + count(sections::completed)? + count(sections::skipped)?,
            open_tasks,
            blocked_by: Vec::new(),
            lease: None,
            created_at: row.time(sections::created_at)?,
            updated_at: row.time(sections::updated_at)?,
        })
    }
}

impl NewSection {
    pub fn values(&self, now: Timestamp) -> Values<'_> {
        vec![
            (sections::id, self.id.as_str().into()),
            (sections::name, (&self.name).into()),
            (sections::mode, self.mode.as_str().into()),
            (sections::priority, self.priority.into()),
            (sections::position, self.position.into()),
            (sections::created_at, now.into()),
            (sections::updated_at, now.into()),
        ]
    }
}

impl SectionEdit {
    /// The columns that the edit sets.
    pub fn values(&self, now: Timestamp) -> Values<'_> {
        let mut set: Values<'_> = vec![(sections::updated_at, now.into())];
        set.extend(self.name.as_ref().map(|name| (sections::name, name.into())));
        set.extend(self.mode.map(|mode| (sections::mode, mode.as_str().into())));
        set.extend(self.priority.map(|priority| (sections::priority, priority.into())));
        set.extend(self.position.map(|position| (sections::position, position.into())));
        set
    }
}
