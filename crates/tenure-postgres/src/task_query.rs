//! Tasks as queries give them: whole, with what blocks them and the lease on them.

use tenure_core::Result;
use tenure_core::store::columns::{leases, tasks};
use tenure_core::store::{FINISHED, TASK_WIDTH, read_task as read_task_columns};
use tenure_core::task::Task;
use tokio_postgres::Row;

use crate::link::NOW;
use crate::readiness::{Facts, Wanted, first_ready, first_ready_or_left, has_work, quiet, ready};
use crate::rows::{PgRow, get};

const DEPENDS_ON: &str = "ARRAY(SELECT u.key FROM tenure.task_deps d
           JOIN tenure.tasks u ON u.project = $1 AND u.id = d.depends_on
           WHERE d.project = $1 AND d.task_id = t.id ORDER BY u.key)";

const OPEN_LEASE: &str = "LEFT JOIN tenure.leases o ON o.project = $1 AND o.resource_kind = 'task'
      AND o.resource_id = t.id AND o.ended_at IS NULL";

const NO_KEYS: &str = "'{}'::text[]";

/// What [`read_task`] reads.
fn task_columns(
    linked: bool,
    blocked_by: &str,
    blocked_by_sections: &str,
    ready: &str,
    lease: &str,
) -> String {
    let depends_on = if linked { DEPENDS_ON } else { NO_KEYS };
    format!(
        "{}, s.name, s.mode, {depends_on}, {blocked_by}, {blocked_by_sections}, {ready}, {lease}",
        tasks::TABLE.of("t")
    )
}

/// Of a ready task that has no lease.
fn ready_columns(linked: bool) -> String {
    task_columns(linked, NO_KEYS, NO_KEYS, "true", "NULL::bigint")
}

/// Of tasks `t` in sections `s`, joined as `from` says.
pub(crate) fn task_query(from: &str, rest: &str, facts: Facts) -> String {
    judged_query(from, rest, facts, &format!("({})", ready(facts)), "")
}

/// The order of a join is the order in which it is made: here the one task comes first.
pub(crate) const ONE_TASK: &str =
    "tenure.tasks t JOIN tenure.sections s ON t.project = $1 AND t.section_id = s.id";

/// The task `$3`, without saying whether it is ready; and what is needed if `$2` is going to claim it.
pub(crate) fn sought_query(facts: Facts, taking: bool) -> String {
    let extra =
        if taking { for_a_claim("t.status = 'pending' AND o.fence IS NULL", "$2") } else { String::new() };
    judged_query(ONE_TASK, "AND t.id = $3", facts, "false", &extra)
}

fn judged_query(from: &str, rest: &str, facts: Facts, ready: &str, extra: &str) -> String {
    let blocked_by = format!(
        "ARRAY(SELECT u.key FROM tenure.task_deps d
           JOIN tenure.tasks u ON u.project = $1 AND u.id = d.depends_on
           WHERE t.open_deps > 0 AND d.project = $1 AND d.task_id = t.id
           AND u.status NOT IN {FINISHED} ORDER BY u.key)"
    );
    let by_sections = format!(
        "ARRAY(SELECT 'section:' || u.name FROM tenure.section_deps d
           JOIN tenure.sections u ON u.project = $1 AND u.id = d.depends_on
           WHERE d.project = $1 AND d.section_id = s.id AND {} ORDER BY u.name)",
        has_work()
    );
    let by_sections = if facts.ordered { &by_sections } else { NO_KEYS };
    let blocked_by = if facts.linked { &blocked_by } else { NO_KEYS };
    let columns = task_columns(facts.linked, blocked_by, by_sections, ready, &leases::TABLE.of("o"));
    format!("SELECT {columns}{extra} FROM {from} {OPEN_LEASE} WHERE s.project = $1 {rest}")
}

/// What goes with a task that is likely to be claimed: a fence, and when the claimant was seen.
fn for_a_claim(condition: &str, who: &str) -> String {
    format!(", CASE WHEN {condition} THEN nextval('tenure.fences') END, {}", seen(who))
}

fn seen(who: &str) -> String {
    format!("(SELECT last_seen_at FROM tenure.agents WHERE project = $1 AND id = {who} AND left_at IS NULL)")
}

/// The first ready task, whole; of section `$7` if `in_section`. The tasks behind parameter `passed_over`, and the sections
/// behind the next one, are reserved.
pub(crate) fn found_query(
    in_section: bool,
    passed_over: Option<usize>,
    facts: Facts,
    taking: bool,
    shared: bool,
) -> String {
    let only = if in_section { "AND s.id = $7" } else { "" };
    let unreserved = passed_over
        .map(|at| (format!("AND t.id <> ALL (${at})"), format!("{only} AND s.id <> ALL (${})", at + 1)));
    let (besides, only) = unreserved.as_ref().map_or(("", only), |(tasks, only)| (tasks, only));
    let extra = if taking { for_a_claim("true", "$6") } else { String::new() };
    if !facts.lapsed {
        // All leases that are open are live, and a task that is ready has no live one.
        return first_ready(&format!("{}{extra}", ready_columns(facts.linked)), facts, besides, only, shared);
    }
    let lease = leases::TABLE.of("o");
    format!(
        "SELECT {}{extra} FROM ({}) f JOIN tenure.tasks t ON t.project = $1 AND t.id = f.id
         JOIN tenure.sections s ON s.project = $1 AND s.id = t.section_id {OPEN_LEASE}",
        task_columns(facts.linked, NO_KEYS, NO_KEYS, "true", &lease),
        first_ready_or_left(facts, besides, only)
    )
}

/// How many columns of [`guess_query`] are those of the task.
const WHOLE: usize = LEASE + 1;

/// Where the lease begins in a row that [`read_task`] reads: behind what the task depends on, what blocks it in two lists, and
/// whether it is ready.
const LEASE: usize = TASK_WIDTH + 4;

/// Where the time and the facts begin in what [`guess_query`] finds: behind the task, a fence, and when the agent was seen.
pub(crate) const GUESSED: usize = WHOLE + 2;

/// What the claimant `$2` would take next (in section `$3`) if the project were quiet, and whether it is. Always a row.
pub(crate) fn guess_query(in_section: bool, assumed: Facts) -> String {
    let only = if in_section { "AND s.id = $3" } else { "" };
    let columns = format!("{}, nextval('tenure.fences')", ready_columns(assumed.linked));
    format!(
        "SELECT found.*, {}, {NOW}, {} FROM (SELECT) AS always LEFT JOIN LATERAL ({}) AS found ON true",
        seen("$2"),
        Facts::query(Wanted::All),
        quiet(&columns, assumed.ordered, only)
    )
}

pub(crate) fn read_task(row: &Row) -> Result<Task> {
    let mut blocked_by: Vec<String> = get(row, TASK_WIDTH + 1)?;
    blocked_by.extend(get::<Vec<String>>(row, TASK_WIDTH + 2)?);
    Ok(Task {
        depends_on: get(row, TASK_WIDTH)?,
        blocked_by,
        ready: get(row, TASK_WIDTH + 3)?,
        ..read_task_columns(&PgRow(row), LEASE)?
    })
}
