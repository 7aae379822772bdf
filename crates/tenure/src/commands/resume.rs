//! `tenure resume`.

use std::process::Command;

use tenure_core::hints;
use tenure_core::reference::{self, Work};

use super::jobs::resume::{self as job, ResumeOptions};
use super::{runners, trust};
use crate::answer::Answer;
use crate::app::App;
use crate::printer::CommandName;
use crate::report::CommandResult;
use crate::text::{Style, Text};

/// Resume an interrupted session or job
///
/// Finished work is skipped, and interrupted work is repeated. Only one process can resume it at a time; the others exit
/// 6 and print its holder. If everything is finished already, exits 0.
///
/// Example: tenure resume thumbnails --retry-failed
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// The session or job: its id, a prefix of the id, or the job's name
    id: String,
    /// Take over from a holder on another machine, and ignore an unreadable lock file
    #[arg(long)]
    force: bool,
    /// For a job: retry its dead letters
    #[arg(long)]
    retry_failed: bool,
    /// Resume although the definition has changed
    #[arg(long)]
    accept_changes: bool,
    /// Resume in a background process
    #[arg(long)]
    detach: bool,
    /// The background process of --detach (used internally)
    #[arg(long, hide = true)]
    detached: bool,
}

const NAME: CommandName<'static> = CommandName { command: "resume", subcommand: None };

pub(crate) fn run(app: &mut App<'_>, args: Args) -> CommandResult<Option<Answer>> {
    if args.detached {
        tenure_runner::detach();
    }
    let open = app.open()?;
    let work = open.read(|view| reference::work(view, &args.id))?;
    if args.detach && !app.global.dry_run {
        if matches!(work, Work::Session(_)) {
            // The background process has no terminal at which it could ask.
            trust::require(app, &open.paths)?;
        }
        return detach(app, &args, &work).map(Some);
    }
    let options = ResumeOptions {
        force: args.force,
        retry_failed: args.retry_failed,
        accept_changes: args.accept_changes,
        detached: args.detached.then_some(NAME),
    };
    match work {
        Work::Job(found) => job::resume(app, &open, &found, options),
        Work::Session(session) => runners::resume(app, &open, &session, options),
    }
}

/// Starts a background process of this program, and waits only until it holds the work or has reported why it cannot.
fn detach(app: &mut App<'_>, args: &Args, work: &Work) -> CommandResult<Answer> {
    let mut command = runners::own_command(app, &app.start()?)?;
    command.args(["resume", work.id(), "--detached"]);
    flags(&mut command, args);
    let data = runners::first_answer(&mut command)?;
    let short: String = work.id().chars().take(8).collect();
    let what = match work {
        Work::Job(_) => "job",
        Work::Session(_) => "session",
    };
    let mut text = Text::new();
    text.styled(Style::Good, "Resumed").and(Style::Plain, format!(" {what} {short}"));
    Ok(Answer::new(data, text).hint(hints::show_progress(what, short)))
}

fn flags(command: &mut Command, args: &Args) {
    for (given, flag) in [
        (args.force, "--force"),
        (args.retry_failed, "--retry-failed"),
        (args.accept_changes, "--accept-changes"),
    ] {
        if given {
            command.arg(flag);
        }
    }
}
