//! `tenure exclusive run`: runs a command under the exclusive lock.

use std::ffi::OsString;
use std::path::Path;
use std::process::{Child, Command, ExitStatus};
use std::time::Duration;

use serde_json::json;
use tenure_core::ErrorCode;
use tenure_core::hints;
use tenure_lock::{ExclusiveLock, Release};
use tenure_runner::{Process, Signal, exclusion, limit_for, signal_of, until_any};

use super::acquire::{Patience, take};
use super::{failed, root, start};
use crate::answer::Answer;
use crate::app::App;
use crate::interrupt::Interrupts;
use crate::report::{CommandResult, Report};
use crate::shell_quote::quote;
use crate::sys;
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
        .hint(hints::check_exclusive()));
    }
    let root = root(app)?;
    let lock = ExclusiveLock::new(&args.holder, env!("CARGO_PKG_VERSION"));
    let words: Vec<String> = args.command.iter().map(|word| quote(&word.to_string_lossy())).collect();
    let again = hints::repeat_exclusive(args.patience.options_again(&args.holder), words.join(" "));
    take(app, &lock, &args.patience, again)?;
    let ended = supervise(app, &root, &lock, &args.command);
    let released = exclusion::release(&root, |folder| lock.release_acquisition(folder));
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
    let number = status.code().unwrap_or_else(|| 128 + signal_of(status).unwrap_or(0));
    u8::try_from(number & 0xff).unwrap_or(1)
}

fn supervise(
    app: &App<'_>,
    root: &Path,
    lock: &ExclusiveLock,
    command: &[OsString],
) -> CommandResult<ExitStatus> {
    let broken =
        |e: std::io::Error| Report::new(ErrorCode::General, format!("cannot wait for the command: {e}"));
    let interrupts = Interrupts::listen().map_err(Report::from)?;
    let mut child = spawn(app, root, lock, command)?;
    // The child is not reaped yet, so the pid is still its own.
    let Some(process) = Process::open(child.id()) else { return child.wait().map_err(broken) };
    let fds: Vec<_> = process.fd().into_iter().chain([interrupts.fd()]).collect();
    loop {
        until_any(&fds, limit_for(Some(&process), LONG));
        // Ctrl+C at a terminal has reached the command as well.
        if let Some(code) = interrupts.take()
            && !(code == 130 && sys::is_in_foreground())
        {
            let signal = if code == 130 { Signal::INT } else { Signal::TERM };
            let _ = process.signal(signal);
        }
        if let Some(status) = child.try_wait().map_err(broken)? {
            return Ok(status);
        }
    }
}

/// Starts the command through `tenure start-exclusive`, which becomes the holder of the lock first, so that the lock lasts
/// as long as the command, even if this process is killed. With `--json`, standard output is reserved for the JSON object, so
/// the command's goes to standard error.
fn spawn(app: &App<'_>, root: &Path, lock: &ExclusiveLock, command: &[OsString]) -> CommandResult<Child> {
    let failed = |what: &str, e: std::io::Error| Report::new(ErrorCode::General, format!("{what}: {e}"));
    let (program, _) = command.split_first().ok_or_else(|| Report::usage("no command given"))?;
    if !can_be_found(app, program) {
        let name = program.to_string_lossy();
        let mut report = Report::new(ErrorCode::General, format!("cannot run {name}: it was not found"));
        report.exit = Some(127);
        return Err(report);
    }
    let own = crate::own_binary().map_err(|e| failed("cannot find the tenure binary", e))?;
    let mut spawned = Command::new(own);
    let text = lock.to_json().map_err(|e| failed("the lock cannot be handed over", e.into()))?;
    spawned.arg("start-exclusive").arg("--").args(command).current_dir(&app.env.cwd);
    spawned.env(start::ROOT, root).env(start::LOCK, text);
    if app.global.json {
        spawned.stdout(sys::standard_error().map_err(|e| failed("standard error is closed", e))?);
    }
    spawned.spawn().map_err(|e| failed("cannot start the command", e))
}

/// Whether there is a file to execute: a path, or a name on `PATH`.
fn can_be_found(app: &App<'_>, program: &OsString) -> bool {
    if program.as_encoded_bytes().contains(&b'/') {
        return app.env.cwd.join(program).exists();
    }
    let path = app.env.vars.get(&OsString::from("PATH")).cloned().unwrap_or_default();
    std::env::split_paths(&path).any(|folder| folder.join(program).is_file())
}
