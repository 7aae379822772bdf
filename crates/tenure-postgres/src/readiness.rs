//! Queries for ready tasks. The conditions are the core's; `$1` is the project, `$2` now, `$3` the processes known to be dead,
//! `$4` the moment since which a ticket must have been refreshed, `$5` and `$6` the viewer.
//!
//! A condition costs time even if no row meets it, so nothing is asked about what the project is known not to have ([`Facts`]).

use tenure_core::store::{Contents, Dialect, OpenLease};
use tokio_postgres::Row;

use crate::link::Sql;

/// What there may be in a project. False is certain; true is not.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Facts {
    /// Somebody stands in a line.
    pub(crate) lines: bool,
    /// The time of a task's lease is over, although nobody has closed it.
    pub(crate) lapsed: bool,
    /// Somebody holds a section.
    pub(crate) held: bool,
    /// A section waits for another.
    pub(crate) ordered: bool,
    /// A task waits, or has waited, for another.
    pub(crate) linked: bool,
}

/// How much of it is to be found out.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Wanted {
    None,
    Lines,
    /// For whoever claims a task by its name: nothing about other tasks.
    Lasting,
    All,
}

impl Facts {
    pub(crate) const UNKNOWN: Self =
        Self { lines: true, lapsed: true, held: true, ordered: true, linked: true };
    /// Of a project in which nothing stands in anybody's way.
    pub(crate) const QUIET: Self =
        Self { lines: false, lapsed: false, held: false, ordered: false, linked: false };
    /// How many columns [`Facts::read`] reads.
    pub(crate) const COLUMNS: usize = 6;

    /// Columns that [`Facts::read`] reads. Whoever only keeps a place, or beats, has no use for the facts.
    pub(crate) fn query(of: Wanted) -> String {
        // Nearly every decision asks for the processes that stand behind open leases and tickets.
        let lines = "ARRAY(SELECT process FROM tenure.leases
                   WHERE project = $1 AND ended_at IS NULL AND process IS NOT NULL),
             ARRAY(SELECT process FROM tenure.tickets WHERE project = $1)";
        let lasting = "EXISTS (SELECT 1 FROM tenure.section_deps WHERE project = $1),
             EXISTS (SELECT 1 FROM tenure.task_deps WHERE project = $1)";
        let unknown = format!("({})::bigint, true, true, true", i64::MIN);
        let open = "FROM tenure.leases WHERE project = $1 AND ended_at IS NULL AND resource_kind";
        match of {
            Wanted::None => format!("NULL::text[], NULL::text[], {unknown}"),
            Wanted::Lines => format!("{lines}, {unknown}"),
            Wanted::Lasting => format!("{lines}, ({})::bigint, true, {lasting}", i64::MIN),
            Wanted::All => format!(
                "{lines},
                 (SELECT expires_at {open} = 'task' AND expires_at > 0 ORDER BY expires_at LIMIT 1),
                 EXISTS (SELECT 1 {open} = 'section'), {lasting}"
            ),
        }
    }

    /// And the processes that are recorded, if they were asked for.
    pub(crate) fn read(row: &Row, at: usize, now: i64) -> Sql<(Self, Option<Vec<String>>)> {
        let holders: Option<Vec<String>> = row.try_get(at)?;
        let waiters: Option<Vec<String>> = row.try_get(at + 1)?;
        let facts = Self {
            lines: waiters.as_ref().is_none_or(|all| !all.is_empty()),
            lapsed: row.try_get::<_, Option<i64>>(at + 2)?.is_some_and(|first| first <= now),
            held: row.try_get(at + 3)?,
            ordered: row.try_get(at + 4)?,
            linked: row.try_get(at + 5)?,
        };
        Ok((facts, holders.zip(waiters).map(|(holders, waiters)| [holders, waiters].concat())))
    }

    /// Was a look that took this for granted right, where things are as `found`? [`quiet`] asks about nothing that passes.
    /// Whoever finds that a lease has lapsed goes on alone anyway.
    pub(crate) fn covers(self, found: Self) -> bool {
        !found.lines && !found.held && self.knows(found)
    }

    /// Was everything asked about that lasts?
    pub(crate) fn knows(self, found: Self) -> bool {
        (self.ordered || !found.ordered) && (self.linked || !found.linked)
    }
}

impl From<Facts> for Contents {
    fn from(facts: Facts) -> Self {
        Self { queues: facts.lines, held_sections: facts.held, ordered_sections: facts.ordered }
    }
}

/// Something is left to do in section `u`.
pub(crate) fn has_work() -> String {
    Dialect::Postgres.has_work()
}

/// The viewer may work in section `s`.
fn section_open(facts: Facts) -> Vec<String> {
    Dialect::Postgres.section_open(facts.into())
}

/// Nothing holds task `t`, and nothing but the viewer is queued for it.
fn task_free(facts: Facts) -> Vec<String> {
    Dialect::Postgres.task_free(facts.into(), OpenLease::NotJoined)
}

fn and(terms: &[Vec<String>]) -> String {
    terms.concat().iter().flat_map(|term| [" AND ", term]).collect()
}

/// Task `t` of section `s` is ready.
pub(crate) fn ready(facts: Facts) -> String {
    let mut terms = Dialect::Postgres.ready_in_open_section(facts.into(), OpenLease::NotJoined);
    terms.extend(section_open(facts));
    terms.join(" AND ")
}

/// The first pending task `t` in working order, with its section `s`, and `columns` of them. Its cost does not grow with the
/// number of tasks: each section gives its first free one from the index.
///
/// If the turn is `shared`, the task is locked, and those that others have locked are passed over.
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

/// The first ready task, if nobody waits, nobody holds a section, and no lease has lapsed: then every open lease is a
/// live one, whoever asks and whenever.
pub(crate) fn quiet(columns: &str, ordered: bool, only: &str) -> String {
    let free = Dialect::Postgres.none(
        "tenure.leases l WHERE l.project = $1 AND l.resource_kind = 'task' AND l.resource_id = t.id \
         AND l.ended_at IS NULL",
    );
    let open = and(&[section_open(Facts { ordered, ..Facts::QUIET })]);
    first_pending(columns, &format!("AND {free}"), &format!("{open} {only}"), true)
}

/// The first ready task while no lease has lapsed. `besides` is a condition on the task, `only` one on its section.
pub(crate) fn first_ready(columns: &str, facts: Facts, besides: &str, only: &str, shared: bool) -> String {
    let free = format!("{} {besides}", and(&[task_free(facts)]));
    let open = format!("{} {only}", and(&[section_open(facts)]));
    first_pending(columns, &free, &open, shared)
}

/// The first ready task, which may be one that a lapsed lease has left behind. That is found by the lease.
pub(crate) fn first_ready_or_left(facts: Facts, besides: &str, only: &str) -> String {
    let columns = "t.id AS id, s.priority AS a, s.position AS b, s.id AS c, t.priority AS d, t.position AS e";
    let waiting = first_ready(columns, facts, besides, only, false);
    let free = format!("{} {besides}", and(&[task_free(facts)]));
    let open = and(&[section_open(facts)]);
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
