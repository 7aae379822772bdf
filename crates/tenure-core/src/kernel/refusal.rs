//! Refusals: each names the holder, the start and expiry of its lease, and the number of waiters before the caller.

use super::acquire::{Terms, name_of, own_ticket};
use super::lease_state::{same_holder, section_state};
use super::queue::live_before;
use crate::context::Context;
use crate::error::{Locked, Result, TaskName};
use crate::holder::Caller;
use crate::lease::{Lease, LeaseState, Resource};
use crate::store::{View, Viewer};
use crate::task::Task;

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

/// One of the resources that acquiring `task` takes: the task itself, or its serial section.
#[derive(Debug, Clone, Copy)]
pub(super) struct Part<'a> {
    pub(super) resource: &'a Resource,
    pub(super) name: &'a str,
    pub(super) task: &'a Task,
}

impl Part<'_> {
    /// The refusal because of another holder's live lease.
    pub(super) fn held(
        self,
        view: &dyn View,
        viewer: &Viewer,
        lease: Lease,
        terms: &Terms,
    ) -> Result<Locked> {
        let queue = live_before(view, viewer, self.resource, own_ticket(terms, self.resource))?.len();
        locked(view, self.resource.clone(), self.name, Some(name_of(self.task)), Some(lease), queue)
    }

    /// The refusal because of earlier waiters, or `None` if there are none.
    pub(super) fn queued(self, view: &dyn View, viewer: &Viewer, terms: &Terms) -> Result<Option<Locked>> {
        let queue = live_before(view, viewer, self.resource, own_ticket(terms, self.resource))?.len();
        if queue == 0 {
            return Ok(None);
        }
        locked(view, self.resource.clone(), self.name, Some(name_of(self.task)), None, queue).map(Some)
    }
}

/// What keeps `caller` from acquiring `task`, which has no unfinished dependencies: a live lease on it or on its serial
/// section, or earlier waiters. It only reads, so that asking never acquires (R4).
pub fn in_the_way(
    view: &dyn View,
    ctx: &Context<'_>,
    viewer: &Viewer,
    caller: &Caller,
    task: &Task,
    terms: &Terms,
) -> Result<Option<Locked>> {
    let resource = Resource::task(&task.id);
    let part = Part { resource: &resource, name: &task.title, task };
    if let Some(lease) = &task.lease
        && lease.state(view.now(), ctx.judge) == LeaseState::Live
    {
        let running = super::attempt::is_running(view, lease)?;
        let own = same_holder(lease, caller, running);
        return if own { Ok(None) } else { part.held(view, viewer, lease.clone(), terms).map(Some) };
    }
    if let Some(locked) = part.queued(view, viewer, terms)? {
        return Ok(Some(locked));
    }
    let Some(section) = task.section.as_ref().filter(|section| section.serial) else { return Ok(None) };
    let resource = Resource::section(&section.id);
    let part = Part { resource: &resource, name: &section.name, task };
    if let Some(lease) = view.open_lease(&resource)? {
        if may_continue_in(view, ctx, caller, &lease) {
            return Ok(None);
        }
        if section_state(view, ctx, &lease)? == LeaseState::Live {
            return part.held(view, viewer, lease, terms).map(Some);
        }
    }
    part.queued(view, viewer, terms)
}

/// Whether the caller holds the section with a live lease, so that it may continue to work in it.
pub(super) fn may_continue_in(view: &dyn View, ctx: &Context<'_>, caller: &Caller, section: &Lease) -> bool {
    same_holder(section, caller, section.process != caller.process)
        && section.state(view.now(), ctx.judge) == LeaseState::Live
}
