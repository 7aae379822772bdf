//! What is kept so that nobody counts, counted again.

use tenure_core::Result;
use tenure_core::store::{Defect, Durability, FINISHED};

use crate::store::PostgresStore;

/// Of many that are wrong, a few say enough.
const MOST: usize = 20;

fn open_deps() -> String {
    format!(
        "(SELECT count(*) FROM tenure.task_deps d
       JOIN tenure.tasks o ON o.project = $1 AND o.id = d.depends_on
       WHERE d.project = $1 AND d.task_id = t.id AND o.status NOT IN {FINISHED})"
    )
}

pub(crate) fn check(store: &PostgresStore, mend: bool) -> Result<Vec<Defect>> {
    let open_deps = open_deps();
    let sql = format!(
        "SELECT t.key FROM tenure.tasks t WHERE t.project = $1 AND t.open_deps <> {open_deps} LIMIT {MOST}"
    );
    let wrong: Vec<String> = store.keep_trying(|link| {
        let rows = link.rows(&sql, &[&store.project])?;
        rows.iter().map(|row| Ok(row.try_get(0)?)).collect()
    })?;
    if mend && !wrong.is_empty() {
        let sql = format!(
            "UPDATE tenure.tasks t SET open_deps = {open_deps} WHERE t.project = $1 AND t.open_deps <> {open_deps}"
        );
        store.write_untried(Durability::Power, &mut |tx| tx.change(&sql, &[]).map(drop))?;
    }
    let told = |key: &String| Defect {
        what: format!("tasks.open_deps of {key:?} is not what it should be"),
        mendable: true,
    };
    Ok(wrong.iter().map(told).collect())
}
