//! Every change of a task's row and of its dependencies, and of the counters that depend on them.

use tenure_core::event::NewEvent;
use tenure_core::id::{SectionId, TaskId};
use tenure_core::store::columns::{task_deps, tasks};
use tenure_core::store::{FINISHED, NewTask, SqlTx, TaskEdit, Values, WriteFeed, WriteTasks, section_column};
use tenure_core::task::TaskStatus;
use tenure_core::{Error, Result};

use crate::connection::Transaction;
use crate::error::sql_error;

pub(crate) const SET_STATUS: &str =
    "UPDATE tasks SET status = ?3, updated_at = ?4 WHERE id = ?1 AND status = ?2";

impl Transaction<'_> {
    /// If the task is open, adds `by` to the count of open tasks of its section. Triggers are not used: every process
    /// would parse and plan them, and few changes of a task need them.
    fn count_in_section(&self, id: &TaskId, by: i64) -> Result<()> {
        self.change(
            &format!(
                "UPDATE sections SET open_tasks = open_tasks + ?2
             WHERE id = (SELECT section_id FROM tasks WHERE id = ?1 AND status NOT IN {FINISHED})"
            ),
            &[&id.as_str(), &by],
        )
        .map(drop)
    }

    /// If the task is open, adds `by` to the count of open dependencies of the tasks that depend on it.
    fn count_for_dependents(&self, id: &TaskId, by: i64) -> Result<()> {
        self.change(
            &format!(
                "UPDATE tasks SET open_deps = open_deps + ?2
             WHERE id IN (SELECT task_id FROM task_deps WHERE depends_on = ?1)
               AND (SELECT status FROM tasks WHERE id = ?1) NOT IN {FINISHED}"
            ),
            &[&id.as_str(), &by],
        )
        .map(drop)
    }

    /// If `on` is open, adds `by` to the count of open dependencies of `task`.
    fn count_dependency(&self, task: &TaskId, on: &TaskId, by: i64) -> Result<()> {
        self.change(
            &format!(
                "UPDATE tasks SET open_deps = open_deps + ?3
             WHERE id = ?1 AND (SELECT status FROM tasks WHERE id = ?2) NOT IN {FINISHED}"
            ),
            &[&task.as_str(), &on.as_str(), &by],
        )
        .map(drop)
    }
}

fn dependency<'a>(task: &'a TaskId, on: &'a TaskId) -> Values<'a> {
    vec![(task_deps::task_id, task.as_str().into()), (task_deps::depends_on, on.as_str().into())]
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
        self.insert(&tasks::TABLE, &task.values(self.now)?)?;
        self.count_in_section(&task.id, 1)?;
        self.append(event)
    }

    fn edit_task(&mut self, id: &TaskId, edit: &TaskEdit, event: Option<NewEvent<'_>>) -> Result<()> {
        let moves = edit.section.is_some();
        if moves {
            self.count_in_section(id, -1)?;
        }
        self.update(&tasks::TABLE, edit.values(self.now)?, vec![(tasks::id, id.as_str().into())])?;
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
        let is_new = task != on && self.insert_new(&task_deps::TABLE, &dependency(task, on))?;
        if is_new {
            self.count_dependency(task, on, 1)?;
        }
        Ok(is_new)
    }

    fn remove_dependency(&mut self, task: &TaskId, on: &TaskId) -> Result<bool> {
        let was_there = self.delete(&task_deps::TABLE, &dependency(task, on))? > 0;
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
