//! Writing tasks and their dependencies.

use tenure_core::Result;
use tenure_core::event::NewEvent;
use tenure_core::id::{SectionId, TaskId};
use tenure_core::store::columns::tasks;
use tenure_core::store::{NewTask, TaskEdit, WriteFeed, WriteTasks, section_column};
use tenure_core::task::TaskStatus;

use crate::rows::{Parameters, insert_sql, update_sql};
use crate::transaction::Transaction;

impl WriteTasks for Transaction<'_> {
    fn take_task_number(&mut self) -> Result<i64> {
        self.next_task += 1;
        Ok(self.next_task - 1)
    }

    fn insert_task(&mut self, task: &NewTask, event: NewEvent<'_>) -> Result<()> {
        let values = task.values(self.now)?;
        self.change(&insert_sql(&tasks::TABLE, &values), &Parameters::of(&values).values())?;
        self.append(event)
    }

    fn edit_task(&mut self, id: &TaskId, edit: &TaskEdit, event: Option<NewEvent<'_>>) -> Result<()> {
        let mut values = edit.values(self.now)?;
        let sql = update_sql(&tasks::TABLE, &values, tasks::id);
        values.push((tasks::id, id.as_str().into()));
        self.keep("tasks", &sql, &Parameters::of(&values).values())?;
        match event {
            Some(event) => self.append(event),
            None => Ok(()),
        }
    }

    fn set_status(&mut self, id: &TaskId, to: TaskStatus, event: NewEvent<'_>) -> Result<()> {
        // The task was read in this turn, so it exists and the result is not needed.
        self.changed.set(true);
        let was_finished = event.from.is_some_and(TaskStatus::is_finished);
        if was_finished != to.is_finished() {
            let by: i64 = if to.is_finished() { -1 } else { 1 };
            self.keep(
                "tasks",
                "UPDATE tenure.tasks SET open_deps = open_deps + $3 WHERE project = $1
                 AND id IN (SELECT task_id FROM tenure.task_deps WHERE project = $1 AND depends_on = $2)",
                &[&id.as_str(), &by],
            )?;
        }
        self.keep_shared(
            "tasks",
            "UPDATE tenure.tasks SET status = $3, updated_at = $4 WHERE project = $1 AND id = $2",
            &[&id.as_str(), &to.as_str(), &self.now.as_millis()],
        );
        self.append(event)
    }

    fn delete_task(&mut self, id: &TaskId, event: NewEvent<'_>) -> Result<()> {
        for sql in [
            "DELETE FROM tenure.task_deps WHERE project = $1 AND task_id = $2",
            "DELETE FROM tenure.task_deps WHERE project = $1 AND depends_on = $2",
            "DELETE FROM tenure.tasks WHERE project = $1 AND id = $2",
        ] {
            self.change(sql, &[&id.as_str()])?;
        }
        self.append(event)
    }

    fn add_dependency(&mut self, task: &TaskId, on: &TaskId) -> Result<bool> {
        let changed = self.change(
            "INSERT INTO tenure.task_deps (project, task_id, depends_on) SELECT $1, $2, $3 WHERE $2 <> $3
             ON CONFLICT DO NOTHING RETURNING 1",
            &[&task.as_str(), &on.as_str()],
        )?;
        Ok(!changed.is_empty())
    }

    fn remove_dependency(&mut self, task: &TaskId, on: &TaskId) -> Result<bool> {
        let changed = self.change(
            "DELETE FROM tenure.task_deps WHERE project = $1 AND task_id = $2 AND depends_on = $3 RETURNING 1",
            &[&task.as_str(), &on.as_str()],
        )?;
        Ok(!changed.is_empty())
    }

    fn spread_positions(&mut self, section: Option<&SectionId>) -> Result<()> {
        self.change(
            "UPDATE tenure.tasks SET position = fresh.place * 1048576
             FROM (SELECT id, row_number() OVER (ORDER BY position, id) AS place
                   FROM tenure.tasks WHERE project = $1 AND section_id = $2) AS fresh
             WHERE tasks.project = $1 AND tasks.id = fresh.id",
            &[&section_column(section)],
        )
        .map(drop)
    }
}
