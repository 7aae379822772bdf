//! `tenure runners start`: in the foreground, or as a detached process that inherits nothing from its caller.

use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use serde_json::{Value, json};
use tenure_core::config::Hook;
use tenure_core::id::TaskId;
use tenure_core::runner::Runner;
use tenure_core::session::SessionOptions;
use tenure_core::wire::millis;
use tenure_core::{ErrorCode, reference};
use tenure_runner::daemon::log::{DaemonLog, sweep};
use tenure_runner::daemon::{self, RunnerContext, RunnerOptions, RunnerSummary, RunnerTiming, SessionStart};
use tenure_runner::exclusion;
use tenure_runner::preset::{self, PresetError};

use super::callbacks::Program;
use super::list::runner_object;
use crate::answer::Answer;
use crate::app::{App, Open, parse_duration, parse_ttl};
use crate::execution::Surroundings;
use crate::gate;
use crate::interrupt::Interrupts;
use crate::printer::CommandName;
use crate::report::{Outcome, Report};
use crate::shell::quote;
use crate::text::{Style, Text};

/// Start a runner: it takes ready tasks one after the other and has an agent work on each
///
/// It goes on until nothing is left. The project's place for a runner taken is exit 6 at once.
///
/// Example: tenure runners start --preset claude
#[derive(Debug, Default, clap::Args)]
pub(crate) struct Args {
    /// Only this task, then stop
    #[arg(long, value_name = "T")]
    pub(super) task: Option<String>,
    /// Only tasks of this section
    #[arg(long, value_name = "S")]
    pub(super) section: Option<String>,
    /// The agent (default: runners.preset)
    #[arg(long, value_name = "NAME")]
    pub(super) preset: Option<String>,
    /// How long a task is held without a heartbeat (default: locking.taskTimeout)
    #[arg(long, value_name = "DUR", value_parser = parse_ttl)]
    pub(super) ttl: Option<Duration>,
    /// Stay here and show what it does
    #[arg(long)]
    pub(super) foreground: bool,
    /// One task, then stop; exit 1 if it failed
    #[arg(long)]
    pub(super) once: bool,
    /// How long to wait for new work when nothing is left (default: runners.idleTimeout)
    #[arg(long, value_name = "DUR", value_parser = parse_duration)]
    pub(super) idle_timeout: Option<Duration>,
    /// The process behind a start without --foreground (for tenure itself)
    #[arg(long, hide = true)]
    pub(super) detached: bool,
}

impl Args {
    /// The arguments for a runner that replaces a lost one.
    pub(super) fn instead_of(section: Option<String>, preset: Option<String>) -> Self {
        Self { section, preset, ..Self::default() }
    }
}

const NAME: CommandName = CommandName { command: "runners", subcommand: Some("start") };

pub(super) fn run(app: &mut App<'_>, args: Args) -> Outcome<Option<Answer>> {
    if args.detached {
        tenure_runner::detach();
    }
    let open = app.open()?;
    let options = options(app, &open, &args, app.env.ids.uuid())?;
    refuse_locked_out(app, &open)?;
    if app.global.dry_run {
        let mut text = Text::new();
        text.line(format!("Would start a runner with {} on {}", options.preset, options.root.display()));
        return Ok(Some(Answer::new(json!({"runner": null, "preset": options.preset}), text)));
    }
    if !args.foreground && !args.detached {
        return launch(app, &app.start()?, &args).map(|data| Some(launched(data)));
    }
    let mode = Serving { echo: args.foreground, first: args.detached.then_some(NAME), force: false };
    serve(app, &open, &options, mode)
}

/// How a runner runs in this process.
pub(super) struct Serving {
    /// Show the log on standard error.
    pub(super) echo: bool,
    /// In a detached process: the command under whose name it answers once it has a slot.
    pub(super) first: Option<CommandName<'static>>,
    /// Take the session's resume lock even if its file cannot be read or its holder cannot be checked.
    pub(super) force: bool,
}

pub(super) fn refuse_locked_out(app: &App<'_>, open: &Open<'_>) -> Outcome<()> {
    let check = if app.global.dry_run { exclusion::peek } else { exclusion::check };
    let locks = check(&open.paths.root);
    if let Some(skip) = locks.iter().find(|lock| lock.skip) {
        let who = skip.holder.clone().unwrap_or_else(|| "a malformed lock file".to_owned());
        let mut report =
            Report::new(ErrorCode::ExclusiveLocked, format!("the project is locked exclusively by {who}"));
        *report.details = json!({"lockedBy": skip.holder});
        return Err(report.hint("see who has it", "tenure exclusive status"));
    }
    Ok(())
}

/// The error for an agent that cannot be run, with a hint that selects another.
fn unusable(
    error: &PresetError,
    open: &Open<'_>,
    args: &Args,
    works: bool,
    path: Option<&std::ffi::OsStr>,
) -> Report {
    let report = Report::new(ErrorCode::Config, error.to_string());
    let Some(other) = preset::any_runnable(&open.config.presets, &open.paths.root, path) else {
        return report.hint("describe one under presets", "tenure config edit");
    };
    let command = match (works, &args.preset) {
        (true, Some(_)) => format!("tenure runners start --preset {}", quote(other)),
        (true, None) => format!("tenure config set runners.preset {}", quote(other)),
        (false, _) => format!("tenure config set review.preset {}", quote(other)),
    };
    report.hint("choose one that is there", command)
}

pub(super) fn options(
    app: &App<'_>,
    open: &Open<'_>,
    args: &Args,
    session: String,
) -> Outcome<RunnerOptions> {
    let runners = &open.config.runners;
    let section = match &args.section {
        Some(name) => {
            let section = open.read(|view| reference::section(view, name))?;
            Some((section.id, section.name))
        }
        None => None,
    };
    let task = match &args.task {
        Some(task) => Some(TaskId::new(open.resolve(task)?.id)),
        None => None,
    };
    let locking = &open.config.locking;
    let preset = args.preset.clone().unwrap_or_else(|| runners.preset.clone());
    let path = app.env.vars.get(&std::ffi::OsString::from("PATH")).map(std::ffi::OsString::as_os_str);
    // Checked here, where the caller sees the error, and not later in the detached process.
    let reviewer = open.config.review.preset.clone().filter(|_| open.config.review.enabled);
    let words = |name: &str| -> Outcome<Vec<String>> {
        let agent = preset::resolve(name, &open.config.presets, &open.paths.root, path)
            .map_err(|e| unusable(&e, open, args, name == preset, path))?;
        let program = agent.program.to_string_lossy().into_owned();
        Ok(std::iter::once(program).chain(agent.args).collect())
    };
    let workdir = workdir(app, open);
    let options = SessionOptions {
        agent: words(&preset)?,
        preset: preset.clone(),
        reviewer: match &reviewer {
            Some(name) => Some((name.clone(), words(name)?)),
            None => None,
        },
        workdir: workdir.to_string_lossy().into_owned(),
        task: task.clone(),
        section: section.as_ref().map(|(_, name)| name.clone()),
        once: args.once,
        ttl_ms: args.ttl.map(millis),
        idle_timeout_ms: args.idle_timeout.map(millis),
    };
    Ok(RunnerOptions {
        session: SessionStart { id: session, options, interrupted: None },
        root: open.paths.root.clone(),
        workdir,
        section,
        task,
        once: args.once,
        preset,
        reviewer,
        slots: runners.max_concurrent,
        timing: RunnerTiming {
            ttl: args.ttl.unwrap_or(locking.task_timeout),
            section_ttl: locking.section_timeout,
            stale: runners.stale_timeout,
            heartbeat: runners.heartbeat_interval,
            idle: args.idle_timeout.unwrap_or(runners.idle_timeout),
            wait: locking.wait_timeout,
            poll: locking.poll_interval,
            hang: runners.subprocess_hang_timeout,
            agent: runners.agent_timeout,
            grace: runners.kill_grace,
        },
    })
}

/// Agents work in the linked worktree in which the runner was started, or else in the project's root.
fn workdir(app: &App<'_>, open: &Open<'_>) -> PathBuf {
    let start = app.start().unwrap_or_else(|_| open.paths.root.clone());
    let start = start.canonicalize().unwrap_or(start);
    if start.starts_with(&open.paths.root) {
        return open.paths.root.clone();
    }
    start
        .ancestors()
        .find(|top| top.join(".git").is_file())
        .map_or_else(|| open.paths.root.clone(), PathBuf::from)
}

/// Starts a detached runner and waits only until it has a slot or reports an error.
pub(super) fn launch(app: &App<'_>, start: &Path, args: &Args) -> Outcome<Value> {
    let mut command = own_command(app, start)?;
    command.args(["runners", "start", "--detached"]);
    for (flag, value) in [("--task", &args.task), ("--section", &args.section), ("--preset", &args.preset)] {
        if let Some(value) = value {
            command.arg(format!("{flag}={value}"));
        }
    }
    for (flag, value) in [("--ttl", args.ttl), ("--idle-timeout", args.idle_timeout)] {
        if let Some(value) = value {
            command.arg(flag).arg(tenure_core::duration::format_short(value));
        }
    }
    if args.once {
        command.arg("--once");
    }
    first_answer(&mut command)
}

fn launched(data: Value) -> Answer {
    let runner = &data["runner"];
    let short: String = runner["id"].as_str().unwrap_or_default().chars().take(8).collect();
    let mut text = Text::new();
    text.styled(Style::Good, "Started").and(
        Style::Plain,
        format!(
            " runner {short} (pid {}) with {}",
            runner["pid"],
            data["preset"].as_str().unwrap_or_default()
        ),
    );
    Answer::new(data, text)
        .hint("see what it does", format!("tenure runners logs {short} --follow"))
        .hint("stop it", format!("tenure runners stop {short}"))
}

/// A command that runs this binary with this environment for the project at `start`, with JSON output.
pub(in crate::commands) fn own_command(app: &App<'_>, start: &Path) -> Outcome<Command> {
    let failed = |e: std::io::Error| Report::new(ErrorCode::General, format!("cannot find the binary: {e}"));
    let mut command = Command::new(crate::own_binary().map_err(failed)?);
    command.env_clear().envs(&app.env.vars).env_remove("TENURE_ATTEMPT");
    command.arg("--json").arg("-C").arg(start).current_dir(start);
    if let Some(config) = &app.global.config {
        command.arg("--config").arg(app.env.cwd.join(config));
    }
    if app.global.no_hooks {
        command.arg("--no-hooks");
    }
    Ok(command)
}

/// Starts the command and waits for its first line only: the data, or the error.
pub(in crate::commands) fn first_answer(command: &mut Command) -> Outcome<Value> {
    let failed =
        |e: std::io::Error| Report::new(ErrorCode::General, format!("cannot start the process: {e}"));
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null());
    let mut child = command.spawn().map_err(failed)?;
    let mut line = String::new();
    if let Some(stdout) = child.stdout.take() {
        BufReader::new(stdout).read_line(&mut line).map_err(failed)?;
    }
    let mut answer: Value = serde_json::from_str(&line).unwrap_or(Value::Null);
    if answer["success"] == true {
        return Ok(answer["data"].take());
    }
    Err(relayed(&answer["error"]))
}

/// The child's error.
fn relayed(error: &Value) -> Report {
    let code = error["code"].as_str().unwrap_or_default();
    let code = ErrorCode::ALL.iter().copied().find(|c| c.as_str() == code).unwrap_or(ErrorCode::General);
    let message = error["message"].as_str().unwrap_or("the runner ended before it started");
    let mut report = Report::new(code, message);
    *report.details = error["details"].clone();
    report
}

pub(super) fn serve(
    app: &mut App<'_>,
    open: &Open<'_>,
    options: &RunnerOptions,
    mode: Serving,
) -> Outcome<Option<Answer>> {
    // Taken before anything is held, and released last.
    let _gate = gate::take(app, &options.session.id, mode.force)?;
    let logs = app.env.home().unwrap_or_else(|| open.paths.folder()).join("runners").join("logs");
    let (kept, now) = (open.config.runners.log_retention, app.env.clock.now());
    sweep(&logs, kept, now);
    sweep(&open.paths.folder().join("logs"), kept, now);
    if let Ok(directory) = app.directory() {
        let _ = directory.forget_runners(now.before(kept));
    }
    let log =
        DaemonLog::open(&logs, std::process::id(), mode.echo && !app.global.quiet, app.env.clock.clone());
    let surroundings = Surroundings::new(open)?;
    let source = &open.source;
    let ttl = options.timing.ttl;
    let another = || source.open_for_beats(ttl);
    let interrupts = Interrupts::listen().map_err(Report::from)?;
    let waits_for_none = |hook: &Hook| Hook { run_async: true, ..hook.clone() };
    let program = Program {
        env: app.env,
        config: &open.config,
        root: options.root.clone(),
        open: &another,
        hooks: if app.global.no_hooks {
            Vec::new()
        } else {
            open.config.hooks.iter().map(waits_for_none).collect()
        },
        log: &log,
    };
    let actor = app.identity(&crate::identity::Who::default())?.holder.id;
    // A runner that is started by hand tries parked presets again.
    open.write(|tx| {
        for preset in std::iter::once(&options.preset).chain(&options.reviewer) {
            daemon::unpark(tx, preset, &actor)?;
        }
        Ok(())
    })?;
    let cx = RunnerContext {
        store: open.store.as_ref(),
        exec: surroundings.execution(open, &another),
        signals: &interrupts,
        log: &log,
        options,
        callbacks: &program,
    };
    let preset = options.preset.clone();
    let section = options.section.as_ref().map(|(_, name)| name.clone());
    let data = |runner: &Runner| json!({"runner": runner_object(runner, section.as_deref()), "preset": preset, "sessionId": options.session.id});
    let detached = mode.first.is_some();
    let printer = &mut app.printer;
    let ran = daemon::run(&cx, &mut |runner| {
        if let Some(name) = mode.first {
            printer.answer(name, &Answer::new(data(runner), Text::new()));
            leave_streams();
        }
    });
    let summary = match ran {
        Ok(summary) => summary,
        Err(error) if detached && error.code() != ErrorCode::RunnerActive => {
            // Reported only by an error before the first answer; later ones are in the log.
            return Err(error.into());
        }
        Err(error) => return Err(error.into()),
    };
    if detached {
        return Ok(None);
    }
    Ok(Some(run_answer(&summary, data(&summary.runner), options.once)))
}

fn run_answer(summary: &RunnerSummary, mut data: Value, once: bool) -> Answer {
    if let Some(fields) = data.as_object_mut() {
        fields.insert("completed".into(), json!(summary.completed));
        fields.insert("failed".into(), json!(summary.failed));
    }
    let mut text = Text::new();
    text.line(format!("{} completed, {} not", summary.completed, summary.failed));
    Answer::new(data, text).exit(u8::from(once && summary.failed > 0))
}

/// Detaches the standard streams, so that the caller does not wait for more than the first line.
pub(in crate::commands) fn leave_streams() {
    if let Ok(null) = std::fs::File::options().read(true).write(true).open("/dev/null") {
        let _ = rustix::stdio::dup2_stdin(&null);
        let _ = rustix::stdio::dup2_stdout(&null);
        let _ = rustix::stdio::dup2_stderr(&null);
    }
}
