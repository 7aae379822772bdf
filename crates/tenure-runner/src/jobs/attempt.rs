//! One attempt at an item: its processes from the first to the last, and its outcome under its fence.

use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use rustix::process::Signal;
use tenure_core::duration::format_short;
use tenure_core::kernel::{self, ItemGrant, ItemOutcome, Outcome};
use tenure_core::lease::Attempt;
use tenure_core::store::{Durability, Store, Tx};
use tenure_core::{Error, Result, SystemClock};

use super::crew::Line;
use super::worker::{PATIENCE, Shared, Taken};
use crate::daemon::listening::listen;
use crate::daemon::output::{AttemptLog, LastWord};
use crate::ending::{self, Scope};
use crate::exec_gate::cannot_run;
use crate::input::private_input;
use crate::processes::{EndMode, Survivor};
use crate::supervise::{Exit, Limits, Look, end_all};
use crate::watch::{Event, exit_of, watch_over};

/// A poll needs a limit.
const LONG: Duration = Duration::from_hours(1);

/// How the command ended, before that is written down.
enum Word {
    /// With 0, and that is written down.
    Succeeded,
    Exited(Exit),
    NotStarted(String),
    TooLong(Duration),
    Interrupted,
    /// The item is another's, or the job is. Nothing is to be written.
    Lost,
}

impl Shared<'_> {
    pub(super) fn begin(&self, tx: &mut dyn Tx, grant: &ItemGrant) -> Result<Attempt> {
        let log = self.log(grant).path().to_string_lossy().into_owned();
        kernel::begin_attempt(tx, &self.ctx, &grant.lease, self.me, Some(log))
    }

    fn log(&self, grant: &ItemGrant) -> AttemptLog {
        let folder = self.root.join(".tenure").join("logs");
        let name = format!("{}-{}-{}", self.work.job.name, grant.item.number, grant.lease.fence);
        AttemptLog::lazy(&folder, &name, Arc::new(SystemClock))
    }

    /// An error here is one that the whole job ends of; what goes wrong with the item is its outcome.
    pub(super) fn run_item(&self, store: &dyn Store, taken: Taken) -> Result<()> {
        let Taken { grant, asked, words, attempt } = taken;
        let line = self.crew.hold(&grant.lease, asked).map_err(|e| broken(&e))?;
        let words = match words {
            Ok(words) => words,
            Err(why) => {
                let outcome = ItemOutcome::Failed { why: &why, for_good: true };
                return self.write(store, &grant, None, outcome, true);
            }
        };
        let attempt = match attempt {
            Some(attempt) => attempt,
            None => match self.clear_and_begin(store, &grant)? {
                Some(attempt) => attempt,
                None => return Ok(()),
            },
        };
        let log = Mutex::new(self.log(&grant));
        let (word, survivors) = self.execute(store, &grant, attempt.clone(), &words, &line, &log)?;
        for survivor in &survivors {
            self.outside.say(&format!("Could not be ended: process {} ({})", survivor.pid, survivor.command));
        }
        let gone = survivors.is_empty();
        let failed = |why: String| {
            if let Ok(mut log) = log.lock() {
                log.ensure();
            }
            let why = match log.lock().ok().and_then(|log| log.last_words()) {
                Some(words) => format!("{why}: {words}"),
                None => why,
            };
            let outcome = ItemOutcome::Failed { why: &why, for_good: false };
            self.write(store, &grant, Some((&attempt, exit_code(&word))), outcome, gone)
        };
        match &word {
            Word::Succeeded => {
                self.end_attempt(store, &attempt, Some(0), "exited with 0", gone);
                Ok(())
            }
            Word::Exited(Exit::Code(code)) => failed(format!("exited with {code}")),
            Word::Exited(Exit::Signal(signal)) => failed(format!("killed by signal {signal}")),
            Word::NotStarted(why) => failed(why.clone()),
            Word::TooLong(limit) => failed(format!("not finished after {}", format_short(*limit))),
            Word::Interrupted => {
                let outcome = ItemOutcome::Interrupted { why: "interrupted" };
                self.write(store, &grant, Some((&attempt, None)), outcome, gone)
            }
            Word::Lost => {
                self.outside
                    .say(&format!("Lost item {}: it was ended and nothing was changed", grant.item.number));
                self.end_attempt(store, &attempt, None, "the lease was lost", gone);
                Ok(())
            }
        }
    }

    /// What cannot be written here, the next reconcile writes.
    fn end_attempt(
        &self,
        store: &dyn Store,
        attempt: &Attempt,
        exit_code: Option<i32>,
        why: &str,
        gone: bool,
    ) {
        if gone {
            let outcome = Outcome { exit_code, reason: why.to_owned(), charged: false };
            let actor = &self.caller.holder.id;
            let _ = store.write(Durability::Process, |tx| kernel::end_attempt(tx, attempt, &outcome, actor));
        }
    }

    /// Ends what an earlier attempt at the item has left, then begins. None if the item was lost meanwhile.
    fn clear_and_begin(&self, store: &dyn Store, grant: &ItemGrant) -> Result<Option<Attempt>> {
        let resource = &grant.lease.resource;
        for _ in 0..100 {
            let scope = Scope::Of(resource);
            let cleared = ending::finish_ending(store, &self.ctx, scope, &self.caller.holder.id)
                .and_then(ending::Cleared::or_survivors);
            let around_us = match cleared {
                Ok(cleared) => cleared.around_us,
                Err(error) => {
                    let outcome = ItemOutcome::Interrupted { why: &error.to_string() };
                    self.write(store, grant, None, outcome, true)?;
                    return Err(error);
                }
            };
            let begun = store.write(Durability::Power, |tx| {
                if !kernel::renew_item(tx, &self.ctx, &grant.lease)? {
                    return Ok(Err(()));
                }
                if ending::is_in_the_way(tx, &self.ctx, resource, &around_us)? {
                    return Ok(Ok(None));
                }
                self.begin(tx, grant).map(|attempt| Ok(Some(attempt)))
            })?;
            match begun {
                Ok(Some(attempt)) => return Ok(Some(attempt)),
                Ok(None) => {}
                Err(()) => return Ok(None),
            }
        }
        Err(Error::General("earlier attempts at this item do not stop ending".to_owned()))
    }

    fn execute(
        &self,
        store: &dyn Store,
        grant: &ItemGrant,
        mut attempt: Attempt,
        words: &[String],
        line: &Line<'_>,
        log: &Mutex<AttemptLog>,
    ) -> Result<(Word, Vec<Survivor>)> {
        let (reader, writer) = std::io::pipe().map_err(|e| broken(&e))?;
        let errors = writer.try_clone().map_err(|e| broken(&e))?;
        let input = private_input(&self.root.join(".tenure").join("logs"), &grant.item.payload)
            .map_err(|e| broken(&e))?;
        let mut command = self.outside.command(words)?;
        command
            .stdin(Stdio::from(input))
            .stdout(Stdio::from(writer))
            .stderr(Stdio::from(errors))
            .env("TENURE_JOB_ID", &grant.item.job)
            .env("TENURE_ITEM", grant.item.number.to_string())
            .env("TENURE_ATTEMPT", attempt.id.as_str());
        let (ear, listener) = listen(reader).map_err(|e| broken(&e))?;
        std::thread::scope(|scope| {
            let last = LastWord::default();
            std::thread::Builder::new()
                .name("output".into())
                .spawn_scoped(scope, move || listener.run(log, &last, &mut |_| ()))
                .map_err(|e| broken(&e))?;
            let ended = match start(&mut command) {
                Ok(child) => {
                    // Our copies of the pipe would keep it open.
                    drop(command);
                    self.watch(store, grant, &mut attempt, child, line)
                }
                Err(why) => Ok((Word::NotStarted(why), Vec::new())),
            };
            ear.close();
            ended
        })
    }

    fn watch(
        &self,
        store: &dyn Store,
        grant: &ItemGrant,
        attempt: &mut Attempt,
        mut child: Child,
        line: &Line<'_>,
    ) -> Result<(Word, Vec<Survivor>)> {
        let pid = child.id();
        let limit = Limit { begun: Instant::now(), most: self.work.job.definition.options.item_timeout() };
        // For the record only: whoever looks for its processes goes by the mark.
        let _ = store.write(Durability::Process, |tx| kernel::note_pid(tx, attempt, pid));
        let event = watch_over(line, Some(&limit), pid, None, None);
        let grace = self.timing.grace;
        let manner = match &event {
            Event::Signalled(signal_hook::consts::SIGINT) => EndMode::Graceful { signal: Signal::INT, grace },
            Event::Signalled(0) | Event::Lost(_) if line.must_end_at_once() => EndMode::Kill,
            _ => EndMode::Graceful { signal: Signal::TERM, grace },
        };
        // Before anything else is done for it: what is not written down is done again after a crash.
        let written = match &event {
            Event::Exited if exit_of(pid) == Some(0) => {
                Some(self.write(store, grant, None, ItemOutcome::Succeeded, false))
            }
            _ => None,
        };
        let (survivors, exit) = end_all(&mut child, attempt, manner);
        if let Some(written) = written {
            return written.map(|()| (Word::Succeeded, survivors));
        }
        let word = match event {
            Event::Exited => match store.read(|view| kernel::failed_start(view, attempt)) {
                Ok(Some(why)) => Word::NotStarted(why),
                _ => Word::Exited(exit),
            },
            Event::Overdue(Look::TooLong(limit) | Look::Hung(limit) | Look::GoOn(limit)) => {
                Word::TooLong(limit)
            }
            Event::Signalled(_) if line.signal().is_some() || line.is_stopping() => Word::Interrupted,
            Event::Signalled(_) | Event::Lost(_) => Word::Lost,
        };
        Ok((word, survivors))
    }

    /// Writes the outcome, under the fence. A store that does not answer is asked again: what the item has done is done.
    fn write(
        &self,
        store: &dyn Store,
        grant: &ItemGrant,
        attempt: Option<(&Attempt, Option<i32>)>,
        outcome: ItemOutcome<'_>,
        gone: bool,
    ) -> Result<()> {
        let begun = Instant::now();
        loop {
            let written = store.write(Durability::Power, |tx| {
                if let Some((attempt, exit_code)) = attempt.filter(|_| gone) {
                    let reason = match outcome {
                        ItemOutcome::Succeeded => "exited with 0",
                        ItemOutcome::Failed { why, .. } | ItemOutcome::Interrupted { why } => why,
                    };
                    let ended = Outcome { exit_code, reason: reason.to_owned(), charged: false };
                    kernel::end_attempt(tx, attempt, &ended, &self.caller.holder.id)?;
                }
                match kernel::finish_item(tx, &self.ctx, &grant.lease, outcome) {
                    // Found out before anything of it was written, so the end of the attempt stands.
                    Err(Error::WorkLost { .. }) => Ok(false),
                    finished => finished.map(|_| true),
                }
            });
            match written {
                Ok(true) => return Ok(()),
                Ok(false) => {
                    let number = grant.item.number;
                    self.outside.say(&format!("Lost item {number}: another has it; nothing was changed"));
                    return Ok(());
                }
                Err(Error::Store { .. }) if begun.elapsed() < PATIENCE => {
                    std::thread::sleep(Duration::from_millis(100));
                }
                Err(error) => return Err(error),
            }
        }
    }
}

fn start(command: &mut Command) -> Result<Child, String> {
    use std::os::unix::process::CommandExt;
    command.process_group(0);
    command.spawn().map_err(|e| cannot_run(command, &e))
}

fn exit_code(word: &Word) -> Option<i32> {
    match word {
        Word::Exited(Exit::Code(code)) => Some(*code),
        _ => None,
    }
}

/// `--item-timeout`.
struct Limit {
    begun: Instant,
    most: Option<Duration>,
}

impl Limits for Limit {
    fn look(&self) -> Look {
        let Some(most) = self.most else { return Look::GoOn(LONG) };
        match most.saturating_sub(self.begun.elapsed()) {
            Duration::ZERO => Look::TooLong(most),
            left => Look::GoOn(left),
        }
    }
}

fn broken(error: &std::io::Error) -> Error {
    Error::General(format!("an item cannot be run: {error}"))
}
