//! What makes a task ready, as conditions of a query. `$1` is the project, `$2` now, `$3` the processes known to be dead,
//! `$4` since when a ticket must have been refreshed, `$5` and `$6` who asks.
//!
//! Every condition is a question about one row, answered from an index. The planner must not turn them into joins over
//! whole tables, as it would with `EXISTS`; so they are written as [`some`] and [`none`].
//!
//! A condition costs something even where no row meets it, so what is known not to be there is not asked about ([`Facts`]).

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

/// Is there a lease `l` that still blocks others?
const LIVE_LEASE: &str = "l.project = $1 AND l.ended_at IS NULL AND l.expires_at > $2 \
     AND (l.process IS NULL OR l.process <> ALL ($3))";

/// Is there a waiter `k`, other than the caller, that still stands in line?
const LIVE_TICKET: &str = "k.project = $1 AND k.refreshed_at > $4 AND k.process <> ALL ($3) \
     AND NOT (k.holder_kind = $5 AND k.holder_id = $6)";

pub(crate) fn some(rows: &str) -> String {
    format!("(SELECT 1 FROM {rows} LIMIT 1) IS NOT NULL")
}

fn none(rows: &str) -> String {
    format!("(SELECT 1 FROM {rows} LIMIT 1) IS NULL")
}

/// Is anything left to do in section `u`? Spelled as the index has it.
pub(crate) fn has_work() -> String {
    some(
        "tenure.tasks o WHERE o.project = $1 AND o.section_id = u.id \
         AND o.status IN ('pending', 'in_progress', 'review', 'failed')",
    )
}

/// The open leases `w` of tasks in section `s` that are held under the section's lease `l`.
fn work_under(condition: &str) -> String {
    format!(
        "tenure.leases w
         WHERE (SELECT x.section_id FROM tenure.tasks x WHERE x.project = $1 AND x.id = w.resource_id) = s.id
         AND w.project = $1 AND w.ended_at IS NULL AND w.resource_kind = 'task' AND w.holder_id = l.holder_id
         AND w.holder_kind = l.holder_kind AND (w.process = l.process OR w.process IS NULL OR l.process IS NULL)
         {condition}"
    )
}

/// May the caller work in section `s`? One holder at a time in a serial one, and nobody past the line before it. A holder
/// whose tasks there have all lapsed does not count: it blocks nobody, so not through the section either (L3).
fn section_open(facts: Facts) -> Vec<String> {
    let mut terms = Vec::new();
    if facts.ordered {
        terms.push(none(&format!(
            "tenure.section_deps d JOIN tenure.sections u ON u.project = $1 AND u.id = d.depends_on
             WHERE d.project = $1 AND d.section_id = s.id AND {}",
            has_work()
        )));
    }
    let held = format!(
        "tenure.leases l WHERE l.resource_kind = 'section' AND l.resource_id = s.id AND {LIVE_LEASE}"
    );
    let (mut mine, mut room) = (String::new(), Vec::new());
    if facts.held {
        let live_work = format!("AND {}", LIVE_LEASE.replace("l.", "w."));
        mine = format!("{} OR", some(&format!("{held} AND l.holder_kind = $5 AND l.holder_id = $6")));
        let kept = format!("{} OR {}", none(&work_under("")), some(&work_under(&live_work)));
        room.push(none(&format!("{held} AND ({kept})")));
    }
    if facts.lines {
        room.push(none(&format!(
            "tenure.tickets k WHERE k.resource_kind = 'section' AND k.resource_id = s.id AND {LIVE_TICKET}"
        )));
    }
    if !room.is_empty() {
        terms.push(format!("(s.mode = 'parallel' OR {mine} {})", room.join(" AND ")));
    }
    terms
}

/// Is nobody else working on, or first in line for, task `t`?
fn task_free(facts: Facts) -> Vec<String> {
    let mut terms = vec![none(&format!(
        "tenure.leases l WHERE l.resource_kind = 'task' AND l.resource_id = t.id AND {LIVE_LEASE}"
    ))];
    if facts.lines {
        terms.push(none(&format!(
            "tenure.tickets k WHERE k.resource_kind = 'task' AND k.resource_id = t.id AND {LIVE_TICKET}"
        )));
    }
    terms
}

fn and(terms: &[Vec<String>]) -> String {
    terms.concat().iter().flat_map(|term| [" AND ", term]).collect()
}

/// In progress counts when its lease has lapsed (L3), unless it goes back to a reviewer.
pub(crate) fn ready(facts: Facts) -> String {
    let left_behind = some(
        "tenure.leases l WHERE l.project = $1 AND l.resource_kind = 'task' AND l.resource_id = t.id \
         AND l.ended_at IS NULL AND l.claimed_from = 'pending'",
    );
    format!(
        "t.open_deps = 0 AND (t.status = 'pending' OR t.status = 'in_progress' AND {left_behind}) {}",
        and(&[task_free(facts), section_open(facts)])
    )
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
    let free = none(
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
