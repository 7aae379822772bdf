//! The queue for ready work (Q1): which task each waiter gets.
//!
//! A waiter wants any ready task, or one of a section. The live tickets are served in the order of arrival, whatever they
//! want: each gets the first task in working order that it could take and that no earlier ticket gets. Those tasks are
//! reserved. So a waiter without ready work reserves nothing, and no caller takes the work of an earlier waiter.

use super::queue::is_live;
use crate::error::Result;
use crate::holder::Holder;
use crate::id::{SectionId, TaskId};
use crate::lease::{ResourceKind, Ticket};
use crate::store::{LeaseFilter, Reserved, View, Viewer};

/// At most this many waiters are served in one decision, which bounds its cost. Nothing is reserved for later ones.
const MOST: usize = 32;

/// The work reserved for the tickets before `mine`; without a ticket, for all tickets.
///
/// A ticket that is gone or was not refreshed in time does not count; its process is treated as a newcomer.
pub(super) fn reserved_before(view: &dyn View, viewer: &Viewer, mine: Option<i64>) -> Result<Reserved> {
    let mut queue = live(view, viewer)?;
    if let Some(place) = queue.iter().position(|ticket| Some(ticket.number) == mine) {
        queue.truncate(place);
    }
    Ok(serve(view, viewer, &queue)?.0)
}

/// The waiters that would be granted a task if they asked now.
pub(super) fn waiters_with_work(view: &dyn View, viewer: &Viewer) -> Result<Vec<Ticket>> {
    let mut queue = live(view, viewer)?;
    let (_, served) = serve(view, viewer, &queue)?;
    let (mut with_work, others): (Vec<_>, Vec<_>) =
        queue.drain(..).partition(|ticket| served.contains(&ticket.number));
    with_work.extend(going_on_in_their_sections(view, viewer, others)?);
    Ok(with_work)
}

/// The task that a caller without a ticket would be granted.
pub fn next_for_newcomer(
    view: &dyn View,
    viewer: &Viewer,
    section: Option<&SectionId>,
) -> Result<Option<TaskId>> {
    let reserved = reserved_before(view, viewer, None)?;
    view.next_unreserved(section, &reserved, viewer)
}

/// The number of waiters before `mine`, if a caller was granted nothing because all ready work is reserved.
pub fn waiters_before(
    view: &dyn View,
    viewer: &Viewer,
    section: Option<&SectionId>,
    mine: Option<i64>,
) -> Result<Option<usize>> {
    let queue = live(view, viewer)?;
    if queue.is_empty() || view.next_ready(section, &of(None, viewer))?.is_none() {
        return Ok(None);
    }
    Ok(Some(queue.iter().position(|ticket| Some(ticket.number) == mine).unwrap_or(queue.len())))
}

fn live(view: &dyn View, viewer: &Viewer) -> Result<Vec<Ticket>> {
    let mut queue = view.ready_tickets()?;
    queue.retain(|ticket| is_live(view, viewer, ticket));
    Ok(queue)
}

/// The work that the tickets of `queue` get, and the numbers of the tickets that get some.
fn serve(view: &dyn View, viewer: &Viewer, queue: &[Ticket]) -> Result<(Reserved, Vec<i64>)> {
    // Work that is ready only for one waiter, because it holds the section, is not reserved: no other caller can take
    // it.
    let viewer = of(None, viewer);
    let (mut reserved, mut served) = (Reserved::default(), Vec::new());
    let mut without_work: Vec<Option<SectionId>> = Vec::new();
    for ticket in queue {
        let section = ticket.resource.ready_section();
        if served.len() == MOST || without_work.contains(&None) {
            break;
        }
        if without_work.contains(&section) {
            continue;
        }
        let Some(id) = view.next_unreserved(section.as_ref(), &reserved, &viewer)? else {
            without_work.push(section);
            continue;
        };
        let task = view.task_row(&id, &viewer)?;
        let serial = task.and_then(|task| task.section).filter(|section| section.serial);
        reserved.sections.extend(serial.map(|section| section.id));
        reserved.tasks.push(id);
        served.push(ticket.number);
    }
    Ok((reserved, served))
}

/// The tickets of `queue` whose holder has a serial section with ready work in it. No other caller may take that work.
fn going_on_in_their_sections(view: &dyn View, viewer: &Viewer, queue: Vec<Ticket>) -> Result<Vec<Ticket>> {
    let mut going_on = Vec::new();
    if queue.is_empty() {
        return Ok(going_on);
    }
    let filter = LeaseFilter { kinds: Some(vec![ResourceKind::Section]), ..LeaseFilter::default() };
    let sections = view.leases(&filter)?;
    for ticket in queue {
        if sections.iter().any(|lease| lease.held_by(&ticket.holder))
            && view
                .next_ready(ticket.resource.ready_section().as_ref(), &of(Some(&ticket.holder), viewer))?
                .is_some()
        {
            going_on.push(ticket);
        }
    }
    Ok(going_on)
}

fn of(holder: Option<&Holder>, viewer: &Viewer) -> Viewer {
    Viewer { me: holder.cloned(), ..viewer.clone() }
}
