//! `tenure exclusive acquire`, and the waiting that it shares with `run`.

use std::path::Path;
use std::time::{Duration, Instant};

use serde_json::json;
use tenure_core::Error;
use tenure_core::lease::AttemptState;
use tenure_lock::{ExclusiveError, ExclusiveLock, Liveness};

use super::{describe, failed, folder, object};
use crate::answer::Answer;
use crate::app::{App, parse_duration};
use crate::interrupt::Interrupts;
use crate::report::{CommandResult, Report};
use crate::text::Text;

/// Lock the project for a process (default: the one that called tenure)
///
/// The lock lasts until it is released or the process ends.
///
/// Example: tenure exclusive acquire --holder ci-pipeline --wait 5m --drain
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// The tool's name
    #[arg(long, value_name = "N")]
    holder: String,
    /// The process that holds it (default: the parent of this one)
    #[arg(long, value_name = "P")]
    pid: Option<u32>,
    #[command(flatten)]
    patience: Patience,
}

#[derive(Debug, clap::Args)]
pub(super) struct Patience {
    /// Wait for the lock, at most this long (default: locking.waitTimeout)
    #[arg(long, value_name = "DUR", num_args = 0..=1, value_parser = parse_duration)]
    wait: Option<Option<Duration>>,
    /// After locking, wait until no attempt is running, at most this long (default: locking.waitTimeout)
    #[arg(long, value_name = "DUR", num_args = 0..=1, value_parser = parse_duration)]
    drain: Option<Option<Duration>>,
}

pub(super) fn run(app: &mut App<'_>, args: Args) -> CommandResult<Answer> {
    let pid = match args.pid {
        Some(pid) => pid,
        None => parent()?,
    };
    let lock = ExclusiveLock::for_process(&args.holder, env!("CARGO_PKG_VERSION"), pid).map_err(failed)?;
    let mut text = Text::new();
    if app.global.dry_run {
        match super::lock_status(&folder(app)?)? {
            tenure_lock::ExclusiveStatus::Free | tenure_lock::ExclusiveStatus::Stale { .. } => {}
            _ => lock.place(&folder(app)?).map_err(failed)?,
        }
        text.line(format!("Would lock the project for {}", args.holder));
        return Ok(Answer::new(json!({"exclusive": object(&lock, Liveness::Alive)}), text));
    }
    take(app, &lock, &args.patience)?;
    text.line(format!("Locked for {}", describe(&lock)));
    Ok(Answer::new(json!({"exclusive": object(&lock, Liveness::Alive)}), text)
        .hint("when you are done", format!("tenure exclusive release --pid {pid}")))
}

pub(super) fn parent() -> CommandResult<u32> {
    rustix::process::getppid()
        .and_then(|pid| u32::try_from(pid.as_raw_nonzero().get()).ok())
        .ok_or_else(|| Report::usage("there is no parent process to hold the lock; give one with --pid"))
}

/// Acquires the lock and, with `--drain`, waits until no attempt is running.
pub(super) fn take(app: &mut App<'_>, lock: &ExclusiveLock, patience: &Patience) -> CommandResult<()> {
    let folder = folder(app)?;
    let open = app.open()?;
    let wait = app.asked_patience(&open, patience.wait);
    place(app, lock, &folder, wait)?;
    let Some(drain) = app.asked_patience(&open, patience.drain) else { return Ok(()) };
    let drained = until(app, drain, "running attempts to end", || {
        let attempts = open.read(|view| view.open_attempts())?;
        let alive = |owner| app_judge(app, owner) != Liveness::Dead;
        Ok(!attempts.iter().any(|a| a.state == AttemptState::Running && alive(&a.owner)))
    });
    if drained.is_err() {
        // Without the drain the lock is not wanted.
        lock.release(&folder).map_err(failed)?;
    }
    drained
}

fn app_judge(app: &App<'_>, owner: &tenure_core::holder::Incarnation) -> Liveness {
    app.env.judge.liveness(owner)
}

fn place(app: &App<'_>, lock: &ExclusiveLock, folder: &Path, wait: Option<Duration>) -> CommandResult<()> {
    let first = match lock.place(folder) {
        Ok(()) => return Ok(()),
        Err(error) => error,
    };
    let (ExclusiveError::Held(_), Some(wait)) = (&first, wait) else { return Err(failed(first)) };
    until(app, wait, "the exclusive lock", || match lock.place(folder) {
        Ok(()) => Ok(true),
        Err(ExclusiveError::Held(_)) => Ok(false),
        Err(error) => Err(failed(error)),
    })
}

/// How often the lock file is polled. Its holder may be any program, so there is no doorbell.
const POLL_INTERVAL: Duration = Duration::from_millis(100);

fn until(
    app: &App<'_>,
    patience: Duration,
    what: &str,
    mut done: impl FnMut() -> CommandResult<bool>,
) -> CommandResult<()> {
    let patience = app.global.timeout.map_or(patience, |limit| patience.min(limit));
    let interrupts = Interrupts::listen().map_err(Report::from)?;
    let begun = Instant::now();
    loop {
        if done()? {
            return Ok(());
        }
        let left = patience.saturating_sub(begun.elapsed());
        if left.is_zero() {
            let waited = Duration::from_secs(begun.elapsed().as_secs());
            return Err(Error::WaitTimeout { what: what.to_owned(), waited, locked: None }.into());
        }
        interrupts.wait(POLL_INTERVAL.min(left));
        if let Some(code) = interrupts.caught() {
            return Err(Report::interrupted(code));
        }
    }
}
