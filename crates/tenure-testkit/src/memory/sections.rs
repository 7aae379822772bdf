//! Sections.

use tenure_core::event::NewEvent;
use tenure_core::id::SectionId;
use tenure_core::lease::Resource;
use tenure_core::section::Section;
use tenure_core::store::{NewSection, ReadSections, SectionEdit, WriteFeed, WriteSections};
use tenure_core::{Error, Result};

use super::MemoryTx;
use super::state::SectionRow;

impl MemoryTx {
    fn whole_section(&self, id: &SectionId, row: &SectionRow) -> Section {
        let state = &self.state;
        let mut depends_on: Vec<String> = state
            .section_deps
            .iter()
            .filter(|(section, _)| section == id)
            .filter_map(|(_, on)| state.sections.get(on).map(|section| section.name.clone()))
            .collect();
        depends_on.sort();
        let mut blocked_by: Vec<String> =
            state.unfinished_sections_before(id).map(|section| section.name.clone()).collect();
        blocked_by.sort();
        Section {
            id: id.clone(),
            name: row.name.clone(),
            mode: row.mode,
            priority: row.priority,
            position: row.position,
            depends_on,
            tasks: state.tasks.values().filter(|task| task.section.as_ref() == Some(id)).count() as u64,
            open_tasks: state.open_tasks(id),
            blocked_by,
            lease: state.open_lease(&Resource::section(id)).cloned(),
            created_at: row.created_at,
            updated_at: row.updated_at,
        }
    }
}

impl ReadSections for MemoryTx {
    fn section(&self, id: &SectionId) -> Result<Option<Section>> {
        Ok(self.state.sections.get(id).map(|row| self.whole_section(id, row)))
    }

    fn section_by_name(&self, name: &str) -> Result<Option<Section>> {
        let found = self.state.sections.iter().find(|(_, row)| row.name == name);
        Ok(found.map(|(id, row)| self.whole_section(id, row)))
    }

    fn sections(&self) -> Result<Vec<Section>> {
        let mut all: Vec<_> =
            self.state.sections.iter().map(|(id, row)| self.whole_section(id, row)).collect();
        all.sort_by_key(|section| (section.priority, section.position, section.id.clone()));
        Ok(all)
    }
}

impl WriteSections for MemoryTx {
    fn insert_section(&mut self, new: &NewSection, event: NewEvent<'_>) -> Result<()> {
        if self.state.sections.iter().any(|(id, row)| *id == new.id || row.name == new.name) {
            return Err(Error::store(format!("section {:?} is there already", new.name)));
        }
        let row = SectionRow {
            name: new.name.clone(),
            mode: new.mode,
            priority: new.priority,
            position: new.position,
            created_at: self.now,
            updated_at: self.now,
        };
        self.state.sections.insert(new.id.clone(), row);
        self.append(event)
    }

    fn edit_section(&mut self, id: &SectionId, edit: &SectionEdit, event: NewEvent<'_>) -> Result<()> {
        if let Some(row) = self.state.sections.get_mut(id) {
            row.name = edit.name.clone().unwrap_or_else(|| row.name.clone());
            row.mode = edit.mode.unwrap_or(row.mode);
            row.priority = edit.priority.unwrap_or(row.priority);
            row.position = edit.position.unwrap_or(row.position);
            row.updated_at = self.now;
        }
        self.append(event)
    }

    fn delete_section(&mut self, id: &SectionId, event: NewEvent<'_>) -> Result<()> {
        if self.state.tasks.values().any(|task| task.section.as_ref() == Some(id)) {
            return Err(Error::store("the section still has tasks"));
        }
        self.state.section_deps.retain(|(section, on)| section != id && on != id);
        self.state.sections.remove(id);
        self.append(event)
    }

    fn add_section_dependency(&mut self, section: &SectionId, on: &SectionId) -> Result<bool> {
        if section == on {
            return Ok(false);
        }
        if !self.state.sections.contains_key(section) || !self.state.sections.contains_key(on) {
            return Err(Error::store("a dependency needs two sections"));
        }
        Ok(self.state.section_deps.insert((section.clone(), on.clone())))
    }

    fn remove_section_dependency(&mut self, section: &SectionId, on: &SectionId) -> Result<bool> {
        Ok(self.state.section_deps.remove(&(section.clone(), on.clone())))
    }
}
