//! Changes that nobody waits for. They are kept back and sent with the next question, or with the commit, so that they cost
//! no way to the server of their own; and several of them are one statement, because each statement has its price.

use uuid::Uuid;

use crate::link::Value;

/// A change of one table. `$1` is the project, as everywhere.
pub(crate) struct Change {
    table: &'static str,
    sql: String,
    values: Vec<Box<dyn Value>>,
}

impl Change {
    pub(crate) fn new(table: &'static str, sql: impl Into<String>, values: &[&dyn Value]) -> Self {
        Self { table, sql: sql.into(), values: values.iter().map(|value| value.kept()).collect() }
    }
}

/// Changes that are made by one statement. Their order within it is the server's choice, so no two are of one table: the
/// second might not see what the first has done.
pub(crate) struct Together {
    tables: Vec<&'static str>,
    parts: Vec<String>,
    values: Vec<Box<dyn Value>>,
}

impl Together {
    pub(crate) fn new(project: Uuid) -> Self {
        Self { tables: Vec::new(), parts: Vec::new(), values: vec![Box::new(project)] }
    }

    /// As few statements as possible, in the order in which they were kept.
    pub(crate) fn all(project: Uuid, changes: Vec<Change>) -> Vec<Self> {
        let mut all: Vec<Self> = Vec::new();
        for change in changes {
            match all.last_mut() {
                Some(last) if !last.tables.contains(&change.table) => last.add(change),
                _ => {
                    let mut next = Self::new(project);
                    next.add(change);
                    all.push(next);
                }
            }
        }
        all
    }

    fn add(&mut self, change: Change) {
        let sql = self.placed(&change.sql);
        self.parts.push(format!("{} AS ({sql})", change.table));
        self.tables.push(change.table);
        self.values.extend(change.values);
    }

    /// The statement, with a last word of its own.
    pub(crate) fn sql(&mut self, last: &str, values: &[&dyn Value]) -> String {
        let last = self.placed(last);
        self.values.extend(values.iter().map(|value| value.kept()));
        if self.parts.is_empty() { last } else { format!("WITH {} {last}", self.parts.join(", ")) }
    }

    pub(crate) fn values(&self) -> Vec<&dyn Value> {
        self.values.iter().map(Box::as_ref).collect()
    }

    /// The text with its values, from `$2` on, behind those that are there.
    fn placed(&self, sql: &str) -> String {
        let before = self.values.len() - 1;
        let mut pieces = sql.split('$');
        let mut placed = pieces.next().unwrap_or_default().to_owned();
        for piece in pieces {
            let digits = piece.bytes().take_while(u8::is_ascii_digit).count();
            let (number, rest) = piece.split_at(digits);
            let number: usize = number.parse().unwrap_or(0);
            let number = if number > 1 { number + before } else { number };
            placed.extend(["$", &number.to_string(), rest]);
        }
        placed
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn changes_of_different_tables_are_one_statement_and_their_values_stay_with_them() {
        let changes = vec![
            Change::new("tasks", "UPDATE tasks SET a = $2, b = $3 WHERE p = $1", &[&1_i64, &2_i64]),
            Change::new("leases", "DELETE FROM leases WHERE p = $1 AND n = $2", &[&3_i64]),
            Change::new("tasks", "UPDATE tasks SET a = $2 WHERE p = $1", &[&4_i64]),
        ];
        let mut all = Together::all(Uuid::nil(), changes);
        assert_eq!(all.len(), 2, "the second of a table comes after the first");
        assert_eq!(
            all[0].sql("SELECT $2", &[&5_i64]),
            "WITH tasks AS (UPDATE tasks SET a = $2, b = $3 WHERE p = $1), \
             leases AS (DELETE FROM leases WHERE p = $1 AND n = $4) SELECT $5"
        );
        assert_eq!(all[0].values().len(), 5);
        assert_eq!(all[1].sql("SELECT", &[]), "WITH tasks AS (UPDATE tasks SET a = $2 WHERE p = $1) SELECT");
    }
}
