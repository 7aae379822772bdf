//! Whole tasks: one, lists, and the next ready one.

use tenure_core::id::{SectionId, TaskId};
use tenure_core::store::{
    ComputedState, Dialect, Reserved, SqlTx, TaskFilter, TaskOrder, TaskQueries, Viewer, ViewerValues,
    notes_from_json, work_tickets_query,
};
use tenure_core::task::{Task, TaskStatus};
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

/// All tasks, section by section.
const BY_SECTION: &str = "tenure.sections s JOIN tenure.tasks t ON t.project = $1 AND t.section_id = s.id";
/// The condition of the index `tasks_rare`, for a filter whose matches [are few](TaskFilter::are_few).
const RARE: &str = "AND t.status NOT IN ('pending', 'completed')";

/// Whether each section contributes the first tasks of a page from an index. The planner would sort all of them.
fn is_by_section(filter: &TaskFilter) -> bool {
    filter.order == TaskOrder::default() && !filter.are_few()
}

/// A page of the tasks that match `terms`. The parameters from `$first` on are its limit, its offset, and, if
/// [`is_by_section`], their sum.
fn page_query(filter: &TaskFilter, terms: &str, first: usize, may_exist: MayExist) -> String {
    let page = format!("ORDER BY {} LIMIT ${first} OFFSET ${}", filter.order.sql(), first + 1);
    if filter.are_few() {
        return task_query(ONE_TASK, &format!("{RARE} {terms} {page}"), may_exist);
    }
    if !is_by_section(filter) {
        return task_query(BY_SECTION, &format!("{terms} {page}"), may_exist);
    }
    // Each part repeats the condition of an index exactly as the index has it.
    let part = |condition: &str| {
        format!(
            "(SELECT t.* FROM tenure.tasks t WHERE t.project = $1 AND t.section_id = s.id AND {condition} {terms}
              ORDER BY t.priority, t.position, t.id LIMIT ${})",
            first + 2
        )
    };
    let (open, completed) = ("t.status <> 'completed'", "t.status = 'completed'");
    let parts = match &filter.statuses {
        Some(statuses) if !statuses.contains(&TaskStatus::Completed) => part(open),
        Some(statuses) if statuses.len() == 1 && filter.states.is_empty() => part(completed),
        _ => format!("({} UNION ALL {})", part(open), part(completed)),
    };
    task_query(&format!("tenure.sections s CROSS JOIN LATERAL {parts} t"), &page, may_exist)
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
        let listing = page_query(filter, &terms, values.len() + 2, may_exist);
        values.extend([&limit as &dyn Value, &offset]);
        if is_by_section(filter) {
            values.push(&reach);
        }
        all(self.rows(&listing, &values)?, read_task)
    }

    fn task_count(&self, filter: &TaskFilter, viewer: &Viewer) -> Result<u64> {
        let matching = Matching::new(filter, viewer, self.state.now)?;
        let (terms, values) = matching.terms(self.may_exist(viewer));
        let (from, rare) = if filter.are_few() { (ONE_TASK, RARE) } else { (BY_SECTION, "") };
        let counting = format!("SELECT count(*) FROM {from} WHERE s.project = $1 {rare} {terms}");
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

#[cfg(test)]
mod tests {
    use std::fmt::Write;

    use tenure_testkit::postgres::Cluster;

    use super::*;
    use crate::{Address, OpenOptions, PostgresStore, Surroundings};

    /// Almost all tasks are completed, and a few have each of the other statuses.
    const ROWS: &str = "
        INSERT INTO tenure.sections (project, id, name, mode, priority, position, created_at, updated_at)
            SELECT p.id, 's' || n, 's' || n, 'parallel', 100, n, 0, 0 FROM tenure.projects p, generate_series(1, 20) n;
        INSERT INTO tenure.tasks (project, id, key, title, status, section_id, priority, position, created_at, updated_at)
            SELECT p.id, 't' || n, 'k' || n, 'Task ' || n,
                   coalesce((ARRAY['pending', 'in_progress', 'review', 'failed', 'skipped'])[n % 400], 'completed'),
                   's' || (1 + n % 20), 100, n, 0, 0
            FROM tenure.projects p, generate_series(1, 8000) n;
        ANALYZE;";

    /// What the store sets for its sessions.
    const SETTINGS: &str = "SET enable_seqscan = off; SET enable_bitmapscan = off; SET enable_hashjoin = off;
        SET enable_mergejoin = off; SET plan_cache_mode = force_generic_plan; SET join_collapse_limit = 1;
        SET from_collapse_limit = 1;";

    /// How the tasks are read for the first page of each filter.
    fn plans(filters: &[TaskFilter]) -> Vec<String> {
        let cluster = Cluster::shared();
        let database = cluster.new_database();
        let address = Address::parse(&cluster.url_of(&database), &Surroundings::default()).unwrap();
        let project = "0b3e7a52-1111-4222-8333-444455556666";
        PostgresStore::create(address, project, "plans", OpenOptions::default()).unwrap();
        cluster.sql(&database, ROWS);
        let mut script = SETTINGS.to_owned();
        for (number, filter) in filters.iter().enumerate() {
            let now = Timestamp::from_millis(0);
            let matching = Matching::new(filter, &Viewer::default(), now).unwrap();
            let (terms, values) = matching.terms(MayExist::NOTHING);
            let sql = page_query(filter, &terms, values.len() + 2, MayExist::NOTHING);
            let count = values.len() + 2 + usize::from(is_by_section(filter));
            let nulls = ", NULL".repeat(count);
            let _ = write!(
                script,
                "SELECT 'plan'; PREPARE page_{number} (uuid, bigint, text[], text, text) AS {sql};
                 EXPLAIN (COSTS OFF) EXECUTE page_{number} (NULL{nulls});"
            );
        }
        let text = cluster.sql(&database, &script);
        text.split("plan\n").skip(1).map(str::to_owned).collect()
    }

    #[test]
    fn a_page_reads_the_index_of_its_statuses() {
        let of = |statuses: &[TaskStatus]| TaskFilter {
            statuses: Some(statuses.to_vec()),
            ..TaskFilter::default()
        };
        let open = TaskStatus::ALL.into_iter().filter(|status| !status.is_finished());
        let found = plans(&[
            of(&open.collect::<Vec<_>>()),
            of(&[TaskStatus::Completed]),
            of(&[TaskStatus::Failed]),
            of(&[TaskStatus::InProgress, TaskStatus::Review]),
            TaskFilter::default(),
        ]);
        let indexes = ["tasks_open", "tasks_completed", "tasks_rare", "tasks_position", "tasks_pkey"];
        let read: Vec<Vec<&str>> = found
            .iter()
            .map(|plan| {
                indexes.into_iter().filter(|index| plan.contains(&format!("using {index} "))).collect()
            })
            .collect();
        let expected: [&[&str]; 5] = [
            &["tasks_open"],
            &["tasks_completed"],
            &["tasks_rare"],
            &["tasks_rare"],
            &["tasks_open", "tasks_completed"],
        ];
        assert_eq!(read, expected, "{found:#?}");
        for plan in &found {
            assert!(!plan.contains("Seq Scan on tasks"), "{plan}");
        }
    }
}
