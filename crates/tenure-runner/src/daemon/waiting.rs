//! Waiting for work: the runner holds nothing, queues or sleeps, and logs the reason once.

use std::time::{Duration, Instant};

use tenure_core::error::{Locked, ReservedWork};
use tenure_core::lease::{Lease, Resource, ResourceKind};
use tenure_core::runner::RunnerStatus;
use tenure_core::store::{StoreHint, Tx};
use tenure_core::{Error, Result, kernel};

use super::slot::{RunnerSlot, save_status};
use super::work::{Flow, RunnerLoop};
use crate::heartbeat::drain_doorbell;
use crate::wait::{Process, until_any};

/// The wait for a resource.
#[derive(Debug)]
pub(super) struct Wait {
    /// When the wait began.
    since: Instant,
    resource: Resource,
    /// The key of the task that the holder of the section works on.
    at_work: Option<String>,
}

impl RunnerLoop<'_, '_> {
    /// Waits for the first lease that keeps this runner from work, without holding anything.
    pub(super) fn wait_for_lock(&mut self, slot: &mut RunnerSlot, locked: &Locked) -> Result<Flow> {
        let since = self.waiting.as_ref().map_or_else(Instant::now, |wait| wait.since);
        let what = if locked.resource.kind == ResourceKind::Section { "section" } else { "task" };
        let name = locked.name.clone();
        self.log_blocking_lease(locked, since)?;
        if since.elapsed() >= self.cx.options.timing.wait {
            self.cx.log.line(&format!("Timed out waiting for {what} {name}"));
            return Ok(Flow::End);
        }
        save_status(self.cx, slot, RunnerStatus::Idle, None);
        let expiry = locked
            .lease
            .as_ref()
            .map(|l| l.expires_at.since(self.cx.exec.clock.now()) + Duration::from_millis(1));
        let nap = self.cx.options.timing.poll.min(expiry.unwrap_or(Duration::MAX));
        Ok(self.sleep(nap, locked.lease.as_ref()))
    }

    /// Waits in the queue for ready work that is reserved for earlier waiters, without holding anything.
    pub(super) fn wait_for_turn(&mut self, slot: &mut RunnerSlot, reserved: &ReservedWork) -> Flow {
        let resource = Resource::ready(self.cx.options.section.as_ref().map(|(id, _)| id));
        if self.waiting.as_ref().is_none_or(|wait| wait.resource != resource) {
            self.stop_waiting();
        }
        let wait = Wait { since: Instant::now(), resource: resource.clone(), at_work: None };
        let since = self.waiting.get_or_insert(wait).since;
        self.log_once(format!(
            "Ready work is reserved for earlier waiters ({})\nFirst in queue: {}\nWaiting for the next turn...",
            reserved.tasks, reserved.first
        ));
        if since.elapsed() >= self.cx.options.timing.wait {
            self.cx.log.line("Timed out waiting for ready work");
            return Flow::End;
        }
        save_status(self.cx, slot, RunnerStatus::Idle, None);
        self.sleep(self.cx.options.timing.poll, None)
    }

    /// Takes a ticket for the work that this runner wants, or refreshes it.
    pub(super) fn enqueue(&self, tx: &mut dyn Tx, slot: &RunnerSlot) -> Result<(i64, Resource)> {
        let options = &self.cx.options;
        let wish = match &options.task {
            Some(task) => Resource::task(task),
            None => Resource::ready(options.section.as_ref().map(|(id, _)| id)),
        };
        let waiter = kernel::Waiter {
            caller: &slot.caller,
            process: self.cx.exec.me,
            doorbell: self.cx.exec.doorbell.map(|bell| bell.address),
            review: options.reviewer.is_some(),
        };
        let held = self.ticket.as_ref().map(|(number, of)| (*number, of));
        let number = kernel::enqueue(tx, &self.cx.exec.ctx, &waiter, &wish, held)?;
        Ok((number, wish))
    }

    /// The section or task that this runner waits for.
    pub(super) fn waiting_for(&self) -> Option<Resource> {
        self.waiting.as_ref().map(|wait| wait.resource.clone())
    }

    fn log_blocking_lease(&mut self, locked: &Locked, since: Instant) -> Result<()> {
        let (held, holder) = match (&locked.lease, &locked.first) {
            (Some(lease), _) => ("locked by", lease.holder.to_string()),
            (None, Some(first)) => ("reserved for", first.to_string()),
            (None, None) => ("reserved for", "an earlier waiter".to_owned()),
        };
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
                self.cx.log.line(&format!("Section still locked ({holder} got {key})"));
                self.cx.log.line("Waiting...");
            }
            _ if known => {}
            (ResourceKind::Section, _) => {
                let wanted = locked.task.as_ref().map(|task| {
                    let (title, key) = (&task.title, &task.key);
                    format!("Wants to start {title:?} in {name} section\n{key} has no lock, but checking section...\n")
                });
                let wanted = wanted.unwrap_or_default();
                self.log_once(format!(
                    "{wanted}Section {name} is {held} {holder}\nWaiting for section lock..."
                ));
            }
            _ => self.log_once(format!("Task {name:?} is {held} {holder}\nWaiting for task lock...")),
        }
        // The holder works on nothing between two tasks, which is not logged.
        let at_work = at_work.or_else(|| self.waiting.take().and_then(|wait| wait.at_work));
        self.waiting = Some(Wait { since, resource: locked.resource.clone(), at_work });
        Ok(())
    }

    /// The key of the task that the section's holder works on.
    fn at_work(&self, locked: &Locked) -> Result<Option<String>> {
        let (Some(section), Some(lease)) = (locked.resource.section_id(), &locked.lease) else {
            return Ok(None);
        };
        self.cx.store.read(|view| {
            let viewer = self.cx.exec.ctx.viewer(view, None)?;
            let first = view.task_leases_in_section(&section, &lease.holder)?.into_iter().next();
            let task = first.and_then(|lease| lease.resource.task_id());
            Ok(task.map(|id| view.task(&id, &viewer)).transpose()?.flatten().map(|task| task.key))
        })
    }

    /// The resource is free, or no longer needed.
    pub(super) fn stop_waiting(&mut self) {
        match self.waiting.take().map(|wait| wait.resource.kind) {
            Some(ResourceKind::Section) => self.cx.log.line("Section lock released!"),
            Some(ResourceKind::Ready) | None => {}
            Some(_) => self.cx.log.line("Task lock released!"),
        }
    }

    pub(super) fn idle(&mut self, slot: &mut RunnerSlot) -> Result<Flow> {
        self.release_section()?;
        if self.ticket.as_ref().is_some_and(|(_, of)| of.is_ready_work()) {
            self.leave_queue();
        }
        let since = *self.idle_since.get_or_insert_with(Instant::now);
        let left = self.cx.options.timing.idle.saturating_sub(since.elapsed());
        if left.is_zero() || self.cx.options.once || self.cx.options.task.is_some() {
            return Ok(Flow::End);
        }
        self.log_also("Going idle");
        save_status(self.cx, slot, RunnerStatus::Idle, None);
        Ok(self.sleep(left.min(self.cx.options.timing.poll), None))
    }

    /// A store that does not answer never ends the runner.
    pub(super) fn retry_store(&mut self, error: &Error) -> Result<Flow> {
        self.slot_in_doubt = true;
        Ok(self.cx.wait_for_store(error)?.map_or(Flow::Again, Flow::Stop))
    }

    /// Sleeps until the doorbell rings, a signal arrives, the watched holder dies, or `limit` has passed.
    pub(super) fn sleep(&self, limit: Duration, watched: Option<&Lease>) -> Flow {
        let process = watched.and_then(|lease| lease.process.as_ref());
        let process = process.and_then(|process| Process::open_alive(process, self.cx.exec.ctx.judge));
        let mut fds = vec![self.cx.signals.fd()];
        fds.extend(self.cx.exec.doorbell.map(|bell| bell.fd));
        fds.extend(process.as_ref().and_then(Process::fd));
        tracing::debug!(
            ?limit,
            holder = watched.map(|lease| tracing::field::display(&lease.holder)),
            "waiting"
        );
        self.cx.store.hint(StoreHint::Sleeps);
        let woken = until_any(&fds, limit);
        if let Some(bell) = self.cx.exec.doorbell {
            if woken.get(1) == Some(&true) {
                self.heartbeat.beat_now();
            }
            drain_doorbell(bell.fd);
        }
        match self.cx.signals.take() {
            Some(signal) => {
                self.cx.log.line("Asked to stop");
                Flow::Stop(signal)
            }
            None => Flow::Again,
        }
    }

    pub(super) fn log_once(&mut self, what: String) {
        if self.last_logged != what {
            for line in what.lines() {
                self.cx.log.line(line);
            }
            self.last_logged = what;
        }
    }

    fn log_also(&mut self, what: &str) {
        if !self.last_logged.ends_with(what) {
            self.cx.log.line(what);
            self.last_logged = format!("{}\n{what}", self.last_logged);
        }
    }
}
