//! Whole tasks: one, lists, and the first ready one.

use std::collections::BTreeMap;

use rusqlite::{OptionalExtension, ToSql};
use tenure_core::Result;
use tenure_core::id::{SectionId, TaskId};
use tenure_core::store::columns::{leases, tasks};
use tenure_core::store::{
    ComputedState, Dialect, FINISHED, OpenLease, Reserved, Row, TASK_WIDTH, TaskFilter, TaskQueries, Viewer,
    read_task,
};
use tenure_core::task::{SectionRef, Task, TaskStatus};

use crate::connection::Transaction;
use crate::error::sql_error;
use crate::ready::{Named, OPEN_LEASE, ready, ready_in_open_section, section_open};
use crate::rows::{Sql, count, to_json};

/// All tasks, section by section: SQLite does not change the order of a cross join, and finds each section's tasks in working
/// order.
const BY_SECTION: &str = "sections s CROSS JOIN tasks t ON t.section_id = s.id";
/// The planner must begin with the one task.
const ONE: &str = "tasks t CROSS JOIN sections s ON s.id = t.section_id";
/// Begins with the tasks of some statuses, to be sorted.
const BY_STATUS: &str = "tasks t INDEXED BY tasks_status CROSS JOIN sections s ON s.id = t.section_id";

/// Tasks with their sections and open leases. What needs other rows is expensive for SQLite to plan, so it is queried
/// afterwards, and only for the tasks concerned: see [`Transaction::complete`].
fn task_query(from: &str, ready: &str, rest: &str) -> String {
    format!(
        "SELECT {}, s.name, s.mode, {ready}, {}
         FROM {from} {OPEN_LEASE}
         {rest}",
        tasks::TABLE.of("t"),
        leases::TABLE.of("o"),
    )
}

/// A row of [`task_query`].
fn read_row(row: &dyn Row) -> Result<Task> {
    let ready = row.int(TASK_WIDTH)? == Some(1);
    Ok(Task { ready, ..read_task(row, TASK_WIDTH + 1)? })
}

impl Transaction<'_> {
    /// Reads one task, with its readiness for `viewer` if there is one.
    fn one_task(&self, id: &TaskId, viewer: Option<&Viewer>) -> Result<Option<Task>> {
        let ready = if viewer.is_some() { ready_in_open_section() } else { "0".to_owned() };
        let sql = task_query(ONE, &ready, "WHERE t.id = :id");
        let mut values = match viewer {
            Some(viewer) => self.bind(viewer)?,
            None => Vec::new(),
        };
        values.push((":id", Box::new(id.as_str().to_owned())));
        let mut tasks = self.read_tasks(&sql, &values)?;
        self.complete(&mut tasks, &values).map_err(|e| sql_error(&e))?;
        Ok(tasks.pop())
    }

    fn read_tasks(&self, sql: &str, values: &Named) -> Result<Vec<Task>> {
        let mut statement = self.conn.prepare_cached(sql).map_err(|e| sql_error(&e))?;
        bind_known(&mut statement, values).map_err(|e| sql_error(&e))?;
        self.read_all(statement.raw_query(), read_row)
    }

    /// Adds what the tasks depend on, and clears `ready` where the section is closed to the viewer.
    fn complete(&self, tasks: &mut [Task], values: &Named) -> Sql<()> {
        let mut dependencies = self.conn.prepare_cached(&format!(
            "SELECT u.key, u.status NOT IN {FINISHED} FROM task_deps d JOIN tasks u ON u.id = d.depends_on
                 WHERE d.task_id = ?1 ORDER BY u.key"
        ))?;
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

    /// The unfinished sections that this one depends on, as they appear in a task's `blocked_by`.
    fn closed_before(&self, section: &SectionId) -> Sql<Vec<String>> {
        self.conn
            .prepare_cached(
                "SELECT 'section:' || u.name FROM section_deps d JOIN sections u ON u.id = d.depends_on
                 WHERE d.section_id = ?1 AND u.open_tasks > 0 ORDER BY u.name",
            )?
            .query_map([section.as_str()], |row| row.get(0))?
            .collect()
    }

    fn is_section_open(&self, section: &SectionId, values: &Named) -> Sql<bool> {
        let sql = format!("SELECT {} FROM sections s WHERE s.id = :of", section_open());
        let mut statement = self.conn.prepare_cached(&sql)?;
        bind_known(&mut statement, values)?;
        if let Some(index) = statement.parameter_index(":of")? {
            statement.raw_bind_parameter(index, section.as_str())?;
        }
        let mut rows = statement.raw_query();
        rows.next()?.map_or(Ok(false), |row| row.get(0))
    }

    /// The condition on tasks `t` of sections `s` that match the filter, and the values of its parameters.
    fn matching(&self, filter: &TaskFilter, viewer: &Viewer) -> Result<(String, Named)> {
        let mut terms = Vec::new();
        let mut values = self.bind(viewer)?;
        if let Some(statuses) = &filter.statuses {
            let mut any = vec![one_of(statuses)];
            any.extend(filter.states.iter().map(|state| match state {
                ComputedState::Blocked => Dialect::Sqlite.blocked(),
                ComputedState::Ready => ready(),
                ComputedState::Lapsed => Dialect::Sqlite.lapsed(),
            }));
            terms.push(format!("({})", any.join(" OR ")));
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
        Ok((condition, values))
    }
}

/// The condition that a task has one of the statuses. If completed is not one of them, it repeats the condition of the index
/// `tasks_open`, without which SQLite does not use that index.
fn one_of(statuses: &[TaskStatus]) -> String {
    let list: Vec<String> = statuses.iter().map(|status| format!("'{status}'")).collect();
    let listed = format!("t.status IN ({})", list.join(", "));
    if statuses.contains(&TaskStatus::Completed) {
        return listed;
    }
    let open = "t.status <> 'completed'";
    let is_all = TaskStatus::ALL.iter().all(|s| *s == TaskStatus::Completed || statuses.contains(s));
    if is_all { open.to_owned() } else { format!("{open} AND {listed}") }
}

/// A page of the tasks that match the condition.
fn page_query(filter: &TaskFilter, condition: &str) -> String {
    let rest = format!("{condition} ORDER BY {} LIMIT :limit OFFSET :offset", filter.order.sql());
    task_query(if filter.are_few() { BY_STATUS } else { BY_SECTION }, &ready_in_open_section(), &rest)
}

/// Binds only the parameters that the statement has, because the conditions of a listing vary.
fn bind_known(statement: &mut rusqlite::Statement<'_>, values: &Named) -> Sql<()> {
    for (name, value) in values {
        if let Some(index) = statement.parameter_index(name)? {
            statement.raw_bind_parameter(index, value.as_ref())?;
        }
    }
    Ok(())
}

impl TaskQueries for Transaction<'_> {
    fn task_with_readiness(&self, id: &TaskId, viewer: &Viewer) -> Result<Option<Task>> {
        self.one_task(id, Some(viewer))
    }

    fn task_without_readiness(&self, id: &TaskId, _: &Viewer) -> Result<Option<Task>> {
        self.one_task(id, None)
    }

    fn task_page(&self, filter: &TaskFilter, viewer: &Viewer) -> Result<Vec<Task>> {
        let (condition, mut values) = self.matching(filter, viewer)?;
        values.push((":limit", Box::new(i64::try_from(filter.limit).unwrap_or(i64::MAX))));
        values.push((":offset", Box::new(i64::try_from(filter.offset).unwrap_or(i64::MAX))));
        let mut tasks = self.read_tasks(&page_query(filter, &condition), &values)?;
        self.complete(&mut tasks, &values).map_err(|e| sql_error(&e))?;
        Ok(tasks)
    }

    fn task_count(&self, filter: &TaskFilter, viewer: &Viewer) -> Result<u64> {
        let (condition, values) = self.matching(filter, viewer)?;
        let judges_readiness = filter.ready || filter.states.contains(&ComputedState::Ready);
        let counting = format!(
            "SELECT count(*) FROM tasks t {} {} {condition}",
            if filter.section.is_some() || judges_readiness {
                "JOIN sections s ON s.id = t.section_id"
            } else {
                ""
            },
            if judges_readiness { OPEN_LEASE } else { "" },
        );
        let counted = || -> Sql<u64> {
            let mut statement = self.conn.prepare_cached(&counting)?;
            bind_known(&mut statement, &values)?;
            let mut rows = statement.raw_query();
            rows.next()?.map_or(Ok(0), |row| count(row, 0))
        };
        counted().map_err(|e| sql_error(&e))
    }

    fn first_ready(
        &self,
        section: Option<&SectionId>,
        reserved: &Reserved,
        viewer: &Viewer,
    ) -> Result<Option<TaskId>> {
        let mut values = self.bind(viewer)?;
        let only = if section.is_some() { "AND s.id = :section" } else { "" };
        let order = "ORDER BY s.priority, s.position, s.id, t.priority, t.position, t.id LIMIT 1";
        let columns =
            "t.id AS id, s.priority AS a, s.position AS b, s.id AS c, t.priority AS d, t.position AS e";
        let (mut free, mut open) = (Dialect::Sqlite.task_free(OpenLease::NotJoined), section_open());
        if !reserved.is_empty() {
            free.push_str(" AND t.id NOT IN (SELECT value FROM json_each(:tasks))");
            open.push_str(" AND s.id NOT IN (SELECT value FROM json_each(:sections))");
        }
        let sql = format!(
            "SELECT id FROM (
               SELECT * FROM (
                 SELECT {columns}
                 FROM sections s CROSS JOIN tasks t ON t.rowid = (
                   SELECT t.rowid FROM tasks t INDEXED BY tasks_ready
                   WHERE t.section_id = s.id AND t.status = 'pending' AND t.open_deps = 0 AND {free}
                   ORDER BY t.priority, t.position, t.id LIMIT 1)
                 WHERE {open} {only} {order})
               UNION ALL
               SELECT * FROM (
                 SELECT {columns}
                 FROM leases old CROSS JOIN tasks t ON t.id = old.resource_id
                 CROSS JOIN sections s ON s.id = t.section_id
                 WHERE old.fence IN (
                     SELECT fence FROM leases WHERE ended_at IS NULL AND resource_kind = 'task' AND expires_at <= :now
                     UNION
                     SELECT fence FROM leases WHERE ended_at IS NULL AND resource_kind = 'task'
                     AND process IN (SELECT value FROM json_each(:dead)))
                   AND old.claimed_from = 'pending' AND t.status = 'in_progress' AND t.open_deps = 0
                   AND {free} AND {open} {only} {order})
             ) ORDER BY a, b, c, d, e, id LIMIT 1",
        );
        if let Some(section) = section {
            values.push((":section", Box::new(section.as_str().to_owned())));
        }
        let mut query = || -> Sql<Option<String>> {
            if !reserved.is_empty() {
                values.push((":tasks", Box::new(to_json(&reserved.tasks)?)));
                values.push((":sections", Box::new(to_json(&reserved.sections)?)));
            }
            let values: Vec<(&str, &dyn ToSql)> =
                values.iter().map(|(name, value)| (*name, value.as_ref())).collect();
            let mut statement = self.conn.prepare_cached(&sql)?;
            statement.query_row(values.as_slice(), |row| row.get(0)).optional()
        };
        Ok(query().map_err(|e| sql_error(&e))?.map(TaskId::new))
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use tenure_core::SystemClock;
    use tenure_core::store::{Durability, Viewer};

    use super::*;
    use crate::{OpenOptions, SqliteStore};

    /// The plan of the first page, one step per line.
    fn plan(filter: &TaskFilter) -> String {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("tenure.db");
        let store = SqliteStore::create(&path, OpenOptions::new(Arc::new(SystemClock))).unwrap();
        let mut steps = String::new();
        store
            .in_any_standing(Durability::Process, &mut |tx| {
                let (condition, _) = tx.matching(filter, &Viewer::default())?;
                let sql = format!("EXPLAIN QUERY PLAN {}", page_query(filter, &condition));
                let mut statement = tx.conn.prepare(&sql).unwrap();
                let mut rows = statement.raw_query();
                while let Some(row) = rows.next().unwrap() {
                    steps.push_str(&row.get::<_, String>(3).unwrap());
                    steps.push('\n');
                }
                Ok(())
            })
            .unwrap();
        steps
    }

    #[test]
    fn a_page_in_working_order_reads_the_tasks_of_the_page_only() {
        let open = TaskStatus::ALL.into_iter().filter(|status| *status != TaskStatus::Completed).collect();
        let listed = plan(&TaskFilter { statuses: Some(open), ..TaskFilter::default() });
        assert!(listed.contains("USING INDEX tasks_open") && !listed.contains("TEMP B-TREE"), "{listed}");
        let unfinished = TaskStatus::ALL.into_iter().filter(|status| !status.is_finished()).collect();
        let board = plan(&TaskFilter { statuses: Some(unfinished), ..TaskFilter::default() });
        assert!(board.contains("USING INDEX tasks_open") && !board.contains("TEMP B-TREE"), "{board}");
        let all = plan(&TaskFilter::default());
        assert!(all.contains("USING INDEX tasks_order") && !all.contains("TEMP B-TREE"), "{all}");
        let failed = plan(&TaskFilter { statuses: Some(vec![TaskStatus::Failed]), ..TaskFilter::default() });
        assert!(failed.contains("USING INDEX tasks_status"), "{failed}");
    }
}
