//! The loop: exclusive lock? next task, exclusive lock again, attempt, outcome, and again until nothing is left.

use std::os::fd::AsFd;
use std::time::{Duration, Instant};

use rustix::process::{Pid, PidfdFlags, pidfd_open};
use tenure_core::error::Locked;
use tenure_core::holder::Liveness;
use tenure_core::kernel::{self, Finish, Grant, Terms};
use tenure_core::lease::{EndReason, Lease, Resource, ResourceKind};
use tenure_core::runner::RunnerStatus;
use tenure_core::store::Durability;
use tenure_core::task::TaskStatus;
use tenure_core::{Error, Result};
use tenure_lock::should_skip_database;

use super::heart::Pulse;
use super::look::{self, Found};
use super::place::{Seat, note};
use super::{Purpose, Site, agent, parking};
use crate::supervise::Ended;
use crate::wait::until_any;

/// What has been done so far.
#[derive(Debug, Default, Clone, Copy)]
pub(super) struct Tally {
    pub(super) completed: u32,
    pub(super) failed: u32,
    pub(super) stopped_by: Option<i32>,
}

/// Whether to go on.
enum Next {
    Again,
    Stop(i32),
    End,
}

struct Loop<'a, 's> {
    site: &'a Site<'s>,
    pulse: &'a Pulse,
    tally: Tally,
    /// The serial section that is kept from task to task.
    section: Option<Lease>,
    ticket: Option<(i64, Resource)>,
    /// Since when nothing was found, and since when something was held up.
    idle_since: Option<Instant>,
    waiting_since: Option<Instant>,
    /// The last thing said about why nothing is done, so that it is said once.
    said: String,
}

pub(super) fn through(site: &Site<'_>, seat: &mut Seat, pulse: &Pulse) -> Result<Tally> {
    let mut this = Loop {
        site,
        pulse,
        tally: Tally::default(),
        section: None,
        ticket: None,
        idle_since: None,
        waiting_since: None,
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
    this.let_go(seat);
    outcome.map(|()| this.tally)
}

impl Loop<'_, '_> {
    fn cycle(&mut self, seat: &mut Seat) -> Result<Next> {
        if let Some(signal) = self.site.signals.take() {
            self.site.log.line("Asked to stop");
            return Ok(Next::Stop(signal));
        }
        if let Some(error) = self.pulse.lost() {
            return Err(error);
        }
        if self.is_locked_out() {
            self.release_section(seat)?;
            note(self.site, seat, RunnerStatus::Idle, None);
            return Ok(self.nap(self.site.orders.timing.poll.min(Duration::from_secs(1)), None));
        }
        let found = self.find(seat)?;
        match found {
            Found::Task(grant, purpose) => {
                self.idle_since = None;
                self.waiting_since = None;
                self.ticket = None;
                self.said.clear();
                self.work_on(seat, &grant, purpose)
            }
            Found::HeldUp(locked) => self.stand_in_line(seat, &locked),
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

    /// Our own lock file, and that of beads where the project has one: a tool may hold either.
    fn is_locked_out(&mut self) -> bool {
        let beads = self.site.orders.root.join(".beads");
        let mut folders = vec![self.site.orders.root.join(".tenure")];
        if beads.is_dir() {
            folders.push(beads);
        }
        let mut skip = false;
        for folder in folders {
            let decision = should_skip_database(&folder);
            if let Some(line) = decision.log_line() {
                if decision.skip {
                    self.say(line);
                } else {
                    self.site.log.line(&line);
                }
            }
            skip |= decision.skip;
        }
        skip
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
        let (found, kept) = self.site.store.write(Durability::Power, |tx| {
            let found = look::for_work(tx, self.site, seat, section.as_ref(), &terms)?;
            let kept = match &found {
                Found::Task(grant, _) => look::section_of(tx, grant)?,
                _ => None,
            };
            Ok((found, kept))
        })?;
        if let (Some(old), true) =
            (&section, kept.as_ref().map(|l| l.fence) != section.as_ref().map(|l| l.fence))
            && let Some(name) = self.section_name(old)
        {
            self.site.log.line(&format!("No more tasks in {name}, releasing section lock"));
        }
        self.section = kept;
        Ok(found)
    }

    fn section_name(&self, lease: &Lease) -> Option<String> {
        let id = lease.resource.section_id()?;
        self.site.store.read(|view| view.section(&id)).ok().flatten().map(|section| section.name)
    }

    fn work_on(&mut self, seat: &mut Seat, grant: &Grant, purpose: Purpose) -> Result<Next> {
        let log = self.site.log;
        let task = &grant.task;
        let place = task.section.as_ref().map(|s| format!(" in {} section", s.name)).unwrap_or_default();
        if let Some((old, standing)) = &grant.taken_over {
            let why = match standing {
                tenure_core::lease::Standing::Dead => "its holder is dead".to_owned(),
                _ => format!("{} < now", old.expires_at.to_seconds()),
            };
            log.line(&format!("Lock exists but expired ({why})"));
            log.line("Claiming expired lock");
            log.line(&format!("Resuming/restarting {}", task.title));
        }
        log.line(&format!("Starting {:?} ({}){place}", task.title, task.key));
        log.line(&format!("Acquired lock on {} (fence {})", task.key, grant.lease.fence));
        if self.is_locked_out() {
            self.give_back(seat, grant, "the project was locked exclusively")?;
            return Ok(Next::Again);
        }
        note(self.site, seat, RunnerStatus::Running, Some(task.id.clone()));
        log.line(&format!("Working on {}...", task.key));
        let report = agent::attempt(self.site, seat, grant, purpose);
        note(self.site, seat, RunnerStatus::Running, None);
        let report = report?;
        let once = self.site.orders.once || self.site.orders.task.is_some();
        match &report.ended {
            Ended::Lost(loss) => {
                log.line(&format!("Lost {}: {loss}; its agent was ended and nothing was changed", task.key));
                self.site.outside.happened(super::Happening::LeaseLost(task));
                self.section = None;
                if loss.is_of_the_store() {
                    return Err(Error::General(format!("{loss}; the runner ends")));
                }
            }
            Ended::Interrupted { signal, task } => {
                log.line(&format!("Stopped: {} is {} again", task.key, task.status));
                self.section = None;
                return Ok(Next::Stop(*signal));
            }
            Ended::Exited { task, .. } | Ended::NotStarted { task, .. } | Ended::Overdue { task, .. } => {
                let done = matches!(task.status, TaskStatus::Completed | TaskStatus::Review);
                if done {
                    self.tally.completed += 1;
                } else {
                    self.tally.failed += 1;
                }
                log.line(&format!(
                    "{} {}: {}",
                    if done { "Completed" } else { "Ended" },
                    task.key,
                    report.sentence()
                ));
                log.line("Released task lock");
                self.site.outside.happened(super::Happening::TaskEnded(task));
            }
        }
        let preset = agent::preset_for(self.site, purpose);
        if let Some(why) = parking::note(self.site, seat, &preset, &report)? {
            log.line(&format!("Preset {preset} is parked: {why}"));
            return Err(Error::General(format!("preset {preset} is parked: {why}")));
        }
        Ok(if once { Next::End } else { Next::Again })
    }

    fn give_back(&mut self, seat: &Seat, grant: &Grant, why: &str) -> Result<()> {
        let caller = seat.caller.clone().with_fence(Some(grant.lease.fence));
        let name = kernel::name_of(&grant.task);
        self.site.store.write(Durability::Power, |tx| {
            kernel::finish(tx, &self.site.world, &caller, &name, Finish::Release(Some(why)), false)
        })?;
        self.section = None;
        Ok(())
    }

    /// Holding nothing, waits for the first lease that keeps it from work.
    fn stand_in_line(&mut self, seat: &mut Seat, locked: &Locked) -> Result<Next> {
        let since = *self.waiting_since.get_or_insert_with(Instant::now);
        let what = if locked.resource.kind == ResourceKind::Section { "section" } else { "task" };
        let holder =
            locked.lease.as_ref().map_or_else(|| "whoever waits before".to_owned(), |l| l.holder.to_string());
        let name = locked.name.clone();
        if what == "section" {
            self.say(format!("Section {name} is locked by {holder}\nWaiting for section lock..."));
        } else {
            self.say(format!("Task {name:?} is locked by {holder}\nWaiting for task lock..."));
        }
        if since.elapsed() >= self.site.orders.timing.wait {
            self.site.log.line(&format!("Waited long enough for {what} {name}"));
            return Ok(Next::End);
        }
        note(self.site, seat, RunnerStatus::Idle, None);
        let address = self.site.doorbell.map(|bell| bell.address.to_owned());
        let held = self.ticket.clone();
        let number = self.site.store.write(Durability::Process, |tx| {
            let eyes = self.site.world.eyes(tx, None)?;
            let held = held.as_ref().map(|(number, of)| (*number, of));
            kernel::join_line(
                tx,
                &eyes,
                &locked.resource,
                &seat.caller,
                self.site.me,
                address.as_deref(),
                held,
            )
        })?;
        self.ticket = Some((number, locked.resource.clone()));
        let expiry = locked
            .lease
            .as_ref()
            .map(|l| l.expires_at.since(self.site.clock.now()) + Duration::from_millis(1));
        let nap = self.site.orders.timing.poll.min(expiry.unwrap_or(Duration::MAX));
        Ok(self.nap(nap, locked.lease.as_ref()))
    }

    fn idle(&mut self, seat: &mut Seat) -> Result<Next> {
        self.release_section(seat)?;
        let since = *self.idle_since.get_or_insert_with(Instant::now);
        let left = self.site.orders.timing.idle.saturating_sub(since.elapsed());
        if left.is_zero() || self.site.orders.once || self.site.orders.task.is_some() {
            return Ok(Next::End);
        }
        self.say_also("Going idle");
        note(self.site, seat, RunnerStatus::Idle, None);
        Ok(self.nap(left.min(self.site.orders.timing.poll), None))
    }

    /// Until the bell, a signal, the holder's death, or the time.
    fn nap(&self, limit: Duration, watched: Option<&Lease>) -> Next {
        let process = watched.and_then(|lease| lease.process.as_ref());
        let pidfd = process.and_then(|who| {
            let pid = Pid::from_raw(i32::try_from(who.process.pid).ok()?)?;
            let fd = pidfd_open(pid, PidfdFlags::empty()).ok()?;
            (self.site.world.judge.liveness(who) == Liveness::Alive).then_some(fd)
        });
        let mut fds = vec![self.site.signals.as_fd()];
        fds.extend(self.site.doorbell.map(|bell| bell.fd));
        fds.extend(pidfd.as_ref().map(AsFd::as_fd));
        until_any(&fds, limit);
        if let Some(bell) = self.site.doorbell {
            crate::beat::silence(bell.fd);
        }
        match self.site.signals.take() {
            Some(signal) => {
                self.site.log.line("Asked to stop");
                Next::Stop(signal)
            }
            None => Next::Again,
        }
    }

    fn release_section(&mut self, _seat: &Seat) -> Result<()> {
        if let Some(section) = self.section.take() {
            self.site.store.write(Durability::Power, |tx| {
                kernel::release_resource(tx, &self.site.world, &section, EndReason::Released)
            })?;
        }
        Ok(())
    }

    /// The end: nothing is held and no place in line is kept.
    fn let_go(&mut self, seat: &Seat) {
        if let Err(error) = self.release_section(seat) {
            self.site.log.line(&format!("The section could not be released: {error}"));
        }
        if let Some((number, resource)) = self.ticket.take() {
            let _ = self.site.store.write(Durability::Process, |tx| {
                let eyes = self.site.world.eyes(tx, None)?;
                kernel::leave_line(tx, &eyes, number, &resource)
            });
        }
    }

    fn say(&mut self, what: String) {
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
