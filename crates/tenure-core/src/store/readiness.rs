//! The rule "ready" as SQL conditions, written once for both dialects.
//!
//! A task `t` of section `s` is ready for a viewer if the kernel would grant it: it is pending, or was left in progress
//! by a lapsed lease (L3); all its dependencies are finished; no other holder has it; and its section is open. Queues are
//! not part of readiness: ready work may be reserved for waiters (Q1). The conformance suite compares these conditions
//! with what the kernel grants, in generated projects on every store.
//!
//! The viewer is bound as parameters: `:now`, `:dead`, `:me_kind` and `:me_id` in SQLite, `$2` to `$5` in PostgreSQL.

use super::Viewer;
use super::rows::json;
use super::sql::Dialect;
use crate::clock::Timestamp;
use crate::error::Result;

/// What a project may contain. A condition about something that it does not contain is left out, because each condition
/// costs time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ProjectContents {
    /// A section is held.
    pub held_sections: bool,
    /// A section depends on another.
    pub ordered_sections: bool,
}

impl ProjectContents {
    pub const UNKNOWN: Self = Self { held_sections: true, ordered_sections: true };
}

/// The condition that section `u` has unfinished tasks.
pub const HAS_WORK: &str = "u.open_tasks > 0";

/// A viewer as the values of the parameters.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ViewerValues {
    pub now: i64,
    /// The processes known to be dead, each as JSON.
    pub dead: Vec<String>,
    /// The kind and the id of the caller; empty if there is none.
    pub me_kind: &'static str,
    pub me_id: String,
}

impl Viewer {
    pub fn values(&self, now: Timestamp) -> Result<ViewerValues> {
        let me = self.me.as_ref();
        Ok(ViewerValues {
            now: now.as_millis(),
            dead: self.dead.iter().map(json).collect::<Result<_>>()?,
            me_kind: me.map_or("", |me| me.kind.as_str()),
            me_id: me.map(|me| me.id.clone()).unwrap_or_default(),
        })
    }
}

/// Whether a condition may use the open lease of the task, joined as `o`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OpenLease {
    Joined,
    NotJoined,
}

impl Dialect {
    fn parameter(self, sqlite: &'static str, postgres: &'static str) -> &'static str {
        match self {
            Self::Sqlite => sqlite,
            Self::Postgres => postgres,
        }
    }

    /// Rows of a table under another name, limited to the project.
    fn rows(self, table: &str, alias: &str) -> String {
        match self {
            Self::Sqlite => format!("{table} {alias} WHERE "),
            Self::Postgres => format!("tenure.{table} {alias} WHERE {alias}.project = $1 AND "),
        }
    }

    /// The condition that a row exists. PostgreSQL would turn `EXISTS` into a join over whole tables, but answers a
    /// scalar subquery from an index.
    fn some(self, rows: &str) -> String {
        match self {
            Self::Sqlite => format!("EXISTS (SELECT 1 FROM {rows})"),
            Self::Postgres => format!("(SELECT 1 FROM {rows} LIMIT 1) IS NOT NULL"),
        }
    }

    /// The condition that no row exists.
    pub fn none(self, rows: &str) -> String {
        match self {
            Self::Sqlite => format!("NOT EXISTS (SELECT 1 FROM {rows})"),
            Self::Postgres => format!("(SELECT 1 FROM {rows} LIMIT 1) IS NULL"),
        }
    }

    /// The process in a column is not one of those known to be dead. That list is short and mostly empty, so SQLite
    /// searches its text, which is cheaper than a subquery that it would plan again in every place.
    fn not_dead(self, column: &str) -> String {
        match self {
            Self::Sqlite => format!("instr(:dead, json_quote({column})) = 0"),
            Self::Postgres => format!("{column} <> ALL ($3)"),
        }
    }

    /// The open lease is live, so that it blocks everything else.
    fn live_lease(self, lease: &str) -> String {
        format!(
            "{lease}.ended_at IS NULL AND {lease}.expires_at > {now} AND ({lease}.process IS NULL OR {not_dead})",
            now = self.parameter(":now", "$2"),
            not_dead = self.not_dead(&format!("{lease}.process")),
        )
    }

    /// The row's holder is the viewer.
    fn mine(self, row: &str) -> String {
        format!(
            "{row}.holder_kind = {} AND {row}.holder_id = {}",
            self.parameter(":me_kind", "$4"),
            self.parameter(":me_id", "$5")
        )
    }

    /// The holder of the section's lease `l` has a live lease on a task of section `s`, or no lease on any of its tasks
    /// (it is between two tasks). If all its leases there have lapsed, the section's lease blocks nothing either (L3).
    /// Leases of another process with the same name are not counted.
    fn at_work(self) -> String {
        let task = match self {
            Self::Sqlite => "tasks x WHERE x.id = w.resource_id",
            Self::Postgres => "tenure.tasks x WHERE x.project = $1 AND x.id = w.resource_id",
        };
        format!(
            "(SELECT coalesce(max(CASE WHEN {live} THEN 1 ELSE 0 END), 1)
              FROM {leases}w.ended_at IS NULL AND w.resource_kind = 'task'
                AND w.holder_id = l.holder_id AND w.holder_kind = l.holder_kind
                AND (w.process = l.process OR w.process IS NULL OR l.process IS NULL)
                AND (SELECT x.section_id FROM {task}) = s.id) = 1",
            live = self.live_lease("w"),
            leases = self.rows("leases", "w"),
        )
    }

    /// The unfinished sections that the section with this id depends on, as rows.
    fn unfinished_before(self, section: &str) -> String {
        let before = match self {
            Self::Sqlite => "section_deps d JOIN sections u ON u.id = d.depends_on WHERE ",
            Self::Postgres => {
                "tenure.section_deps d JOIN tenure.sections u ON u.project = $1 AND u.id = d.depends_on
                 WHERE d.project = $1 AND "
            }
        };
        format!("{before}d.section_id = {section} AND {HAS_WORK}")
    }

    /// Task `t` is [`ComputedState::Blocked`](super::ComputedState::Blocked).
    pub fn blocked(self) -> String {
        let by_section = self.some(&self.unfinished_before("t.section_id"));
        format!("t.status = 'pending' AND (t.open_deps > 0 OR {by_section})")
    }

    /// Task `t` is [`ComputedState::Lapsed`](super::ComputedState::Lapsed).
    pub fn lapsed(self) -> String {
        let lapsed = self.some(&format!(
            "{}l.resource_kind = 'task' AND l.resource_id = t.id AND l.ended_at IS NULL AND NOT ({})",
            self.rows("leases", "l"),
            self.live_lease("l")
        ));
        format!("t.status = 'in_progress' AND {lapsed}")
    }

    /// The viewer may work in section `s`: all sections that it depends on are finished, and if it is serial, no other
    /// holder has it. All of the conditions must hold.
    pub fn section_open(self, contents: ProjectContents) -> Vec<String> {
        let mut all = Vec::new();
        if contents.ordered_sections {
            all.push(self.none(&self.unfinished_before("s.id")));
        }
        if contents.held_sections {
            let held = format!(
                "{}l.resource_kind = 'section' AND l.resource_id = s.id AND {}",
                self.rows("leases", "l"),
                self.live_lease("l")
            );
            all.push(format!(
                "(s.mode = 'parallel' OR {mine} OR {free})",
                mine = self.some(&format!("{held} AND {}", self.mine("l"))),
                free = self.none(&format!("{held} AND {}", self.at_work())),
            ));
        }
        all
    }

    /// The condition that no live lease holds task `t`.
    pub fn task_free(self, lease: OpenLease) -> String {
        match lease {
            OpenLease::Joined => format!("NOT (o.fence IS NOT NULL AND {})", self.live_lease("o")),
            OpenLease::NotJoined => self.none(&format!(
                "{}l.resource_kind = 'task' AND l.resource_id = t.id AND {}",
                self.rows("leases", "l"),
                self.live_lease("l")
            )),
        }
    }

    /// Task `t` is ready if its section is open. A task in progress is ready if its lease has lapsed (L3), unless it
    /// was claimed from `review`. All of the conditions must hold.
    pub fn ready_in_open_section(self, lease: OpenLease) -> Vec<String> {
        let left_behind = match lease {
            OpenLease::Joined => "o.claimed_from IS NOT DISTINCT FROM 'pending'".to_owned(),
            OpenLease::NotJoined => self.some(&format!(
                "{}l.resource_kind = 'task' AND l.resource_id = t.id AND l.ended_at IS NULL AND l.claimed_from = 'pending'",
                self.rows("leases", "l")
            )),
        };
        vec![
            "t.open_deps = 0".to_owned(),
            format!("(t.status = 'pending' OR t.status = 'in_progress' AND {left_behind})"),
            self.task_free(lease),
        ]
    }
}
