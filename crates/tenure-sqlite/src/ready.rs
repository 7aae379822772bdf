//! Ready tasks in SQLite: the conditions of the core's rule, the values of their parameters, and the first ready task.

use rusqlite::{OptionalExtension, ToSql};
use tenure_core::id::{SectionId, TaskId};
use tenure_core::store::{Contents, Dialect, OpenLease, Reserved, Viewer};

use crate::connection::Transaction;
use crate::rows::{Sql, millis, to_json};

fn and(terms: &[String]) -> String {
    terms.join(" AND ")
}

/// The viewer may work in section `s`.
pub(crate) fn section_open() -> String {
    and(&Dialect::Sqlite.section_open(Contents::UNKNOWN))
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
    and(&Dialect::Sqlite.ready_in_open_section(Contents::UNKNOWN, OpenLease::Joined))
}

/// The values of `:now`, `:dead`, `:fresh`, `:me_kind` and `:me_id`.
pub(crate) struct Bound {
    pub(crate) now: i64,
    pub(crate) dead: String,
    pub(crate) fresh: i64,
    pub(crate) me_kind: &'static str,
    pub(crate) me_id: String,
}

impl Bound {
    pub(crate) fn into_values(self) -> Vec<(&'static str, Box<dyn ToSql>)> {
        vec![
            (":now", Box::new(self.now)),
            (":dead", Box::new(self.dead)),
            (":fresh", Box::new(self.fresh)),
            (":me_kind", Box::new(self.me_kind)),
            (":me_id", Box::new(self.me_id)),
        ]
    }
}

impl Transaction<'_> {
    pub(crate) fn bind(&self, viewer: &Viewer) -> Sql<Bound> {
        let dead = viewer.dead.iter().map(to_json).collect::<Sql<Vec<_>>>()?;
        let (me_kind, me_id) =
            viewer.me.as_ref().map_or(("", String::new()), |me| (me.kind.as_str(), me.id.clone()));
        Ok(Bound {
            now: self.now.as_millis(),
            dead: to_json(&dead)?,
            fresh: self.now.as_millis().saturating_sub(millis(viewer.ticket_life)),
            me_kind,
            me_id,
        })
    }

    pub(crate) fn first_ready(
        &self,
        section: Option<&SectionId>,
        reserved: &Reserved,
        viewer: &Viewer,
    ) -> Sql<Option<TaskId>> {
        let b = self.bind(viewer)?;
        let only = if section.is_some() { "AND s.id = :section" } else { "" };
        let order = "ORDER BY s.priority, s.position, s.id, t.priority, t.position, t.id LIMIT 1";
        let columns =
            "t.id AS id, s.priority AS a, s.position AS b, s.id AS c, t.priority AS d, t.position AS e";
        let (mut free, mut open) =
            (and(&Dialect::Sqlite.task_free(Contents::UNKNOWN, OpenLease::NotJoined)), section_open());
        if !reserved.is_empty() {
            free.push_str(" AND t.id NOT IN (SELECT value FROM json_each(:tasks))");
            open.push_str(" AND s.id NOT IN (SELECT value FROM json_each(:sections))");
        }
        let sql = format!(
            "SELECT id FROM (
               SELECT * FROM (
                 SELECT {columns}
                 FROM sections s CROSS JOIN tasks t ON t.rowid = (
                   SELECT t.rowid FROM tasks t INDEXED BY tasks_ready
                   WHERE t.section_id = s.id AND t.status = 'pending' AND t.open_deps = 0 AND {free}
                   ORDER BY t.priority, t.position, t.id LIMIT 1)
                 WHERE {open} {only} {order})
               UNION ALL
               SELECT * FROM (
                 SELECT {columns}
                 FROM leases old CROSS JOIN tasks t ON t.id = old.resource_id
                 CROSS JOIN sections s ON s.id = t.section_id
                 WHERE old.fence IN (
                     SELECT fence FROM leases WHERE ended_at IS NULL AND resource_kind = 'task' AND expires_at <= :now
                     UNION
                     SELECT fence FROM leases WHERE ended_at IS NULL AND resource_kind = 'task'
                     AND process IN (SELECT value FROM json_each(:dead)))
                   AND old.claimed_from = 'pending' AND t.status = 'in_progress' AND t.open_deps = 0
                   AND {free} AND {open} {only} {order})
             ) ORDER BY a, b, c, d, e, id LIMIT 1",
        );
        let mut statement = self.conn.prepare_cached(&sql)?;
        let mut values: Vec<(&str, &dyn ToSql)> = vec![
            (":now", &b.now),
            (":dead", &b.dead),
            (":fresh", &b.fresh),
            (":me_kind", &b.me_kind),
            (":me_id", &b.me_id),
        ];
        let section = section.map(SectionId::as_str);
        if section.is_some() {
            values.push((":section", &section));
        }
        let tasks = to_json(&reserved.tasks)?;
        let sections = to_json(&reserved.sections)?;
        if !reserved.is_empty() {
            values.extend([(":tasks", &tasks as &dyn ToSql), (":sections", &sections)]);
        }
        statement.query_row(values.as_slice(), |row| row.get::<_, String>(0).map(TaskId::new)).optional()
    }
}
