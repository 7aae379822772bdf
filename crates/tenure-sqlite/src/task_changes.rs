//! Every change of a task's row, of its dependencies, and of what is counted about them.

use rusqlite::{ToSql, params};
use tenure_core::event::NewEvent;
use tenure_core::id::{SectionId, TaskId};
use tenure_core::store::{NewTask, TaskEdit, WriteFeed, WriteTasks};
use tenure_core::task::TaskStatus;
use tenure_core::{Error, Result};

use crate::connection::Transaction;
use crate::error::sql_error;
use crate::rows::{Sql, to_json};
use crate::tasks::section_column;

pub(crate) const SET_STATUS: &str =
    "UPDATE tasks SET status = ?3, updated_at = ?4 WHERE id = ?1 AND status = ?2";

impl Transaction<'_> {
    /// Counts an open task in or out of its section. Not by triggers: every process would parse and plan them, and only a
    /// few changes of a task need them.
    fn count_in_section(&self, id: &TaskId, by: i64) -> Result<()> {
        self.change(
            "UPDATE sections SET open_tasks = open_tasks + ?2
             WHERE id = (SELECT section_id FROM tasks WHERE id = ?1 AND status NOT IN ('completed', 'skipped'))",
            &[&id.as_str(), &by],
        )
        .map(drop)
    }

    /// Counts an open task for those that depend on it.
    fn count_for_dependents(&self, id: &TaskId, by: i64) -> Result<()> {
        self.change(
            "UPDATE tasks SET open_deps = open_deps + ?2
             WHERE id IN (SELECT task_id FROM task_deps WHERE depends_on = ?1)
               AND (SELECT status FROM tasks WHERE id = ?1) NOT IN ('completed', 'skipped')",
            &[&id.as_str(), &by],
        )
        .map(drop)
    }

    /// Counts one dependency, if what is depended on is open.
    fn count_dependency(&self, task: &TaskId, on: &TaskId, by: i64) -> Result<()> {
        self.change(
            "UPDATE tasks SET open_deps = open_deps + ?3
             WHERE id = ?1 AND (SELECT status FROM tasks WHERE id = ?2) NOT IN ('completed', 'skipped')",
            &[&task.as_str(), &on.as_str(), &by],
        )
        .map(drop)
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

impl WriteTasks for Transaction<'_> {
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
        self.count_in_section(&task.id, 1)?;
        self.append(event)
    }

    fn edit_task(&mut self, id: &TaskId, edit: &TaskEdit, event: Option<NewEvent<'_>>) -> Result<()> {
        let moves = edit.section.is_some();
        if moves {
            self.count_in_section(id, -1)?;
        }
        self.change_task(id, edit).map_err(|e| sql_error(&e))?;
        if moves {
            self.count_in_section(id, 1)?;
        }
        match event {
            Some(event) => self.append(event),
            None => Ok(()),
        }
    }

    fn set_status(&mut self, id: &TaskId, to: TaskStatus, event: NewEvent<'_>) -> Result<()> {
        let from =
            event.from.ok_or_else(|| Error::store(format!("no change of {id} to {to} without a from")))?;
        let closes = to.is_finished() && !from.is_finished();
        if closes {
            self.count_in_section(id, -1)?;
            self.count_for_dependents(id, -1)?;
        }
        let changed =
            self.change(SET_STATUS, &[&id.as_str(), &from.as_str(), &to.as_str(), &self.now.as_millis()])?;
        if changed != 1 {
            return Err(Error::store(format!("task {id} is not {from}")));
        }
        if from.is_finished() && !to.is_finished() {
            self.count_in_section(id, 1)?;
            self.count_for_dependents(id, 1)?;
        }
        self.append(event)
    }

    fn delete_task(&mut self, id: &TaskId, event: NewEvent<'_>) -> Result<()> {
        self.count_in_section(id, -1)?;
        self.count_for_dependents(id, -1)?;
        for sql in [
            "DELETE FROM task_deps WHERE task_id = ?1",
            "DELETE FROM task_deps WHERE depends_on = ?1",
            "DELETE FROM tasks WHERE id = ?1",
        ] {
            self.change(sql, &[&id.as_str()])?;
        }
        self.append(event)
    }

    fn add_dependency(&mut self, task: &TaskId, on: &TaskId) -> Result<bool> {
        let is_new = self.change(
            "INSERT OR IGNORE INTO task_deps (task_id, depends_on) VALUES (?1, ?2)",
            &[&task.as_str(), &on.as_str()],
        )? > 0;
        if is_new {
            self.count_dependency(task, on, 1)?;
        }
        Ok(is_new)
    }

    fn remove_dependency(&mut self, task: &TaskId, on: &TaskId) -> Result<bool> {
        let was_there = self.change(
            "DELETE FROM task_deps WHERE task_id = ?1 AND depends_on = ?2",
            &[&task.as_str(), &on.as_str()],
        )? > 0;
        if was_there {
            self.count_dependency(task, on, -1)?;
        }
        Ok(was_there)
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
