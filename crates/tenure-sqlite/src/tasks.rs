//! Tasks: finding, listing, and every change of a task's row.

use rusqlite::{OptionalExtension, Row, ToSql, named_params, params};
use tenure_core::error::TaskName;
use tenure_core::event::NewEvent;
use tenure_core::id::{SectionId, TaskId};
use tenure_core::store::{Eyes, NewTask, ReadTasks, TaskEdit, TaskFilter, TaskLookup, WriteFeed, WriteTasks};
use tenure_core::task::{SectionRef, Task, TaskStatus};
use tenure_core::{Error, Result};

use crate::connection::Transaction;
use crate::error::sql_error;
use crate::ready::{OPEN_LEASE, ready};
use crate::rows::{LEASE_COLUMNS, Sql, columns_of, count, json, optional_lease, status, time, to_json};

fn task_query(rest: &str) -> String {
    format!(
        "SELECT t.id, t.key, t.title, t.description, t.status, t.section_id, s.name, s.mode, t.source_file,
                t.priority, t.position, t.labels, t.attempts, t.rejections, t.created_at, t.updated_at,
                (SELECT json_group_array(json_array(u.key, u.status NOT IN ('completed', 'skipped')) ORDER BY u.key)
                 FROM task_deps d JOIN tasks u ON u.id = d.depends_on WHERE d.task_id = t.id),
                (SELECT json_group_array('section:' || u.name ORDER BY u.name) FROM section_deps d
                 JOIN sections u ON u.id = d.depends_on WHERE d.section_id = s.id AND u.open_tasks > 0),
                {ready},
                {lease}
         FROM sections s CROSS JOIN tasks t ON t.section_id = s.id {OPEN_LEASE}
         {rest}",
        ready = ready(),
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
    let dependencies: Vec<(String, u8)> = json(16, &row.get::<_, String>(16)?)?;
    let open = dependencies.iter().filter(|(_, open)| *open == 1);
    let mut blocked_by: Vec<String> = open.map(|(key, _)| key.clone()).collect();
    blocked_by.extend(json::<Vec<String>>(17, &row.get::<_, String>(17)?)?);
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
        depends_on: dependencies.into_iter().map(|(key, _)| key).collect(),
        labels: json(11, &row.get::<_, String>(11)?)?,
        attempts: row.get(12)?,
        rejections: row.get(13)?,
        created_at: time(row, 14)?,
        updated_at: time(row, 15)?,
        ready: row.get(18)?,
        blocked_by,
        lease: optional_lease(row, 19)?,
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
    fn one_task(&self, id: &TaskId, eyes: &Eyes) -> Sql<Option<Task>> {
        let b = self.bind(eyes)?;
        // The planner must start from the one task, so the join order of the listing is turned round here.
        let sql = task_query("WHERE t.id = :id").replace(
            "FROM sections s CROSS JOIN tasks t ON t.section_id = s.id",
            "FROM tasks t CROSS JOIN sections s ON s.id = t.section_id",
        );
        self.conn
            .prepare_cached(&sql)?
            .query_row(
                named_params! {":id": id.as_str(), ":now": b.now, ":dead": b.dead, ":fresh": b.fresh,
                ":me_kind": b.me_kind, ":me_id": b.me_id},
                read_task,
            )
            .optional()
    }

    fn page(&self, filter: &TaskFilter, eyes: &Eyes) -> Sql<(Vec<Task>, u64)> {
        let b = self.bind(eyes)?;
        let mut terms = Vec::new();
        let mut values: Vec<(&str, Box<dyn ToSql>)> = Vec::new();
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
        let listing = task_query(&format!(
            "{condition} ORDER BY s.priority, s.position, s.id, t.priority, t.position, t.id
             LIMIT :limit OFFSET :offset"
        ));
        let counting = format!(
            "SELECT count(*) FROM tasks t {} {} {condition}",
            if filter.section.is_some() || filter.ready {
                "JOIN sections s ON s.id = t.section_id"
            } else {
                ""
            },
            if filter.ready { OPEN_LEASE } else { "" },
        );

        values.push((":now", Box::new(b.now)));
        values.push((":dead", Box::new(b.dead)));
        values.push((":fresh", Box::new(b.fresh)));
        values.push((":me_kind", Box::new(b.me_kind)));
        values.push((":me_id", Box::new(b.me_id)));
        values.push((":limit", Box::new(i64::try_from(filter.limit).unwrap_or(i64::MAX))));
        values.push((":offset", Box::new(i64::try_from(filter.offset).unwrap_or(i64::MAX))));

        let mut statement = self.conn.prepare_cached(&listing)?;
        bind_known(&mut statement, &values)?;
        let mut tasks = Vec::new();
        let mut rows = statement.raw_query();
        while let Some(row) = rows.next()? {
            tasks.push(read_task(row)?);
        }
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

    fn change_task(&mut self, id: &TaskId, edit: &TaskEdit) -> Sql<()> {
        let mut sets: Vec<&str> = Vec::new();
        let mut values: Vec<Box<dyn ToSql>> = Vec::new();
        let mut set = |column: &'static str, value: Box<dyn ToSql>| {
            sets.push(column);
            values.push(value);
        };
        if let Some(title) = &edit.title {
            set("title = ?", Box::new(title.clone()));
        }
        if let Some(description) = &edit.description {
            set("description = ?", Box::new(description.clone()));
        }
        if let Some(section) = &edit.section {
            set("section_id = ?", Box::new(section_column(section.as_ref()).to_owned()));
        }
        if let Some(source) = &edit.source_file {
            set("source_file = ?", Box::new(source.clone()));
        }
        if let Some(priority) = edit.priority {
            set("priority = ?", Box::new(priority));
        }
        if let Some(position) = edit.position {
            set("position = ?", Box::new(position));
        }
        if let Some(labels) = &edit.labels {
            set("labels = ?", Box::new(to_json(labels)?));
        }
        if let Some(attempts) = edit.attempts {
            set("attempts = ?", Box::new(attempts));
        }
        if let Some(rejections) = edit.rejections {
            set("rejections = ?", Box::new(rejections));
        }
        set("updated_at = ?", Box::new(self.now.as_millis()));
        values.push(Box::new(id.as_str().to_owned()));
        let sql = format!("UPDATE tasks SET {} WHERE id = ?", sets.join(", "));
        let mut statement = self.conn.prepare_cached(&sql)?;
        statement.execute(rusqlite::params_from_iter(values.iter().map(AsRef::as_ref)))?;
        Ok(())
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
    fn task(&self, id: &TaskId, eyes: &Eyes) -> Result<Option<Task>> {
        self.one_task(id, eyes).map_err(|e| sql_error(&e))
    }

    fn find_tasks(&self, lookup: TaskLookup<'_>, limit: usize) -> Result<Vec<TaskName>> {
        self.named(lookup, limit).map_err(|e| sql_error(&e))
    }

    fn list_tasks(&self, filter: &TaskFilter, eyes: &Eyes) -> Result<(Vec<Task>, u64)> {
        self.page(filter, eyes).map_err(|e| sql_error(&e))
    }

    fn next_ready(&self, section: Option<&SectionId>, eyes: &Eyes) -> Result<Option<TaskId>> {
        self.first_ready(section, eyes).map_err(|e| sql_error(&e))
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

impl WriteTasks for Transaction<'_> {
    /// The gate has made this transaction the only one that writes.
    fn lock_graph(&mut self) -> Result<()> {
        Ok(())
    }

    fn take_task_number(&mut self) -> Result<i64> {
        self.conn
            .prepare_cached(
                "UPDATE meta SET value = value + 1 WHERE name = 'next_task_number' RETURNING value - 1",
            )
            .and_then(|mut s| s.query_row([], |row| row.get(0)))
            .map_err(|e| sql_error(&e))
    }

    fn insert_task(&mut self, task: &NewTask, event: NewEvent<'_>) -> Result<()> {
        let insert = || -> Sql<()> {
            self.conn
                .prepare_cached(
                    "INSERT INTO tasks (id, key, title, description, status, section_id, source_file, priority,
                                        position, labels, created_at, updated_at)
                     VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?11)",
                )?
                .execute(params![
                    task.id.as_str(),
                    task.key,
                    task.title,
                    task.description,
                    task.status.as_str(),
                    section_column(task.section.as_ref()),
                    task.source_file,
                    task.priority,
                    task.position,
                    to_json(&task.labels)?,
                    self.now.as_millis()
                ])
                .map(drop)
        };
        insert().map_err(|e| sql_error(&e))?;
        self.append(event).map(drop)
    }

    fn edit_task(&mut self, id: &TaskId, edit: &TaskEdit, event: Option<NewEvent<'_>>) -> Result<()> {
        self.change_task(id, edit).map_err(|e| sql_error(&e))?;
        match event {
            Some(event) => self.append(event).map(drop),
            None => Ok(()),
        }
    }

    fn set_status(&mut self, id: &TaskId, to: TaskStatus, event: NewEvent<'_>) -> Result<()> {
        let changed = self
            .conn
            .prepare_cached("UPDATE tasks SET status = ?2, updated_at = ?3 WHERE id = ?1")
            .and_then(|mut s| s.execute(params![id.as_str(), to.as_str(), self.now.as_millis()]))
            .map_err(|e| sql_error(&e))?;
        if changed != 1 {
            return Err(Error::store(format!("task {id} is gone")));
        }
        self.append(event).map(drop)
    }

    fn delete_task(&mut self, id: &TaskId, event: NewEvent<'_>) -> Result<()> {
        for sql in [
            "DELETE FROM task_deps WHERE task_id = ?1",
            "DELETE FROM task_deps WHERE depends_on = ?1",
            "DELETE FROM tasks WHERE id = ?1",
        ] {
            self.conn
                .prepare_cached(sql)
                .and_then(|mut s| s.execute([id.as_str()]))
                .map_err(|e| sql_error(&e))?;
        }
        self.append(event).map(drop)
    }

    fn add_dependency(&mut self, task: &TaskId, on: &TaskId) -> Result<bool> {
        self.conn
            .prepare_cached("INSERT OR IGNORE INTO task_deps (task_id, depends_on) VALUES (?1, ?2)")
            .and_then(|mut s| s.execute([task.as_str(), on.as_str()]))
            .map(|changed| changed > 0)
            .map_err(|e| sql_error(&e))
    }

    fn remove_dependency(&mut self, task: &TaskId, on: &TaskId) -> Result<bool> {
        self.conn
            .prepare_cached("DELETE FROM task_deps WHERE task_id = ?1 AND depends_on = ?2")
            .and_then(|mut s| s.execute([task.as_str(), on.as_str()]))
            .map(|changed| changed > 0)
            .map_err(|e| sql_error(&e))
    }

    fn spread_positions(&mut self, section: Option<&SectionId>) -> Result<()> {
        self.conn
            .prepare_cached(
                "UPDATE tasks SET position = fresh.place * 1048576
                 FROM (SELECT id, row_number() OVER (ORDER BY position, id) AS place
                       FROM tasks WHERE section_id = ?1) AS fresh
                 WHERE tasks.id = fresh.id",
            )
            .and_then(|mut s| s.execute([section_column(section)]))
            .map(drop)
            .map_err(|e| sql_error(&e))
    }
}
