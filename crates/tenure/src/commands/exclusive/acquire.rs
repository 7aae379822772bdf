//! `tenure exclusive acquire`, and the waiting that it shares with `run`.

use std::path::Path;
use std::time::{Duration, Instant};

use serde_json::json;
use tenure_core::Error;
use tenure_core::duration::format_short;
use tenure_core::hints::{self, Hint};
use tenure_core::lease::{Attempt, AttemptState};
use tenure_lock::{ExclusiveError, ExclusiveLock, Liveness, ProcessInfo};
use tenure_runner::exclusion;

use super::{describe, failed, object, root};
use crate::answer::Answer;
use crate::app::{App, parse_duration};
use crate::interrupt::Interrupts;
use crate::report::{CommandResult, Report};
use crate::shell_quote::quote;
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

impl Patience {
    /// The options of the same command with `--wait`.
    pub(super) fn options_again(&self, holder: &str) -> String {
        let drain = match self.drain {
            None => String::new(),
            Some(None) => " --drain".to_owned(),
            Some(Some(most)) => format!(" --drain {}", format_short(most)),
        };
        format!("--holder {}{drain}", quote(holder))
    }
}

pub(super) fn run(app: &mut App<'_>, args: Args) -> CommandResult<Answer> {
    let pid = match args.pid {
        Some(pid) => pid,
        None => parent()?,
    };
    let lock = ExclusiveLock::for_process(&args.holder, env!("CARGO_PKG_VERSION"), pid).map_err(failed)?;
    let mut text = Text::new();
    if app.global.dry_run {
        let root = root(app)?;
        match super::lock_status(&root)? {
            tenure_lock::ExclusiveStatus::Free | tenure_lock::ExclusiveStatus::Stale { .. } => {}
            _ => exclusion::place(&root, &lock).map_err(failed)?,
        }
        text.line(format!("Would lock the project for {}", args.holder));
        return Ok(Answer::new(json!({"exclusive": object(&lock, Liveness::Alive)}), text));
    }
    let given = args.pid.map(|pid| format!(" --pid {pid}")).unwrap_or_default();
    let again = args.patience.options_again(&args.holder) + &given;
    take(app, &lock, &args.patience, hints::wait_for_exclusive(again))?;
    text.line(format!("Locked for {}", describe(&lock)));
    Ok(Answer::new(json!({"exclusive": object(&lock, Liveness::Alive)}), text)
        .hint(hints::release_exclusive(pid)))
}

pub(super) fn parent() -> CommandResult<u32> {
    ProcessInfo::own_parent()
        .ok_or_else(|| Report::usage("there is no parent process to hold the lock; give one with --pid"))
}

/// Acquires the lock and, with `--drain`, waits until no attempt is running.
/// A refusal has the hint `again`: the same command with `--wait`.
pub(super) fn take(
    app: &mut App<'_>,
    lock: &ExclusiveLock,
    patience: &Patience,
    again: Hint,
) -> CommandResult<()> {
    let root = root(app)?;
    let open = app.open()?;
    let (judge, wait) = (app.env.judge.clone(), app.asked_patience(&open, patience.wait));
    let drain = app.asked_patience(&open, patience.drain);
    place(app, lock, &root, wait, again)?;
    let Some(drain) = drain else { return Ok(()) };
    let drained = until(app, drain, "running attempts to end", || {
        let attempts = open.read(|view| view.open_attempts())?;
        let running =
            |a: &&Attempt| a.state == AttemptState::Running && judge.liveness(&a.owner) != Liveness::Dead;
        let Some(first) = attempts.iter().find(running) else { return Ok(None) };
        let others = attempts.iter().filter(running).count() - 1;
        let more = if others == 0 { String::new() } else { format!(" and {others} more") };
        let since = first.started_at.to_seconds();
        Ok(Some(format!("attempt {} of {} since {since}{more}", first.id, first.resource)))
    });
    if drained.is_err() {
        // If the drain fails, the lock is released.
        exclusion::release(&root, |folder| lock.release(folder)).map_err(failed)?;
    }
    drained
}

fn place(
    app: &mut App<'_>,
    lock: &ExclusiveLock,
    root: &Path,
    wait: Option<Duration>,
    again: Hint,
) -> CommandResult<()> {
    let first = match exclusion::place(root, lock) {
        Ok(()) => return Ok(()),
        Err(error) => error,
    };
    let (ExclusiveError::Held(_), Some(wait)) = (&first, wait) else {
        return Err(refused(first, again));
    };
    until(app, wait, "the exclusive lock", || match exclusion::place(root, lock) {
        Ok(()) => Ok(None),
        Err(ExclusiveError::Held(held)) => Ok(Some(describe(&held.lock))),
        Err(error) => Err(failed(error)),
    })
}

fn refused(error: ExclusiveError, again: Hint) -> Report {
    let is_held = matches!(error, ExclusiveError::Held(_));
    let mut report = failed(error);
    if is_held {
        report.hints = vec![again];
    }
    report
}

/// How often the lock file is polled. Its holder may be any program, so there is no doorbell.
const POLL_INTERVAL: Duration = Duration::from_millis(100);

/// How long a wait lasts before it is reported.
const SILENCE: Duration = Duration::from_secs(1);

/// Waits until `obstacle` returns `None`. The obstacle is reported after a second, and again when it changes.
fn until(
    app: &mut App<'_>,
    patience: Duration,
    what: &str,
    mut obstacle: impl FnMut() -> CommandResult<Option<String>>,
) -> CommandResult<()> {
    let patience = app.global.timeout.map_or(patience, |limit| patience.min(limit));
    let interrupts = Interrupts::listen().map_err(Report::from)?;
    let begun = Instant::now();
    let mut reported = String::new();
    loop {
        let Some(found) = obstacle()? else { return Ok(()) };
        if begun.elapsed() >= SILENCE && found != reported {
            let mut text = Text::new();
            text.line(format!("Waiting for {what}: {found}"));
            app.printer.notice(&text);
            reported = found;
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
