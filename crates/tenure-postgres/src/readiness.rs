//! Queries for ready tasks. The conditions are the core's; `$1` is the project, `$2` now, `$3` the processes known to
//! be dead, `$4` and `$5` the kind and the id of the caller.
//!
//! A condition has a cost even if no row meets it, so a query leaves out those that cannot apply ([`MayExist`]).

use tenure_core::holder::Incarnation;
use tenure_core::store::{Dialect, OpenLease, ProjectContents};
use tokio_postgres::Row;

use crate::connection::Sql;

/// What may exist in a project. False is certain; true means that it may exist.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct MayExist {
    pub(crate) tickets: bool,
    /// Lapsed leases of tasks. As read these are the expired ones; `Transaction::may_exist` adds those of dead
    /// processes.
    pub(crate) lapsed_leases: bool,
    /// Open leases of sections.
    pub(crate) section_leases: bool,
    /// Sections that depend on others.
    pub(crate) section_deps: bool,
    /// Tasks that depend on others.
    pub(crate) task_deps: bool,
}

impl MayExist {
    pub(crate) const UNKNOWN: Self = Self {
        tickets: true,
        lapsed_leases: true,
        section_leases: true,
        section_deps: true,
        task_deps: true,
    };
    pub(crate) const NOTHING: Self = Self {
        tickets: false,
        lapsed_leases: false,
        section_leases: false,
        section_deps: false,
        task_deps: false,
    };
    /// How many columns [`MayExist::read`] reads.
    pub(crate) const COLUMNS: usize = 6;

    /// The columns that [`MayExist::read`] reads, in a query for the row of the project. `judged` is a condition on the processes of
    /// open leases.
    pub(crate) fn query(judged: &str) -> String {
        let open = "FROM tenure.leases WHERE project = $1 AND ended_at IS NULL AND";
        format!(
            "ARRAY(SELECT process {open} process IS NOT NULL {judged}),
             ARRAY(SELECT process FROM tenure.tickets WHERE project = $1),
             (SELECT expires_at {open} resource_kind = 'task' AND expires_at > 0 ORDER BY expires_at LIMIT 1),
             EXISTS (SELECT 1 {open} resource_kind = 'section'),
             section_deps, task_deps"
        )
    }

    /// The columns that make [`MayExist::read`] return [`MayExist::UNKNOWN`].
    pub(crate) fn unknown() -> String {
        format!("NULL::text[], NULL::text[], ({})::bigint, true, true, true", i64::MIN)
    }

    /// Whether a query that leaves out dependencies which do not exist in `self` is right for a project with `found`.
    pub(crate) fn covers_dependencies_of(self, found: Self) -> bool {
        self.section_deps >= found.section_deps && self.task_deps >= found.task_deps
    }

    /// Reads what may exist, and the recorded processes if they were queried.
    pub(crate) fn read(row: &Row, at: usize, now: i64) -> Sql<(Self, Option<Vec<String>>)> {
        let holders: Option<Vec<String>> = row.try_get(at)?;
        let waiters: Option<Vec<String>> = row.try_get(at + 1)?;
        let may_exist = Self {
            tickets: waiters.as_ref().is_none_or(|all| !all.is_empty()),
            lapsed_leases: row.try_get::<_, Option<i64>>(at + 2)?.is_some_and(|first| first <= now),
            section_leases: row.try_get(at + 3)?,
            section_deps: row.try_get(at + 4)?,
            task_deps: row.try_get(at + 5)?,
        };
        Ok((may_exist, holders.zip(waiters).map(|(holders, waiters)| [holders, waiters].concat())))
    }
}

/// The condition that a process in a lease may be known to be dead here: it is of this boot of this machine.
pub(crate) fn of_this_boot() -> String {
    let text = serde_json::to_string(&Incarnation::current()).unwrap_or_default();
    // The machine and the boot come first.
    let Some((here, _)) = text.split_once(",\"pid\":") else { return String::new() };
    let quoted = here.replace('\'', "''");
    // The comma is the first character after the boot, and `-` the one that follows the comma.
    format!("AND process >= '{quoted},' AND process < '{quoted}-'")
}

impl From<MayExist> for ProjectContents {
    fn from(may_exist: MayExist) -> Self {
        Self { held_sections: may_exist.section_leases, ordered_sections: may_exist.section_deps }
    }
}

/// The condition that a row exists. Unlike `EXISTS`, the planner does not turn it into a join over whole tables.
pub(crate) fn some(rows: &str) -> String {
    format!("(SELECT 1 FROM {rows} LIMIT 1) IS NOT NULL")
}

/// Conditions under which the caller may work in section `s`.
fn section_open(may_exist: MayExist) -> Vec<String> {
    Dialect::Postgres.section_open(may_exist.into())
}

/// The condition that no lease keeps task `t` from the caller.
fn task_free() -> String {
    Dialect::Postgres.task_free(OpenLease::NotJoined)
}

fn and(terms: &[String]) -> String {
    terms.iter().flat_map(|term| [" AND ", term]).collect()
}

/// Conditions under which task `t` of section `s` is ready.
pub(crate) fn ready(may_exist: MayExist) -> String {
    let mut terms = Dialect::Postgres.ready_in_open_section(OpenLease::NotJoined);
    terms.extend(section_open(may_exist));
    terms.join(" AND ")
}

/// The first pending task `t` in working order, with its section `s`, and `columns` of them. Its cost does not grow
/// with the number of tasks: each section contributes its first free one from the index.
///
/// In a shared turn the task's row is locked, and rows that other claims have locked are skipped.
fn first_pending(columns: &str, free: &str, open: &str, shared: bool) -> String {
    let lock = if shared { "FOR UPDATE OF t SKIP LOCKED" } else { "" };
    format!(
        "SELECT {columns}
         FROM tenure.sections s CROSS JOIN LATERAL (
           SELECT * FROM tenure.tasks t
           WHERE t.project = $1 AND t.section_id = s.id AND t.status = 'pending' AND t.open_deps = 0 {free}
           ORDER BY t.priority, t.position, t.id LIMIT 1 {lock}) t
         WHERE s.project = $1 {open}
         ORDER BY s.priority, s.position, s.id LIMIT 1"
    )
}

/// The first ready task, if there are no tickets, no leases of sections and no lapsed leases. Then every open lease
/// blocks, whatever the caller and the time.
pub(crate) fn first_ready_if_quiet(columns: &str, only: &str, section_deps: bool) -> String {
    let free = Dialect::Postgres.none(
        "tenure.leases l WHERE l.project = $1 AND l.resource_kind = 'task' AND l.resource_id = t.id \
         AND l.ended_at IS NULL",
    );
    let open = and(&section_open(MayExist { section_deps, ..MayExist::NOTHING }));
    first_pending(columns, &format!("AND {free}"), &format!("{open} {only}"), true)
}

/// The first ready task while no lease has lapsed. `besides` is a condition on the task, `only` one on its section.
pub(crate) fn first_ready(
    columns: &str,
    may_exist: MayExist,
    besides: &str,
    only: &str,
    shared: bool,
) -> String {
    let free = format!("{} {besides}", and(&[task_free()]));
    let open = format!("{} {only}", and(&section_open(may_exist)));
    first_pending(columns, &free, &open, shared)
}

/// The first ready task, including tasks whose lease has lapsed, which are found through their leases.
pub(crate) fn first_ready_or_left(may_exist: MayExist, besides: &str, only: &str) -> String {
    let columns = "t.id AS id, s.priority AS a, s.position AS b, s.id AS c, t.priority AS d, t.position AS e";
    let waiting = first_ready(columns, may_exist, besides, only, false);
    let free = format!("{} {besides}", and(&[task_free()]));
    let open = and(&section_open(may_exist));
    let lapsed = "SELECT fence, resource_id, claimed_from FROM tenure.leases
         WHERE project = $1 AND ended_at IS NULL AND resource_kind = 'task'";
    format!(
        "SELECT id FROM (
           ({waiting})
           UNION ALL
           (SELECT {columns}
            FROM ({lapsed} AND expires_at > 0 AND expires_at <= $2
                  UNION {lapsed} AND process IS NOT NULL AND process = ANY ($3)) old
            CROSS JOIN LATERAL (SELECT * FROM tenure.tasks WHERE project = $1 AND id = old.resource_id OFFSET 0) t
            CROSS JOIN LATERAL (SELECT * FROM tenure.sections WHERE project = $1 AND id = t.section_id OFFSET 0) s
            WHERE old.claimed_from = 'pending' AND t.status = 'in_progress' AND t.open_deps = 0
              {free} {open} {only}
            ORDER BY s.priority, s.position, s.id, t.priority, t.position, t.id LIMIT 1)
         ) first ORDER BY a, b, c, d, e, id LIMIT 1"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_processes_of_this_boot_are_those_between_the_two_bounds() {
        let condition = of_this_boot();
        let bounds: Vec<&str> = condition.split('\'').skip(1).step_by(2).collect();
        let [lower, upper] = bounds[..] else { panic!("{condition}") };
        let is_inside = |process: &Incarnation| {
            let text = serde_json::to_string(process).unwrap();
            lower <= text.as_str() && text.as_str() < upper
        };
        let mut process = Incarnation::current();
        assert!(is_inside(&process));
        process.process.pid = u32::MAX;
        assert!(is_inside(&process));
        process.process.boot_id.push('0');
        assert!(!is_inside(&process));
        process.process.boot_id = "another".to_owned();
        assert!(!is_inside(&process));
    }
}
