//! Runs one attempt at an item: its processes, and its outcome under its fence.

use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use tenure_core::duration::format_short;
use tenure_core::kernel::{self, ItemGrant, ItemOutcome, Outcome};
use tenure_core::lease::Attempt;
use tenure_core::outcome::{AttemptResult, KeptOutcome, Nonce};
use tenure_core::store::{Durability, Store, Tx};
use tenure_core::{Error, Result, SystemClock};

use super::control::ItemSignals;
use super::fill::PLACEHOLDER;
use super::worker::{ClaimedItem, Worker};
use crate::daemon::agent_output::read_output;
use crate::daemon::output::{AttemptLog, LastOutput};
use crate::database::DatabaseFile;
use crate::exec_gate::{NOT_FOUND, cannot_run};
use crate::input::private_input;
use crate::outage::{OutcomeWrite, is_outage, write_outcome};
use crate::processes::children::{self, Supervising};
use crate::processes::{Descendants, EndMode, Survivor};
use crate::reap::{self, Scope};
use crate::supervise::{Exit, LimitCheck, Limits, end_all};
use crate::sys::{self, Signal};
use crate::watch::{WatchEvent, watch_until};

/// The longest poll; nothing depends on it.
const LONG: Duration = Duration::from_hours(1);

/// How the command ended.
enum ItemEnd {
    /// Exited with 0, and the success is already written.
    Succeeded,
    Exited(Exit),
    NotStarted(String),
    /// The program does not exist, so no item can be run.
    NoProgram(String),
    TooLong(Duration),
    Interrupted,
    /// Another process holds the item or the job. Nothing is written.
    Lost,
}

impl Worker<'_> {
    pub(super) fn begin(&self, tx: &mut dyn Tx, grant: &ItemGrant, nonce: &Nonce) -> Result<Attempt> {
        let log = self.log(grant).path().to_string_lossy().into_owned();
        kernel::begin_attempt(tx, &self.exec.ctx, &grant.lease, self.exec.me, Some(log), None, Some(nonce))
    }

    fn log(&self, grant: &ItemGrant) -> AttemptLog {
        let folder = self.root.join(".tenure").join("logs");
        let name = format!("{}-{}-{}", self.work.job.name, grant.item.number, grant.lease.fence);
        AttemptLog::lazy(&folder, &name, Arc::new(SystemClock))
    }

    /// An error ends the whole job; a failure of the item is recorded as its outcome.
    pub(super) fn run_item(&self, store: &dyn Store, claimed: ClaimedItem) -> Result<()> {
        let ClaimedItem { grant, asked, words, attempt, nonce } = claimed;
        let (job, item) = (&self.work.job.name, grant.item.number);
        let _span = tracing::debug_span!("item", job, item, fence = %grant.lease.fence).entered();
        let signals = self.control.hold(&grant.lease, asked).map_err(|e| broken(&e))?;
        let words = match words {
            Ok(words) => words,
            Err(why) => {
                let outcome = ItemOutcome::Failed { why: &why, for_good: true };
                let write = || self.finish(store, &grant, None, outcome);
                return self.persist(write).map(drop);
            }
        };
        let attempt = match attempt {
            Some(attempt) => attempt,
            None => match self.persist(|| self.reap_and_begin(store, &grant, &nonce))?.flatten() {
                Some(attempt) => attempt,
                None => return Ok(()),
            },
        };
        let log = Mutex::new(self.log(&grant));
        let executed = ItemExecution { grant: &grant, attempt: &attempt, nonce: &nonce };
        let (end, survivors) = self.execute(store, &executed, &words, &signals, &log)?;
        for survivor in &survivors {
            self.callbacks.show(&format!("Process {} ({}) survived SIGKILL", survivor.pid, survivor.command));
        }
        let gone = survivors.is_empty();
        let failed = |why: String| {
            if let Ok(mut log) = log.lock() {
                log.ensure();
            }
            let why = match log.lock().ok().and_then(|log| log.last_line()) {
                Some(line) => format!("{why}: {line}"),
                None => why,
            };
            let outcome = ItemOutcome::Failed { why: &why, for_good: false };
            self.write(store, &executed, exit_code(&end), outcome, gone, true);
            Ok(())
        };
        match &end {
            ItemEnd::Succeeded => {
                self.end_attempt(store, &attempt, Some(0), "exited with 0", gone);
                Ok(())
            }
            ItemEnd::Exited(Exit::Code(code)) => failed(format!("exited with {code}")),
            ItemEnd::Exited(Exit::Signal(signal)) => failed(format!("killed by signal {signal}")),
            ItemEnd::NotStarted(why) => failed(why.clone()),
            ItemEnd::NoProgram(why) => {
                self.write(store, &executed, None, ItemOutcome::Interrupted { why }, gone, true);
                Err(Error::General(format!("{why}; the job was stopped, and its items can be resumed")))
            }
            ItemEnd::TooLong(limit) => failed(format!("not finished after {}", format_short(*limit))),
            ItemEnd::Interrupted => {
                let outcome = ItemOutcome::Interrupted { why: "interrupted" };
                self.write(store, &executed, None, outcome, gone, true);
                Ok(())
            }
            ItemEnd::Lost => {
                self.callbacks
                    .show(&format!("Lost item {}: it was ended and nothing was changed", grant.item.number));
                self.end_attempt(store, &attempt, None, "the lease was lost", gone);
                Ok(())
            }
        }
    }

    /// If this cannot be written, the next reconcile ends the attempt.
    fn end_attempt(
        &self,
        store: &dyn Store,
        attempt: &Attempt,
        exit_code: Option<i32>,
        why: &str,
        gone: bool,
    ) {
        if gone {
            let outcome = Outcome { exit_code, reason: why.to_owned(), ..Outcome::default() };
            let actor = &self.caller.holder.id;
            let ctx = &self.exec.ctx;
            let _ =
                store.write(Durability::Process, |tx| kernel::end_attempt(tx, ctx, attempt, &outcome, actor));
        }
    }

    /// Reaps the processes of earlier attempts at the item, then begins. None if the item was lost meanwhile.
    fn reap_and_begin(&self, store: &dyn Store, grant: &ItemGrant, nonce: &Nonce) -> Result<Option<Attempt>> {
        let resource = &grant.lease.resource;
        for _ in 0..100 {
            let scope = Scope::Of(resource);
            let reaped = reap::reap_attempts(store, &self.exec.ctx, scope, &self.caller.holder.id)
                .and_then(reap::Reaped::or_survivors);
            let around_us = match reaped {
                Ok(reaped) => {
                    tracing::debug!(attempts = reaped.ended.len(), "reaped");
                    reaped.around_us
                }
                Err(error) if is_outage(&error) => return Err(error),
                Err(error) => {
                    let outcome = ItemOutcome::Interrupted { why: &error.to_string() };
                    self.finish(store, grant, None, outcome)?;
                    return Err(error);
                }
            };
            let begun = store.write(Durability::Power, |tx| {
                if !kernel::renew_item(tx, &self.exec.ctx, &grant.lease)? {
                    return Ok(Err(()));
                }
                if reap::is_in_the_way(tx, &self.exec.ctx, resource, &around_us)? {
                    return Ok(Ok(None));
                }
                self.begin(tx, grant, nonce).map(|attempt| Ok(Some(attempt)))
            })?;
            match begun {
                Ok(Some(attempt)) => return Ok(Some(attempt)),
                Ok(None) => {}
                Err(()) => return Ok(None),
            }
        }
        Err(Error::General("processes of an earlier attempt keep reappearing; giving up".to_owned()))
    }

    fn execute(
        &self,
        store: &dyn Store,
        executed: &ItemExecution<'_>,
        words: &[String],
        signals: &ItemSignals<'_>,
        log: &Mutex<AttemptLog>,
    ) -> Result<(ItemEnd, Vec<Survivor>)> {
        let ItemExecution { grant, attempt, .. } = executed;
        let (reader, writer) = std::io::pipe().map_err(|e| broken(&e))?;
        let errors = writer.try_clone().map_err(|e| broken(&e))?;
        let input = private_input(&self.root.join(".tenure").join("logs"), &grant.item.payload)
            .map_err(|e| broken(&e))?;
        let mut command = self.callbacks.command(words)?;
        command
            .stdin(Stdio::from(input))
            .stdout(Stdio::from(writer))
            .stderr(Stdio::from(errors))
            .env("TENURE_JOB_ID", &grant.item.job)
            .env("TENURE_ITEM", grant.item.number.to_string())
            .env("TENURE_ATTEMPT", attempt.id.as_str());
        let (handle, output) = read_output(reader).map_err(|e| broken(&e))?;
        std::thread::scope(|scope| {
            let last = LastOutput::default();
            std::thread::Builder::new()
                .name("output".into())
                .spawn_scoped(scope, move || output.run(log, &last, &mut |_| ()))
                .map_err(|e| broken(&e))?;
            let _supervising = Supervising::begin();
            let ended = match start(&mut command) {
                Ok(child) => {
                    // Our copies of the pipe would keep it open.
                    drop(command);
                    Ok(self.watch(store, executed, child, signals))
                }
                Err(why) => Ok((ItemEnd::NotStarted(why), Vec::new())),
            };
            handle.finish();
            ended
        })
    }

    /// Whether the program is the same for all items.
    fn runs_one_program(&self) -> bool {
        self.work.job.definition.command.first().is_some_and(|program| !program.contains(PLACEHOLDER))
    }

    fn watch(
        &self,
        store: &dyn Store,
        executed: &ItemExecution<'_>,
        mut child: Child,
        signals: &ItemSignals<'_>,
    ) -> (ItemEnd, Vec<Survivor>) {
        let pid = child.id();
        let attempt = &mut executed.attempt.clone();
        tracing::debug!(pid, attempt = %attempt.id, "started");
        let mut seen = Descendants::of(attempt.id.as_str());
        let limit =
            ItemTimeout { begun: Instant::now(), most: self.work.job.definition.options.item_timeout() };
        let event = watch_until(signals, Some(&limit), pid, None, None, &mut seen);
        let grace = self.timing.grace;
        let mode = match &event {
            WatchEvent::Signalled(signal_hook::consts::SIGINT) => {
                EndMode::Graceful { signal: Signal::INT, grace }
            }
            WatchEvent::Signalled(0) | WatchEvent::Lost(_) if signals.must_end_at_once() => EndMode::Kill,
            _ => EndMode::Graceful { signal: Signal::TERM, grace },
        };
        // Written first, because an unrecorded success is run again after a crash.
        let succeeded = matches!(&event, WatchEvent::Exited if sys::exit_of(pid) == Some(0));
        let success = |patient| self.write(store, executed, Some(0), ItemOutcome::Succeeded, false, patient);
        let written = succeeded && success(false);
        let (survivors, exit) = end_all(store, &mut child, attempt, &seen, mode);
        tracing::debug!(pid, ?exit, survivors = survivors.len(), "ended");
        if succeeded {
            // No process is left that could outlive the lease, so this write may wait for the store.
            let _ = written || success(true);
            return (ItemEnd::Succeeded, survivors);
        }
        let end = match event {
            WatchEvent::Exited => match store.read(|view| kernel::failed_start(view, attempt)) {
                Ok(Some(why)) if exit == Exit::Code(NOT_FOUND.into()) && self.runs_one_program() => {
                    ItemEnd::NoProgram(why)
                }
                Ok(Some(why)) => ItemEnd::NotStarted(why),
                _ => ItemEnd::Exited(exit),
            },
            WatchEvent::Overdue(
                LimitCheck::TooLong(limit) | LimitCheck::Hung(limit) | LimitCheck::Within(limit),
            ) => ItemEnd::TooLong(limit),
            WatchEvent::Signalled(_) if signals.signal().is_some() || signals.is_stopping() => {
                ItemEnd::Interrupted
            }
            WatchEvent::Signalled(_) | WatchEvent::Lost(_) => ItemEnd::Lost,
        };
        (end, survivors)
    }

    /// Writes the outcome under the fence, and waits for a store that does not answer, because the item's work is done (F6).
    /// If the job is stopped first, the outcome is kept outside the store. Without `patient` there is only one try. Returns
    /// false if the write has to be tried again.
    fn write(
        &self,
        store: &dyn Store,
        executed: &ItemExecution<'_>,
        exit_code: Option<i32>,
        outcome: ItemOutcome<'_>,
        gone: bool,
        patient: bool,
    ) -> bool {
        let result = match outcome {
            ItemOutcome::Succeeded => AttemptResult::Done,
            ItemOutcome::Failed { why, .. } => AttemptResult::Failed { why: why.to_owned(), charged: false },
            ItemOutcome::Interrupted { why } => AttemptResult::Returned { why: why.to_owned() },
        };
        let ItemExecution { grant, attempt, nonce } = executed;
        let (fence, nonce) = (attempt.fence, (*nonce).clone());
        let kept = KeptOutcome { attempt: attempt.id.clone(), fence, nonce, exit_code, result };
        let stop = |nap| {
            if patient {
                self.sleep(nap);
            }
            !patient || self.control.is_stopping()
        };
        let write = || self.finish(store, grant, gone.then_some((*attempt, exit_code)), outcome);
        match write_outcome(self.exec.ctx.outcomes, &kept, self.outage, stop, write) {
            OutcomeWrite::Answered(()) => true,
            OutcomeWrite::Kept(error) if !patient && is_outage(&error) => false,
            OutcomeWrite::Kept(error) => {
                let number = grant.item.number;
                self.callbacks
                    .show(&format!("The outcome of item {number} is kept until the store answers: {error}"));
                if !is_outage(&error) {
                    self.control.fail(error);
                }
                true
            }
        }
    }

    /// One transaction with the outcome, and with the end of the attempt if its processes are gone.
    fn finish(
        &self,
        store: &dyn Store,
        grant: &ItemGrant,
        ended: Option<(&Attempt, Option<i32>)>,
        outcome: ItemOutcome<'_>,
    ) -> Result<()> {
        if let Some(loss) = self.exec.database.and_then(DatabaseFile::loss) {
            self.control.fail_at_once(Error::General(loss.to_string()));
            return Ok(());
        }
        let held = store.write(Durability::Power, |tx| {
            if let Some((attempt, exit_code)) = ended {
                let reason = match outcome {
                    ItemOutcome::Succeeded => "exited with 0",
                    ItemOutcome::Failed { why, .. } | ItemOutcome::Interrupted { why } => why,
                };
                let ended = Outcome { exit_code, reason: reason.to_owned(), ..Outcome::default() };
                kernel::end_attempt(tx, &self.exec.ctx, attempt, &ended, &self.caller.holder.id)?;
            }
            match kernel::finish_item(tx, &self.exec.ctx, &grant.lease, outcome) {
                // Detected before the finish has written anything, so the end of the attempt stays in the
                // transaction.
                Err(Error::WorkLost { .. }) => Ok(false),
                finished => finished.map(|_| true),
            }
        })?;
        if !held {
            let number = grant.item.number;
            self.callbacks
                .show(&format!("Lost item {number}: another process holds it; nothing was changed"));
        }
        Ok(())
    }
}

/// An item's attempt while it is executed.
struct ItemExecution<'a> {
    grant: &'a ItemGrant,
    attempt: &'a Attempt,
    nonce: &'a Nonce,
}

fn start(command: &mut Command) -> Result<Child, String> {
    sys::in_own_group(command);
    children::spawn(command).map_err(|e| cannot_run(command, &e))
}

fn exit_code(end: &ItemEnd) -> Option<i32> {
    match end {
        ItemEnd::Exited(Exit::Code(code)) => Some(*code),
        _ => None,
    }
}

/// `--item-timeout`.
struct ItemTimeout {
    begun: Instant,
    most: Option<Duration>,
}

impl Limits for ItemTimeout {
    fn check(&self) -> LimitCheck {
        let Some(most) = self.most else { return LimitCheck::Within(LONG) };
        match most.saturating_sub(self.begun.elapsed()) {
            Duration::ZERO => LimitCheck::TooLong(most),
            left => LimitCheck::Within(left),
        }
    }
}

fn broken(error: &std::io::Error) -> Error {
    Error::General(format!("an item cannot be run: {error}"))
}
