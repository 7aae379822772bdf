//! Moving a whole project from one store to another, row by row.
//!
//! Both stores have the same tables with the same columns, so a row is a list of cells. What a store derives by itself
//! (counters, the project's key) is not among them. Places in line are not moved: nobody waits where nothing is held.

use crate::error::Result;

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Cell {
    Null,
    Int(i64),
    Text(String),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CellKind {
    Int,
    Text,
}

#[derive(Debug)]
pub struct Table {
    pub name: &'static str,
    pub columns: &'static [(&'static str, CellKind)],
    /// The order in which its rows are read.
    pub key: &'static str,
}

/// The numbers that a store has given out: none may be given again, also if their rows are gone.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Counters {
    pub next_task: i64,
    pub last_event: i64,
    pub last_fence: i64,
    pub last_number: i64,
}

/// Takes some rows of a table.
pub type Put<'a> = dyn FnMut(&'static Table, Vec<Vec<Cell>>) -> Result<()> + 'a;

/// Hands all rows to the one who puts them, table by table in the order of [`TABLES`].
pub type Fill<'a> = dyn FnMut(&mut Put<'_>) -> Result<Counters> + 'a;

pub trait Movable {
    /// All rows, as of one moment, while nobody writes.
    fn hand_over(&self, put: &mut Put<'_>) -> Result<Counters>;

    /// Takes all rows in one transaction, or none. Refused if it has any.
    fn take_over(&self, fill: &mut Fill<'_>) -> Result<()>;
}

/// Rows that are moved at a time.
pub const BATCH: usize = 1000;

macro_rules! tables {
    ($($name:ident by $key:literal { $($kind:ident: $($column:ident)*;)* })*) => {
        /// In an order in which each row finds what it refers to.
        pub const TABLES: &[Table] = &[$(Table {
            name: stringify!($name),
            columns: &[$($((stringify!($column), CellKind::$kind),)*)*],
            key: $key,
        },)*];
    };
}

tables! {
    sections by "id" { Text: id name mode; Int: priority position created_at updated_at; }
    section_deps by "section_id, depends_on" { Text: section_id depends_on; }
    tasks by "id" {
        Text: id key title description status section_id source_file labels;
        Int: priority position attempts rejections created_at updated_at;
    }
    task_deps by "task_id, depends_on" { Text: task_id depends_on; }
    leases by "fence" {
        Int: fence ttl_ms acquired_at heartbeat_at expires_at ended_at;
        Text: lease_id resource_kind resource_id holder_kind holder_id process doorbell claimed_from end_reason;
    }
    attempts by "id" {
        Text: id resource_kind resource_id state owner log_path reason;
        Int: fence pid started_at ended_at exit_code charged;
    }
    agents by "id" { Text: id name capabilities; Int: joined_at last_seen_at left_at; }
    runners by "id" {
        Text: id status process project_path section_id preset current_task_id log_path error;
        Int: started_at heartbeat_at completed_at;
    }
    preset_health by "preset" { Text: preset tasks reason; Int: quick_failures parked_at next_try_at times_parked; }
    sessions by "id" {
        Text: id state runner_id options current_task_id current_key current_attempt current_agent_session error;
        Int: current_fence fence started_at updated_at;
    }
    session_tasks by "number" { Int: number fence at; Text: session_id task_id key status; }
    jobs by "id" { Text: id name state definition; Int: created_at updated_at; }
    job_items by "job_id, number" { Text: job_id state payload error; Int: number failures due_at updated_at; }
    messages by "id" {
        Int: id sent_at acknowledged_at;
        Text: task_id sender recipient text acknowledged_by;
    }
    events by "seq" {
        Int: seq at fence;
        Text: kind actor task_id from_status to_status detail;
    }
}
