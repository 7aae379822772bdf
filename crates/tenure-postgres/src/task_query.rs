//! Tasks as queries give them: whole, with what blocks them and the lease on them.

use tenure_core::Result;
use tenure_core::id::{SectionId, TaskId};
use tenure_core::task::{SectionRef, Task};
use tokio_postgres::Row;

use crate::readiness::{Facts, first_ready, has_work, ready};
use crate::rows::{LEASE_COLUMNS, columns_of, get, json, narrow, optional_lease, status, time};

const DEPENDS_ON: &str = "ARRAY(SELECT u.key FROM tenure.task_deps d
           JOIN tenure.tasks u ON u.project = $1 AND u.id = d.depends_on
           WHERE d.project = $1 AND d.task_id = t.id ORDER BY u.key)";

const OPEN_LEASE: &str = "LEFT JOIN tenure.leases o ON o.project = $1 AND o.resource_kind = 'task'
      AND o.resource_id = t.id AND o.ended_at IS NULL";

/// What [`read_task`] reads.
fn task_columns(blocked_by: &str, blocked_by_sections: &str, ready: &str, lease: &str) -> String {
    format!(
        "t.id, t.key, t.title, t.description, t.status, t.section_id, s.name, s.mode, t.source_file,
         t.priority, t.position, t.labels, t.attempts, t.rejections, t.created_at, t.updated_at,
         {DEPENDS_ON}, {blocked_by}, {blocked_by_sections}, {ready}, {lease}"
    )
}

/// Of tasks `t` in sections `s`, joined as `from` says.
pub(crate) fn task_query(from: &str, rest: &str, facts: Facts, extra: &str) -> String {
    let blocked_by = "ARRAY(SELECT u.key FROM tenure.task_deps d
           JOIN tenure.tasks u ON u.project = $1 AND u.id = d.depends_on
           WHERE t.open_deps > 0 AND d.project = $1 AND d.task_id = t.id
           AND u.status NOT IN ('completed', 'skipped') ORDER BY u.key)";
    let by_sections = format!(
        "ARRAY(SELECT 'section:' || u.name FROM tenure.section_deps d
           JOIN tenure.sections u ON u.project = $1 AND u.id = d.depends_on
           WHERE d.project = $1 AND d.section_id = s.id AND {} ORDER BY u.name)",
        has_work()
    );
    let by_sections = if facts.ordered { &by_sections } else { "'{}'::text[]" };
    let ready = format!("({})", ready(facts));
    let columns = task_columns(blocked_by, by_sections, &ready, &columns_of("o", LEASE_COLUMNS));
    format!("SELECT {columns}{extra} FROM {from} {OPEN_LEASE} WHERE s.project = $1 {rest}")
}

/// What goes with a task that is likely to be claimed: a fence, and whether `$6` is a known agent.
pub(crate) fn for_a_claim(condition: &str) -> String {
    format!(
        ", CASE WHEN {condition} THEN nextval('tenure.fences') END,
         EXISTS (SELECT 1 FROM tenure.agents WHERE project = $1 AND id = $6)"
    )
}

/// The first ready task, whole.
pub(crate) fn found_query(in_section: bool, facts: Facts, taking: bool, shared: bool) -> String {
    let (lease, join) = if facts.lapsed {
        (columns_of("o", LEASE_COLUMNS), OPEN_LEASE)
    } else {
        // All that are open are live, and a task that is ready has no live one.
        ("NULL::bigint".to_owned(), "")
    };
    let extra = if taking { for_a_claim("true") } else { String::new() };
    format!(
        "SELECT {}{extra} FROM ({}) f JOIN tenure.tasks t ON t.project = $1 AND t.id = f.id
         JOIN tenure.sections s ON s.project = $1 AND s.id = t.section_id {join}",
        task_columns("'{}'::text[]", "'{}'::text[]", "true", &lease),
        first_ready(in_section, facts, shared)
    )
}

pub(crate) fn read_task(row: &Row) -> Result<Task> {
    let section_id: String = get(row, 5)?;
    let section = if section_id.is_empty() {
        None
    } else {
        Some(SectionRef {
            id: SectionId::new(section_id),
            name: get(row, 6)?,
            serial: get::<&str>(row, 7)? == "serial",
        })
    };
    let mut blocked_by: Vec<String> = get(row, 17)?;
    blocked_by.extend(get::<Vec<String>>(row, 18)?);
    Ok(Task {
        id: TaskId::new(get::<String>(row, 0)?),
        key: get(row, 1)?,
        title: get(row, 2)?,
        description: get(row, 3)?,
        status: status(row, 4)?,
        section,
        source_file: get(row, 8)?,
        priority: get(row, 9)?,
        position: get(row, 10)?,
        depends_on: get(row, 16)?,
        labels: json(get(row, 11)?)?,
        attempts: narrow(row, 12)?,
        rejections: narrow(row, 13)?,
        created_at: time(row, 14)?,
        updated_at: time(row, 15)?,
        ready: get(row, 19)?,
        blocked_by,
        lease: optional_lease(row, 20)?,
    })
}
