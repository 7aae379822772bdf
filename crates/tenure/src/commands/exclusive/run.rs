//! `tenure exclusive run`: runs a command under the exclusive lock.

use std::ffi::OsString;
use std::os::fd::AsFd;
use std::os::unix::process::ExitStatusExt;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::Duration;

use rustix::process::Signal;
use serde_json::json;
use tenure_core::ErrorCode;
use tenure_lock::{ExclusiveLock, Release};
use tenure_runner::{Process, limit_for, until_any};

use super::acquire::{Patience, take};
use super::{failed, folder};
use crate::answer::Answer;
use crate::app::App;
use crate::interrupt::Interrupts;
use crate::report::{CommandResult, Report};
use crate::text::Text;

/// The timeout of a poll that waits for a signal or the command's exit. When it passes, the poll is repeated.
const LONG: Duration = Duration::from_hours(1);

/// Run a command while holding the exclusive lock
///
/// Signals are forwarded, the exit code is the command's, and the lock is always released afterwards.
///
/// Example: tenure exclusive run --holder release --drain -- ./release.sh
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// The tool's name
    #[arg(long, value_name = "N")]
    holder: String,
    #[command(flatten)]
    patience: Patience,
    /// The command and its arguments
    #[arg(last = true, required = true, value_name = "CMD")]
    command: Vec<OsString>,
}

pub(super) fn run(app: &mut App<'_>, args: Args) -> CommandResult<Answer> {
    if app.global.dry_run {
        return Err(Report::usage(
            "`exclusive run` does not support --dry-run; use it with `exclusive acquire`",
        )
        .hint("see whether the project is locked", "tenure exclusive status"));
    }
    let folder = folder(app)?;
    let lock = ExclusiveLock::new(&args.holder, env!("CARGO_PKG_VERSION"));
    take(app, &lock, &args.patience)?;
    let ended = supervise(app, &args.command);
    let released = lock.release(&folder);
    let status = ended?;
    match released.map_err(failed)? {
        Release::Removed => {}
        _ => app.printer.warn("the lock file was changed or removed while the command was running"),
    }
    let code = code_of(status);
    let data = json!({"exclusive": null, "exitCode": code});
    Ok(Answer::new(data, Text::new()).exit(code))
}

/// The exit code as shells report it: the command's own, or 128 plus the signal.
fn code_of(status: ExitStatus) -> u8 {
    let number = status.code().unwrap_or_else(|| 128 + status.signal().unwrap_or(0));
    u8::try_from(number & 0xff).unwrap_or(1)
}

fn supervise(app: &App<'_>, command: &[OsString]) -> CommandResult<ExitStatus> {
    let broken =
        |e: std::io::Error| Report::new(ErrorCode::General, format!("cannot wait for the command: {e}"));
    let interrupts = Interrupts::listen().map_err(Report::from)?;
    let mut child = spawn(app, command)?;
    // Not collected yet, so the pid is the child's.
    let Some(process) = Process::open(child.id()) else { return child.wait().map_err(broken) };
    let fds: Vec<_> = process.fd().into_iter().chain([interrupts.as_fd()]).collect();
    loop {
        until_any(&fds, limit_for(Some(&process), LONG));
        if let Some(code) = interrupts.take()
            && !(code == 130 && terminal_sent_it())
        {
            let signal = if code == 130 { Signal::INT } else { Signal::TERM };
            let _ = process.signal(signal);
        }
        if let Some(status) = child.try_wait().map_err(broken)? {
            return Ok(status);
        }
    }
}

/// With `--json`, standard output is reserved for the JSON object, so the command's goes to standard error.
fn spawn(app: &App<'_>, command: &[OsString]) -> CommandResult<Child> {
    let (program, rest) = command.split_first().ok_or_else(|| Report::usage("no command given"))?;
    let mut spawned = Command::new(program);
    spawned.args(rest).current_dir(&app.env.cwd);
    if app.global.json {
        spawned.stdout(Stdio::from(
            std::io::stderr()
                .as_fd()
                .try_clone_to_owned()
                .map_err(|e| Report::new(ErrorCode::General, format!("standard error is closed: {e}")))?,
        ));
    }
    spawned.spawn().map_err(|e| {
        let code = if e.kind() == std::io::ErrorKind::NotFound { 127 } else { 126 };
        let mut report =
            Report::new(ErrorCode::General, format!("cannot run {}: {e}", program.to_string_lossy()));
        report.exit = Some(code);
        report
    })
}

/// Whether the command received the SIGINT as well: Ctrl+C at a terminal reaches the whole foreground process group.
fn terminal_sent_it() -> bool {
    rustix::termios::tcgetpgrp(std::io::stdin()).is_ok_and(|group| group == rustix::process::getpgrp())
}
