//! Sections: rows and the order between them.

use rusqlite::{OptionalExtension, Row, ToSql, params};
use tenure_core::Result;
use tenure_core::event::NewEvent;
use tenure_core::id::SectionId;
use tenure_core::section::{Section, SectionMode};
use tenure_core::store::{NewSection, ReadSections, SectionEdit, WriteFeed, WriteSections};

use crate::connection::Transaction;
use crate::error::sql_error;
use crate::rows::{LEASE_COLUMNS, Sql, columns_of, count, json, optional_lease, parsed, time};

fn section_query(rest: &str) -> String {
    format!(
        "SELECT s.id, s.name, s.mode, s.priority, s.position, s.open_tasks,
                (SELECT count(*) FROM tasks t WHERE t.section_id = s.id),
                (SELECT json_group_array(u.name ORDER BY u.name) FROM section_deps d
                 JOIN sections u ON u.id = d.depends_on WHERE d.section_id = s.id),
                (SELECT json_group_array(u.name ORDER BY u.name) FROM section_deps d
                 JOIN sections u ON u.id = d.depends_on WHERE d.section_id = s.id AND u.open_tasks > 0),
                s.created_at, s.updated_at, {}
         FROM sections s
         LEFT JOIN leases l ON l.resource_kind = 'section' AND l.resource_id = s.id AND l.ended_at IS NULL
         WHERE s.id <> '' {rest}",
        columns_of("l", LEASE_COLUMNS)
    )
}

fn read_section(row: &Row<'_>) -> Sql<Section> {
    Ok(Section {
        id: SectionId::new(row.get::<_, String>(0)?),
        name: row.get(1)?,
        mode: parsed(2, &row.get::<_, String>(2)?, SectionMode::parse)?,
        priority: row.get(3)?,
        position: row.get(4)?,
        open_tasks: count(row, 5)?,
        tasks: count(row, 6)?,
        depends_on: json(7, &row.get::<_, String>(7)?)?,
        blocked_by: json(8, &row.get::<_, String>(8)?)?,
        created_at: time(row, 9)?,
        updated_at: time(row, 10)?,
        lease: optional_lease(row, 11)?,
    })
}

impl Transaction<'_> {
    fn section_where(&self, condition: &str, value: &str) -> Result<Option<Section>> {
        self.conn
            .prepare_cached(&section_query(condition))
            .and_then(|mut s| s.query_row([value], read_section).optional())
            .map_err(|e| sql_error(&e))
    }
}

impl ReadSections for Transaction<'_> {
    fn section(&self, id: &SectionId) -> Result<Option<Section>> {
        self.section_where("AND s.id = ?1", id.as_str())
    }

    fn section_by_name(&self, name: &str) -> Result<Option<Section>> {
        self.section_where("AND s.name = ?1", name)
    }

    fn sections(&self) -> Result<Vec<Section>> {
        let read = || -> Sql<Vec<_>> {
            self.conn
                .prepare_cached(&section_query("ORDER BY s.priority, s.position, s.id"))?
                .query_map([], read_section)?
                .collect()
        };
        read().map_err(|e| sql_error(&e))
    }
}

impl WriteSections for Transaction<'_> {
    fn insert_section(&mut self, section: &NewSection, event: NewEvent<'_>) -> Result<()> {
        self.conn
            .prepare_cached(
                "INSERT INTO sections (id, name, mode, priority, position, created_at, updated_at)
                 VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?6)",
            )
            .and_then(|mut s| {
                s.execute(params![
                    section.id.as_str(),
                    section.name,
                    section.mode.as_str(),
                    section.priority,
                    section.position,
                    self.now.as_millis()
                ])
            })
            .map_err(|e| sql_error(&e))?;
        self.append(event)
    }

    fn edit_section(&mut self, id: &SectionId, edit: &SectionEdit, event: NewEvent<'_>) -> Result<()> {
        let mut sets: Vec<&str> = vec!["updated_at = ?"];
        let mut values: Vec<Box<dyn ToSql>> = vec![Box::new(self.now.as_millis())];
        if let Some(name) = &edit.name {
            sets.push("name = ?");
            values.push(Box::new(name.clone()));
        }
        if let Some(mode) = edit.mode {
            sets.push("mode = ?");
            values.push(Box::new(mode.as_str()));
        }
        if let Some(priority) = edit.priority {
            sets.push("priority = ?");
            values.push(Box::new(priority));
        }
        if let Some(position) = edit.position {
            sets.push("position = ?");
            values.push(Box::new(position));
        }
        values.push(Box::new(id.as_str().to_owned()));
        let sql = format!("UPDATE sections SET {} WHERE id = ?", sets.join(", "));
        self.conn
            .prepare_cached(&sql)
            .and_then(|mut s| s.execute(rusqlite::params_from_iter(values.iter().map(AsRef::as_ref))))
            .map_err(|e| sql_error(&e))?;
        self.append(event)
    }

    fn delete_section(&mut self, id: &SectionId, event: NewEvent<'_>) -> Result<()> {
        for sql in [
            "DELETE FROM section_deps WHERE section_id = ?1 OR depends_on = ?1",
            "DELETE FROM sections WHERE id = ?1 AND id <> ''",
        ] {
            self.conn
                .prepare_cached(sql)
                .and_then(|mut s| s.execute([id.as_str()]))
                .map_err(|e| sql_error(&e))?;
        }
        self.append(event)
    }

    fn add_section_dependency(&mut self, section: &SectionId, on: &SectionId) -> Result<bool> {
        self.conn
            .prepare_cached("INSERT OR IGNORE INTO section_deps (section_id, depends_on) VALUES (?1, ?2)")
            .and_then(|mut s| s.execute([section.as_str(), on.as_str()]))
            .map(|changed| changed > 0)
            .map_err(|e| sql_error(&e))
    }

    fn remove_section_dependency(&mut self, section: &SectionId, on: &SectionId) -> Result<bool> {
        self.conn
            .prepare_cached("DELETE FROM section_deps WHERE section_id = ?1 AND depends_on = ?2")
            .and_then(|mut s| s.execute([section.as_str(), on.as_str()]))
            .map(|changed| changed > 0)
            .map_err(|e| sql_error(&e))
    }
}
