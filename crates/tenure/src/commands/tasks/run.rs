//! `tenure tasks run`.

use std::ffi::OsString;
use std::process::Command;
use std::sync::Mutex;

use serde_json::{Value, json};
use tenure_core::ErrorCode;
use tenure_core::error::TaskName;
use tenure_core::hints;
use tenure_core::kernel::{self, Grant, Terms};
use tenure_core::task::{Task, TaskStatus};
use tenure_runner::hooks::HookContext;
use tenure_runner::{CommandEnd, Exit, LeaseLoss, Outage, Supervision, pass_proof, supervise};

use super::claim_args::ClaimArgs;
use super::{claim, grant, view};
use crate::answer::Answer;
use crate::app::{App, Open};
use crate::commands::start_attempt;
use crate::execution::Surroundings;
use crate::hooks;
use crate::identity::IdentityArgs;
use crate::interrupt::Interrupts;
use crate::reap;
use crate::report::{CommandResult, Report};
use crate::sys;
use crate::text::{Style, Text};
use crate::waiting::{self, Claim, ClaimRequest, NamedTask};

/// The help of `--ttl` here: a heartbeat renews the lease, not the caller.
const TTL_HELP: &str = "How long the lease lasts after the last heartbeat (default: locking.leaseTtl)";

/// Claim a task, run a command under the lease, and mark it done or failed
///
/// The command finds the lease in its environment (TENURE_TASK_ID, TENURE_AGENT, TENURE_LEASE …) and may finish the task
/// itself. Otherwise exit 0 marks the task done, and any other exit code marks it failed. If the lease is lost, the
/// command and all processes that it started are ended (exit 8). On Ctrl+C or SIGTERM the task is returned to pending.
///
/// Example: tenure tasks run F001 --ttl 30m -- make check
#[derive(Debug, clap::Args)]
#[command(mut_args(|arg| if arg.get_id() == "ttl" { arg.help(TTL_HELP) } else { arg }))]
pub(crate) struct Args {
    #[command(flatten)]
    claim: ClaimArgs,
    #[command(flatten)]
    identity: IdentityArgs,
    /// The command and its arguments
    #[arg(last = true, required = true, value_name = "CMD")]
    command: Vec<OsString>,
}

pub(crate) fn run(app: &mut App<'_>, args: Args) -> CommandResult<Answer> {
    if app.global.dry_run {
        return Err(Report::usage("`tasks run` does not support --dry-run; use it with `tasks claim`")
            .hint(hints::try_claim(crate::shell_quote::last_arg(&args.claim.task))));
    }
    let open = app.open()?;
    let mut identity = app.identity(&args.identity)?;
    claim::join_if_anonymous(app, &mut identity);
    let surroundings = Surroundings::new(&open)?;
    let caller = |task: Option<&TaskName>| identity.claimant(task).with_process(surroundings.me.clone());
    // Installed before the grant, so that no signal is missed while the task is held.
    let interrupts = Interrupts::listen().map_err(Report::from)?;
    // The command does not see the messages that a claim prints, so they do not count as shown.
    let mut terms = Terms { shows_notes: false, ..args.claim.terms(&open) };
    terms.doorbell = surroundings.doorbell_address();
    let patience = args.claim.patience(app, &open);
    let request = ClaimRequest::Task(NamedTask::new(&args.claim.task));
    let granted = waiting::acquire(app, &open, &Claim::new(&request, &caller), terms, patience)?;
    grant::refuse_other_process(&open, &granted, &surroundings.me)?;
    if let Some(code) = interrupts.take() {
        reap::release_grant(&open, &granted, "interrupted before the command started");
        return Err(Report::interrupted(code));
    }
    announce(app, &granted);
    let hook_contexts = hooks::filter(app, &open).granted(app.env.clock.now(), &granted);
    hooks::deliver_async(app, &open, &hook_contexts);

    let mut command = command(app, &open, &granted, &args.command)?;
    let printer = Mutex::new(&mut app.printer);
    let say = |line: &str| {
        if let Ok(mut printer) = printer.lock() {
            printer.warn(line);
        }
    };
    let outage = Outage::new(&say);
    let source = &open.source;
    let ttl = granted.lease.ttl;
    let another = || source.open_for_beats(ttl);
    let supervision = Supervision {
        store: open.store.as_ref(),
        exec: surroundings.execution(&open, &another),
        task: &kernel::name_of(&granted.task),
        lease: &granted.lease,
        signals: &interrupts,
        interval: open.config.runners.heartbeat_interval,
        grace: open.config.runners.kill_grace,
        log_path: None,
        agent: None,
        report_folder: None,
        section_ttl: None,
        keep_section: false,
        limits: None,
        recorder: None,
        outage: &outage,
    };
    let supervised = match supervise(&supervision, &mut command) {
        Ok(supervised) => supervised,
        Err(error) => {
            reap::release_grant(&open, &granted, "the command could not be supervised");
            return Err(error.into());
        }
    };
    for survivor in &supervised.survivors {
        app.printer.warn(&format!("a process of this attempt cannot be killed: {survivor}"));
    }
    let hook_contexts = ending_contexts(app, &open, &supervised.ended);
    hooks::deliver(app, &open, &hook_contexts);
    let ended = supervised.ended;
    if let CommandEnd::NotBegun { .. } = ended {
        reap::release_grant(&open, &granted, "interrupted before the command started");
    }
    let attempt = supervised.attempt.map(|attempt| attempt.id.to_string());
    tell(app, &granted, &attempt.unwrap_or_default(), ended)
}

/// The hook events of how the attempt ended. If the command finished the task itself, the finishing command has delivered
/// them; a lost lease is reported by the process that ended it.
fn ending_contexts(app: &App<'_>, open: &Open<'_>, ended: &CommandEnd) -> Vec<HookContext> {
    let task = match ended {
        CommandEnd::Exited { reported: false, task, .. }
        | CommandEnd::NotStarted { task, .. }
        | CommandEnd::Overdue { task, .. }
        | CommandEnd::Interrupted { task, .. } => task,
        // A kept outcome is not applied yet.
        CommandEnd::Exited { .. }
        | CommandEnd::Lost(_)
        | CommandEnd::Kept { .. }
        | CommandEnd::NotBegun { .. } => return Vec::new(),
    };
    let hook_filter = hooks::filter(app, open);
    if hook_filter.is_empty() {
        return Vec::new();
    }
    // A failure to read the events must not hide how the command ended.
    open.read(|view| hook_filter.changed(view, TaskStatus::InProgress, task)).unwrap_or_default()
}

fn announce(app: &mut App<'_>, granted: &Grant) {
    if app.global.json {
        return;
    }
    let mut text = Text::new();
    let key = &granted.task.key;
    let holder = &granted.lease.holder.id;
    text.styled(Style::Good, "Claimed")
        .and(Style::Plain, format!(" {key} as {holder} (fence {})", granted.lease.fence));
    app.printer.notice(&text);
}

/// The command line of `tenure start-attempt`, which checks the lease once more and then execs the command.
fn command(app: &App<'_>, open: &Open<'_>, granted: &Grant, words: &[OsString]) -> CommandResult<Command> {
    let failed = |what: &str, e: std::io::Error| Report::new(ErrorCode::General, format!("{what}: {e}"));
    let mut command =
        Command::new(crate::own_binary().map_err(|e| failed("cannot find the tenure binary", e))?);
    command.arg("start-attempt").arg("--").args(words);
    command.env_clear().envs(&app.env.vars).current_dir(&app.env.cwd);
    start_attempt::pass_store(&mut command, &open.paths, &open.config);
    command
        .env("TENURE_PROJECT", &open.paths.root)
        .env("TENURE_TASK_ID", granted.task.id.as_str())
        .env("TENURE_AGENT", &granted.lease.holder.id)
        .env("TENURE_FENCE", granted.lease.fence.to_string());
    pass_proof(&mut command, granted);
    if app.global.json {
        // Standard output is for the one JSON object.
        command.stdout(sys::standard_error().map_err(|e| failed("standard error is closed", e))?);
    }
    Ok(command)
}

fn tell(app: &mut App<'_>, granted: &Grant, attempt: &str, ended: CommandEnd) -> CommandResult<Answer> {
    let data = |app: &App<'_>, task: &Task, code: u8| -> Value {
        let mut data = grant::data(app, granted, None);
        if let Some(fields) = data.as_object_mut() {
            fields.insert("task".into(), json!(view::object(app, task)));
            fields.insert("attempt".into(), json!(attempt));
            fields.insert("exitCode".into(), json!(code));
        }
        data
    };
    let failed = |app: &App<'_>, message: String, task: &Task, code: u8| {
        let mut report = Report::new(ErrorCode::AgentFailed, message);
        *report.details = data(app, task, code);
        report.exit = Some(code);
        report
    };
    match ended {
        CommandEnd::Exited { exit, reported, task } => {
            let code = code_of(exit);
            if code == 0 || reported {
                if !app.global.json {
                    let mut text = Text::new();
                    text.line(format!("{} is {}", task.key, task.status));
                    app.printer.notice(&text);
                }
                return Ok(Answer::new(data(app, &task, code), Text::new()).exit(code));
            }
            let how = match exit {
                Exit::Code(code) => format!("exited with {code}"),
                Exit::Signal(signal) => format!("was killed by signal {signal}"),
            };
            let message = format!("the command {how}; {} is {}", task.key, task.status);
            Err(failed(app, message, &task, code))
        }
        CommandEnd::NotStarted { why, exit, task } => {
            let message = format!("{why}; {} is {}", task.key, task.status);
            Err(failed(app, message, &task, exit))
        }
        CommandEnd::Overdue { why, task } => {
            let message = format!("{why}; {} is {}", task.key, task.status);
            Err(failed(app, message, &task, 1))
        }
        CommandEnd::Interrupted { signal, task } => {
            let code = code_of(Exit::Signal(signal));
            let mut report = Report::interrupted(code);
            report.message = format!("interrupted; {} is {}", task.key, task.status);
            *report.details = data(app, &task, code);
            Err(report)
        }
        CommandEnd::Lost(loss) => Err(lost(loss, granted)),
        CommandEnd::Kept { exit, signal, why } => {
            let stopped = signal.map_or(1, |signal| code_of(Exit::Signal(signal)));
            let mut report = Report::from(*why);
            let message = format!(
                "the outcome of {} is not written yet, but kept: {}",
                granted.task.key, report.message
            );
            report.message = message;
            report.exit = Some(exit.map_or(stopped, code_of));
            Err(report.hint(hints::apply_kept_outcome()))
        }
        CommandEnd::NotBegun { signal } => Err(Report::interrupted(code_of(Exit::Signal(signal)))),
    }
}

fn lost(loss: LeaseLoss, granted: &Grant) -> Report {
    let key = &granted.task.key;
    let gone = |what: String| Report::new(ErrorCode::LeaseLost, format!("you no longer hold {key}: {what}"));
    let mut report = match loss {
        LeaseLoss::Refused(error) => {
            let mut report = Report::from(*error);
            report.code = ErrorCode::LeaseLost;
            report
        }
        loss => gone(loss.to_string()),
    };
    report.context.insert(0, "The command and all processes that it started were ended.".to_owned());
    report
}

/// The exit code as shells report it: the command's own, or 128 plus the signal.
fn code_of(exit: Exit) -> u8 {
    let number = match exit {
        Exit::Code(code) => code,
        Exit::Signal(signal) => 128 + signal,
    };
    u8::try_from(number & 0xff).unwrap_or(1)
}
