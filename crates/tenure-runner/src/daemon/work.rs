//! The loop: exclusive lock? next task, exclusive lock again, attempt, outcome, and again until nothing is left.

use std::time::{Duration, Instant};

use tenure_core::kernel::{self, Finish, Grant, Terms};
use tenure_core::lease::{EndReason, Lease, LeaseState, Resource};
use tenure_core::rules::{Step, checkpoint};
use tenure_core::runner::RunnerStatus;
use tenure_core::session::Current;
use tenure_core::store::Durability;
use tenure_core::task::TaskStatus;
use tenure_core::{Error, Result};

use super::look::{self, Found};
use super::place::{Seat, note};
use super::renew_slot::SlotHeartbeat;
use super::waiting::Wait;
use super::{Purpose, Site, agent, parking};
use crate::database::DatabaseFile;
use crate::exclusion;
use crate::supervise::Ended;

/// What has been done so far.
#[derive(Debug, Default, Clone, Copy)]
pub(super) struct Tally {
    pub(super) completed: u32,
    pub(super) failed: u32,
    pub(super) stopped_by: Option<i32>,
}

/// Whether to go on.
pub(super) enum Next {
    Again,
    Stop(i32),
    End,
}

pub(super) struct Loop<'a, 's> {
    pub(super) site: &'a Site<'s>,
    pub(super) heartbeat: &'a SlotHeartbeat,
    tally: Tally,
    /// The serial section that is kept from task to task.
    pub(super) section: Option<Lease>,
    pub(super) ticket: Option<(i64, Resource)>,
    /// Since when nothing was found.
    pub(super) idle_since: Option<Instant>,
    /// What this runner queues for.
    pub(super) waiting: Option<Wait>,
    pub(super) unanswered_since: Option<Instant>,
    /// The task at which the session was interrupted, until it was asked for.
    pub(super) interrupted: Option<Current>,
    /// The last thing said about why nothing is done, so that it is said once.
    pub(super) said: String,
}

pub(super) fn through(site: &Site<'_>, seat: &mut Seat, heartbeat: &SlotHeartbeat) -> Result<Tally> {
    let mut this = Loop {
        site,
        heartbeat,
        tally: Tally::default(),
        section: None,
        ticket: None,
        idle_since: None,
        waiting: None,
        unanswered_since: None,
        interrupted: site.orders.session.interrupted.clone(),
        said: String::new(),
    };
    let outcome = loop {
        match this.cycle(seat) {
            Ok(Next::Again) => {}
            Ok(Next::Stop(signal)) => {
                this.tally.stopped_by = Some(signal);
                break Ok(());
            }
            Ok(Next::End) => break Ok(()),
            Err(error) => break Err(error),
        }
    };
    this.let_go();
    outcome.map(|()| this.tally)
}

impl Loop<'_, '_> {
    fn cycle(&mut self, seat: &mut Seat) -> Result<Next> {
        if let Some(signal) = self.site.signals.take() {
            self.site.log.line("Asked to stop");
            return Ok(Next::Stop(signal));
        }
        if let Some(error) = self.heartbeat.lost() {
            return Err(error);
        }
        if let Some(loss) = self.site.database.and_then(DatabaseFile::loss) {
            return Err(Error::General(loss.to_string()));
        }
        if self.is_locked_out() {
            self.release_section()?;
            note(self.site, seat, RunnerStatus::Idle, None);
            return Ok(self.nap(self.site.orders.timing.poll.min(Duration::from_secs(1)), None));
        }
        let found = match self.find(seat) {
            Err(error @ Error::Store { .. }) => return self.ask_again(error),
            found => found?,
        };
        self.unanswered_since = None;
        if !matches!(found, Found::HeldUp(_) | Found::Queued(_)) {
            self.stop_waiting();
        }
        match found {
            Found::Task(grant, purpose) => {
                self.idle_since = None;
                self.ticket = None;
                self.said.clear();
                self.work_on(seat, &grant, purpose)
            }
            Found::HeldUp(locked) => self.stand_in_line(seat, &locked),
            Found::Queued(before) => self.wait_for_turn(seat, before),
            Found::Blocked(why) => {
                self.say(format!("Nothing is ready: {why}"));
                self.idle(seat)
            }
            Found::Nothing => {
                self.say("Looking for tasks... none pending".to_owned());
                self.idle(seat)
            }
        }
    }

    fn is_locked_out(&mut self) -> bool {
        let said = exclusion::check(&self.site.orders.root);
        for decision in &said {
            if decision.skip {
                self.say(decision.to_string());
            } else {
                self.site.log.line(&decision.to_string());
            }
        }
        said.iter().any(|decision| decision.skip)
    }

    fn find(&mut self, seat: &Seat) -> Result<Found> {
        let timing = &self.site.orders.timing;
        let mut terms = Terms::new(timing.ttl);
        terms.section_ttl = timing.section_ttl;
        terms.doorbell = self.site.doorbell.map(|bell| bell.address.to_owned());
        terms.ticket.clone_from(&self.ticket);
        let section = self.section.clone();
        if let Some(name) = section.as_ref().and_then(|l| self.section_name(l)) {
            self.site.log.line(&format!("Checking for next task in {name}..."));
        }
        let first = self.interrupted.as_ref().map(|current| current.task.clone());
        let (found, kept) = self.site.store.write(Durability::Power, |tx| {
            let found = look::for_work(tx, self.site, seat, first.as_ref(), section.as_ref(), &terms)?;
            if let Found::Task(grant, _) = &found {
                let step = Step::Taken { task: &grant.task, fence: grant.lease.fence };
                if !checkpoint(tx, &self.site.ctx, &seat.session, step)? {
                    return Err(Error::WorkLost { what: seat.session.resource.to_string() });
                }
            }
            let kept = match &found {
                Found::Task(grant, _) => look::section_of(tx, grant)?,
                _ => None,
            };
            Ok((found, kept))
        })?;
        if let Some(old) = &section {
            let same = kept.as_ref().map(|lease| &lease.resource) == Some(&old.resource);
            match (&found, self.section_name(old)) {
                (Found::Task(grant, _), _) if same => {
                    self.site.log.line(&format!("Found {}, acquiring lock...", grant.task.key));
                }
                (_, Some(name)) => {
                    self.site.log.line(&format!("No more tasks in {name}, releasing section lock"));
                }
                _ => {}
            }
        }
        self.section = kept;
        Ok(found)
    }

    /// What the agent called the conversation in which this task was interrupted. Asked for once.
    fn conversation(&mut self, grant: &Grant, purpose: Purpose) -> Option<String> {
        let before = self.interrupted.take()?;
        let same = before.task == grant.task.id && purpose == Purpose::Work;
        let name = before.agent_session.filter(|_| same)?;
        self.site.log.line(&format!("Going on with the agent's session {name}"));
        Some(name)
    }

    fn section_name(&self, lease: &Lease) -> Option<String> {
        let id = lease.resource.section_id()?;
        self.site.store.read(|view| view.section(&id)).ok().flatten().map(|section| section.name)
    }

    fn work_on(&mut self, seat: &mut Seat, grant: &Grant, purpose: Purpose) -> Result<Next> {
        let log = self.site.log;
        let task = &grant.task;
        let place = task.section.as_ref().map(|s| format!(" in {} section", s.name)).unwrap_or_default();
        self.say_what_was_taken_over(seat, grant);
        let verb = if purpose == Purpose::Review { "Reviewing" } else { "Starting" };
        log.line(&format!("{verb} {:?} ({}){place}", task.title, task.key));
        log.line(&format!("Acquired lock on {} (fence {})", task.key, grant.lease.fence));
        if self.is_locked_out() {
            self.give_back(seat, grant, "the project was locked exclusively")?;
            return Ok(Next::Again);
        }
        note(self.site, seat, RunnerStatus::Running, Some(task.id.clone()));
        log.line(&format!("Working on {}...", task.key));
        let conversation = self.conversation(grant, purpose);
        let report = agent::attempt(self.site, seat, grant, purpose, conversation.as_deref());
        note(self.site, seat, RunnerStatus::Running, None);
        let report = match report {
            Ok(report) => report,
            // Overtaken before it had begun.
            Err(error @ (Error::LeaseLost(_) | Error::NotHolder(_) | Error::TaskNotFound { .. })) => {
                log.line(&format!("Lost {}: {error}; nothing was changed", task.key));
                return Ok(Next::Again);
            }
            Err(error) => {
                if let Err(again) = self.give_back(seat, grant, &error.to_string()) {
                    log.line(&format!("{} could not be given back: {again}", task.key));
                }
                return Err(error);
            }
        };
        match &report.ended {
            Ended::Lost(loss) => {
                log.line(&format!("Lost {}: {loss}; its agent was ended and nothing was changed", task.key));
                self.site.outside.happened(super::Happening::LeaseLost(task));
                if loss.is_of_the_store() {
                    return Err(Error::General(format!("{loss}; the runner ends")));
                }
            }
            Ended::Interrupted { signal, task } => {
                log.line(&format!("Stopped: {} is {} again", task.key, task.status));
                return Ok(Next::Stop(*signal));
            }
            Ended::Exited { task, .. } | Ended::NotStarted { task, .. } | Ended::Overdue { task, .. } => {
                self.count(task.status, purpose);
                let word = word_for(purpose, task.status);
                log.line(&format!("{word} {}: {}", task.key, report.sentence()));
                log.line("Released task lock");
                self.site.outside.happened(super::Happening::TaskEnded(task));
            }
        }
        let preset = agent::preset_for(self.site, purpose);
        let parked = match &report.obstacle {
            Some(why) => Some(why.clone()),
            None => parking::note(self.site, seat, &preset, &report)?,
        };
        if let Some(why) = parked {
            log.line(&format!("Preset {preset} is parked: {why}"));
            return Err(Error::General(format!("preset {preset} is parked: {why}")));
        }
        let once = self.site.orders.once || self.site.orders.task.is_some();
        Ok(if once { Next::End } else { Next::Again })
    }

    /// Taken over just now, or closed by this runner's reconcile a moment ago.
    fn say_what_was_taken_over(&self, seat: &mut Seat, grant: &Grant) {
        let closed = seat.lapsed.iter().position(|(lease, _)| lease.resource == grant.lease.resource);
        let closed = closed.map(|at| seat.lapsed.swap_remove(at));
        let Some((old, state)) = grant.taken_over.clone().or(closed) else { return };
        let why = match state {
            LeaseState::HolderDead => "its holder is dead".to_owned(),
            _ => format!("{} < now", old.expires_at.to_seconds()),
        };
        self.site.log.line(&format!("Lock exists but expired ({why})"));
        self.site.log.line("Claiming expired lock");
        self.site.log.line(&format!("Resuming/restarting {}", grant.task.title));
    }

    fn count(&mut self, status: TaskStatus, purpose: Purpose) {
        match status {
            TaskStatus::Completed | TaskStatus::Review => self.tally.completed += 1,
            // Sent back for more work, which is what a review is for.
            TaskStatus::Pending if purpose == Purpose::Review => {}
            _ => self.tally.failed += 1,
        }
    }

    fn give_back(&self, seat: &Seat, grant: &Grant, why: &str) -> Result<()> {
        let caller = seat.caller.clone().with_fence(Some(grant.lease.fence));
        let name = kernel::name_of(&grant.task);
        self.site.store.write(Durability::Power, |tx| {
            kernel::finish(tx, &self.site.ctx, &caller, &name, Finish::Release(Some(why)), false)
        })?;
        Ok(())
    }

    pub(super) fn release_section(&mut self) -> Result<()> {
        if let Some(section) = self.section.take() {
            self.site.store.write(Durability::Power, |tx| {
                kernel::release_resource(tx, &self.site.ctx, &section, EndReason::Released)
            })?;
        }
        Ok(())
    }

    /// The end: nothing is held and no ticket is kept.
    fn let_go(&mut self) {
        if let Err(error) = self.release_section() {
            self.site.log.line(&format!("The section could not be released: {error}"));
        }
        self.leave_queue();
    }

    /// Gives up the ticket. If the store does not answer, the ticket goes silent and then blocks nobody.
    pub(super) fn leave_queue(&mut self) {
        if let Some((number, resource)) = self.ticket.take() {
            let _ = self.site.store.write(Durability::Process, |tx| {
                let viewer = self.site.ctx.viewer(tx, None)?;
                kernel::dequeue(tx, &viewer, number, &resource)
            });
        }
    }
}

fn word_for(purpose: Purpose, status: TaskStatus) -> &'static str {
    match (purpose, status) {
        (Purpose::Work, TaskStatus::Completed | TaskStatus::Review) => "Completed",
        (Purpose::Review, TaskStatus::Completed) => "Approved",
        (Purpose::Review, TaskStatus::Pending | TaskStatus::Failed) => "Rejected",
        _ => "Ended",
    }
}
