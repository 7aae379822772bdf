//! What makes a task ready, as conditions of a query. `$1` is the project, `$2` now, `$3` the processes known to be dead,
//! `$4` since when a ticket must have been refreshed, `$5` and `$6` who asks.
//!
//! Every condition is a question about one row, answered from an index. The planner must not turn them into joins over
//! whole tables, as it would with `EXISTS`; so they are written as [`some`] and [`none`].

/// Is there a lease `l` that still blocks others?
const LIVE_LEASE: &str = "l.project = $1 AND l.ended_at IS NULL AND l.expires_at > $2 \
     AND (l.process IS NULL OR l.process <> ALL ($3))";

/// Is there a waiter `k`, other than the caller, that still stands in line?
const LIVE_TICKET: &str = "k.project = $1 AND k.refreshed_at > $4 AND k.process <> ALL ($3) \
     AND NOT (k.holder_kind = $5 AND k.holder_id = $6)";

fn some(rows: &str) -> String {
    format!("(SELECT 1 FROM {rows} LIMIT 1) IS NOT NULL")
}

fn none(rows: &str) -> String {
    format!("(SELECT 1 FROM {rows} LIMIT 1) IS NULL")
}

/// Is anything left to do in section `u`? Spelled as the index is.
pub(crate) fn has_work() -> String {
    some(
        "tenure.tasks o WHERE o.project = $1 AND o.section_id = u.id \
         AND o.status NOT IN ('completed', 'skipped')",
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
pub(crate) fn section_open() -> String {
    let held = format!(
        "tenure.leases l WHERE l.resource_kind = 'section' AND l.resource_id = s.id AND {LIVE_LEASE}"
    );
    let live_work = format!("AND {}", LIVE_LEASE.replace("l.", "w."));
    format!(
        "{unblocked} AND (s.mode = 'parallel' OR {mine} OR {free} AND {no_line})",
        unblocked = none(&format!(
            "tenure.section_deps d JOIN tenure.sections u ON u.project = $1 AND u.id = d.depends_on
             WHERE d.project = $1 AND d.section_id = s.id AND {}",
            has_work()
        )),
        mine = some(&format!("{held} AND l.holder_kind = $5 AND l.holder_id = $6")),
        free = none(&format!("{held} AND ({} OR {})", none(&work_under("")), some(&work_under(&live_work)))),
        no_line = none(&format!(
            "tenure.tickets k WHERE k.resource_kind = 'section' AND k.resource_id = s.id AND {LIVE_TICKET}"
        )),
    )
}

/// Is nobody else working on, or first in line for, task `t`?
pub(crate) fn task_free() -> String {
    let lease =
        format!("tenure.leases l WHERE l.resource_kind = 'task' AND l.resource_id = t.id AND {LIVE_LEASE}");
    let line =
        format!("tenure.tickets k WHERE k.resource_kind = 'task' AND k.resource_id = t.id AND {LIVE_TICKET}");
    format!("{} AND {}", none(&lease), none(&line))
}

/// In progress counts when its lease has lapsed (L3), unless it goes back to a reviewer.
pub(crate) fn ready() -> String {
    let left_behind = some(
        "tenure.leases l WHERE l.project = $1 AND l.resource_kind = 'task' AND l.resource_id = t.id \
         AND l.ended_at IS NULL AND l.claimed_from = 'pending'",
    );
    format!(
        "t.open_deps = 0 AND (t.status = 'pending' OR t.status = 'in_progress' AND {left_behind}) AND {} AND {}",
        task_free(),
        section_open()
    )
}

/// The first ready task in working order. Its cost does not grow with the number of tasks: each section gives its first
/// free one from the index, and what a lapsed lease has left behind is found by that lease.
pub(crate) fn first_ready(in_section: bool) -> String {
    let only = if in_section { "AND s.id = $7" } else { "" };
    let columns = "t.id AS id, s.priority AS a, s.position AS b, s.id AS c, t.priority AS d, t.position AS e";
    let lapsed = "SELECT fence, resource_id, claimed_from FROM tenure.leases
         WHERE project = $1 AND ended_at IS NULL AND resource_kind = 'task'";
    format!(
        "SELECT id FROM (
           (SELECT {columns}
            FROM tenure.sections s CROSS JOIN LATERAL (
              SELECT t.id, t.priority, t.position FROM tenure.tasks t
              WHERE t.project = $1 AND t.section_id = s.id AND t.status = 'pending' AND t.open_deps = 0 AND {free}
              ORDER BY t.priority, t.position, t.id LIMIT 1) t
            WHERE s.project = $1 AND {open} {only}
            ORDER BY s.priority, s.position, s.id LIMIT 1)
           UNION ALL
           (SELECT {columns}
            FROM ({lapsed} AND expires_at <= $2 UNION {lapsed} AND process = ANY ($3)) old
            CROSS JOIN LATERAL (SELECT * FROM tenure.tasks WHERE project = $1 AND id = old.resource_id OFFSET 0) t
            CROSS JOIN LATERAL (SELECT * FROM tenure.sections WHERE project = $1 AND id = t.section_id OFFSET 0) s
            WHERE old.claimed_from = 'pending' AND t.status = 'in_progress' AND t.open_deps = 0
              AND {free} AND {open} {only}
            ORDER BY s.priority, s.position, s.id, t.priority, t.position, t.id LIMIT 1)
         ) first ORDER BY a, b, c, d, e, id LIMIT 1",
        free = task_free(),
        open = section_open(),
    )
}
