//! Checks the counters that are stored so that no query has to count rows.

use tenure_core::Result;
use tenure_core::store::{Defect, Dialect, Durability, stored_counts};

use crate::store::PostgresStore;

pub(crate) fn check(store: &PostgresStore, mend: bool) -> Result<Vec<Defect>> {
    let mut defects = Vec::new();
    for count in stored_counts(Dialect::Postgres) {
        let wrong: Vec<String> = store.keep_trying(|connection| {
            let rows = connection.rows(&count.wrong, &[&store.project])?;
            rows.iter().map(|row| Ok(row.try_get(0)?)).collect()
        })?;
        if mend && !wrong.is_empty() {
            store.write_untried(Durability::Power, &mut |tx| tx.change(&count.recount, &[]).map(drop))?;
        }
        defects.extend(wrong.iter().map(|name| count.defect(name)));
    }
    Ok(defects)
}
