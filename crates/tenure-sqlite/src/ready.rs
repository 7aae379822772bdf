//! Ready, as SQL: may this caller take this task now? And which is the first that it may take?

use rusqlite::{OptionalExtension, ToSql};
use tenure_core::id::{SectionId, TaskId};
use tenure_core::store::{Reserved, Viewer};

use crate::connection::Transaction;
use crate::rows::{Sql, millis, to_json};

/// Does lease `l` still block others? The list of the dead is short and mostly empty, so a look through its text is cheaper
/// than a subquery, which SQLite would have to plan anew in each place.
const LIVE_LEASE: &str = "l.ended_at IS NULL AND l.expires_at > :now \
     AND (l.process IS NULL OR instr(:dead, json_quote(l.process)) = 0)";

/// Does waiter `k`, other than the caller, still stand in line?
const LIVE_TICKET: &str = "k.refreshed_at > :fresh AND instr(:dead, json_quote(k.process)) = 0 \
     AND NOT (k.holder_kind = :me_kind AND k.holder_id = :me_id)";

/// May the caller work in section `s`? One holder at a time in a serial one, and nobody past the line before it. A holder
/// whose tasks there have all lapsed does not count: it blocks nobody, so not through the section either (L3).
pub(crate) fn section_open() -> String {
    format!(
        "NOT EXISTS (SELECT 1 FROM section_deps d JOIN sections u ON u.id = d.depends_on
                     WHERE d.section_id = s.id AND u.open_tasks > 0)
         AND (s.mode = 'parallel' OR coalesce(
              (SELECT CASE WHEN l.holder_kind = :me_kind AND l.holder_id = :me_id THEN 1
                           WHEN (SELECT coalesce(max({live_work}), 1)
                                 FROM leases w JOIN tasks x ON x.id = w.resource_id AND x.section_id = s.id
                                 WHERE w.ended_at IS NULL AND w.resource_kind = 'task'
                                   AND w.holder_id = l.holder_id AND w.holder_kind = l.holder_kind
                                   AND (w.process = l.process OR w.process IS NULL OR l.process IS NULL)) THEN 0 END
               FROM leases l WHERE l.resource_kind = 'section' AND l.resource_id = s.id AND {LIVE_LEASE}),
              NOT EXISTS (SELECT 1 FROM tickets k WHERE k.resource_kind = 'section' AND k.resource_id = s.id
                          AND {LIVE_TICKET})))",
        live_work = LIVE_LEASE.replace("l.", "w."),
    )
}

/// Is nobody else working on, or first in line for, task `t`?
fn task_free() -> String {
    format!(
        "NOT EXISTS (SELECT 1 FROM leases l WHERE l.resource_kind = 'task' AND l.resource_id = t.id AND {LIVE_LEASE})
         AND NOT EXISTS (SELECT 1 FROM tickets k WHERE k.resource_kind = 'task' AND k.resource_id = t.id
                         AND {LIVE_TICKET})"
    )
}

/// The open lease `o` of task `t`, live or lapsed, if it has one.
pub(crate) const OPEN_LEASE: &str =
    "LEFT JOIN leases o ON o.resource_kind = 'task' AND o.resource_id = t.id AND o.ended_at IS NULL";

/// Is task `t` of section `s`, with [`OPEN_LEASE`], ready? In progress counts when its lease has lapsed (L3), unless it
/// goes back to a reviewer.
pub(crate) fn ready() -> String {
    format!("{} AND {}", ready_but_for_section(), section_open())
}

/// The same, if its section is open to the caller. The unnamed section always is.
pub(crate) fn ready_but_for_section() -> String {
    format!(
        "t.open_deps = 0 AND (t.status = 'pending' OR t.status = 'in_progress' AND o.claimed_from IS 'pending')
         AND NOT (o.fence IS NOT NULL AND {live})
         AND NOT EXISTS (SELECT 1 FROM tickets k WHERE k.resource_kind = 'task' AND k.resource_id = t.id
                         AND {LIVE_TICKET})",
        live = LIVE_LEASE.replace("l.", "o."),
    )
}

/// The values behind `:now`, `:dead`, `:fresh`, `:me_kind` and `:me_id`.
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
        let (mut free, mut open) = (task_free(), section_open());
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
