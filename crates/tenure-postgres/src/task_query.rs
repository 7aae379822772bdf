//! Queries for whole tasks, with their dependencies and their lease.

use tenure_core::Result;
use tenure_core::store::columns::{leases, tasks};
use tenure_core::store::{FINISHED, HAS_WORK, TASK_WIDTH, notes_as_json, read_task as read_task_columns};
use tenure_core::task::Task;
use tokio_postgres::Row;

use crate::connection::NOW;
use crate::readiness::{MayExist, first_ready, first_ready_if_quiet, first_ready_or_left, ready, some};
use crate::rows::{PgRow, get};

const DEPENDS_ON: &str = "ARRAY(SELECT u.key FROM tenure.task_deps d
           JOIN tenure.tasks u ON u.project = $1 AND u.id = d.depends_on
           WHERE d.project = $1 AND d.task_id = t.id ORDER BY u.key)";

const OPEN_LEASE: &str = "LEFT JOIN tenure.leases o ON o.project = $1 AND o.resource_kind = 'task'
      AND o.resource_id = t.id AND o.ended_at IS NULL";

const NO_KEYS: &str = "'{}'::text[]";

/// The columns that [`read_task`] reads.
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

/// The columns of a ready task that has no lease.
fn ready_columns(linked: bool) -> String {
    task_columns(linked, NO_KEYS, NO_KEYS, "true", "NULL::bigint")
}

/// Selects tasks `t` in sections `s`, joined as `from` says.
pub(crate) fn task_query(from: &str, rest: &str, may_exist: MayExist) -> String {
    judged_query(from, rest, may_exist, &format!("({})", ready(may_exist)), "")
}

/// Joins are executed in the order in which they are written; here the one task comes first.
pub(crate) const ONE_TASK: &str =
    "tenure.tasks t JOIN tenure.sections s ON t.project = $1 AND t.section_id = s.id";

/// The id of the task whose id is `id`, or else whose key is `key`.
pub(crate) fn id_or_key(id: &str, key: &str) -> String {
    format!(
        "coalesce((SELECT id FROM tenure.tasks WHERE project = $1 AND id = {id}),
                  (SELECT id FROM tenure.tasks WHERE project = $1 AND key = {key}))"
    )
}

/// As [`task_row_query`], for a claim of the task with the id `$3` or the key `$4`.
pub(crate) fn named_task_query(may_exist: MayExist) -> String {
    let extra = for_a_claim("t.status = 'pending' AND o.fence IS NULL", "$2");
    judged_query(ONE_TASK, &format!("AND t.id = {}", id_or_key("$3", "$4")), may_exist, "false", &extra)
}

/// The task `$3`, without its readiness; if `claiming`, with the columns of [`for_a_claim`] for the holder `$2`.
pub(crate) fn task_row_query(may_exist: MayExist, claiming: bool) -> String {
    let extra =
        if claiming { for_a_claim("t.status = 'pending' AND o.fence IS NULL", "$2") } else { String::new() };
    judged_query(ONE_TASK, "AND t.id = $3", may_exist, "false", &extra)
}

fn judged_query(from: &str, rest: &str, may_exist: MayExist, ready: &str, extra: &str) -> String {
    let blocked_by = format!(
        "ARRAY(SELECT u.key FROM tenure.task_deps d
           JOIN tenure.tasks u ON u.project = $1 AND u.id = d.depends_on
           WHERE t.open_deps > 0 AND d.project = $1 AND d.task_id = t.id
           AND u.status NOT IN {FINISHED} ORDER BY u.key)"
    );
    let by_sections = format!(
        "ARRAY(SELECT 'section:' || u.name FROM tenure.section_deps d
           JOIN tenure.sections u ON u.project = $1 AND u.id = d.depends_on
           WHERE d.project = $1 AND d.section_id = s.id AND {HAS_WORK} ORDER BY u.name)"
    );
    let by_sections = if may_exist.section_deps { &by_sections } else { NO_KEYS };
    let blocked_by = if may_exist.task_deps { &blocked_by } else { NO_KEYS };
    let columns = task_columns(may_exist.task_deps, blocked_by, by_sections, ready, &leases::TABLE.of("o"));
    format!("SELECT {columns}{extra} FROM {from} {OPEN_LEASE} WHERE s.project = $1 {rest}")
}

/// What a claim of task `t` by the holder `who` needs besides the task: a fence, whether an earlier attempt is still
/// ending, the notes on the task as two columns, and when the agent was last seen. These are [`FOR_A_CLAIM`] columns.
fn for_a_claim(condition: &str, who: &str) -> String {
    format!(
        ", CASE WHEN {condition} THEN nextval('tenure.fences') END, {}, {}, {}",
        has_ending(),
        notes_as_json("t.id", who),
        seen(who)
    )
}

pub(crate) const FOR_A_CLAIM: usize = 5;

/// Whether task `t` has an attempt that is ending.
fn has_ending() -> String {
    some(
        "tenure.attempts a WHERE a.project = $1 AND a.resource_kind = 'task' AND a.resource_id = t.id \
         AND a.state = 'ending'",
    )
}

/// When an agent was last seen, 0 if it has left.
fn seen(who: &str) -> String {
    format!(
        "(SELECT CASE WHEN left_at IS NULL THEN last_seen_at ELSE 0 END FROM tenure.agents
          WHERE project = $1 AND id = {who})"
    )
}

/// The first ready task with all its columns; of section `$6` if `in_section`. The parameter `passed_over` is a list of
/// reserved tasks, and the one after it a list of reserved sections.
pub(crate) fn first_ready_query(
    in_section: bool,
    passed_over: Option<usize>,
    may_exist: MayExist,
    claiming: bool,
    shared: bool,
) -> String {
    let only = if in_section { "AND s.id = $6" } else { "" };
    let unreserved = passed_over
        .map(|at| (format!("AND t.id <> ALL (${at})"), format!("{only} AND s.id <> ALL (${})", at + 1)));
    let (besides, only) = unreserved.as_ref().map_or(("", only), |(tasks, only)| (tasks, only));
    let extra = if claiming { for_a_claim("true", "$5") } else { String::new() };
    if !may_exist.lapsed_leases {
        // No lease has lapsed, so every open lease is live, and a ready task has none.
        return first_ready(
            &format!("{}{extra}", ready_columns(may_exist.task_deps)),
            may_exist,
            besides,
            only,
            shared,
        );
    }
    let lease = leases::TABLE.of("o");
    format!(
        "SELECT {}{extra} FROM ({}) f JOIN tenure.tasks t ON t.project = $1 AND t.id = f.id
         JOIN tenure.sections s ON s.project = $1 AND s.id = t.section_id {OPEN_LEASE}",
        task_columns(may_exist.task_deps, NO_KEYS, NO_KEYS, "true", &lease),
        first_ready_or_left(may_exist, besides, only)
    )
}

/// How many columns of [`next_task_query`] are those of the task.
const WHOLE: usize = LEASE + 1;

/// Where the lease begins in a row that [`read_task`] reads: after the dependencies, the two lists of what blocks the
/// task, and its readiness.
const LEASE: usize = TASK_WIDTH + 4;

/// How many columns of [`next_task_query`] come before the time: those of the task, and [`for_a_claim`].
pub(crate) const NEXT_TASK_COLUMNS: usize = WHOLE + FOR_A_CLAIM;

/// The next task for `$2` (in section `$3`) if there are no tickets, no leases of sections, and no dependencies but those in
/// `may_exist`; the time; and what does exist (see [`MayExist::query`] for `judged`). One row if the project exists.
pub(crate) fn next_task_query(in_section: bool, may_exist: MayExist, judged: &str) -> String {
    let only = if in_section { "AND s.id = $3" } else { "" };
    let columns = format!(
        "{}, nextval('tenure.fences'), {}, {}",
        ready_columns(may_exist.task_deps),
        has_ending(),
        notes_as_json("t.id", "$2")
    );
    format!(
        "SELECT found.*, {}, {NOW}, {}, p.schema, p.standing, p.followed
         FROM tenure.projects p LEFT JOIN LATERAL ({}) AS found ON true WHERE p.id = $1",
        seen("$2"),
        MayExist::query(judged),
        first_ready_if_quiet(&columns, only, may_exist.section_deps)
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
