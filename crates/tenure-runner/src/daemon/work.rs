//! The runner's loop: check the exclusive lock, pick a task, check the lock again, run the attempt, record its
//! outcome, and repeat until nothing is left.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use tenure_core::holder::Caller;
use tenure_core::id::TaskId;
use tenure_core::kernel::{self, Finish, Grant, Terms};
use tenure_core::lease::{EndReason, Lease, LeaseState, Resource, ResourceKind};
use tenure_core::rules::{Step, checkpoint};
use tenure_core::runner::{Runner, RunnerStatus};
use tenure_core::session::Current;
use tenure_core::store::{ClaimHint, ClaimTarget, Durability, LeaseFilter, Tx};
use tenure_core::task::{Task, TaskStatus};
use tenure_core::{Error, Result, Timestamp, reference};

use super::pick_work::{Pick, pick_work, section_of};
use super::renew_slot::{SLOT_TAKEN, SlotHeartbeat};
use super::slot::{RunnerSlot, announce, save_status};
use super::waiting::Wait;
use super::{Purpose, RunnerContext, TaskCounts, agent, log, parking};
use crate::database::DatabaseFile;
use crate::exclusion;
use crate::outage::is_outage;
use crate::retention::PruneSchedule;
use crate::supervise::CommandEnd;

/// The tasks of a run, and how it was stopped.
#[derive(Debug, Default)]
pub(super) struct RunOutcome {
    /// How the last attempt at each task ended.
    tasks: BTreeMap<TaskId, AttemptResult>,
    pub(super) stopped_by: Option<i32>,
}

#[derive(Debug, Clone, Copy)]
struct AttemptResult {
    status: TaskStatus,
    has_failed: bool,
}

impl RunOutcome {
    fn record(&mut self, task: &Task, purpose: Purpose, is_unreported: bool) {
        let has_failed = match task.status {
            TaskStatus::Completed | TaskStatus::Review => false,
            // A rejection returns the task, which is not a failure of the reviewer.
            TaskStatus::Pending if purpose == Purpose::Review => false,
            // Either the agent is asked for its report, or a person decides.
            _ => !is_unreported,
        };
        self.tasks.insert(task.id.clone(), AttemptResult { status: task.status, has_failed });
    }

    pub(super) fn counts(&self) -> TaskCounts {
        let mut counts = TaskCounts::default();
        for result in self.tasks.values() {
            let count = match result.status {
                TaskStatus::Completed => &mut counts.completed,
                TaskStatus::Review => &mut counts.review,
                TaskStatus::Failed => &mut counts.failed,
                TaskStatus::Skipped => &mut counts.skipped,
                TaskStatus::Pending | TaskStatus::InProgress => &mut counts.pending,
            };
            *count += 1;
        }
        counts
    }

    /// Whether the last attempt at a task has failed.
    pub(super) fn has_failures(&self) -> bool {
        self.tasks.values().any(|result| result.has_failed)
    }
}

/// What the loop does next.
pub(super) enum Flow {
    Again,
    Stop(i32),
    End,
}

pub(super) struct RunnerLoop<'a, 's> {
    pub(super) cx: &'a RunnerContext<'s>,
    pub(super) heartbeat: &'a SlotHeartbeat,
    outcome: RunOutcome,
    /// The serial section kept from task to task.
    pub(super) section: Option<Lease>,
    pub(super) ticket: Option<(i64, Resource)>,
    /// When the runner last ran out of work.
    pub(super) idle_since: Option<Instant>,
    /// The resource this runner queues for.
    pub(super) waiting: Option<Wait>,
    /// The store did not answer, so another runner may have taken the slot.
    pub(super) slot_in_doubt: bool,
    /// The task at which the session was interrupted, until it was picked.
    pub(super) interrupted: Option<Current>,
    /// The tasks whose last attempt ended without a result: other tasks come first.
    set_aside: Vec<TaskId>,
    /// The last logged reason for waiting, so that it is logged once.
    pub(super) last_logged: String,
    prune_schedule: PruneSchedule,
}

pub(super) fn run_loop(
    cx: &RunnerContext<'_>,
    slot: &mut RunnerSlot,
    heartbeat: &SlotHeartbeat,
) -> Result<RunOutcome> {
    let mut this = RunnerLoop {
        cx,
        heartbeat,
        outcome: RunOutcome::default(),
        section: None,
        ticket: None,
        idle_since: None,
        waiting: None,
        slot_in_doubt: false,
        interrupted: cx.options.session.interrupted.clone(),
        set_aside: Vec::new(),
        last_logged: String::new(),
        prune_schedule: PruneSchedule::new(cx.options.retention),
    };
    let outcome = loop {
        let cycle = match this.cycle(slot) {
            Err(error) if is_outage(&error) => this.retry_store(&error),
            cycle => cycle,
        };
        match cycle {
            Ok(Flow::Again) => {}
            Ok(Flow::Stop(signal)) => {
                this.outcome.stopped_by = Some(signal);
                break Ok(());
            }
            Ok(Flow::End) => break Ok(()),
            Err(error) => break Err(error),
        }
    };
    this.release_all();
    outcome.map(|()| this.outcome)
}

impl RunnerLoop<'_, '_> {
    fn cycle(&mut self, slot: &mut RunnerSlot) -> Result<Flow> {
        if let Some(signal) = self.cx.signals.take() {
            self.cx.log.line("Asked to stop");
            return Ok(Flow::Stop(signal));
        }
        if let Some(error) = self.heartbeat.lost() {
            return Err(error);
        }
        if let Some(loss) = self.cx.exec.database.and_then(DatabaseFile::loss) {
            return Err(Error::General(loss.to_string()));
        }
        if self.is_locked_out() {
            // A runner that may not start agents must not keep work from other runners.
            self.release_section()?;
            self.leave_queue();
            save_status(self.cx, slot, RunnerStatus::Idle, None);
            return Ok(self.sleep(self.cx.options.timing.poll.min(Duration::from_secs(1)), None));
        }
        if self.prune_schedule.is_due() {
            let options = self.cx.options;
            log::sweep(&options.log_folder(), options.logs, self.cx.exec.clock.now());
            self.prune_schedule.prune(self.cx.store);
        }
        self.cx.callbacks.check()?;
        parking::check_presets(self.cx, slot)?;
        let found = self.find(slot)?;
        self.slot_in_doubt = false;
        self.cx.outage.over();
        if !matches!(found, Pick::Locked(_) | Pick::Queued(_)) {
            self.stop_waiting();
        }
        match found {
            Pick::Task(grant, purpose) => {
                tracing::debug!(task = grant.task.key, fence = %grant.lease.fence, ?purpose, "picked");
                self.idle_since = None;
                self.last_logged.clear();
                self.work_on(slot, &grant, purpose)
            }
            Pick::Locked(locked) => {
                tracing::debug!(resource = %locked.resource, "locked");
                self.wait_for_lock(slot, &locked)
            }
            Pick::Queued(reserved) => {
                tracing::debug!(tasks = reserved.tasks, "queued");
                Ok(self.wait_for_turn(slot, &reserved))
            }
            Pick::Blocked(why) => {
                tracing::debug!(why, "nothing ready");
                self.log_once(format!("Nothing is ready: {why}"));
                self.idle(slot)
            }
            Pick::Nothing => {
                tracing::debug!("nothing left");
                self.log_once("Looking for tasks... none pending".to_owned());
                self.idle(slot)
            }
        }
    }

    fn is_locked_out(&mut self) -> bool {
        let decisions = exclusion::check(&self.cx.options.root);
        for decision in &decisions {
            if decision.skip {
                self.log_once(decision.to_string());
            } else {
                self.cx.log.line(&decision.to_string());
            }
        }
        decisions.iter().any(|decision| decision.skip)
    }

    /// Picks a task or takes a ticket in one transaction, so that no release can happen between the two. A grant
    /// also writes the task to the runner's row (R4).
    fn find(&mut self, slot: &mut RunnerSlot) -> Result<Pick> {
        let timing = &self.cx.options.timing;
        let mut terms = Terms::new(timing.ttl);
        terms.section_ttl = timing.section_ttl;
        terms.doorbell = self.cx.exec.doorbell.map(|bell| bell.address.to_owned());
        terms.ticket.clone_from(&self.ticket);
        let section = self.section.clone();
        if let Some(name) = section.as_ref().and_then(|l| self.section_name(l)) {
            self.cx.log.line(&format!("Checking for next task in {name}..."));
        }
        let first = self.interrupted.as_ref().map(|current| current.task.clone());
        let waiting = self.waiting_for();
        let pick = |tx: &mut dyn Tx| {
            if self.slot_in_doubt {
                if kernel::renew_resource(tx, &self.cx.exec.ctx, &slot.lease, None)?.is_none() {
                    return Err(Error::General(SLOT_TAKEN.to_owned()));
                }
                return_unanswered_grants(tx, self.cx, slot)?;
            }
            let another =
                parking::pick_another(tx, self.cx, slot, &self.set_aside, section.as_ref(), &terms)?;
            let found = match another {
                Some(found) => found,
                None => {
                    pick_work(tx, self.cx, slot, first.as_ref(), section.as_ref(), &terms, waiting.as_ref())?
                }
            };
            let (mut kept, mut ticket, mut runner) = (None, self.ticket.clone(), None);
            match &found {
                Pick::Task(grant, purpose) => {
                    parking::admit(tx, self.cx, grant, *purpose)?;
                    let step = Step::Taken { task: &grant.task, fence: grant.lease.fence };
                    if !checkpoint(tx, &self.cx.exec.ctx, &slot.session, step)? {
                        return Err(Error::WorkLost { what: slot.session.resource.to_string() });
                    }
                    kept = section_of(tx, grant)?;
                    ticket = None;
                    runner = Some(working_on(slot, grant, tx.now()));
                }
                Pick::Locked(_) | Pick::Queued(_) => ticket = Some(self.enqueue(tx, slot)?),
                Pick::Blocked(_) | Pick::Nothing => {}
            }
            if let Some(runner) = &runner {
                tx.save_runner(runner)?;
            }
            Ok((found, kept, ticket, runner))
        };
        let wanted = self.cx.options.section.as_ref().map(|(id, _)| id);
        let hint = ClaimHint { holder: &slot.caller.holder, wants: ClaimTarget::Next(wanted) };
        let (found, kept, ticket, runner) = if self.only_wants_next(first.as_ref(), section.as_ref()) {
            self.cx.store.claim(hint, pick)?
        } else {
            self.cx.store.write(Durability::Power, pick)?
        };
        self.ticket = ticket;
        if let Some(runner) = runner {
            slot.runner = runner;
            announce(self.cx, &slot.runner);
        }
        if let Some(old) = &section {
            let same = kept.as_ref().map(|lease| &lease.resource) == Some(&old.resource);
            match (&found, self.section_name(old)) {
                (Pick::Task(grant, _), _) if same => {
                    self.cx.log.line(&format!("Found {}, acquiring lock...", grant.task.key));
                }
                (_, Some(name)) => {
                    self.cx.log.line(&format!("No more tasks in {name}, releasing section lock"));
                }
                _ => {}
            }
        }
        self.section = kept;
        Ok(found)
    }

    /// Whether picking work begins with a claim of the next task and writes nothing before it.
    fn only_wants_next(&self, interrupted: Option<&TaskId>, section: Option<&Lease>) -> bool {
        let options = &self.cx.options;
        let wants_one = interrupted.is_some() || section.is_some() || options.task.is_some();
        let has_state = self.slot_in_doubt || self.ticket.is_some() || !self.set_aside.is_empty();
        !wants_one && !has_state && options.reviewer.is_none()
    }

    /// The id of the conversation in which this task was interrupted. Returned once.
    fn conversation(&mut self, grant: &Grant, purpose: Purpose) -> Option<String> {
        let before = self.interrupted.take()?;
        let same = before.task == grant.task.id && purpose == Purpose::Work;
        before.agent_session.filter(|_| same)
    }

    fn section_name(&self, lease: &Lease) -> Option<String> {
        let id = lease.resource.section_id()?;
        self.cx.store.read(|view| view.section(&id)).ok().flatten().map(|section| section.name)
    }

    fn work_on(&mut self, slot: &mut RunnerSlot, grant: &Grant, purpose: Purpose) -> Result<Flow> {
        let log = self.cx.log;
        let task = &grant.task;
        let section = task.section.as_ref().map(|s| format!(" in {} section", s.name)).unwrap_or_default();
        self.log_takeover(slot, grant);
        let verb = if purpose == Purpose::Review { "Reviewing" } else { "Starting" };
        log.line(&format!("{verb} {:?} ({}){section}", task.title, task.key));
        log.line(&format!("Acquired lock on {} (fence {})", task.key, grant.lease.fence));
        if self.is_locked_out() {
            let why = "the project was locked exclusively";
            let returned = self.cx.persist(|| self.return_task(slot, grant, why))?;
            return Ok(returned.map_or_else(Flow::Stop, |()| Flow::Again));
        }
        log.line(&format!("Working on {}...", task.key));
        let conversation = self.conversation(grant, purpose);
        let report = agent::run_agent(self.cx, slot, grant, purpose, conversation.as_deref());
        save_status(self.cx, slot, RunnerStatus::Running, None);
        let report = match report {
            Ok(report) => report,
            // The task was taken over before the attempt began.
            Err(error @ (Error::LeaseLost(_) | Error::NotHolder(_) | Error::TaskNotFound { .. })) => {
                log.line(&format!("Lost {}: {error}; nothing was changed", task.key));
                return Ok(Flow::Again);
            }
            Err(error) => {
                if let Err(again) = self.return_task(slot, grant, &error.to_string()) {
                    log.line(&format!("{} could not be returned: {again}", task.key));
                }
                return Err(error);
            }
        };
        match &report.ended {
            CommandEnd::Lost(loss) => {
                self.outcome.tasks.remove(&task.id);
                log.line(&format!("Lost {}: {loss}; its agent was ended and nothing was changed", task.key));
                self.cx.callbacks.notify(super::RunnerEvent::LeaseLost(task));
                if loss.is_store_gone() {
                    return Err(Error::General(format!("{loss}; the runner ends")));
                }
            }
            CommandEnd::NotBegun { signal } => {
                let why = "the runner was stopped while the store did not answer";
                if let Err(error) = self.return_task(slot, grant, why) {
                    log.line(&format!("{} could not be returned: {error}", task.key));
                }
                return Ok(Flow::Stop(*signal));
            }
            CommandEnd::Kept { signal, why, .. } => {
                log.line(&format!("The outcome of {} is kept until the store answers: {why}", task.key));
                let failed = || Error::General(format!("the outcome of {} was not written: {why}", task.key));
                return signal.map(Flow::Stop).ok_or_else(failed);
            }
            CommandEnd::Interrupted { signal, task } => {
                log.line(&format!("Stopped: {} is {} again", task.key, task.status));
                return Ok(Flow::Stop(*signal));
            }
            CommandEnd::Exited { task, .. }
            | CommandEnd::NotStarted { task, .. }
            | CommandEnd::Overdue { task, .. } => {
                let verb = if report.is_unreported() {
                    // Neither completed nor failed: the agent is asked for its report, or a person decides.
                    "Ended"
                } else {
                    verb_for(purpose, task.status)
                };
                self.outcome.record(task, purpose, report.is_unreported());
                log.line(&format!("{verb} {}: {}", task.key, report.sentence()));
                log.line("Released task lock");
                // The command with which the agent reported its outcome has run the hooks.
                if !matches!(report.ended, CommandEnd::Exited { reported: true, .. }) {
                    self.cx.callbacks.notify(super::RunnerEvent::TaskEnded(task));
                }
            }
        }
        if let Some(parking) = &report.parked {
            return Err(parking::closed(parking, self.cx.exec.clock.now()));
        }
        self.set_aside.retain(|id| *id != task.id);
        if report.is_without_result() {
            self.set_aside.push(task.id.clone());
        }
        let once = self.cx.options.once || self.cx.options.task.is_some();
        Ok(if once { Flow::End } else { Flow::Again })
    }

    /// Logs that the lease was taken over, either by this claim or by the reconcile at start.
    fn log_takeover(&self, slot: &mut RunnerSlot, grant: &Grant) {
        let closed = slot.lapsed.iter().position(|(lease, _)| lease.resource == grant.lease.resource);
        let closed = closed.map(|at| slot.lapsed.swap_remove(at));
        let Some((old, state)) = grant.taken_over.clone().or(closed) else { return };
        let why = match state {
            LeaseState::HolderDead => "its holder is dead".to_owned(),
            _ => format!("{} < now", old.expires_at.to_seconds()),
        };
        self.cx.log.line(&format!("Lock exists but expired ({why})"));
        self.cx.log.line("Claiming expired lock");
        self.cx.log.line(&format!("Resuming/restarting {}", grant.task.title));
    }

    fn return_task(&self, slot: &RunnerSlot, grant: &Grant, why: &str) -> Result<()> {
        let caller = Caller { process: slot.caller.process.clone(), ..Caller::holding(&grant.lease) };
        let name = kernel::name_of(&grant.task);
        let released = self.cx.store.write(Durability::Power, |tx| {
            kernel::finish(tx, &self.cx.exec.ctx, &caller, &name, Finish::Release(Some(why)), false)
        });
        kernel::recording_rejection(self.cx.store, released).map(drop)
    }

    pub(super) fn release_section(&mut self) -> Result<()> {
        if let Some(section) = &self.section {
            self.cx.store.write(Durability::Power, |tx| {
                kernel::release_resource(tx, &self.cx.exec.ctx, section, EndReason::Released)
            })?;
        }
        self.section = None;
        Ok(())
    }

    /// Releases the section and the ticket at the end of the run.
    fn release_all(&mut self) {
        if self.cx.outage.is_on() {
            return;
        }
        if let Err(error) = self.release_section() {
            self.cx.log.line(&format!("The section could not be released: {error}"));
        }
        self.leave_queue();
    }

    /// Removes the ticket. If the store does not answer, the ticket expires and then blocks no other waiter.
    pub(super) fn leave_queue(&mut self) {
        if let Some((number, resource)) = self.ticket.take() {
            let _ = self
                .cx
                .store
                .write(Durability::Process, |tx| kernel::dequeue(tx, &self.cx.exec.ctx, number, &resource));
        }
    }
}

/// Returns the tasks that were granted to this runner in a transaction whose answer was lost in an outage. The runner
/// does not work on them, and would otherwise hold them until their leases expire (R4).
fn return_unanswered_grants(tx: &mut dyn Tx, cx: &RunnerContext<'_>, slot: &RunnerSlot) -> Result<()> {
    let attempts = tx.open_attempts()?;
    let filter = LeaseFilter { kinds: Some(vec![ResourceKind::Task]), ..LeaseFilter::default() };
    for lease in tx.leases(&filter)? {
        let is_worked_on = attempts.iter().any(|attempt| attempt.fence == lease.fence);
        if is_worked_on || !lease.held_by(&slot.caller.holder) {
            continue;
        }
        let caller = Caller { process: slot.caller.process.clone(), ..Caller::holding(&lease) };
        let name = reference::task(tx, &lease.resource.id)?;
        let word = Finish::Release(Some("the answer to its claim was lost"));
        kernel::finish(tx, &cx.exec.ctx, &caller, &name, word, false)?;
    }
    Ok(())
}

/// The runner's row while it works on the granted task.
fn working_on(slot: &RunnerSlot, grant: &Grant, now: Timestamp) -> Runner {
    Runner {
        status: RunnerStatus::Running,
        current_task: Some(grant.task.id.clone()),
        heartbeat_at: now,
        ..slot.runner.clone()
    }
}

fn verb_for(purpose: Purpose, status: TaskStatus) -> &'static str {
    match (purpose, status) {
        (Purpose::Work, TaskStatus::Completed | TaskStatus::Review) => "Completed",
        (Purpose::Review, TaskStatus::Completed) => "Approved",
        (Purpose::Review, TaskStatus::Pending | TaskStatus::Failed) => "Rejected",
        _ => "Ended",
    }
}
