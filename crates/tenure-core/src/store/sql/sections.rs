//! Sections and their dependencies in SQL.

use super::{Dialect, SqlTx};
use crate::error::Result;
use crate::event::NewEvent;
use crate::id::SectionId;
use crate::lease::Lease;
use crate::section::Section;
use crate::store::columns::{Cell, leases, section_deps, sections};
use crate::store::rows::{Record, Row, Values, unexpected};
use crate::store::sections::{NewSection, ReadSections, SectionEdit, WriteSections};
use crate::store::{HAS_WORK, View};

/// Selects sections `s` with their dependencies and their lease. `rest` is appended to a condition.
fn section_query(dialect: Dialect, rest: &str) -> String {
    let dependencies = |besides: &str| {
        format!(
            "(SELECT {} FROM tenure.section_deps d JOIN tenure.sections u ON u.project = $1 AND u.id = d.depends_on
              WHERE d.project = $1 AND d.section_id = s.id {besides})",
            match dialect {
                Dialect::Sqlite => "json_group_array(u.name ORDER BY u.name)",
                Dialect::Postgres => "json_agg(u.name ORDER BY u.name)::text",
            }
        )
    };
    dialect.statement(&format!(
        "SELECT {}, {}, {}, {}
         FROM tenure.sections s LEFT JOIN tenure.leases l
           ON l.project = $1 AND l.resource_kind = 'section' AND l.resource_id = s.id AND l.ended_at IS NULL
         WHERE s.project = $1 AND s.id <> '' {rest}",
        sections::TABLE.of("s"),
        dependencies(""),
        dependencies(&format!("AND {HAS_WORK}")),
        leases::TABLE.of("l"),
    ))
}

fn read_section(row: &dyn Row) -> Result<Section> {
    let more = sections::TABLE.columns.len();
    let names = |at| serde_json::from_str(row.text(at)?.unwrap_or("[]")).map_err(unexpected);
    Ok(Section {
        depends_on: names(more)?,
        blocked_by: names(more + 1)?,
        lease: Lease::read_joined(row, more + 2)?,
        ..Section::load(row, 0)?
    })
}

fn sections_where<T: SqlTx>(tx: &T, rest: &str, values: &[Cell<'_>]) -> Result<Vec<Section>> {
    tx.query(&section_query(T::DIALECT, rest), values, read_section)
}

impl<T: SqlTx> ReadSections for T {
    fn section(&self, id: &SectionId) -> Result<Option<Section>> {
        Ok(sections_where(self, "AND s.id = ?", &[id.as_str().into()])?.pop())
    }

    fn section_by_name(&self, name: &str) -> Result<Option<Section>> {
        Ok(sections_where(self, "AND s.name = ?", &[name.into()])?.pop())
    }

    fn sections(&self) -> Result<Vec<Section>> {
        sections_where(self, "ORDER BY s.priority, s.position, s.id", &[])
    }
}

impl<T: SqlTx> WriteSections for T {
    fn insert_section(&mut self, section: &NewSection, event: NewEvent<'_>) -> Result<()> {
        self.insert(&sections::TABLE, &section.values(self.now()))?;
        self.insert_event(event)
    }

    fn edit_section(&mut self, id: &SectionId, edit: &SectionEdit, event: NewEvent<'_>) -> Result<()> {
        let set = edit.values(self.now());
        self.update(&sections::TABLE, set, vec![(sections::id, id.as_str().into())])?;
        self.insert_event(event)
    }

    fn delete_section(&mut self, id: &SectionId, event: NewEvent<'_>) -> Result<()> {
        for end in [section_deps::section_id, section_deps::depends_on] {
            self.delete(&section_deps::TABLE, &[(end, id.as_str().into())])?;
        }
        self.delete(&sections::TABLE, &[(sections::id, id.as_str().into())])?;
        self.insert_event(event)
    }

    fn add_section_dependency(&mut self, section: &SectionId, on: &SectionId) -> Result<bool> {
        Ok(section != on && self.insert_new(&section_deps::TABLE, &dependency(section, on))?)
    }

    fn remove_section_dependency(&mut self, section: &SectionId, on: &SectionId) -> Result<bool> {
        Ok(self.delete(&section_deps::TABLE, &dependency(section, on))? > 0)
    }
}

fn dependency<'a>(section: &'a SectionId, on: &'a SectionId) -> Values<'a> {
    vec![(section_deps::section_id, section.as_str().into()), (section_deps::depends_on, on.as_str().into())]
}
