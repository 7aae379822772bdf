//! Whole tasks: one, lists, and the next ready one.

use tenure_core::id::{SectionId, TaskId};
use tenure_core::store::{
    ComputedState, Dialect, Reserved, SqlTx, TaskFilter, TaskOrder, TaskQueries, Viewer, ViewerValues,
    notes_from_json, work_tickets_query,
};
use tenure_core::task::Task;
use tenure_core::{Result, Timestamp};
use tokio_postgres::Row;

use crate::connection::Value;
use crate::prefetched::{OfferedTask, TaskNotesFor};
use crate::readiness::{MayExist, ready};
use crate::rows::{all, count, get, limit_of, record};
use crate::task_query::{
    FOR_A_CLAIM, NEXT_TASK_COLUMNS, ONE_TASK, first_ready_query, read_task, task_query, task_row_query,
};
use crate::transaction::Transaction;

/// The values of `$2` to `$5`.
fn parameters(viewer: &ViewerValues) -> Vec<&dyn Value> {
    vec![&viewer.now, &viewer.dead, &viewer.me_kind, &viewer.me_id]
}

impl Transaction<'_> {
    fn may_exist(&self, viewer: &Viewer) -> MayExist {
        let known = self.prefetched.borrow().may_exist;
        MayExist { lapsed_leases: known.lapsed_leases || !viewer.dead.is_empty(), ..known }
    }

    /// Stores what [`crate::task_query::for_a_claim`] has read for the task `id`, from column `at` on.
    fn prepare_claim(&self, row: &Row, at: usize, id: &str, me: &str) -> Result<()> {
        let mut prefetched = self.prefetched.borrow_mut();
        if let Some(fence) = get(row, at)? {
            prefetched.fence = Some(fence);
        }
        let ending: bool = get(row, at + 1)?;
        prefetched.without_ending_attempts = (!ending).then(|| id.to_owned());
        let notes = notes_from_json(get(row, at + 2)?, get(row, at + 3)?)?;
        prefetched.notes = Some(TaskNotesFor { task: id.to_owned(), reader: me.to_owned(), notes });
        prefetched.agent = Some((me.to_owned(), get(row, at + 4)?));
        Ok(())
    }
}

/// A filter as the condition on tasks `t` of sections `s`, with the values of its parameters.
struct Matching<'f> {
    filter: &'f TaskFilter,
    viewer: ViewerValues,
    statuses: Option<Vec<&'static str>>,
    section: Option<&'f str>,
    held: Option<(&'static str, &'f str)>,
}

impl<'f> Matching<'f> {
    fn new(filter: &'f TaskFilter, viewer: &Viewer, now: Timestamp) -> Result<Self> {
        let statuses = filter.statuses.as_ref();
        Ok(Self {
            filter,
            viewer: viewer.values(now)?,
            statuses: statuses.map(|all| all.iter().map(|status| status.as_str()).collect()),
            section: filter.section.as_ref().map(SectionId::as_str),
            held: filter.held_by.as_ref().map(|holder| (holder.kind.as_str(), holder.id.as_str())),
        })
    }

    fn terms(&self, may_exist: MayExist) -> (String, Vec<&dyn Value>) {
        let mut values = parameters(&self.viewer);
        let mut terms: Vec<String> = Vec::new();
        if let Some(statuses) = &self.statuses {
            values.push(statuses);
            let mut any = vec![format!("t.status = ANY (${})", values.len() + 1)];
            any.extend(self.filter.states.iter().map(|state| match state {
                ComputedState::Blocked => Dialect::Postgres.blocked(),
                ComputedState::Ready => ready(may_exist),
                ComputedState::Lapsed => Dialect::Postgres.lapsed(),
            }));
            terms.push(format!(" AND ({})", any.join(" OR ")));
        }
        if self.section.is_some() {
            values.push(&self.section);
            terms.push(format!(" AND s.id = ${}", values.len() + 1));
        }
        if let Some(text) = &self.filter.search {
            values.push(text);
            let part = format!("lower(${} COLLATE \"C\")", values.len() + 1);
            terms.push(format!(
                " AND (strpos(lower(t.title), {part}) > 0 OR strpos(lower(t.description), {part}) > 0 \
                 OR strpos(lower(t.key), {part}) > 0)"
            ));
        }
        if let Some(label) = &self.filter.label {
            values.push(label);
            terms.push(format!(
                " AND EXISTS (SELECT 1 FROM json_array_elements_text(t.labels::json) AS l WHERE l = ${})",
                values.len() + 1
            ));
        }
        if let Some((kind, id)) = &self.held {
            values.extend([kind as &dyn Value, id]);
            terms.push(format!(
                " AND EXISTS (SELECT 1 FROM tenure.leases h WHERE h.project = $1 AND h.resource_kind = 'task' \
                 AND h.resource_id = t.id AND h.ended_at IS NULL AND h.holder_kind = ${} AND h.holder_id = ${})",
                values.len(),
                values.len() + 1
            ));
        }
        if self.filter.ready {
            terms.push(format!(" AND ({})", ready(may_exist)));
        }
        (terms.concat(), values)
    }
}

impl TaskQueries for Transaction<'_> {
    fn task_with_readiness(&self, id: &TaskId, viewer: &Viewer) -> Result<Option<Task>> {
        let bound = viewer.values(self.state.now)?;
        let mut values = parameters(&bound);
        let name = id.as_str();
        values.push(&name);
        let row = self.row(&task_query(ONE_TASK, "AND t.id = $6", self.may_exist(viewer)), &values)?;
        row.map(|row| read_task(&row)).transpose()
    }

    fn task_without_readiness(&self, id: &TaskId, viewer: &Viewer) -> Result<Option<Task>> {
        let bound = viewer.values(self.state.now)?;
        let offered = self.prefetched.borrow_mut().offered.take();
        match offered {
            Some(offered) if offered.task.id == *id && offered.bound == bound => {
                return Ok(Some(Task { ready: false, ..offered.task }));
            }
            _ => {}
        }
        // In a shared turn only the offered task is locked.
        self.require_exclusive_turn()?;
        let (me, name) = (bound.me_id.as_str(), id.as_str());
        let claiming = self.writer.is_some() && !me.is_empty();
        let named = self.prefetched.borrow_mut().named.take();
        let named = match named {
            Some(named) if named.is_of(me, id)? => Some(named),
            _ => None,
        };
        let (rows, tickets) = match named {
            Some(named) => (named.rows, Some(named.tickets)),
            None => {
                let may_exist = self.may_exist(viewer);
                let task = task_row_query(may_exist, claiming);
                let values: [&dyn Value; 2] = [&me, &name];
                if claiming && may_exist.tickets && self.prefetched.borrow().tickets.is_none() {
                    let (rows, tickets) =
                        self.two((&task, &values), (work_tickets_query(Dialect::Postgres), &[]))?;
                    (rows, Some(tickets))
                } else {
                    (self.rows(&task, &values)?, None)
                }
            }
        };
        if let Some(tickets) = tickets {
            self.prefetched.borrow_mut().tickets = Some(all(tickets, record)?);
        }
        let Some(row) = rows.first() else { return Ok(None) };
        if claiming {
            self.prepare_claim(row, row.len() - FOR_A_CLAIM, name, me)?;
        }
        read_task(row).map(Some)
    }

    fn task_page(&self, filter: &TaskFilter, viewer: &Viewer) -> Result<Vec<Task>> {
        let may_exist = self.may_exist(viewer);
        let matching = Matching::new(filter, viewer, self.state.now)?;
        let (terms, mut values) = matching.terms(may_exist);
        let (limit, offset) = (limit_of(filter.limit), limit_of(filter.offset));
        let reach = limit.saturating_add(offset);
        values.extend([&limit as &dyn Value, &offset]);
        let page = format!("LIMIT ${} OFFSET ${}", values.len(), values.len() + 1);
        let order = filter.order.sql();
        // In working order each section contributes its first tasks from the index. The planner would sort all of them.
        let listing = if filter.order == TaskOrder::default() {
            values.push(&reach);
            let from = format!(
                "tenure.sections s CROSS JOIN LATERAL (
                   SELECT t.* FROM tenure.tasks t WHERE t.project = $1 AND t.section_id = s.id {terms}
                   ORDER BY t.priority, t.position, t.id LIMIT ${}) t",
                values.len() + 1
            );
            task_query(&from, &format!("ORDER BY {order} {page}"), may_exist)
        } else {
            let from = "tenure.sections s JOIN tenure.tasks t ON t.project = $1 AND t.section_id = s.id";
            task_query(from, &format!("{terms} ORDER BY {order} {page}"), may_exist)
        };
        all(self.rows(&listing, &values)?, read_task)
    }

    fn task_count(&self, filter: &TaskFilter, viewer: &Viewer) -> Result<u64> {
        let matching = Matching::new(filter, viewer, self.state.now)?;
        let (terms, values) = matching.terms(self.may_exist(viewer));
        let counting = format!(
            "SELECT count(*) FROM tenure.sections s
             JOIN tenure.tasks t ON t.project = $1 AND t.section_id = s.id WHERE s.project = $1 {terms}"
        );
        self.row(&counting, &values)?.map_or(Ok(0), |row| count(&row, 0))
    }

    fn first_ready(
        &self,
        section: Option<&SectionId>,
        reserved: &Reserved,
        viewer: &Viewer,
    ) -> Result<Option<TaskId>> {
        let bound = viewer.values(self.state.now)?;
        let mut values = parameters(&bound);
        let only = section.map(SectionId::as_str);
        if only.is_some() {
            values.push(&only);
        }
        let may_exist = self.may_exist(viewer);
        if may_exist.lapsed_leases {
            self.require_exclusive_turn()?;
        }
        // Without a caller this is not a claim: the kernel computes what waiters would get.
        let claiming = self.writer.is_some() && viewer.me.is_some();
        let (tasks, sections): (Vec<&str>, Vec<&str>) = (
            reserved.tasks.iter().map(TaskId::as_str).collect(),
            reserved.sections.iter().map(SectionId::as_str).collect(),
        );
        let mut passed_over = None;
        if !reserved.is_empty() {
            values.extend([&tasks as &dyn Value, &sections]);
            passed_over = Some(values.len());
        }
        let next = self.prefetched.borrow_mut().next.take();
        let next = next.filter(|next| reserved.is_empty() && next.answers(section, viewer));
        let (row, extra) = match next {
            Some(next) => {
                let found = get::<Option<&str>>(&next.row, 0)?.is_some();
                (found.then_some(next.row), NEXT_TASK_COLUMNS - FOR_A_CLAIM)
            }
            None => {
                let sql = first_ready_query(only.is_some(), passed_over, may_exist, claiming, self.shares());
                let row = self.row(&sql, &values)?;
                let extra = row.as_ref().map_or(0, |row| row.len() - FOR_A_CLAIM);
                (row, extra)
            }
        };
        let Some(row) = row else {
            // A task that was skipped because another claim has locked it may become ready again.
            self.require_exclusive_turn()?;
            return Ok(None);
        };
        let task = read_task(&row)?;
        let id = task.id.clone();
        if claiming {
            self.prepare_claim(&row, extra, id.as_str(), &bound.me_id)?;
        }
        drop(values);
        self.prefetched.borrow_mut().offered = Some(OfferedTask { task, bound });
        Ok(Some(id))
    }
}
