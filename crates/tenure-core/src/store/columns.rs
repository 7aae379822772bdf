//! Every table that holds a project, with its columns. This is the only list of them: both SQL stores build their statements
//! from it, rows are read and written through it (`rows.rs`), and copying a project walks it (`copying.rs`).
//!
//! A column is a constant, such as `tasks::title`, so that a misspelt one does not compile. Its position is its index
//! in [`Table::columns`], and so the index of its value in a row that was selected with [`Table::list`].

use std::borrow::Cow;

use crate::clock::Timestamp;

/// A value of a column.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Cell<'a> {
    Null,
    Int(i64),
    Text(Cow<'a, str>),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CellKind {
    Int,
    /// A time on the store's clock, stored as a number: when a lease, a ticket or a pause ends, or what that is counted
    /// from. Other times are on the wall clock of the process that wrote them.
    StoreTime,
    Text,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Column {
    pub name: &'static str,
    pub kind: CellKind,
    /// Its position in [`Table::columns`].
    pub at: usize,
}

#[derive(Debug)]
pub struct Table {
    pub name: &'static str,
    pub columns: &'static [Column],
    /// The names of all columns, separated by commas.
    pub list: &'static str,
    /// The columns that identify a row. Rows are copied in this order.
    pub key: &'static [Column],
    /// How many of the last columns the store derives from other rows. Those are not copied.
    derived: usize,
}

impl Table {
    /// The columns that a copy of the table consists of.
    pub fn copied(&self) -> &'static [Column] {
        self.columns.split_at(self.columns.len() - self.derived).0
    }

    /// What to select for a copy of the table. A doorbell is only known to the store that it was made for, so a copy has
    /// none.
    pub fn copied_values(&self) -> String {
        let value = |column: &Column| match column.name {
            "doorbell" => "CAST(NULL AS text)",
            name => name,
        };
        self.copied().iter().map(value).collect::<Vec<_>>().join(", ")
    }

    /// All columns of the table, qualified with its alias in the query.
    pub fn of(&self, alias: &str) -> String {
        names_of(alias, self.columns)
    }
}

/// The names of some columns, separated by commas.
pub fn names(columns: &[Column]) -> String {
    columns.iter().map(|column| column.name).collect::<Vec<_>>().join(", ")
}

/// The same, qualified with the alias of a table.
pub fn names_of(alias: &str, columns: &[Column]) -> String {
    let mut list = String::with_capacity(columns.len() * 16);
    for column in columns {
        list.push_str(if list.is_empty() { "" } else { ", " });
        list.extend([alias, ".", column.name]);
    }
    list
}

/// The index of `name` in `names`. Only constants call this, so an unknown name does not compile.
const fn place_in(names: &[&str], name: &str) -> usize {
    let mut at = 0;
    while !is_same(names[at].as_bytes(), name.as_bytes()) {
        at += 1;
    }
    at
}

const fn is_same(a: &[u8], b: &[u8]) -> bool {
    let mut at = 0;
    while at < a.len() && at < b.len() && a[at] == b[at] {
        at += 1;
    }
    at == a.len() && at == b.len()
}

macro_rules! tables {
    ($($name:ident by $($key:ident)+ { $($kind:ident: $($column:ident)*;)* } $(+ { $($derived:ident)* })?)*) => {
        $(
            #[expect(non_upper_case_globals, reason = "columns are written as SQL writes them")]
            pub mod $name {
                use super::{CellKind, Column, Table, place_in};

                const NAMES: &[&str] = &[$($(stringify!($column),)*)* $($(stringify!($derived),)*)?];

                $($(pub const $column: Column = Column {
                    name: stringify!($column),
                    kind: CellKind::$kind,
                    at: place_in(NAMES, stringify!($column)),
                };)*)*
                $($(pub const $derived: Column = Column {
                    name: stringify!($derived),
                    kind: CellKind::Int,
                    at: place_in(NAMES, stringify!($derived)),
                };)*)?

                pub static TABLE: Table = Table {
                    name: stringify!($name),
                    columns: &[$($($column,)*)* $($($derived,)*)?],
                    list: concat!($($(", ", stringify!($column),)*)* $($(", ", stringify!($derived),)*)?).split_at(2).1,
                    key: &[$($key,)+],
                    derived: <[&str]>::len(&[$($(stringify!($derived),)*)?]),
                };
            }
        )*
    };
}

tables! {
    sections by id { Text: id name mode; Int: priority position created_at updated_at; }
        + { open_tasks in_review completed failed skipped }
    section_deps by section_id depends_on { Text: section_id depends_on; }
    tasks by id {
        Text: id key title status description section_id source_file labels;
        Int: priority position attempts rejections created_at updated_at;
    }
    task_deps by task_id depends_on { Text: task_id depends_on; }
    leases by fence {
        Int: fence ttl_ms messages_through;
        StoreTime: acquired_at heartbeat_at expires_at ended_at;
        Text: lease_id key_hash resource_kind resource_id holder_kind holder_id process doorbell claimed_from end_reason;
    }
    tickets by number {
        Int: number life_ms review;
        StoreTime: created_at refreshed_at;
        Text: resource_kind resource_id holder_kind holder_id process doorbell;
    }
    attempts by id {
        Text: id resource_kind resource_id state owner leader log_path reason outcome_hash agent ending conversation
              final_message usage;
        Int: fence started_at ended_at exit_code charged quick_return;
    }
    agents by id { Text: id name capabilities; Int: joined_at last_seen_at left_at; }
    runners by id {
        Text: id status process project_path section_id preset current_task_id log_path error;
        Int: started_at completed_at;
        StoreTime: heartbeat_at;
    }
    parkings by subject {
        Text: subject ending attempts reason until_changed;
        Int: in_a_row times_parked probe;
        StoreTime: parked_at next_try_at resets_at;
    }
    sessions by id {
        Text: id state runner_id options current_task_id current_key current_attempt current_agent_session error;
        Int: current_fence fence started_at updated_at;
    }
    session_tasks by number { Int: number fence at; Text: session_id task_id key status; }
    jobs by id { Text: id name state definition; Int: created_at updated_at; }
        + { total pending running succeeded failed skipped }
    job_items by job_id number {
        Text: job_id state payload error;
        Int: number failures updated_at;
        StoreTime: due_at;
    }
    messages by id {
        Int: id sent_at acknowledged_at;
        Text: task_id sender recipient text acknowledged_by;
    }
    events by seq {
        Int: seq at fence;
        Text: kind actor task_id from_status to_status detail;
    }
    pruning by history { Text: history; Int: through; }
}

impl From<i64> for Cell<'_> {
    fn from(number: i64) -> Self {
        Self::Int(number)
    }
}

impl From<u32> for Cell<'_> {
    fn from(number: u32) -> Self {
        Self::Int(number.into())
    }
}

impl From<i32> for Cell<'_> {
    fn from(number: i32) -> Self {
        Self::Int(number.into())
    }
}

/// For counts and limits. Values above `i64::MAX` become `i64::MAX`.
impl From<u64> for Cell<'_> {
    fn from(number: u64) -> Self {
        Self::Int(i64::try_from(number).unwrap_or(i64::MAX))
    }
}

impl From<bool> for Cell<'_> {
    fn from(yes: bool) -> Self {
        Self::Int(yes.into())
    }
}

impl From<Timestamp> for Cell<'_> {
    fn from(moment: Timestamp) -> Self {
        Self::Int(moment.as_millis())
    }
}

impl<'a> From<&'a str> for Cell<'a> {
    fn from(text: &'a str) -> Self {
        Self::Text(Cow::Borrowed(text))
    }
}

impl<'a> From<&'a String> for Cell<'a> {
    fn from(text: &'a String) -> Self {
        Self::Text(Cow::Borrowed(text))
    }
}

impl From<String> for Cell<'_> {
    fn from(text: String) -> Self {
        Self::Text(Cow::Owned(text))
    }
}

impl<'a, T: Into<Cell<'a>>> From<Option<T>> for Cell<'a> {
    fn from(value: Option<T>) -> Self {
        value.map_or(Cell::Null, Into::into)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_names_the_columns_in_the_order_of_their_positions() {
        assert_eq!(task_deps::TABLE.list, "task_id, depends_on");
        assert_eq!(task_deps::TABLE.of("d"), "d.task_id, d.depends_on");
        assert_eq!(names(jobs::TABLE.columns), jobs::TABLE.list);
        for (at, column) in jobs::TABLE.columns.iter().enumerate() {
            assert_eq!(column.at, at, "{}", column.name);
        }
        assert_eq!(names(jobs::TABLE.copied()), "id, name, state, definition, created_at, updated_at");
        assert_eq!(tasks::TABLE.copied().len(), tasks::TABLE.columns.len());
    }
}
