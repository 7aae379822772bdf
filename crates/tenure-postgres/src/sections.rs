//! Sections: rows and the order between them.

use tenure_core::Result;
use tenure_core::event::NewEvent;
use tenure_core::id::SectionId;
use tenure_core::section::{Section, SectionMode};
use tenure_core::store::{NewSection, ReadSections, SectionEdit, WriteFeed, WriteSections};
use tokio_postgres::Row;

use crate::connection::Value;
use crate::readiness::has_work;
use crate::rows::{LEASE_COLUMNS, all, columns_of, count, get, optional_lease, parsed, time};
use crate::transaction::Transaction;

fn section_query(rest: &str) -> String {
    format!(
        "SELECT s.id, s.name, s.mode, s.priority, s.position,
                (SELECT count(*) FROM tenure.tasks t WHERE t.project = $1 AND t.section_id = s.id
                 AND t.status NOT IN ('completed', 'skipped')),
                (SELECT count(*) FROM tenure.tasks t WHERE t.project = $1 AND t.section_id = s.id),
                ARRAY(SELECT u.name FROM tenure.section_deps d
                      JOIN tenure.sections u ON u.project = d.project AND u.id = d.depends_on
                      WHERE d.project = $1 AND d.section_id = s.id ORDER BY u.name),
                ARRAY(SELECT u.name FROM tenure.section_deps d
                      JOIN tenure.sections u ON u.project = d.project AND u.id = d.depends_on
                      WHERE d.project = $1 AND d.section_id = s.id AND {has_work} ORDER BY u.name),
                s.created_at, s.updated_at, {}
         FROM tenure.sections s
         LEFT JOIN tenure.leases l ON l.project = $1 AND l.resource_kind = 'section' AND l.resource_id = s.id
              AND l.ended_at IS NULL
         WHERE s.project = $1 AND s.id <> '' {rest}",
        columns_of("l", LEASE_COLUMNS),
        has_work = has_work(),
    )
}

fn read_section(row: &Row) -> Result<Section> {
    Ok(Section {
        id: SectionId::new(get::<String>(row, 0)?),
        name: get(row, 1)?,
        mode: parsed(get(row, 2)?, SectionMode::parse)?,
        priority: get(row, 3)?,
        position: get(row, 4)?,
        open_tasks: count(row, 5)?,
        tasks: count(row, 6)?,
        depends_on: get(row, 7)?,
        blocked_by: get(row, 8)?,
        created_at: time(row, 9)?,
        updated_at: time(row, 10)?,
        lease: optional_lease(row, 11)?,
    })
}

impl Transaction<'_> {
    fn section_where(&self, condition: &str, value: &str) -> Result<Option<Section>> {
        self.row(&section_query(condition), &[&value])?.map(|row| read_section(&row)).transpose()
    }
}

impl ReadSections for Transaction<'_> {
    fn section(&self, id: &SectionId) -> Result<Option<Section>> {
        self.section_where("AND s.id = $2", id.as_str())
    }

    fn section_by_name(&self, name: &str) -> Result<Option<Section>> {
        self.section_where("AND s.name = $2", name)
    }

    fn sections(&self) -> Result<Vec<Section>> {
        all(self.rows(&section_query("ORDER BY s.priority, s.position, s.id"), &[])?, read_section)
    }
}

impl WriteSections for Transaction<'_> {
    fn insert_section(&mut self, section: &NewSection, event: NewEvent<'_>) -> Result<()> {
        self.change(
            "INSERT INTO tenure.sections (project, id, name, mode, priority, position, created_at, updated_at)
             VALUES ($1, $2, $3, $4, $5, $6, $7, $7)",
            &[
                &section.id.as_str(),
                &section.name,
                &section.mode.as_str(),
                &section.priority,
                &section.position,
                &self.now.as_millis(),
            ],
        )?;
        self.append(event)
    }

    fn edit_section(&mut self, id: &SectionId, edit: &SectionEdit, event: NewEvent<'_>) -> Result<()> {
        self.change(
            "UPDATE tenure.sections SET updated_at = $3, name = coalesce($4, name), mode = coalesce($5, mode),
               priority = coalesce($6, priority), position = coalesce($7, position)
             WHERE project = $1 AND id = $2",
            &[
                &id.as_str(),
                &self.now.as_millis(),
                &edit.name,
                &edit.mode.map(SectionMode::as_str),
                &edit.priority,
                &edit.position,
            ],
        )?;
        self.append(event)
    }

    fn delete_section(&mut self, id: &SectionId, event: NewEvent<'_>) -> Result<()> {
        for sql in [
            "DELETE FROM tenure.section_deps WHERE project = $1 AND (section_id = $2 OR depends_on = $2)",
            "DELETE FROM tenure.sections WHERE project = $1 AND id = $2 AND id <> ''",
        ] {
            self.change(sql, &[&id.as_str()])?;
        }
        self.append(event)
    }

    fn add_section_dependency(&mut self, section: &SectionId, on: &SectionId) -> Result<bool> {
        let values: [&dyn Value; 2] = [&section.as_str(), &on.as_str()];
        let changed = self.change(
            "INSERT INTO tenure.section_deps (project, section_id, depends_on) SELECT $1, $2, $3 WHERE $2 <> $3
             ON CONFLICT DO NOTHING RETURNING 1",
            &values,
        )?;
        Ok(!changed.is_empty())
    }

    fn remove_section_dependency(&mut self, section: &SectionId, on: &SectionId) -> Result<bool> {
        let changed = self.change(
            "DELETE FROM tenure.section_deps WHERE project = $1 AND section_id = $2 AND depends_on = $3 RETURNING 1",
            &[&section.as_str(), &on.as_str()],
        )?;
        Ok(!changed.is_empty())
    }
}
