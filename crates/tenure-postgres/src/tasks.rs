//! Tasks: finding, listing, the next ready one, and every change of a task's row.

use tenure_core::Result;
use tenure_core::error::TaskName;
use tenure_core::holder::Holder;
use tenure_core::id::{SectionId, TaskId};
use tenure_core::store::{ReadTasks, Reserved, TaskFilter, TaskLookup, Viewer};
use tenure_core::task::{Task, TaskStatus};
use tokio_postgres::Row;

use crate::leases::line_query;
use crate::link::Value;
use crate::readiness::{Facts, ready};
use crate::rows::{all, count, get, limit_of, millis, status, ticket, to_json};
use crate::task_query::{FOR_A_CLAIM, GUESSED, ONE_TASK, found_query, read_task, sought_query, task_query};
use crate::transaction::Transaction;

/// What was found by looking for it before anybody asked.
pub(crate) struct Guess {
    row: Row,
    holder: String,
    section: Option<String>,
}

/// A task that was looked for by its id before anybody asked, and the line before it.
pub(crate) struct Sought {
    holder: String,
    /// The id or the key by which it was looked for.
    reference: String,
    found: Vec<Row>,
    line: Vec<Row>,
}

impl Sought {
    pub(crate) fn new(holder: &str, reference: &str, found: Vec<Row>, line: Vec<Row>) -> Self {
        Self { holder: holder.to_owned(), reference: reference.to_owned(), found, line }
    }

    fn is_of(&self, holder: &str, task: &str) -> bool {
        self.holder == holder
            && self.found.first().is_some_and(|row| get(row, 0).is_ok_and(|id: &str| id == task))
    }

    /// The answer to `lookup`, if this decides it.
    fn names(&self, lookup: TaskLookup<'_>) -> Result<Option<Vec<TaskName>>> {
        let row = self.found.first();
        match lookup {
            TaskLookup::Id(id) if id == self.reference.to_ascii_lowercase() => {}
            TaskLookup::Key(key) if key == self.reference => {}
            _ => return Ok(None),
        }
        let Some(row) = row else { return Ok(Some(Vec::new())) };
        let name =
            TaskName { id: get(row, 0)?, key: get(row, 1)?, title: get(row, 2)?, status: status(row, 4)? };
        Ok(match lookup {
            TaskLookup::Id(id) => Some(if name.id == id { vec![name] } else { Vec::new() }),
            TaskLookup::Key(key) if name.key == key => Some(vec![name]),
            _ => None,
        })
    }
}

impl Guess {
    pub(crate) fn new(row: Row, holder: &Holder, section: Option<&SectionId>) -> Self {
        let section = section.map(|section| section.as_str().to_owned());
        Self { row, holder: holder.id.clone(), section }
    }

    /// Is it what is asked for now? The row of a task, or one without.
    fn fits(&self, section: Option<&SectionId>, viewer: &Viewer) -> bool {
        viewer.me.as_ref().is_some_and(|me| me.id == self.holder)
            && section.map(SectionId::as_str) == self.section.as_deref()
    }
}

/// A task as somebody has found it.
pub(crate) struct Found {
    task: Task,
    seen_by: Bound,
}

fn read_name(row: &Row) -> Result<TaskName> {
    name_at(row, 0)
}

pub(crate) fn name_at(row: &Row, at: usize) -> Result<TaskName> {
    Ok(TaskName {
        id: get(row, at)?,
        key: get(row, at + 1)?,
        title: get(row, at + 2)?,
        status: status(row, at + 3)?,
    })
}

/// The values behind `$2` to `$6`.
#[derive(PartialEq)]
struct Bound {
    now: i64,
    dead: Vec<String>,
    fresh: i64,
    me_kind: &'static str,
    me_id: String,
}

impl Bound {
    fn values(&self) -> Vec<&dyn Value> {
        vec![&self.now, &self.dead, &self.fresh, &self.me_kind, &self.me_id]
    }
}

impl Transaction<'_> {
    fn facts(&self, viewer: &Viewer) -> Facts {
        let facts = self.facts.get();
        Facts { lapsed: facts.lapsed || !viewer.dead.is_empty(), ..facts }
    }

    /// Keeps what [`crate::task_query::for_a_claim`] has read with the task `id`, from column `at` on.
    fn prepare_claim(&self, row: &Row, at: usize, id: &str, me: &str) -> Result<()> {
        if let Some(fence) = get(row, at)? {
            self.fence.set(Some(fence));
        }
        let ending: bool = get(row, at + 1)?;
        *self.nothing_ending.borrow_mut() = (!ending).then(|| id.to_owned());
        *self.agent.borrow_mut() = Some((me.to_owned(), get(row, at + 2)?));
        Ok(())
    }

    fn bind(&self, viewer: &Viewer) -> Result<Bound> {
        let (me_kind, me_id) =
            viewer.me.as_ref().map_or(("", String::new()), |me| (me.kind.as_str(), me.id.clone()));
        Ok(Bound {
            now: self.now.as_millis(),
            dead: viewer.dead.iter().map(to_json).collect::<Result<_>>()?,
            fresh: self.now.as_millis().saturating_sub(millis(viewer.ticket_life)),
            me_kind,
            me_id,
        })
    }
}

/// Tasks without a section live in the unnamed one.
pub(crate) fn section_column(section: Option<&SectionId>) -> &str {
    section.map_or("", SectionId::as_str)
}

impl ReadTasks for Transaction<'_> {
    fn task(&self, id: &TaskId, viewer: &Viewer) -> Result<Option<Task>> {
        let bound = self.bind(viewer)?;
        let mut values = bound.values();
        let name = id.as_str();
        values.push(&name);
        let row = self.row(&task_query(ONE_TASK, "AND t.id = $7", self.facts(viewer)), &values)?;
        row.map(|row| read_task(&row)).transpose()
    }

    fn task_row(&self, id: &TaskId, viewer: &Viewer) -> Result<Option<Task>> {
        let bound = self.bind(viewer)?;
        match self.found.take() {
            Some(found) if found.task.id == *id && found.seen_by == bound => {
                return Ok(Some(Task { ready: false, ..found.task }));
            }
            _ => {}
        }
        // Only what was found as the next one is locked while others claim.
        self.alone()?;
        let (me, name) = (bound.me_id.as_str(), id.as_str());
        let taking = self.writer.is_some() && !me.is_empty();
        let sought = self.sought.take().filter(|sought| sought.is_of(me, name));
        let (rows, line) = match sought {
            Some(sought) => (sought.found, Some(sought.line)),
            None => {
                let task = sought_query(self.facts(viewer), taking);
                let values: [&dyn Value; 2] = [&me, &name];
                if taking && self.facts.get().lines {
                    let (rows, line) = self.two((&task, &values), (&line_query(), &[&"task", &name]))?;
                    (rows, Some(line))
                } else {
                    (self.rows(&task, &values)?, None)
                }
            }
        };
        if let Some(line) = line {
            *self.line.borrow_mut() = Some((name.to_owned(), all(line, ticket)?));
        }
        let Some(row) = rows.first() else { return Ok(None) };
        if taking {
            self.prepare_claim(row, row.len() - FOR_A_CLAIM, name, me)?;
        }
        read_task(row).map(Some)
    }

    fn find_tasks(&self, lookup: TaskLookup<'_>, limit: usize) -> Result<Vec<TaskName>> {
        if let Some(sought) = &*self.sought.borrow()
            && let Some(found) = sought.names(lookup)?
        {
            return Ok(found);
        }
        let limit = i64::try_from(limit).unwrap_or(i64::MAX);
        let (condition, value) = match lookup {
            TaskLookup::Id(id) => ("id = $2", id),
            TaskLookup::Key(key) => ("key = $2", key),
            // 'g' comes after every hex digit and after the dash.
            TaskLookup::IdPrefix(prefix) => ("id >= $2 AND id < $2 || 'g'", prefix),
            TaskLookup::Title(title) => ("title = $2", title),
            // As in every store, only ASCII is folded, and on both sides: else Ä would not be found by Ä.
            TaskLookup::TitlePart(part) => ("strpos(lower(title), lower($2 COLLATE \"C\")) > 0", part),
        };
        let sql = format!(
            "SELECT id, key, title, status FROM tenure.tasks WHERE project = $1 AND {condition} LIMIT $3"
        );
        all(self.rows(&sql, &[&value, &limit])?, read_name)
    }

    fn list_tasks(&self, filter: &TaskFilter, viewer: &Viewer) -> Result<(Vec<Task>, u64)> {
        let bound = self.bind(viewer)?;
        let mut values = bound.values();
        let statuses: Option<Vec<&str>> =
            filter.statuses.as_ref().map(|all| all.iter().map(|status| status.as_str()).collect());
        let section = filter.section.as_ref().map(SectionId::as_str);
        let held = filter.held_by.as_ref().map(|holder| (holder.kind.as_str(), holder.id.as_str()));
        let mut terms: Vec<String> = Vec::new();
        if let Some(statuses) = &statuses {
            values.push(statuses);
            terms.push(format!(" AND t.status = ANY (${})", values.len() + 1));
        }
        if section.is_some() {
            values.push(&section);
            terms.push(format!(" AND s.id = ${}", values.len() + 1));
        }
        if let Some(text) = &filter.search {
            values.push(text);
            let part = format!("lower(${} COLLATE \"C\")", values.len() + 1);
            terms.push(format!(
                " AND (strpos(lower(t.title), {part}) > 0 OR strpos(lower(t.description), {part}) > 0 \
                 OR strpos(lower(t.key), {part}) > 0)"
            ));
        }
        if let Some(label) = &filter.label {
            values.push(label);
            terms.push(format!(
                " AND EXISTS (SELECT 1 FROM json_array_elements_text(t.labels::json) AS l WHERE l = ${})",
                values.len() + 1
            ));
        }
        if let Some((kind, id)) = &held {
            values.extend([kind as &dyn Value, id]);
            terms.push(format!(
                " AND EXISTS (SELECT 1 FROM tenure.leases h WHERE h.project = $1 AND h.resource_kind = 'task' \
                 AND h.resource_id = t.id AND h.ended_at IS NULL AND h.holder_kind = ${} AND h.holder_id = ${})",
                values.len(),
                values.len() + 1
            ));
        }
        let facts = self.facts(viewer);
        if filter.ready {
            terms.push(format!(" AND ({})", ready(facts)));
        }
        let terms = terms.concat();
        let counting = format!(
            "SELECT count(*) FROM tenure.sections s
             JOIN tenure.tasks t ON t.project = $1 AND t.section_id = s.id WHERE s.project = $1 {terms}"
        );
        let total = self.row(&counting, &values)?.map_or(Ok(0), |row| count(&row, 0))?;
        let (limit, offset) = (limit_of(filter.limit), limit_of(filter.offset));
        values.extend([&limit as &dyn Value, &offset]);
        let rest = format!(
            "{terms} ORDER BY s.priority, s.position, s.id, t.priority, t.position, t.id LIMIT ${} OFFSET ${}",
            values.len(),
            values.len() + 1
        );
        let from = "tenure.sections s JOIN tenure.tasks t ON t.project = $1 AND t.section_id = s.id";
        let listing = task_query(from, &rest, facts);
        Ok((all(self.rows(&listing, &values)?, read_task)?, total))
    }

    fn next_unreserved(
        &self,
        section: Option<&SectionId>,
        reserved: &Reserved,
        viewer: &Viewer,
    ) -> Result<Option<TaskId>> {
        let bound = self.bind(viewer)?;
        let mut values = bound.values();
        let only = section.map(SectionId::as_str);
        if only.is_some() {
            values.push(&only);
        }
        let facts = self.facts(viewer);
        if facts.lapsed {
            self.alone()?;
        }
        // With nobody's eyes it is asked what others would take.
        let taking = self.writer.is_some() && viewer.me.is_some();
        let (tasks, sections): (Vec<&str>, Vec<&str>) = (
            reserved.tasks.iter().map(TaskId::as_str).collect(),
            reserved.sections.iter().map(SectionId::as_str).collect(),
        );
        let mut passed_over = None;
        if !reserved.is_empty() {
            values.extend([&tasks as &dyn Value, &sections]);
            passed_over = Some(values.len());
        }
        let guess = self.guess.take().filter(|guess| reserved.is_empty() && guess.fits(section, viewer));
        let (row, extra) = match guess {
            Some(guess) => {
                (get::<Option<&str>>(&guess.row, 0)?.is_some().then_some(guess.row), GUESSED - FOR_A_CLAIM)
            }
            None => {
                let sql = found_query(only.is_some(), passed_over, facts, taking, self.shares());
                let row = self.row(&sql, &values)?;
                let extra = row.as_ref().map_or(0, |row| row.len() - FOR_A_CLAIM);
                (row, extra)
            }
        };
        let Some(row) = row else {
            // Others may have put back what was passed over because they were about to take it.
            self.alone()?;
            return Ok(None);
        };
        let task = read_task(&row)?;
        let id = task.id.clone();
        if taking {
            self.prepare_claim(&row, extra, id.as_str(), &bound.me_id)?;
        }
        drop(values);
        *self.found.borrow_mut() = Some(Found { task, seen_by: bound });
        Ok(Some(id))
    }

    fn count_tasks(&self) -> Result<Vec<(TaskStatus, u64)>> {
        let sql = "SELECT status, count(*) FROM tenure.tasks WHERE project = $1 GROUP BY status";
        all(self.rows(sql, &[])?, |row| Ok((status(row, 0)?, count(row, 1)?)))
    }

    fn edges_from(&self, task: &TaskId) -> Result<Vec<(TaskName, TaskName)>> {
        let rows = self.rows(
            "WITH RECURSIVE reached (id) AS (
               SELECT $2 COLLATE \"C\" UNION SELECT d.depends_on FROM reached r
               JOIN tenure.task_deps d ON d.project = $1 AND d.task_id = r.id)
             SELECT a.id, a.key, a.title, a.status, b.id, b.key, b.title, b.status
             FROM reached r JOIN tenure.task_deps d ON d.project = $1 AND d.task_id = r.id
             JOIN tenure.tasks a ON a.project = $1 AND a.id = d.task_id
             JOIN tenure.tasks b ON b.project = $1 AND b.id = d.depends_on",
            &[&task.as_str()],
        )?;
        all(rows, |row| Ok((name_at(row, 0)?, name_at(row, 4)?)))
    }

    fn dependents(&self, task: &TaskId) -> Result<Vec<TaskName>> {
        let rows = self.rows(
            "SELECT t.id, t.key, t.title, t.status FROM tenure.task_deps d
             JOIN tenure.tasks t ON t.project = $1 AND t.id = d.task_id
             WHERE d.project = $1 AND d.depends_on = $2 ORDER BY t.key",
            &[&task.as_str()],
        )?;
        all(rows, read_name)
    }

    fn last_position(&self, section: Option<&SectionId>) -> Result<Option<i64>> {
        let sql = "SELECT max(position) FROM tenure.tasks WHERE project = $1 AND section_id = $2";
        self.row(sql, &[&section_column(section)])?.map_or(Ok(None), |row| get(&row, 0))
    }

    fn position_after(&self, section: Option<&SectionId>, after: i64) -> Result<Option<i64>> {
        let sql =
            "SELECT min(position) FROM tenure.tasks WHERE project = $1 AND section_id = $2 AND position > $3";
        self.row(sql, &[&section_column(section), &after])?.map_or(Ok(None), |row| get(&row, 0))
    }
}
