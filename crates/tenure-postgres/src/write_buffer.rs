//! Buffers writes whose result is not needed, and sends them with the next query or with the commit, which saves a
//! round trip each. Writes to different tables are combined into one statement, because every statement has a cost.

use uuid::Uuid;

use crate::connection::Value;

/// A write to one table. `$1` is the project, as in every statement.
pub(crate) struct Write {
    table: &'static str,
    sql: String,
    values: Vec<Box<dyn Value>>,
}

impl Write {
    pub(crate) fn new(table: &'static str, sql: impl Into<String>, values: &[&dyn Value]) -> Self {
        Self { table, sql: sql.into(), values: values.iter().map(|value| value.boxed()).collect() }
    }
}

/// Writes that are combined into one statement. The server chooses their order, so no two of them are to the same
/// table: the second might not see the effect of the first.
pub(crate) struct Combined {
    tables: Vec<&'static str>,
    parts: Vec<String>,
    values: Vec<Box<dyn Value>>,
}

impl Combined {
    pub(crate) fn new(project: Uuid) -> Self {
        Self { tables: Vec::new(), parts: Vec::new(), values: vec![Box::new(project)] }
    }

    /// Combines the writes into as few statements as possible, in the order in which they were buffered.
    pub(crate) fn all(project: Uuid, writes: Vec<Write>) -> Vec<Self> {
        let mut all: Vec<Self> = Vec::new();
        for write in writes {
            match all.last_mut() {
                Some(last) if !last.tables.contains(&write.table) => last.add(write),
                _ => {
                    let mut next = Self::new(project);
                    next.add(write);
                    all.push(next);
                }
            }
        }
        all
    }

    fn add(&mut self, write: Write) {
        let sql = self.renumbered(&write.sql);
        self.parts.push(format!("{} AS ({sql})", write.table));
        self.tables.push(write.table);
        self.values.extend(write.values);
    }

    /// The text of the statement, with `last` as its final query.
    pub(crate) fn sql(&mut self, last: &str, values: &[&dyn Value]) -> String {
        let last = self.renumbered(last);
        self.values.extend(values.iter().map(|value| value.boxed()));
        if self.parts.is_empty() { last } else { format!("WITH {} {last}", self.parts.join(", ")) }
    }

    pub(crate) fn values(&self) -> Vec<&dyn Value> {
        self.values.iter().map(Box::as_ref).collect()
    }

    /// `sql` with its parameters from `$2` on renumbered to follow the values that are already bound.
    fn renumbered(&self, sql: &str) -> String {
        let before = self.values.len() - 1;
        let mut pieces = sql.split('$');
        let mut text = pieces.next().unwrap_or_default().to_owned();
        for piece in pieces {
            let digits = piece.bytes().take_while(u8::is_ascii_digit).count();
            let (number, rest) = piece.split_at(digits);
            let number: usize = number.parse().unwrap_or(0);
            let number = if number > 1 { number + before } else { number };
            text.extend(["$", &number.to_string(), rest]);
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn writes_to_different_tables_are_one_statement_and_keep_their_values() {
        let writes = vec![
            Write::new("tasks", "UPDATE tasks SET a = $2, b = $3 WHERE p = $1", &[&1_i64, &2_i64]),
            Write::new("leases", "DELETE FROM leases WHERE p = $1 AND n = $2", &[&3_i64]),
            Write::new("tasks", "UPDATE tasks SET a = $2 WHERE p = $1", &[&4_i64]),
        ];
        let mut all = Combined::all(Uuid::nil(), writes);
        assert_eq!(all.len(), 2, "two writes to one table are two statements");
        assert_eq!(
            all[0].sql("SELECT $2", &[&5_i64]),
            "WITH tasks AS (UPDATE tasks SET a = $2, b = $3 WHERE p = $1), \
             leases AS (DELETE FROM leases WHERE p = $1 AND n = $4) SELECT $5"
        );
        assert_eq!(all[0].values().len(), 5);
        assert_eq!(all[1].sql("SELECT", &[]), "WITH tasks AS (UPDATE tasks SET a = $2 WHERE p = $1) SELECT");
    }
}
