//! The core's conditions for ready tasks in SQLite, and the values of their parameters.

use rusqlite::ToSql;
use tenure_core::Result;
use tenure_core::store::{Dialect, OpenLease, ProjectContents, SqlTx, Viewer};

use crate::connection::Transaction;
use crate::error::sql_error;
use crate::rows::to_json;

pub(crate) fn and(terms: &[String]) -> String {
    terms.join(" AND ")
}

/// The viewer may work in section `s`.
pub(crate) fn section_open() -> String {
    and(&Dialect::Sqlite.section_open(ProjectContents::UNKNOWN))
}

/// The open lease `o` of task `t`, live or lapsed, if it has one.
pub(crate) const OPEN_LEASE: &str =
    "LEFT JOIN leases o ON o.resource_kind = 'task' AND o.resource_id = t.id AND o.ended_at IS NULL";

/// Task `t` of section `s`, with [`OPEN_LEASE`], is ready.
pub(crate) fn ready() -> String {
    format!("{} AND {}", ready_in_open_section(), section_open())
}

/// Task `t`, with [`OPEN_LEASE`], is ready if its section is open. The section of tasks without a section is always
/// open.
pub(crate) fn ready_in_open_section() -> String {
    and(&Dialect::Sqlite.ready_in_open_section(OpenLease::Joined))
}

/// The values of `:now`, `:dead`, `:me_kind` and `:me_id`.
pub(crate) type Named = Vec<(&'static str, Box<dyn ToSql>)>;

impl Transaction<'_> {
    pub(crate) fn bind(&self, viewer: &Viewer) -> Result<Named> {
        let values = viewer.values(self.on_store_clock(self.state.now))?;
        let dead = to_json(&values.dead).map_err(|e| sql_error(&e))?;
        Ok(vec![
            (":now", Box::new(values.now)),
            (":dead", Box::new(dead)),
            (":me_kind", Box::new(values.me_kind)),
            (":me_id", Box::new(values.me_id)),
        ])
    }
}
