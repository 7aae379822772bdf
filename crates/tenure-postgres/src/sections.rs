//! Sections with their counts of tasks, their dependencies and their lease.

use tenure_core::Result;
use tenure_core::lease::Lease;
use tenure_core::section::Section;
use tenure_core::store::columns::{leases, sections};
use tenure_core::store::{FINISHED, Reader, Record};
use tokio_postgres::Row;

use crate::readiness::has_work;
use crate::rows::{PgRow, count, get};

pub(crate) fn section_query(rest: &str) -> String {
    format!(
        "SELECT {},
                (SELECT count(*) FROM tenure.tasks t WHERE t.project = $1 AND t.section_id = s.id
                 AND t.status NOT IN {FINISHED}),
                (SELECT count(*) FROM tenure.tasks t WHERE t.project = $1 AND t.section_id = s.id),
                ARRAY(SELECT u.name FROM tenure.section_deps d
                      JOIN tenure.sections u ON u.project = d.project AND u.id = d.depends_on
                      WHERE d.project = $1 AND d.section_id = s.id ORDER BY u.name),
                ARRAY(SELECT u.name FROM tenure.section_deps d
                      JOIN tenure.sections u ON u.project = d.project AND u.id = d.depends_on
                      WHERE d.project = $1 AND d.section_id = s.id AND {has_work} ORDER BY u.name),
                {}
         FROM tenure.sections s
         LEFT JOIN tenure.leases l ON l.project = $1 AND l.resource_kind = 'section' AND l.resource_id = s.id
              AND l.ended_at IS NULL
         WHERE s.project = $1 AND s.id <> '' {rest}",
        sections::TABLE.of("s"),
        leases::TABLE.of("l"),
        has_work = has_work(),
    )
}

pub(crate) fn read_section(row: &Row) -> Result<Section> {
    let more = sections::TABLE.columns.len();
    Ok(Section {
        open_tasks: count(row, more)?,
        tasks: count(row, more + 1)?,
        depends_on: get(row, more + 2)?,
        blocked_by: get(row, more + 3)?,
        lease: Lease::read_joined(&PgRow(row), more + 4)?,
        ..Section::read(Reader::new(&PgRow(row), 0))?
    })
}
