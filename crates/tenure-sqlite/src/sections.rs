//! Sections with their counts of tasks, their dependencies and their lease.

use tenure_core::Result;
use tenure_core::lease::Lease;
use tenure_core::section::Section;
use tenure_core::store::columns::{leases, sections};
use tenure_core::store::{Reader, Record, Row, unexpected};

pub(crate) fn section_query(rest: &str) -> String {
    format!(
        "SELECT {}, s.open_tasks,
                (SELECT count(*) FROM tasks t WHERE t.section_id = s.id),
                (SELECT json_group_array(u.name ORDER BY u.name) FROM section_deps d
                 JOIN sections u ON u.id = d.depends_on WHERE d.section_id = s.id),
                (SELECT json_group_array(u.name ORDER BY u.name) FROM section_deps d
                 JOIN sections u ON u.id = d.depends_on WHERE d.section_id = s.id AND u.open_tasks > 0),
                {}
         FROM sections s
         LEFT JOIN leases l ON l.resource_kind = 'section' AND l.resource_id = s.id AND l.ended_at IS NULL
         WHERE s.id <> '' {rest}",
        sections::TABLE.of("s"),
        leases::TABLE.of("l")
    )
}

pub(crate) fn read_section(row: &dyn Row) -> Result<Section> {
    let more = sections::TABLE.columns.len();
    let names = |at| serde_json::from_str(row.text(at)?.unwrap_or("[]")).map_err(unexpected);
    Ok(Section {
        open_tasks: row.count(more)?,
        tasks: row.count(more + 1)?,
        depends_on: names(more + 2)?,
        blocked_by: names(more + 3)?,
        lease: Lease::read_joined(row, more + 4)?,
        ..Section::read(Reader::new(row, 0))?
    })
}
