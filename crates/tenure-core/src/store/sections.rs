//! Rows of sections and of their dependencies.

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
