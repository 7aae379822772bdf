//! What a runner does while there is nothing to do: it holds nothing, queues or naps, and says so once.

use std::time::{Duration, Instant};

use tenure_core::error::Locked;
use tenure_core::lease::{Lease, Resource, ResourceKind};
use tenure_core::runner::RunnerStatus;
use tenure_core::store::Durability;
use tenure_core::{Error, Result, kernel};

use super::place::{Seat, note};
use super::work::{Loop, Next};
use crate::heartbeat::silence;
use crate::wait::{Process, until_any};

/// A store that does not answer is asked again this often, and for this long at most.
const ASK_AGAIN: Duration = Duration::from_secs(1);
const ASK_FOR: Duration = Duration::from_mins(1);

/// What is waited for.
#[derive(Debug)]
pub(super) struct Wait {
    /// Since when anything is.
    since: Instant,
    resource: Resource,
    /// What its holder works on in the section.
    at_work: Option<String>,
}

impl Loop<'_, '_> {
    /// Holding nothing, waits for the first lease that keeps it from work.
    pub(super) fn stand_in_line(&mut self, seat: &mut Seat, locked: &Locked) -> Result<Next> {
        let since = self.waiting.as_ref().map_or_else(Instant::now, |wait| wait.since);
        let what = if locked.resource.kind == ResourceKind::Section { "section" } else { "task" };
        let name = locked.name.clone();
        self.say_who_is_in_the_way(locked, since)?;
        if since.elapsed() >= self.site.orders.timing.wait {
            self.site.log.line(&format!("Waited long enough for {what} {name}"));
            return Ok(Next::End);
        }
        note(self.site, seat, RunnerStatus::Idle, None);
        self.join_queue(seat, &locked.resource)?;
        let expiry = locked
            .lease
            .as_ref()
            .map(|l| l.expires_at.since(self.site.clock.now()) + Duration::from_millis(1));
        let nap = self.site.orders.timing.poll.min(expiry.unwrap_or(Duration::MAX));
        Ok(self.nap(nap, locked.lease.as_ref()))
    }

    /// Holding nothing, waits in the queue for ready work: what there is goes to the `before` waiters that came earlier.
    pub(super) fn wait_for_turn(&mut self, seat: &mut Seat, before: usize) -> Result<Next> {
        let resource = Resource::ready(self.site.orders.section.as_ref().map(|(id, _)| id));
        if self.waiting.as_ref().is_none_or(|wait| wait.resource != resource) {
            self.stop_waiting();
        }
        let wait = Wait { since: Instant::now(), resource: resource.clone(), at_work: None };
        let since = self.waiting.get_or_insert(wait).since;
        self.say(format!("What is ready goes to earlier waiters ({before})\nWaiting for the next turn..."));
        if since.elapsed() >= self.site.orders.timing.wait {
            self.site.log.line("Waited long enough for ready work");
            return Ok(Next::End);
        }
        note(self.site, seat, RunnerStatus::Idle, None);
        self.join_queue(seat, &resource)?;
        Ok(self.nap(self.site.orders.timing.poll, None))
    }

    /// Takes a ticket for `resource`, or keeps it.
    fn join_queue(&mut self, seat: &Seat, resource: &Resource) -> Result<()> {
        let address = self.site.doorbell.map(|bell| bell.address);
        let held = self.ticket.as_ref().map(|(number, of)| (*number, of));
        let number = self.site.store.write(Durability::Process, |tx| {
            let viewer = self.site.ctx.viewer(tx, None)?;
            kernel::enqueue(tx, &viewer, resource, &seat.caller, self.site.me, address, held)
        })?;
        self.ticket = Some((number, resource.clone()));
        Ok(())
    }

    fn say_who_is_in_the_way(&mut self, locked: &Locked, since: Instant) -> Result<()> {
        let holder =
            locked.lease.as_ref().map_or_else(|| "whoever waits before".to_owned(), |l| l.holder.to_string());
        let at_work = self.at_work(locked)?;
        let before = self.waiting.as_ref().filter(|wait| wait.resource == locked.resource);
        let moved_on = before.is_some_and(|wait| wait.at_work.is_some() && wait.at_work != at_work);
        let known = before.is_some();
        if !known {
            self.stop_waiting();
        }
        let name = &locked.name;
        match (locked.resource.kind, &at_work) {
            (ResourceKind::Section, Some(key)) if moved_on => {
                self.site.log.line(&format!("Section still locked ({holder} got {key})"));
                self.site.log.line("Waiting...");
            }
            _ if known => {}
            (ResourceKind::Section, _) => {
                self.say(format!("Section {name} is locked by {holder}\nWaiting for section lock..."));
            }
            _ => self.say(format!("Task {name:?} is locked by {holder}\nWaiting for task lock...")),
        }
        // Between two tasks its holder works on none; that is no news.
        let at_work = at_work.or_else(|| self.waiting.take().and_then(|wait| wait.at_work));
        self.waiting = Some(Wait { since, resource: locked.resource.clone(), at_work });
        Ok(())
    }

    /// The key of what the section's holder works on.
    fn at_work(&self, locked: &Locked) -> Result<Option<String>> {
        let (Some(section), Some(lease)) = (locked.resource.section_id(), &locked.lease) else {
            return Ok(None);
        };
        self.site.store.read(|view| {
            let viewer = self.site.ctx.viewer(view, None)?;
            let first = view.task_leases_in_section(&section, &lease.holder)?.into_iter().next();
            let task = first.and_then(|lease| lease.resource.task_id());
            Ok(task.map(|id| view.task(&id, &viewer)).transpose()?.flatten().map(|task| task.key))
        })
    }

    /// What was waited for is free, or no longer wanted.
    pub(super) fn stop_waiting(&mut self) {
        match self.waiting.take().map(|wait| wait.resource.kind) {
            Some(ResourceKind::Section) => self.site.log.line("Section lock released!"),
            Some(ResourceKind::Ready) | None => {}
            Some(_) => self.site.log.line("Task lock released!"),
        }
    }

    pub(super) fn idle(&mut self, seat: &mut Seat) -> Result<Next> {
        self.release_section()?;
        if self.ticket.as_ref().is_some_and(|(_, of)| of.is_ready_work()) {
            self.leave_queue();
        }
        let since = *self.idle_since.get_or_insert_with(Instant::now);
        let left = self.site.orders.timing.idle.saturating_sub(since.elapsed());
        if left.is_zero() || self.site.orders.once || self.site.orders.task.is_some() {
            return Ok(Next::End);
        }
        self.say_also("Going idle");
        note(self.site, seat, RunnerStatus::Idle, None);
        Ok(self.nap(left.min(self.site.orders.timing.poll), None))
    }

    /// A store that is busy for a while is no reason to end.
    pub(super) fn ask_again(&mut self, error: Error) -> Result<Next> {
        let since = *self.unanswered_since.get_or_insert_with(Instant::now);
        if since.elapsed() >= ASK_FOR {
            return Err(error);
        }
        self.say(format!("The store does not answer: {error}"));
        Ok(self.nap(ASK_AGAIN, None))
    }

    /// Sleeps until the doorbell rings, a signal comes, the holder dies, or `limit` has passed.
    pub(super) fn nap(&self, limit: Duration, watched: Option<&Lease>) -> Next {
        let process = watched.and_then(|lease| lease.process.as_ref());
        let process = process.and_then(|who| Process::open_alive(who, self.site.ctx.judge));
        let mut fds = vec![self.site.signals.as_fd()];
        fds.extend(self.site.doorbell.map(|bell| bell.fd));
        fds.extend(process.as_ref().and_then(Process::fd));
        let woken = until_any(&fds, limit);
        if let Some(bell) = self.site.doorbell {
            if woken.get(1) == Some(&true) {
                self.heartbeat.beat_now();
            }
            silence(bell.fd);
        }
        match self.site.signals.take() {
            Some(signal) => {
                self.site.log.line("Asked to stop");
                Next::Stop(signal)
            }
            None => Next::Again,
        }
    }

    pub(super) fn say(&mut self, what: String) {
        if self.said != what {
            for line in what.lines() {
                self.site.log.line(line);
            }
            self.said = what;
        }
    }

    fn say_also(&mut self, what: &str) {
        if !self.said.ends_with(what) {
            self.site.log.line(what);
            self.said = format!("{}\n{what}", self.said);
        }
    }
}
