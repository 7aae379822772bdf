//! `tenure runners wakeup`: called by a timer every minute.

use std::collections::{BTreeMap, HashMap};
use std::ffi::OsString;
use std::fs::{File, TryLockError};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use tenure_core::ErrorCode;
use tenure_core::clock::SinceBoot;
use tenure_core::config::TrustState;
use tenure_core::hints::Hint;
use tenure_core::rules::park_misconfigured;
use tenure_core::runner::Runner;
use tenure_runner::daemon::log::DaemonLog;
use tenure_runner::preset::{self, PresetSource, UnusablePreset};
use tenure_runner::retention;
use tenure_runner::timer::Kind;
use tenure_runner::wakeup::{self, Decision, NotStarted, Recheck, Target, Verdict};
use tenure_sqlite::{Directory, IdleProject, KnownProject};

use super::start;
use crate::answer::Answer;
use crate::app::{App, Open};
use crate::candidates::unregistered;
use crate::cli::Global;
use crate::env::{Env, Output};
use crate::identity::IdentityArgs;
use crate::printer::Printer;
use crate::project::{Project, ProjectPaths};
use crate::report::{CommandResult, Report};
use crate::sys;
use crate::table::{Table, cut, cut_start, keep};
use crate::text::{Style, Text};
use crate::{tracked, trust};
use tenure_core::short_id::ShortIds;

/// Restart stalled projects (called by a timer)
///
/// Checks every registered project once, and starts a runner where work is ready. Skips projects with a running runner,
/// without ready work, or locked by another tool. With --quiet it prints nothing; errors are in its log. Exits 1 if a
/// project could not be checked.
///
/// Example: tenure runners wakeup --dry-run
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// The calling timer (used internally)
    #[arg(long, hide = true, value_name = "KIND", value_parser = super::cron::parse_kind)]
    timer: Option<Kind>,
}

/// A wake-up ends before the next one starts.
const DEADLINE: Duration = Duration::from_secs(50);

/// How long to wait for a project's busy store. The next wake-up tries again.
const PATIENCE: Duration = Duration::from_secs(5);
/// The longest time that one wake-up spends on removing old history of a project.
const PRUNING: Duration = Duration::from_secs(2);

/// A registered project to check.
struct WakeupTarget {
    root: PathBuf,
    /// Whether wake-up may start a runner there.
    enabled: bool,
    /// The state of its files before they are read.
    mark: Option<String>,
}

pub(super) fn run(app: &mut App<'_>, args: Args) -> CommandResult<Answer> {
    let silent = app.global.quiet && !app.global.json;
    match round(app, args) {
        Err(report) if silent => {
            if let Some(log) = log(app) {
                log.line(&report.message);
            }
            Ok(Answer::new(Value::Null, Text::new()).exit(report.exit_code()))
        }
        answered => answered,
    }
}

/// The log of wake-up. None in a dry run, which writes nothing, or without a home.
fn log(app: &App<'_>) -> Option<Arc<DaemonLog>> {
    let home = app.home().ok().filter(|_| !app.global.dry_run)?;
    let folder = home.join("runners").join("logs");
    Some(Arc::new(DaemonLog::shared(&folder, "wakeup.log", app.env.clock.clone())))
}

fn round(app: &mut App<'_>, args: Args) -> CommandResult<Answer> {
    let limit = app.global.timeout.map_or(DEADLINE, |limit| limit.min(DEADLINE));
    let deadline = Instant::now() + limit;
    let home = app.home()?;
    if let (Some(timer), false) = (args.timer, app.global.dry_run) {
        let noted = app.directory().and_then(|directory| Ok(directory.note_fired(timer.as_str())?));
        // The projects are checked even if the directory cannot be written.
        if let Err(report) = noted {
            app.printer.warn(&format!("cannot record the timer's call: {}", report.message));
        }
    }
    let _turn = match take_turn(app, &home)? {
        Turn::Ours(lock) => lock,
        Turn::Busy => return Ok(overlapping(app.global.quiet)),
    };
    let directory = Directory::open_existing(&home, app.env.clock.clone())?;
    let registered = directory.as_ref().map(Directory::projects).transpose()?.unwrap_or_default();
    let candidates = unregistered(app, &registered)?;
    let known = match &directory {
        Some(directory) if !app.global.dry_run => directory.idle_projects()?,
        _ => HashMap::new(),
    };
    let mut verdicts: BTreeMap<PathBuf, Verdict> = BTreeMap::new();
    for path in candidates.keys() {
        let reason = "it is not registered, so none of its files is read or run";
        verdicts.insert(path.clone(), Verdict::new(Decision::Unregistered, reason));
    }
    let mut jobs = Vec::new();
    let (now, boot) = (app.env.clock.now(), boot_time(app.env));
    let user_config = app.user_config();
    for project in &registered {
        let mut files = ProjectPaths::new(&project.path).changing_files().to_vec();
        files.extend(user_config.clone());
        let mark = if project.enabled { wakeup::fingerprint(&project.path, &files, now) } else { None };
        let mark = mark.map(|mark| format!("{} {mark}", boot.boot));
        let unchanged = known.get(&project.path).filter(|idle| {
            mark.as_ref() == Some(&idle.mark) && idle.until.is_none_or(|until| until > boot.millis)
        });
        match unchanged {
            Some(idle) => {
                verdicts.insert(project.path.clone(), Verdict::new(Decision::Idle, idle.reason.clone()));
            }
            None => jobs.push(WakeupTarget { root: project.path.clone(), enabled: project.enabled, mark }),
        }
    }
    let roots: Vec<PathBuf> = jobs.iter().map(|job| job.root.clone()).collect();
    let mut env = app.env.clone();
    // Wake-up never trusts: only a person's record counts.
    env.vars.remove(&OsString::from(trust::VARIABLE));
    let global = Global { timeout: Some(limit.min(PATIENCE)), ..app.global.clone() };
    let log = log(app);
    let shared = log.clone();
    let answers = wakeup::for_each(jobs, deadline, move |job| {
        serve(&env, &global, shared.as_deref(), &registered, job)
    });
    let mut idle = Vec::new();
    for (root, answer) in roots.iter().zip(answers) {
        let late = || {
            let why = format!("it did not answer within {}", tenure_core::duration::format_short(limit));
            (Verdict::new(Decision::Error, why), None)
        };
        let (verdict, memory) = answer.unwrap_or_else(late);
        idle.extend(memory.map(|memory| (root.as_path(), memory)));
        if let Some(log) = log.as_ref().filter(|_| verdict.decision == Decision::Error) {
            log.line(&format!("{}: {}", root.display(), verdict.reason));
        }
        verdicts.insert(root.clone(), verdict);
    }
    if !app.global.dry_run {
        let resting = |root: &Path| idle.iter().any(|(path, _)| *path == root);
        let busy: Vec<&Path> =
            roots.iter().map(PathBuf::as_path).filter(|r| known.contains_key(*r) && !resting(r)).collect();
        if let (Some(directory), false) = (&directory, idle.is_empty() && busy.is_empty()) {
            // Best effort: only saves the next wake-up some work.
            let _ = directory.note_idle(&idle, &busy);
        }
        crate::store::sweep_doorbells(app.env, true);
    }
    Ok(answer(app, &verdicts, candidates.into_values().collect()))
}

enum Turn {
    /// `None` in a dry run, which needs no lock.
    Ours(Option<File>),
    Busy,
}

/// Allows one wake-up per user at a time. The file lock ends with its process; the file is in the home, which all
/// wake-ups of a user share. If it cannot be opened, the wake-up fails.
fn take_turn(app: &App<'_>, home: &Path) -> CommandResult<Turn> {
    if app.global.dry_run {
        return Ok(Turn::Ours(None));
    }
    let path = home.join("wakeup.lock");
    let failed = |e: &std::io::Error| Report::io(e, ErrorCode::General, "lock", &path);
    crate::atomic::make_folder(home).map_err(|e| failed(&e))?;
    let mut options = File::options();
    options.read(true).write(true).create(true).truncate(false);
    let file = sys::with_mode(&mut options, 0o600).open(&path);
    let file = file.map_err(|e| failed(&e))?;
    match file.try_lock() {
        Ok(()) => Ok(Turn::Ours(Some(file))),
        Err(TryLockError::WouldBlock) => Ok(Turn::Busy),
        Err(TryLockError::Error(e)) => Err(failed(&e)),
    }
}

fn overlapping(quiet: bool) -> Answer {
    let mut text = Text::new();
    if !quiet {
        text.line("Another wake-up is already running.");
    }
    Answer::new(json!({"results": [], "total": 0, "overlapping": true}), text)
}

/// Why a project is missing, and where it may be now.
fn missing_reason(app: &App<'_>, path: &Path, registered: &[KnownProject]) -> String {
    match super::super::projects::moved_to(app, path, registered) {
        Some(other) => format!("it no longer exists; the same project is at {}", other.display()),
        None => "it no longer exists".to_owned(),
    }
}

/// Checks one project, on a thread that is abandoned if it does not answer in time.
fn serve(
    env: &Env,
    global: &Global,
    log: Option<&DaemonLog>,
    registered: &[KnownProject],
    job: WakeupTarget,
) -> (Verdict, Option<IdleProject>) {
    let mut sink = Output::sink();
    let shared = std::cell::OnceCell::new();
    let printer = Printer::new(&mut sink, global, false);
    let mut app = App { env, shared: &shared, global, printer, wait_handles: Vec::new() };
    let Some(project) = app.project_at(&job.root) else {
        return (Verdict::new(Decision::Missing, missing_reason(&app, &job.root, registered)), None);
    };
    if !job.enabled {
        let reason = "it was disabled with `tenure projects disable`";
        return (Verdict::new(Decision::Disabled, reason), None);
    }
    if let Some(reason) = untrusted_reason(&app, &project) {
        return (Verdict::new(Decision::Untrusted, reason), None);
    }
    match wake_up(&mut app, log, project) {
        Ok((verdict, rest)) => {
            let memory = match (rest, job.mark) {
                (Recheck::Until(until), Some(mark)) => {
                    let (now, boot) = (env.clock.now().as_millis(), boot_time(env));
                    let until = until.map(|until| boot.millis.saturating_add(until.as_millis() - now));
                    Some(IdleProject { mark, reason: verdict.reason.clone(), until })
                }
                _ => None,
            };
            (verdict, memory)
        }
        Err(report) => (Verdict::new(Decision::Error, report.message), None),
    }
}

/// The clock for remembering until when a project is idle. The wall clock is not used, because that of another
/// wake-up may be wrong.
fn boot_time(env: &Env) -> SinceBoot {
    let wall = || SinceBoot { boot: String::new(), millis: env.clock.now().as_millis() };
    env.clock.since_boot().unwrap_or_else(wall)
}

/// Why nothing may be started in a project. Also `None` if trust cannot be determined; opening the project
/// then reports the reason.
fn untrusted_reason(app: &App<'_>, project: &Project) -> Option<String> {
    if let Err(report) = tracked::refuse(app.env, &project.paths) {
        return Some(report.message);
    }
    let examined = trust::examine(app.env, &project.paths).ok()?;
    match examined.state {
        TrustState::Trusted => None,
        TrustState::Changed => {
            Some("it has changed since it was trusted; run `tenure trust` in it".to_owned())
        }
        TrustState::Untrusted | TrustState::Nothing => {
            Some("it is not trusted; run `tenure trust` in it".to_owned())
        }
    }
}

fn wake_up(
    app: &mut App<'_>,
    log: Option<&DaemonLog>,
    project: Project,
) -> CommandResult<(Verdict, Recheck)> {
    let open = app.open_at(project)?;
    let root = &open.paths.root;
    if open.store.is_copy() {
        let why = "its database is a copy of another project's; run `tenure store adopt` in it";
        return Ok((Verdict::new(Decision::Error, why), Recheck::Unknown));
    }
    let actor = app.identity(&IdentityArgs::default())?.holder.id;
    let (runners, review) = (&open.config.runners, &open.config.review);
    let reviewer = review.preset.clone().filter(|_| review.enabled);
    let say = |line: &str| {
        if let Some(log) = log {
            log.line(&format!("{}: {line}", root.display()));
        }
    };
    let path = app.env.vars.get(&OsString::from("PATH")).map(OsString::as_os_str);
    let source = PresetSource::of(&open.config, root, path);
    let start = |lost: Option<&Runner>| {
        let preset = lost.map_or(&runners.preset, |runner| &runner.preset);
        for name in std::iter::once(preset).chain(&reviewer) {
            if let Err(unusable) = preset::resolve_or_park(name, &source) {
                return Err(park(app, &open, &unusable, &actor));
            }
        }
        // The replacement keeps the section and the preset of the lost runner.
        let section = lost.and_then(|runner| runner.section.as_ref());
        let section = section.and_then(|id| open.read(|view| view.section(id)).ok().flatten());
        let preset = lost.map(|runner| runner.preset.clone());
        let args = start::Args::replacement(section.map(|section| section.name), preset);
        let launched = if app.global.dry_run {
            start::check(app, &open, &args).map(|()| Value::Null)
        } else {
            start::launch(app, root, &args)
        };
        match launched {
            Ok(data) => Ok(data["runner"]["id"].as_str().unwrap_or_default().to_owned()),
            Err(report) => Err(NotStarted { code: report.code, message: report.message, parked: false }),
        }
    };
    let scopes = std::iter::once(&runners.preset).chain(&reviewer).map(|name| {
        preset::resolve_or_park(name, &source).map_or_else(|unusable| unusable.scope, |agent| agent.scope())
    });
    let target = Target {
        root,
        store: open.store.as_ref(),
        ctx: open.context(),
        actor: &actor,
        enabled: runners.wakeup.enabled,
        slots: usize::try_from(runners.max_concurrent).unwrap_or(usize::MAX),
        stale_after: runners.stale_timeout,
        scopes: scopes.collect(),
        reviewing: reviewer.is_some(),
        dry_run: app.global.dry_run,
        writer: &|| open.source.writer(),
        log: &say,
        start: &start,
    };
    let (verdict, rest) = wakeup::wake(&target);
    if let (Some(retention), false) = (open.config.retention, app.global.dry_run) {
        // Best effort: what is left is removed by the next wake-up.
        let _ = retention::prune(open.store.as_ref(), retention, PRUNING);
    }
    // The rows on a server change without a change of the project's files.
    let rest = if open.source.is_on_server() { Recheck::Unknown } else { rest };
    Ok((verdict, rest))
}

/// Parks a preset that cannot be started as configured, so that wake-up does not try it again until the
/// configuration has changed.
fn park(app: &App<'_>, open: &Open<'_>, unusable: &UnusablePreset, actor: &str) -> NotStarted {
    let (reason, code) = (unusable.error.reason(), ErrorCode::Config);
    if !app.global.dry_run {
        let parked = open.write(|tx| park_misconfigured(tx, &unusable.scope, &reason, actor));
        if let Err(report) = parked {
            return NotStarted { code, message: report.to_string(), parked: false };
        }
    }
    let message = format!("preset {} is parked: {reason}", unusable.scope.preset);
    NotStarted { code, message, parked: true }
}

fn answer(app: &App<'_>, verdicts: &BTreeMap<PathBuf, Verdict>, hints: Vec<Hint>) -> Answer {
    let failed = verdicts.values().any(|verdict| verdict.decision == Decision::Error);
    let mut table = Table::new([cut_start("PROJECT"), keep("DECISION"), keep("RUNNER"), cut("REASON")]);
    let mut text = Text::new();
    let ids = ShortIds::of(verdicts.values().filter_map(|verdict| verdict.runner.as_deref()));
    for (path, verdict) in verdicts {
        let runner = verdict.runner.as_deref().map_or("-", |id| ids.show(id));
        table.styled_row(vec![
            (Style::Plain, path.to_string_lossy().into_owned()),
            (style(verdict.decision), verdict.decision.to_string()),
            (Style::Plain, runner.to_owned()),
            (Style::Plain, verdict.reason.clone()),
        ]);
    }
    if app.global.dry_run {
        text.line("Dry run: a wake-up would decide the following.");
    }
    if verdicts.is_empty() {
        text.line("No projects.");
    } else {
        text.table(&table, app.printer.render_options());
    }
    if app.global.quiet {
        text = Text::new();
    }
    let results: Vec<Value> = verdicts
        .iter()
        .map(|(path, verdict)| {
            json!({
                "project": path,
                "decision": verdict.decision.as_str(),
                "reason": verdict.reason,
                "runnerId": verdict.runner,
            })
        })
        .collect();
    let mut answer = Answer::new(json!({"results": results, "total": results.len()}), text);
    if !app.global.quiet {
        answer.hints = hints;
    }
    answer.exit(u8::from(failed))
}

fn style(decision: Decision) -> Style {
    match decision {
        Decision::Started | Decision::Restarted | Decision::Running => Style::Good,
        Decision::Idle | Decision::Disabled => Style::Plain,
        Decision::Locked
        | Decision::Parked
        | Decision::Unregistered
        | Decision::Untrusted
        | Decision::Missing => Style::Warn,
        Decision::Error => Style::Bad,
    }
}
