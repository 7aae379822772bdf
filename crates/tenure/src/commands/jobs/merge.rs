//! Merges a changed list of items into a job: new items are added, removed items that are pending or failed are dropped,
//! and all others are kept. The merge can be repeated after an interruption: items that were added are no longer new.

use std::collections::HashMap;

use tenure_core::job::{Definition, ItemState, Job};
use tenure_core::lease::Lease;
use tenure_core::store::ItemFilter;
use tenure_core::{Result, rules};
use tenure_runner::jobs::source::{Items, digest};

use crate::app::Open;
use crate::report::CommandResult;

const PAGE: u64 = 1_000;

pub(super) fn apply(
    open: &Open<'_>,
    lease: &Lease,
    job: &Job,
    items: &mut Items,
    definition: &Definition,
) -> CommandResult<Job> {
    // How often each item occurs in the new list. Equal items are distinct.
    let mut wanted: HashMap<[u8; 16], u64> = HashMap::new();
    items.each(&mut |payload| {
        *wanted.entry(digest(&payload)).or_default() += 1;
        Ok(())
    })?;
    let ctx = open.context();
    let last = drop_unwanted(open, lease, job, &mut wanted)?;
    let mut batch = Vec::new();
    let mut first = last + 1;
    let mut store = |batch: &mut Vec<String>| -> Result<()> {
        open.write(|tx| rules::load_items(tx, &ctx, lease, first, batch))?;
        first += batch.len() as u64;
        batch.clear();
        Ok(())
    };
    items.each(&mut |payload| {
        let left = wanted.entry(digest(&payload)).or_default();
        if *left > 0 {
            *left -= 1;
            batch.push(payload);
        }
        if batch.len() as u64 >= PAGE { store(&mut batch) } else { Ok(()) }
    })?;
    store(&mut batch)?;
    let changes = job.definition.changes_to(definition);
    Ok(open.write(|tx| rules::change_definition(tx, &ctx, lease, definition, &changes))?)
}

/// Subtracts the job's items from `wanted`, and drops unfinished items that are not wanted. Returns the highest item
/// number.
fn drop_unwanted(
    open: &Open<'_>,
    lease: &Lease,
    job: &Job,
    wanted: &mut HashMap<[u8; 16], u64>,
) -> Result<u64> {
    let ctx = open.context();
    let mut after = 0;
    loop {
        let filter = ItemFilter { job: Some(job.id.clone()), state: None, after, limit: PAGE };
        let page = open.read(|view| view.items(&filter))?;
        let Some(last) = page.last() else { return Ok(after) };
        after = last.number;
        let mut gone = Vec::new();
        for item in &page {
            match wanted.get_mut(&digest(&item.payload)).filter(|left| **left > 0) {
                Some(left) => *left -= 1,
                None if matches!(item.state, ItemState::Pending | ItemState::Failed) => {
                    gone.push(item.number);
                }
                None => {}
            }
        }
        if !gone.is_empty() {
            open.write(|tx| rules::drop_items(tx, &ctx, lease, &gone))?;
        }
    }
}
