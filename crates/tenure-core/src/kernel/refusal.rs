//! A refusal names who holds it, since when, until when, and how many stand before the caller.

use crate::error::{Locked, Result, TaskName};
use crate::lease::{Lease, Resource};
use crate::store::View;

pub fn locked(
    view: &dyn View,
    resource: Resource,
    name: &str,
    task: Option<TaskName>,
    lease: Option<Lease>,
    queue: usize,
) -> Result<Locked> {
    let age = lease.as_ref().map(|l| view.now().since(l.acquired_at)).unwrap_or_default();
    Ok(Locked { resource, name: name.to_owned(), task, lease, queue, age })
}
