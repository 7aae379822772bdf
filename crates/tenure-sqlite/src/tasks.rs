//! Tasks: finding and listing.

use std::collections::BTreeMap;

use rusqlite::{Row, ToSql, params};
use tenure_core::Result;
use tenure_core::error::TaskName;
use tenure_core::id::{SectionId, TaskId};
use tenure_core::store::{ReadTasks, Reserved, TaskFilter, TaskLookup, Viewer};
use tenure_core::task::{SectionRef, Task, TaskStatus};

use crate::connection::Transaction;
use crate::error::sql_error;
use crate::ready::{Bound, OPEN_LEASE, ready, ready_but_for_section, section_open};
use crate::rows::{LEASE_COLUMNS, Sql, columns_of, count, json, optional_lease, status, time};

/// Tasks with their sections and open leases. What is asked of other rows, and costs SQLite much to plan, is asked afterwards
/// and only for the tasks that it concerns: see [`Transaction::complete`].
fn task_query(ready: &str, rest: &str) -> String {
    format!(
        "SELECT t.id, t.key, t.title, t.description, t.status, t.section_id, s.name, s.mode, t.source_file,
                t.priority, t.position, t.labels, t.attempts, t.rejections, t.created_at, t.updated_at,
                {ready}, {lease}
         FROM sections s CROSS JOIN tasks t ON t.section_id = s.id {OPEN_LEASE}
         {rest}",
        lease = columns_of("o", LEASE_COLUMNS),
    )
}

fn read_task(row: &Row<'_>) -> Sql<Task> {
    let section_id: String = row.get(5)?;
    let section = if section_id.is_empty() {
        None
    } else {
        Some(SectionRef {
            id: SectionId::new(section_id),
            name: row.get(6)?,
            serial: row.get::<_, String>(7)? == "serial",
        })
    };
    Ok(Task {
        id: TaskId::new(row.get::<_, String>(0)?),
        key: row.get(1)?,
        title: row.get(2)?,
        description: row.get(3)?,
        status: status(row, 4)?,
        section,
        source_file: row.get(8)?,
        priority: row.get(9)?,
        position: row.get(10)?,
        depends_on: Vec::new(),
        labels: json(11, &row.get::<_, String>(11)?)?,
        attempts: row.get(12)?,
        rejections: row.get(13)?,
        created_at: time(row, 14)?,
        updated_at: time(row, 15)?,
        ready: row.get(16)?,
        blocked_by: Vec::new(),
        lease: optional_lease(row, 17)?,
    })
}

fn read_name(row: &Row<'_>) -> Sql<TaskName> {
    name_at(row, 0)
}

pub(crate) fn name_at(row: &Row<'_>, at: usize) -> Sql<TaskName> {
    Ok(TaskName {
        id: row.get(at)?,
        key: row.get(at + 1)?,
        title: row.get(at + 2)?,
        status: status(row, at + 3)?,
    })
}

impl Transaction<'_> {
    /// `eyes` are for who asks whether it is ready.
    fn one_task(&self, id: &TaskId, viewer: Option<&Viewer>) -> Sql<Option<Task>> {
        // The planner must start from the one task, so the join order of the listing is turned round here.
        let ready = if viewer.is_some() { ready_but_for_section() } else { "0".to_owned() };
        let sql = task_query(&ready, "WHERE t.id = :id").replace(
            "FROM sections s CROSS JOIN tasks t ON t.section_id = s.id",
            "FROM tasks t CROSS JOIN sections s ON s.id = t.section_id",
        );
        let mut values =
            viewer.map(|viewer| self.bind(viewer)).transpose()?.map_or_else(Vec::new, Bound::into_values);
        values.push((":id", Box::new(id.as_str().to_owned())));
        let mut statement = self.conn.prepare_cached(&sql)?;
        bind_known(&mut statement, &values)?;
        let Some(mut task) = statement.raw_query().next()?.map(read_task).transpose()? else {
            return Ok(None);
        };
        self.complete(std::slice::from_mut(&mut task), &values)?;
        Ok(Some(task))
    }

    /// Adds what tasks depend on, and takes back the readiness of those whose section is closed to the caller.
    fn complete(&self, tasks: &mut [Task], values: &[(&str, Box<dyn ToSql>)]) -> Sql<()> {
        let mut dependencies = self.conn.prepare_cached(
            "SELECT u.key, u.status NOT IN ('completed', 'skipped') FROM task_deps d JOIN tasks u ON u.id = d.depends_on
             WHERE d.task_id = ?1 ORDER BY u.key",
        )?;
        let mut sections: BTreeMap<SectionId, (Vec<String>, Option<bool>)> = BTreeMap::new();
        for task in tasks {
            let mut rows = dependencies.query([task.id.as_str()])?;
            while let Some(row) = rows.next()? {
                let key: String = row.get(0)?;
                if row.get(1)? {
                    task.blocked_by.push(key.clone());
                }
                task.depends_on.push(key);
            }
            let Some(SectionRef { id, .. }) = &task.section else { continue };
            if !sections.contains_key(id) {
                sections.insert(id.clone(), (self.closed_before(id)?, None));
            }
            let Some((before, open)) = sections.get_mut(id) else { continue };
            task.blocked_by.extend(before.iter().cloned());
            if task.ready {
                let is_open = match open {
                    Some(known) => *known,
                    None => self.is_section_open(id, values)?,
                };
                *open = Some(is_open);
                task.ready = is_open;
            }
        }
        Ok(())
    }

    /// The unfinished sections in front of this one, as they block its tasks.
    fn closed_before(&self, section: &SectionId) -> Sql<Vec<String>> {
        self.conn
            .prepare_cached(
                "SELECT 'section:' || u.name FROM section_deps d JOIN sections u ON u.id = d.depends_on
                 WHERE d.section_id = ?1 AND u.open_tasks > 0 ORDER BY u.name",
            )?
            .query_map([section.as_str()], |row| row.get(0))?
            .collect()
    }

    fn is_section_open(&self, section: &SectionId, values: &[(&str, Box<dyn ToSql>)]) -> Sql<bool> {
        let sql = format!("SELECT {} FROM sections s WHERE s.id = :of", section_open());
        let mut statement = self.conn.prepare_cached(&sql)?;
        bind_known(&mut statement, values)?;
        if let Some(index) = statement.parameter_index(":of")? {
            statement.raw_bind_parameter(index, section.as_str())?;
        }
        let mut rows = statement.raw_query();
        rows.next()?.map_or(Ok(false), |row| row.get(0))
    }

    fn page(&self, filter: &TaskFilter, viewer: &Viewer) -> Sql<(Vec<Task>, u64)> {
        let mut terms = Vec::new();
        let mut values = self.bind(viewer)?.into_values();
        if let Some(statuses) = &filter.statuses {
            let list = statuses.iter().map(|s| format!("'{s}'")).collect::<Vec<_>>().join(", ");
            terms.push(format!("t.status IN ({list})"));
        }
        if let Some(section) = &filter.section {
            terms.push("s.id = :section".to_owned());
            values.push((":section", Box::new(section.as_str().to_owned())));
        }
        if let Some(text) = &filter.search {
            terms.push(
                "(instr(lower(t.title), lower(:search)) OR instr(lower(t.description), lower(:search)) \
                 OR instr(lower(t.key), lower(:search)))"
                    .to_owned(),
            );
            values.push((":search", Box::new(text.clone())));
        }
        if let Some(label) = &filter.label {
            terms.push("EXISTS (SELECT 1 FROM json_each(t.labels) WHERE value = :label)".to_owned());
            values.push((":label", Box::new(label.clone())));
        }
        if let Some(holder) = &filter.held_by {
            terms.push(
                "EXISTS (SELECT 1 FROM leases h WHERE h.resource_kind = 'task' AND h.resource_id = t.id \
                 AND h.ended_at IS NULL AND h.holder_kind = :held_kind AND h.holder_id = :held_id)"
                    .to_owned(),
            );
            values.push((":held_kind", Box::new(holder.kind.as_str())));
            values.push((":held_id", Box::new(holder.id.clone())));
        }
        if filter.ready {
            terms.push(format!("({})", ready()));
        }
        let condition =
            if terms.is_empty() { String::new() } else { format!("WHERE {}", terms.join(" AND ")) };
        let listing = task_query(
            &ready_but_for_section(),
            &format!(
                "{condition} ORDER BY s.priority, s.position, s.id, t.priority, t.position, t.id
                 LIMIT :limit OFFSET :offset"
            ),
        );
        let counting = format!(
            "SELECT count(*) FROM tasks t {} {} {condition}",
            if filter.section.is_some() || filter.ready {
                "JOIN sections s ON s.id = t.section_id"
            } else {
                ""
            },
            if filter.ready { OPEN_LEASE } else { "" },
        );

        values.push((":limit", Box::new(i64::try_from(filter.limit).unwrap_or(i64::MAX))));
        values.push((":offset", Box::new(i64::try_from(filter.offset).unwrap_or(i64::MAX))));

        let mut statement = self.conn.prepare_cached(&listing)?;
        bind_known(&mut statement, &values)?;
        let mut tasks = Vec::new();
        let mut rows = statement.raw_query();
        while let Some(row) = rows.next()? {
            tasks.push(read_task(row)?);
        }
        self.complete(&mut tasks, &values)?;
        let seen = u64::try_from(tasks.len()).unwrap_or(u64::MAX);
        if filter.offset == 0 && seen < filter.limit {
            return Ok((tasks, seen));
        }
        let mut statement = self.conn.prepare_cached(&counting)?;
        bind_known(&mut statement, &values)?;
        let mut rows = statement.raw_query();
        let total = rows.next()?.map_or(Ok(0), |row| count(row, 0))?;
        Ok((tasks, total))
    }

    fn named(&self, lookup: TaskLookup<'_>, limit: usize) -> Sql<Vec<TaskName>> {
        let limit = i64::try_from(limit).unwrap_or(i64::MAX);
        let (condition, value) = match lookup {
            TaskLookup::Id(id) => ("id = ?1", id.to_owned()),
            TaskLookup::Key(key) => ("key = ?1", key.to_owned()),
            // 'g' comes after every hex digit and after the dash.
            TaskLookup::IdPrefix(prefix) => ("id >= ?1 AND id < ?1 || 'g'", prefix.to_owned()),
            TaskLookup::Title(title) => ("title = ?1", title.to_owned()),
            // SQLite folds ASCII only, so it must fold both sides: else Ä would not be found by Ä.
            TaskLookup::TitlePart(part) => ("instr(lower(title), lower(?1))", part.to_owned()),
        };
        let sql = format!("SELECT id, key, title, status FROM tasks WHERE {condition} LIMIT ?2");
        let mut statement = self.conn.prepare_cached(&sql)?;

        statement.query_map(params![value, limit], read_name)?.collect()
    }

    fn edges(&self, task: &TaskId) -> Sql<Vec<(TaskName, TaskName)>> {
        let mut statement = self.conn.prepare_cached(
            "WITH RECURSIVE reached (id) AS (
               SELECT ?1 UNION SELECT d.depends_on FROM reached r JOIN task_deps d ON d.task_id = r.id)
             SELECT a.id, a.key, a.title, a.status, b.id, b.key, b.title, b.status
             FROM reached r JOIN task_deps d ON d.task_id = r.id
             JOIN tasks a ON a.id = d.task_id JOIN tasks b ON b.id = d.depends_on",
        )?;

        statement.query_map([task.as_str()], |row| Ok((name_at(row, 0)?, name_at(row, 4)?)))?.collect()
    }
}

/// Binds only what the statement mentions, because the terms of a listing vary.
fn bind_known(statement: &mut rusqlite::Statement<'_>, values: &[(&str, Box<dyn ToSql>)]) -> Sql<()> {
    for (name, value) in values {
        if let Some(index) = statement.parameter_index(name)? {
            statement.raw_bind_parameter(index, value.as_ref())?;
        }
    }
    Ok(())
}

/// Tasks without a section live in the unnamed one.
pub(crate) fn section_column(section: Option<&SectionId>) -> &str {
    section.map_or("", SectionId::as_str)
}

impl ReadTasks for Transaction<'_> {
    fn task(&self, id: &TaskId, viewer: &Viewer) -> Result<Option<Task>> {
        self.one_task(id, Some(viewer)).map_err(|e| sql_error(&e))
    }

    fn task_row(&self, id: &TaskId, _: &Viewer) -> Result<Option<Task>> {
        self.one_task(id, None).map_err(|e| sql_error(&e))
    }

    fn find_tasks(&self, lookup: TaskLookup<'_>, limit: usize) -> Result<Vec<TaskName>> {
        self.named(lookup, limit).map_err(|e| sql_error(&e))
    }

    fn list_tasks(&self, filter: &TaskFilter, viewer: &Viewer) -> Result<(Vec<Task>, u64)> {
        self.page(filter, viewer).map_err(|e| sql_error(&e))
    }

    fn next_unreserved(
        &self,
        section: Option<&SectionId>,
        reserved: &Reserved,
        viewer: &Viewer,
    ) -> Result<Option<TaskId>> {
        self.first_ready(section, reserved, viewer).map_err(|e| sql_error(&e))
    }

    fn count_tasks(&self) -> Result<Vec<(TaskStatus, u64)>> {
        let read = || -> Sql<Vec<_>> {
            self.conn
                .prepare_cached("SELECT status, count(*) FROM tasks GROUP BY status")?
                .query_map([], |row| Ok((status(row, 0)?, count(row, 1)?)))?
                .collect()
        };
        read().map_err(|e| sql_error(&e))
    }

    fn edges_from(&self, task: &TaskId) -> Result<Vec<(TaskName, TaskName)>> {
        self.edges(task).map_err(|e| sql_error(&e))
    }

    fn dependents(&self, task: &TaskId) -> Result<Vec<TaskName>> {
        let read = || -> Sql<Vec<_>> {
            self.conn
                .prepare_cached(
                    "SELECT t.id, t.key, t.title, t.status FROM task_deps d JOIN tasks t ON t.id = d.task_id
                     WHERE d.depends_on = ?1 ORDER BY t.key",
                )?
                .query_map([task.as_str()], read_name)?
                .collect()
        };
        read().map_err(|e| sql_error(&e))
    }

    fn last_position(&self, section: Option<&SectionId>) -> Result<Option<i64>> {
        self.conn
            .prepare_cached("SELECT max(position) FROM tasks WHERE section_id = ?1")
            .and_then(|mut s| s.query_row([section_column(section)], |row| row.get(0)))
            .map_err(|e| sql_error(&e))
    }

    fn position_after(&self, section: Option<&SectionId>, after: i64) -> Result<Option<i64>> {
        self.conn
            .prepare_cached("SELECT min(position) FROM tasks WHERE section_id = ?1 AND position > ?2")
            .and_then(|mut s| s.query_row(params![section_column(section), after], |row| row.get(0)))
            .map_err(|e| sql_error(&e))
    }
}
