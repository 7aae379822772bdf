//! `tenure runners start`: runs in the foreground, or starts a background process that is detached from its caller.

use std::ffi::{OsStr, OsString};
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use serde_json::{Value, json};
use tenure_core::config::Hook;
use tenure_core::hints;
use tenure_core::id::TaskId;
use tenure_core::runner::Runner;
use tenure_core::session::SessionOptions;
use tenure_core::wire::{self, millis};
use tenure_core::{ErrorCode, reference, rules};
use tenure_runner::daemon::log::{DaemonLog, sweep};
use tenure_runner::daemon::{
    self, LogLimits, RunnerCallbacks as _, RunnerContext, RunnerOptions, RunnerSummary, RunnerTiming,
    SessionStart, TaskCounts,
};
use tenure_runner::exclusion;
use tenure_runner::preset::{self, PresetError, PresetSource};
use tenure_runner::{NO_ATTEMPT, Outage};

use super::callbacks::RunnerHost;
use crate::answer::Answer;
use crate::app::{App, Open, parse_duration, parse_ttl};
use crate::commands::trust;
use crate::execution::Surroundings;
use crate::interrupt::Interrupts;
use crate::printer::CommandName;
use crate::report::{CommandResult, Report};
use crate::resume_lock;
use crate::shell_quote::quote;
use crate::sys;
use crate::text::{Style, Text};
use crate::trust::Examined;

/// Start a runner, which claims ready tasks one after another and runs an agent on each
///
/// It runs until no work is left. Exits 6 immediately if all of the project's runner slots are in use.
///
/// Example: tenure runners start --preset claude
#[derive(Debug, Default, clap::Args)]
pub(crate) struct Args {
    /// Run only this task, then stop
    #[arg(long, value_name = "T")]
    pub(super) task: Option<String>,
    /// Run only tasks of this section
    #[arg(long, value_name = "S")]
    pub(super) section: Option<String>,
    /// The agent preset (default: runners.preset)
    #[arg(long, value_name = "NAME")]
    pub(super) preset: Option<String>,
    /// How long a task stays held after the last heartbeat (default: locking.taskTimeout)
    #[arg(long, value_name = "DUR", value_parser = parse_ttl)]
    pub(super) ttl: Option<Duration>,
    /// Stay in the foreground and print the log
    #[arg(long)]
    pub(super) foreground: bool,
    /// Run one task, then stop; exit 1 if it failed
    #[arg(long)]
    pub(super) once: bool,
    /// How long to wait for new work before stopping (default: runners.idleTimeout)
    #[arg(long, value_name = "DUR", value_parser = parse_duration)]
    pub(super) idle_timeout: Option<Duration>,
    /// The background process of a start without --foreground (used internally)
    #[arg(long, hide = true)]
    pub(super) detached: bool,
}

impl Args {
    /// The arguments for replacing a lost runner, or for a start from the board. `None` means the configured
    /// default.
    pub(crate) fn replacement(section: Option<String>, preset: Option<String>) -> Self {
        Self { section, preset, ..Self::default() }
    }
}

const NAME: CommandName = CommandName { command: "runners", subcommand: Some("start") };

pub(crate) fn run(app: &mut App<'_>, args: Args) -> CommandResult<Option<Answer>> {
    if args.detached {
        tenure_runner::detach();
    }
    let (trusted, _) = trust::require(app, &app.find()?.paths)?;
    let open = app.open()?;
    let options = options(app, &open, &args, app.env.ids.uuid())?;
    refuse_locked_out(app, &open)?;
    if !args.foreground && !args.detached {
        // Otherwise the runner's log contains these sentences.
        for sentence in unlimited_agents(app, &open, &options) {
            app.printer.warn(&sentence);
        }
    }
    if app.global.dry_run {
        let mut text = Text::new();
        text.line(format!("Would start a runner with {} on {}", options.preset, options.root.display()));
        return Ok(Some(Answer::new(json!({"runner": null, "preset": options.preset}), text)));
    }
    if !args.foreground && !args.detached {
        return launch(app, &app.start()?, &args).map(|data| Some(launched(data)));
    }
    let how = Serving { echo: args.foreground, first: args.detached.then_some(NAME), force: false, trusted };
    serve(app, &open, &options, how)
}

/// A sentence about each agent of the runner that its permissions do not limit.
fn unlimited_agents(app: &App<'_>, open: &Open<'_>, options: &RunnerOptions) -> Vec<String> {
    let path = app.env.vars.get(&OsString::from("PATH")).map(OsString::as_os_str);
    let source = PresetSource::of(&open.config, &open.paths.root, path);
    let names = std::iter::once(&options.preset).chain(&options.reviewer);
    let mut sentences: Vec<String> =
        names.filter_map(|name| preset::resolve(name, &source).ok()?.unlimited()).collect();
    sentences.dedup();
    sentences
}

/// Whether [`launch`] could start a runner now, as far as that can be seen without starting it.
pub(super) fn check(app: &App<'_>, open: &Open<'_>, args: &Args) -> CommandResult<()> {
    options(app, open, args, String::new())?;
    refuse_locked_out(app, open)
}

/// How a runner runs in this process.
pub(super) struct Serving {
    /// Print its log.
    pub(super) echo: bool,
    /// Set in a background process: the command whose answer it prints as soon as it has its slot.
    pub(super) first: Option<CommandName<'static>>,
    /// Take over a resume lock that is unreadable or whose holder is unknown.
    pub(super) force: bool,
    pub(super) trusted: Examined,
}

pub(super) fn refuse_locked_out(app: &App<'_>, open: &Open<'_>) -> CommandResult<()> {
    let check = if app.global.dry_run { exclusion::peek } else { exclusion::check };
    let locks = check(&open.paths.root);
    if let Some(skip) = locks.iter().find(|lock| lock.skip) {
        let who = skip.holder.clone().unwrap_or_else(|| "a malformed lock file".to_owned());
        let mut report =
            Report::new(ErrorCode::ExclusiveLocked, format!("the project is locked exclusively by {who}"));
        *report.details = json!({"lockedBy": skip.holder});
        return Err(report.hint(hints::show_exclusive()));
    }
    Ok(())
}

/// The error for an agent that cannot be run, with a hint how to choose another.
fn unusable(error: &PresetError, open: &Open<'_>, args: &Args, works: bool, path: Option<&OsStr>) -> Report {
    let mut report = Report::new(ErrorCode::Config, error.to_string());
    if let PresetError::Access { source, .. } = error {
        report = report.hint(source.hint());
    }
    let Some(other) = preset::any_runnable(&PresetSource::of(&open.config, &open.paths.root, path)) else {
        return report.hint(hints::define_preset());
    };
    let other = quote(other);
    report.hint(match (works, &args.preset) {
        (true, Some(_)) => hints::start_with_preset(other),
        (true, None) => hints::set_preset(other),
        (false, _) => hints::set_review_preset(other),
    })
}

pub(super) fn options(
    app: &App<'_>,
    open: &Open<'_>,
    args: &Args,
    session: String,
) -> CommandResult<RunnerOptions> {
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
    let path = app.env.vars.get(&OsString::from("PATH")).map(OsString::as_os_str);
    // Resolved now, so that an error is reported to the caller and not only to the log.
    let reviewer = open.config.review.preset.clone().filter(|_| open.config.review.enabled);
    let words = |name: &str| -> CommandResult<Vec<String>> {
        let agent = preset::resolve(name, &PresetSource::of(&open.config, &open.paths.root, path))
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
        retention: open.config.retention,
        logs: LogLimits { age: runners.log_retention, total: runners.log_total },
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

/// The agents' folder: the linked worktree in which the runner was started, otherwise the project's root.
fn workdir(app: &App<'_>, open: &Open<'_>) -> PathBuf {
    let start = app.start().unwrap_or_else(|_| open.paths.root.clone());
    let start = sys::real_path(&start).unwrap_or(start);
    if start.starts_with(&open.paths.root) {
        return open.paths.root.clone();
    }
    start
        .ancestors()
        .find(|top| top.join(".git").is_file())
        .map_or_else(|| open.paths.root.clone(), PathBuf::from)
}

/// Starts the runner as a background process, and waits only until it has its slot or has reported why not.
pub(super) fn launch(app: &App<'_>, start: &Path, args: &Args) -> CommandResult<Value> {
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
    let id = runner["id"].as_str().unwrap_or_default().to_owned();
    Answer::new(data, text).key(id).hint(hints::follow_runner(&short)).hint(hints::stop_runner(&short))
}

/// A command that runs this program again in the same environment, for the project at `start`, with JSON output.
pub(in crate::commands) fn own_command(app: &App<'_>, start: &Path) -> CommandResult<Command> {
    let failed =
        |e: std::io::Error| Report::new(ErrorCode::General, format!("cannot find the tenure binary: {e}"));
    let mut command = Command::new(crate::own_binary().map_err(failed)?);
    command.env_clear().envs(&app.env.vars).env(NO_ATTEMPT.0, NO_ATTEMPT.1);
    command.arg("--json").arg("-C").arg(start).current_dir(start);
    if let Some(config) = &app.global.config {
        command.arg("--config").arg(app.env.cwd.join(config));
    }
    if app.global.no_hooks {
        command.arg("--no-hooks");
    }
    Ok(command)
}

/// Starts the command and waits for the first line of its output: the answer or the error.
pub(in crate::commands) fn first_answer(command: &mut Command) -> CommandResult<Value> {
    let failed =
        |e: std::io::Error| Report::new(ErrorCode::General, format!("cannot start the process: {e}"));
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null());
    let mut child = command.spawn().map_err(failed)?;
    let mut line = String::new();
    if let Some(stdout) = child.stdout.take() {
        let read = BufReader::new(stdout).read_line(&mut line);
        reap_later(child);
        read.map_err(failed)?;
    }
    let mut answer: Value = serde_json::from_str(&line).unwrap_or(Value::Null);
    if answer["success"] == true {
        return Ok(answer["data"].take());
    }
    Err(relayed(&answer["error"]))
}

/// Collects the exit code of a process that may outlive this call, so that a server leaves no zombies.
pub(in crate::commands) fn reap_later(mut child: Child) {
    let _ = std::thread::Builder::new().name("reap".into()).spawn(move || child.wait());
}

/// The child's error as a report.
fn relayed(error: &Value) -> Report {
    let code = error["code"].as_str().unwrap_or_default();
    let code = ErrorCode::ALL.iter().copied().find(|c| c.as_str() == code).unwrap_or(ErrorCode::General);
    let message = error["message"].as_str().unwrap_or("the process ended before it was ready");
    let mut report = Report::new(code, message);
    *report.details = error["details"].clone();
    report
}

pub(super) fn serve(
    app: &mut App<'_>,
    open: &Open<'_>,
    options: &RunnerOptions,
    how: Serving,
) -> CommandResult<Option<Answer>> {
    // Acquired before any lease and released after it.
    let _resume_lock = resume_lock::acquire(app, &options.session.id, how.force)?;
    let logs = app.env.home().unwrap_or_else(|| open.paths.folder()).join("runners").join("logs");
    // The home is shared by all of the user's projects, so the project's setting does not decide how long
    // files are kept there.
    let own = app.config(None)?.runners;
    let now = app.env.clock.now();
    sweep(&logs, LogLimits { age: own.log_retention, total: own.log_total }, now);
    if let Ok(directory) = app.directory() {
        let _ = directory.forget_runners(now.before(own.log_retention));
    }
    let log =
        DaemonLog::open(&logs, std::process::id(), how.echo && !app.global.quiet, app.env.clock.clone());
    for sentence in unlimited_agents(app, open, options) {
        log.line(&sentence);
    }
    let surroundings = Surroundings::new(open)?;
    let source = &open.source;
    let ttl = options.timing.ttl;
    let another = || source.open_for_beats(ttl);
    let interrupts = Interrupts::listen().map_err(Report::from)?;
    let waits_for_none = |hook: &Hook| Hook { run_async: true, ..hook.clone() };
    let program = RunnerHost {
        env: app.env,
        config: &open.config,
        root: options.root.clone(),
        workdir: options.workdir.clone(),
        open: &another,
        hooks: if app.global.no_hooks {
            Vec::new()
        } else {
            open.config.hooks.iter().map(waits_for_none).collect()
        },
        log: &log,
        trusted: &how.trusted,
    };
    // Starting a runner is an explicit request to try what is parked.
    open.write(|tx| {
        for preset in std::iter::once(&options.preset).chain(&options.reviewer) {
            rules::request_try(tx, &program.preset(preset)?.scope)?;
        }
        Ok(())
    })?;
    let say = |line: &str| log.line(line);
    let outage = Outage::new(&say);
    let cx = RunnerContext {
        store: open.store.as_ref(),
        exec: surroundings.execution(open, &another),
        signals: &interrupts,
        log: &log,
        options,
        callbacks: &program,
        outage: &outage,
    };
    let preset = options.preset.clone();
    let section = options.section.as_ref().map(|(_, name)| name.clone());
    let data = |runner: &Runner| json!({"runner": wire::runner(runner, section.as_deref()), "preset": preset, "sessionId": options.session.id});
    let detached = how.first.is_some();
    let printer = &mut app.printer;
    let ran = daemon::run(&cx, &mut |runner| {
        if let Some(name) = how.first {
            printer.answer(name, &Answer::new(data(runner), Text::new()));
            // The caller reads until end of file, so the streams are closed now. Otherwise it would wait for
            // the runner to end.
            sys::leave_streams();
        }
    });
    let summary = ran?;
    if detached {
        return Ok(None);
    }
    Ok(Some(result(&summary, data(&summary.runner), options.once)))
}

fn result(summary: &RunnerSummary, mut data: Value, once: bool) -> Answer {
    let tasks = summary.tasks;
    if let Some(fields) = data.as_object_mut() {
        for (name, count) in [
            ("completed", tasks.completed),
            ("review", tasks.review),
            ("failed", tasks.failed),
            ("skipped", tasks.skipped),
            ("pending", tasks.pending),
        ] {
            fields.insert(name.into(), json!(count));
        }
    }
    let mut text = Text::new();
    text.line(sentence(tasks));
    Answer::new(data, text).exit(u8::from(once && summary.has_failures))
}

/// `Tasks: 2 completed, 1 for review, 1 failed.`
fn sentence(tasks: TaskCounts) -> String {
    let counts = [
        (tasks.completed, "completed"),
        (tasks.review, "for review"),
        (tasks.failed, "failed"),
        (tasks.skipped, "skipped"),
        (tasks.pending, "pending again"),
    ];
    let parts: Vec<String> = counts
        .iter()
        .filter(|(count, _)| *count > 0)
        .map(|(count, word)| format!("{count} {word}"))
        .collect();
    if parts.is_empty() {
        return "No task was worked on.".to_owned();
    }
    format!("Tasks: {}.", parts.join(", "))
}
