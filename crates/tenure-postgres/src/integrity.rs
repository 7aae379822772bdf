//! Checks the counters that are stored so that no query has to count rows.

use tenure_core::Result;
use tenure_core::job::ItemState;
use tenure_core::store::{Defect, Durability, FINISHED};

use crate::store::PostgresStore;

/// At most this many wrong rows are reported for each counter.
const MOST: usize = 20;

/// A stored count: its table and column, the column that names the row in messages, and the query for the right value.
/// `$1` is the project.
struct Counter {
    table: &'static str,
    column: &'static str,
    name: &'static str,
    count: String,
}

impl Counter {
    fn wrong(&self) -> String {
        let Self { table, column, name, count } = self;
        format!(
            "SELECT {name} FROM tenure.{table} c WHERE c.project = $1 AND c.{column} <> ({count}) LIMIT {MOST}"
        )
    }

    fn recount(&self) -> String {
        let Self { table, column, count, .. } = self;
        format!(
            "UPDATE tenure.{table} c SET {column} = ({count}) WHERE c.project = $1 AND c.{column} <> ({count})"
        )
    }
}

fn counters() -> Vec<Counter> {
    let open_deps = format!(
        "SELECT count(*) FROM tenure.task_deps d
         JOIN tenure.tasks o ON o.project = $1 AND o.id = d.depends_on
         WHERE d.project = $1 AND d.task_id = c.id AND o.status NOT IN {FINISHED}"
    );
    let items = "SELECT count(*) FROM tenure.job_items i WHERE i.project = $1 AND i.job_id = c.id";
    let job = |column, count| Counter { table: "jobs", column, name: "name", count };
    let mut all = vec![Counter { table: "tasks", column: "open_deps", name: "key", count: open_deps }];
    all.push(job("total", items.to_owned()));
    all.extend(
        ItemState::ALL.iter().map(|state| job(state.as_str(), format!("{items} AND i.state = '{state}'"))),
    );
    all
}

pub(crate) fn check(store: &PostgresStore, mend: bool) -> Result<Vec<Defect>> {
    let mut defects = Vec::new();
    for counter in counters() {
        let wrong: Vec<String> = store.keep_trying(|connection| {
            let rows = connection.rows(&counter.wrong(), &[&store.project])?;
            rows.iter().map(|row| Ok(row.try_get(0)?)).collect()
        })?;
        if mend && !wrong.is_empty() {
            store.write_untried(Durability::Power, &mut |tx| tx.change(&counter.recount(), &[]).map(drop))?;
        }
        let Counter { table, column, .. } = counter;
        defects.extend(wrong.iter().map(|name| Defect {
            what: format!("{table}.{column} of {name:?} is not what it should be"),
            mendable: true,
        }));
    }
    Ok(defects)
}
