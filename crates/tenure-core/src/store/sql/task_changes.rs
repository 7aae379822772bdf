//! Changes of tasks and of their dependencies in SQL.

use super::counts::{count_new_task, count_status, count_task};
use super::{SqlTx, Statement};
use crate::error::{Error, Result};
use crate::event::NewEvent;
use crate::id::{SectionId, TaskId};
use crate::store::View;
use crate::store::columns::{task_deps, tasks};
use crate::store::rows::Values;
use crate::store::tasks::{NewTask, ReadTasks, TaskEdit, WriteTasks, section_column};
use crate::task::TaskStatus;

static SPREAD_POSITIONS: Statement = Statement::new(|dialect| {
    dialect.statement(
        "UPDATE tenure.tasks SET position = fresh.place * 1048576
         FROM (SELECT id, row_number() OVER (ORDER BY position, id) AS place
               FROM tenure.tasks WHERE project = $1 AND section_id = $2) AS fresh
         WHERE tasks.project = $1 AND tasks.id = fresh.id",
    )
});

fn task_key(id: &TaskId) -> Values<'_> {
    vec![(tasks::id, id.as_str().into())]
}

fn dependency<'a>(task: &'a TaskId, on: &'a TaskId) -> Values<'a> {
    vec![(task_deps::task_id, task.as_str().into()), (task_deps::depends_on, on.as_str().into())]
}

impl<T: SqlTx> WriteTasks for T {
    fn take_task_number(&mut self) -> Result<i64> {
        self.draw_task_number()
    }

    fn insert_task(&mut self, task: &NewTask, event: NewEvent<'_>) -> Result<()> {
        let values = task.values(self.now())?;
        self.insert(&tasks::TABLE, &values)?;
        count_new_task(self, section_column(task.section.as_ref()), task.status)?;
        self.insert_event(event)
    }

    fn edit_task(&mut self, id: &TaskId, edit: &TaskEdit, event: Option<NewEvent<'_>>) -> Result<()> {
        let moves = edit.section.is_some();
        if moves {
            count_task(self, id, -1)?;
        }
        let set = edit.values(self.now())?;
        self.defer_update(&tasks::TABLE, set, task_key(id))?;
        if moves {
            count_task(self, id, 1)?;
        }
        event.map_or(Ok(()), |event| self.insert_event(event))
    }

    fn set_status(&mut self, id: &TaskId, to: TaskStatus, event: NewEvent<'_>) -> Result<()> {
        let from = event.from.ok_or_else(|| {
            Error::store(format!("status change of {id} to {to} without its previous status"))
        })?;
        if to.is_finished() && !from.is_finished() {
            self.count_for_dependents(id, -1)?;
        }
        self.write_status(id, from, to)?;
        count_status(self, id, from, to)?;
        if from.is_finished() && !to.is_finished() {
            self.count_for_dependents(id, 1)?;
        }
        self.insert_event(event)
    }

    fn delete_task(&mut self, id: &TaskId, event: NewEvent<'_>) -> Result<()> {
        count_task(self, id, -1)?;
        for task in self.dependents(id)? {
            self.remove_dependency(&TaskId::new(task.id), id)?;
        }
        self.delete(&task_deps::TABLE, &[(task_deps::task_id, id.as_str().into())])?;
        self.delete(&tasks::TABLE, &task_key(id))?;
        self.insert_event(event)
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
        let values = [(tasks::section_id, section_column(section).into())];
        self.execute(&tasks::TABLE, SPREAD_POSITIONS.text(T::DIALECT), &values).map(drop)
    }
}
