//! The queue for work (Q1): which task each waiter gets.
//!
//! A waiter wants one task, any ready task, or any ready task of a section. The live tickets are served in the order of
//! arrival, whatever they want: each gets the first task in working order that it could take and that no earlier ticket
//! gets. Those tasks are reserved. So a waiter that nothing can satisfy reserves nothing, and no caller takes the work of
//! an earlier waiter.

use super::acquire::Terms;
use super::queue::is_live;
use super::refusal::{Hold, hold_on, may_continue_in};
use crate::context::Context;
use crate::error::Result;
use crate::holder::Caller;
use crate::id::{SectionId, TaskId};
use crate::lease::{Lease, LeaseState, Resource, ResourceKind, Ticket};
use crate::store::{LeaseFilter, Reserved, TaskFilter, View, Viewer};
use crate::task::{Task, TaskStatus};

/// At most this many different wishes are looked up in one decision, which bounds its cost. Nothing is reserved for the
/// tickets after them.
const MOST: usize = 32;

/// At most this many tasks in review are considered for one reviewer.
const REVIEWS: u64 = 50;

/// A task that goes to a waiter.
#[derive(Debug, Clone)]
pub struct Reservation {
    pub ticket: Ticket,
    pub task: TaskId,
    /// The section of the task. If it is serial, all of it is reserved: a claim of one of its tasks takes the whole
    /// section.
    pub section: Option<SectionId>,
    serial: bool,
}

/// The work that is reserved for waiters, in the order of arrival.
#[derive(Debug, Clone, Default)]
pub struct Reservations {
    made: Vec<Reservation>,
    /// The tickets for tasks that can no longer be started.
    in_vain: Vec<Ticket>,
}

impl Reservations {
    /// The reservations of the tickets before `mine`; without a ticket, of all tickets.
    ///
    /// A ticket that is gone or was not refreshed in time does not count; its process is treated as a newcomer.
    pub fn before(view: &dyn View, ctx: &Context<'_>, mine: Option<i64>) -> Result<Self> {
        Self::served(view, ctx, |queue| {
            if let Some(place) = queue.iter().position(|ticket| Some(ticket.number) == mine) {
                queue.truncate(place);
            }
        })
    }

    /// The reservations that count for a claim whose ticket has the number `place`. A caller whose ticket is for something
    /// else comes last, and nothing is reserved for that ticket, which the caller gives up.
    pub(super) fn before_claim(
        view: &dyn View,
        ctx: &Context<'_>,
        terms: &Terms,
        place: Option<i64>,
    ) -> Result<Self> {
        match (&terms.ticket, place) {
            (Some((own, _)), None) => {
                Self::served(view, ctx, |queue| queue.retain(|ticket| ticket.number != *own))
            }
            _ => Self::before(view, ctx, place),
        }
    }

    /// Serves the live tickets that `choose` leaves.
    fn served(view: &dyn View, ctx: &Context<'_>, choose: impl FnOnce(&mut Vec<Ticket>)) -> Result<Self> {
        let mut queue = view.work_tickets()?;
        if queue.is_empty() {
            return Ok(Self::default());
        }
        let viewer = ctx.viewer(view, None)?;
        queue.retain(|ticket| is_live(view, &viewer, ticket));
        choose(&mut queue);
        if queue.is_empty() {
            return Ok(Self::default());
        }
        let filter = LeaseFilter { kinds: Some(vec![ResourceKind::Section]), ..LeaseFilter::default() };
        let sections = view.leases(&filter)?;
        let mut service =
            Service { view, ctx, viewer, sections, known: Vec::new(), lookups: 0, done: Self::default() };
        for ticket in queue {
            if !service.serve(ticket)? {
                break;
            }
        }
        Ok(service.done)
    }

    pub fn iter(&self) -> impl Iterator<Item = &Reservation> {
        self.made.iter()
    }

    /// The reservations of work in this section, or of all work.
    pub fn of_section(&self, section: Option<&SectionId>) -> impl Iterator<Item = &Reservation> {
        self.made.iter().filter(move |made| section.is_none() || made.section.as_ref() == section)
    }

    /// The reservation that keeps other callers from `task`.
    pub fn of(&self, task: &Task) -> Option<&Reservation> {
        let section = task.section.as_ref().map(|section| &section.id);
        self.made.iter().find(|made| made.task == task.id || made.serial && made.section.as_ref() == section)
    }

    /// The reservation that keeps other callers from a serial section.
    pub(super) fn of_serial_section(&self, id: &SectionId) -> Option<&Reservation> {
        self.made.iter().find(|made| made.serial && made.section.as_ref() == Some(id))
    }

    pub(super) fn reserved(&self) -> Reserved {
        let serial = self.made.iter().filter(|made| made.serial);
        Reserved {
            tasks: self.made.iter().map(|made| made.task.clone()).collect(),
            sections: serial.filter_map(|made| made.section.clone()).collect(),
        }
    }

    /// The waiters that get an answer if they ask now: a task, or the error that their task cannot be started.
    pub(super) fn waiters_to_wake(self) -> impl Iterator<Item = Ticket> {
        self.made.into_iter().map(|made| made.ticket).chain(self.in_vain)
    }
}

/// The result of looking for a waiter's task.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Nothing {
    Now,
    /// The wanted task can no longer be started.
    Ever,
}

/// Serves one ticket after the other.
struct Service<'a> {
    view: &'a dyn View,
    ctx: &'a Context<'a>,
    viewer: Viewer,
    /// The open leases of sections.
    sections: Vec<Lease>,
    /// The wishes for which nothing is left.
    known: Vec<(Resource, bool, Nothing)>,
    lookups: usize,
    done: Reservations,
}

impl Service<'_> {
    /// False if the limit is reached.
    fn serve(&mut self, ticket: Ticket) -> Result<bool> {
        let caller = Caller::new(ticket.holder.clone()).with_process(ticket.process.clone());
        // Only this waiter may take the work in a section that it holds.
        let goes_on =
            self.sections.iter().any(|section| may_continue_in(self.view, self.ctx, &caller, section));
        let known = if goes_on { None } else { self.nothing_left_for(&ticket) };
        let found = match known {
            Some(nothing) => Err(nothing),
            None if self.lookups == MOST => return Ok(false),
            None => {
                self.lookups += 1;
                self.find(&ticket, &caller, goes_on)?
            }
        };
        match found {
            Ok(task) => {
                let (section, serial) = task.section.map_or((None, false), |s| (Some(s.id), s.serial));
                self.done.made.push(Reservation { ticket, task: task.id, section, serial });
            }
            Err(nothing) => {
                if known.is_none() && !goes_on {
                    self.known.push((ticket.resource.clone(), ticket.review, nothing));
                }
                if nothing == Nothing::Ever {
                    self.done.in_vain.push(ticket);
                }
            }
        }
        Ok(true)
    }

    /// Each reservation leaves less for later tickets, so a wish that got nothing gets nothing later.
    fn nothing_left_for(&self, ticket: &Ticket) -> Option<Nothing> {
        let same = |(resource, review, _): &&(Resource, bool, Nothing)| {
            let covers = *resource == ticket.resource
                || (ticket.resource.is_ready_work() && *resource == Resource::ready(None));
            covers && *review >= ticket.review
        };
        self.known.iter().find(same).map(|(_, _, nothing)| *nothing)
    }

    fn find(
        &self,
        ticket: &Ticket,
        caller: &Caller,
        goes_on: bool,
    ) -> Result<std::result::Result<Task, Nothing>> {
        if let Some(id) = ticket.resource.task_id() {
            return self.named(&id, ticket.review, caller);
        }
        let section = ticket.resource.ready_section();
        let reserved = self.done.reserved();
        if ticket.review
            && let Some(task) = self.first_review(section.as_ref(), caller)?
        {
            return Ok(Ok(task));
        }
        let me = goes_on.then(|| ticket.holder.clone());
        let viewer = Viewer { me, ..self.viewer.clone() };
        let Some(id) = self.view.next_unreserved(section.as_ref(), &reserved, &viewer)? else {
            return Ok(Err(Nothing::Now));
        };
        Ok(self.view.task_row(&id, &viewer)?.ok_or(Nothing::Now))
    }

    fn named(
        &self,
        id: &TaskId,
        review: bool,
        caller: &Caller,
    ) -> Result<std::result::Result<Task, Nothing>> {
        let Some(task) = self.view.task_row(id, &self.viewer)? else { return Ok(Err(Nothing::Ever)) };
        // A task that is held may return.
        if task.lease.as_ref().is_some_and(|lease| self.is_live(lease)) {
            return Ok(Err(Nothing::Now));
        }
        if !may_start(&task, review) {
            return Ok(Err(Nothing::Ever));
        }
        let held = matches!(hold_on(self.view, self.ctx, caller, &task)?, Hold::Other(_));
        Ok(if held || self.done.of(&task).is_some() { Err(Nothing::Now) } else { Ok(task) })
    }

    fn is_live(&self, lease: &Lease) -> bool {
        lease.state(self.view.now(), self.ctx.judge) == LeaseState::Live
    }

    fn first_review(&self, section: Option<&SectionId>, caller: &Caller) -> Result<Option<Task>> {
        for task in in_review(self.view, &self.viewer, section)? {
            let free = !matches!(hold_on(self.view, self.ctx, caller, &task)?, Hold::Other(_));
            if free && self.done.of(&task).is_none() {
                return Ok(Some(task));
            }
        }
        Ok(None)
    }
}

/// Whether a claim of the task, which no live lease blocks, would be granted.
fn may_start(task: &Task, review: bool) -> bool {
    // A lapsed lease is closed by the claim, which returns the task to where it was claimed from.
    let status = match &task.lease {
        Some(lease) if task.status == TaskStatus::InProgress => {
            lease.claimed_from.unwrap_or(TaskStatus::Pending)
        }
        _ => task.status,
    };
    match status {
        TaskStatus::Pending | TaskStatus::InProgress => task.blocked_by.is_empty(),
        TaskStatus::Review => review,
        TaskStatus::Completed | TaskStatus::Failed | TaskStatus::Skipped => false,
    }
}

/// The tasks in review, in working order.
pub(super) fn in_review(view: &dyn View, viewer: &Viewer, section: Option<&SectionId>) -> Result<Vec<Task>> {
    let filter = TaskFilter {
        statuses: Some(vec![TaskStatus::Review]),
        section: section.cloned(),
        limit: REVIEWS,
        ..TaskFilter::default()
    };
    Ok(view.list_tasks(&filter, viewer)?.0)
}

/// The number of the caller's ticket, if it is a ticket for any ready task of `section`.
pub(super) fn place_for_next(terms: &Terms, section: Option<&SectionId>) -> Option<i64> {
    let (number, wish) = terms.ticket.as_ref()?;
    let wide_enough = wish.ready_section().is_none_or(|wanted| Some(&wanted) == section);
    (wish.is_ready_work() && wide_enough).then_some(*number)
}

/// The number of the caller's ticket, if it is a ticket for `task`.
pub(super) fn place_for(terms: &Terms, task: &Task) -> Option<i64> {
    let (number, wish) = terms.ticket.as_ref()?;
    if wish.task_id().as_ref() == Some(&task.id) {
        return Some(*number);
    }
    place_for_next(terms, task.section.as_ref().map(|section| &section.id))
}

/// The task that a caller without a ticket would be granted.
pub fn next_for_newcomer(
    view: &dyn View,
    ctx: &Context<'_>,
    viewer: &Viewer,
    section: Option<&SectionId>,
) -> Result<Option<TaskId>> {
    let reserved = Reservations::before(view, ctx, None)?.reserved();
    view.next_unreserved(section, &reserved, viewer)
}
