//! `tenure claude-hook`: the command that Claude Code's hooks run, as written by `tenure setup claude`.
//!
//! Guarantees: it exits 0 and prints nothing on any error, because a hook must never disturb a session; it changes only
//! the leases of this session's agent. The agent is named after the session id that Claude Code passes on standard input,
//! so no state is stored. Not guaranteed: that the name reaches the shell calls of every version of Claude Code.
//! Therefore the printed page contains it as well.

use std::fs::File;
use std::io::{IsTerminal, Read, Write};
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde_json::{Value, json};
use tenure_core::error::TaskName;
use tenure_core::holder::{Caller, Holder};
use tenure_core::kernel::{self, Beat, Finish};
use tenure_core::lease::Lease;
use tenure_core::rules::leave_agent;
use tenure_core::store::{Durability, LeaseFilter};
use tenure_core::task::TaskStatus;
use tenure_core::text::check_agent_id;
use tenure_core::{Error, Timestamp};

use super::prime;
use crate::app::{App, Open};
use crate::hooks;
use crate::identity::IdentityArgs;
use crate::report::{CommandResult, Report};
use crate::shell_quote::quote;
use crate::text::Text;

/// How long to wait for a busy store. It is short, because Claude Code waits for its hooks.
const PATIENCE: Duration = Duration::from_secs(2);
/// How long the hook waits at the end of a session. Claude Code ends all hooks of that event after 1.5 seconds; leases that
/// are not released by then expire.
const PATIENCE_AT_THE_END: Duration = Duration::from_millis(400);
/// Maximum number of bytes read from standard input. The event contains the whole output of a tool.
const MAX_EVENT_BYTES: u64 = 16 * 1024 * 1024;
/// Maximum number of bytes read from the exports file.
const MAX_EXPORTS_BYTES: u64 = 1024 * 1024;

/// Handle an event of a Claude Code session (called by its hooks)
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// The event
    #[arg(value_enum)]
    event: SessionEvent,
}

impl Args {
    /// How long the hook waits for a busy store.
    pub(crate) fn patience(&self) -> Duration {
        match self.event {
            SessionEvent::SessionEnd => PATIENCE_AT_THE_END,
            SessionEvent::SessionStart | SessionEvent::PostToolUse => PATIENCE,
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum SessionEvent {
    /// Name the session's agent and print the instructions
    SessionStart,
    /// Renew its leases that are due
    PostToolUse,
    /// Release its leases
    SessionEnd,
}

/// The agent that the session acts as.
struct Session {
    agent: String,
    /// Whether only this session uses the agent. An agent that the environment names may be shared with a runner or
    /// another window.
    is_own: bool,
}

pub(crate) fn run(app: &mut App<'_>, args: Args) {
    if let Err(report) = handle(app, args.event) {
        app.printer.detail(1, || report.message);
    }
}

fn handle(app: &mut App<'_>, event: SessionEvent) -> CommandResult<()> {
    if app.env.var("TENURE_ATTEMPT").is_some() {
        // The session was started for one attempt; its supervisor renews and ends the lease.
        return Ok(());
    }
    let input = read_event()?;
    let session = session(app, &input)?;
    let project = app.find_from(&start(app)?)?;
    match event {
        SessionEvent::SessionStart => {
            if session.is_own && !app.global.dry_run {
                export(app, &session.agent)?;
            }
            let open = app.open_at(project)?;
            print_page(app, &open, &session)
        }
        SessionEvent::PostToolUse => {
            let open = app.open_at(project)?;
            renew(&open, &session)
        }
        SessionEvent::SessionEnd if session.is_own => {
            let open = app.open_at(project)?;
            let why = input.get("reason").and_then(Value::as_str).unwrap_or_default();
            release(app, &open, &session, why)
        }
        SessionEvent::SessionEnd => Ok(()),
    }
}

fn read_event() -> CommandResult<Value> {
    let stdin = std::io::stdin();
    if stdin.is_terminal() {
        return Err(Report::usage(
            "expected a JSON object on standard input, as Claude Code passes it to hooks",
        ));
    }
    let mut text = Vec::new();
    let failed = |why: String| Report::from(Error::General(format!("cannot read the event: {why}")));
    stdin.lock().take(MAX_EVENT_BYTES).read_to_end(&mut text).map_err(|e| failed(e.to_string()))?;
    serde_json::from_slice(&text).map_err(|e| failed(e.to_string()))
}

/// The agent that the environment names, or one that is named after the session.
fn session(app: &App<'_>, input: &Value) -> CommandResult<Session> {
    if let Some(given) = app.env.var("TENURE_AGENT") {
        return Ok(Session { agent: given.to_owned(), is_own: false });
    }
    let id = input.get("session_id").and_then(Value::as_str).filter(|id| !id.is_empty());
    let id = id.ok_or_else(|| Report::usage("the event has no session_id"))?;
    let agent = format!("claude-{id}");
    check_agent_id(&agent).map_err(Error::from)?;
    Ok(Session { agent, is_own: true })
}

/// The session's folder, regardless of its shell's current folder.
fn start(app: &App<'_>) -> CommandResult<PathBuf> {
    let is_named = app.global.project.is_some() || app.env.var("TENURE_PROJECT").is_some();
    match app.env.var("CLAUDE_PROJECT_DIR").map(Path::new) {
        Some(folder) if !is_named && folder.is_dir() => Ok(app.env.cwd.join(folder)),
        _ => app.start(),
    }
}

/// Sets `TENURE_AGENT` for every shell call of the session. Claude Code reads the file before each call. The hook runs
/// again when a session is resumed, cleared or compacted; the last line of the file wins.
fn export(app: &App<'_>, agent: &str) -> CommandResult<()> {
    let Some(path) = app.env.var("CLAUDE_ENV_FILE").map(|path| app.env.cwd.join(path)) else { return Ok(()) };
    let failed = |e: std::io::Error| Report::io(&e, tenure_core::ErrorCode::General, "write", &path);
    let mut there = String::new();
    if let Ok(file) = File::open(&path) {
        file.take(MAX_EXPORTS_BYTES).read_to_string(&mut there).map_err(failed)?;
    }
    let line = format!("export TENURE_AGENT={}", quote(agent));
    let current = there.lines().rfind(|line| line.starts_with("export TENURE_AGENT="));
    if current == Some(line.as_str()) {
        return Ok(());
    }
    let before = if there.is_empty() || there.ends_with('\n') { "" } else { "\n" };
    let mut file = File::options().append(true).create(true).open(&path).map_err(failed)?;
    file.write_all(format!("{before}{line}\n").as_bytes()).map_err(failed)
}

/// Prints the page for Claude Code to add to the session: as text, or in the JSON object that hooks may print.
fn print_page(app: &mut App<'_>, open: &Open<'_>, session: &Session) -> CommandResult<()> {
    let who = IdentityArgs::agent(Some(&session.agent));
    let page = prime::now(app, open, &who)?;
    let mut text = Text::new();
    text.block(0, &page);
    let object = json!({"hookSpecificOutput": {"hookEventName": "SessionStart", "additionalContext": page}});
    app.printer.stream(&object, &text);
    Ok(())
}

/// The tasks that the session holds without a process, including those whose lease has expired and was not taken over, even
/// if a clean-up has closed it. A lease with a process is renewed and ended by its supervisor.
fn held(
    open: &Open<'_>,
    session: &Session,
    is_due: fn(&Lease, Timestamp) -> bool,
) -> CommandResult<Vec<TaskName>> {
    let holder = Holder::agent(&session.agent);
    Ok(open.read(|view| {
        let now = view.now();
        let mut leases = kernel::renewable(view, &open.context(), &holder)?;
        leases.retain(|lease| is_due(lease, now));
        if leases.is_empty() {
            return Ok(Vec::new());
        }
        let viewer = open.context().viewer(view, Some(&holder))?;
        let mut names = Vec::new();
        for id in leases.iter().filter_map(|lease| lease.resource.task_id()) {
            names.extend(view.task(&id, &viewer)?.as_ref().map(kernel::name_of));
        }
        Ok(names)
    })?)
}

/// Renews the leases that have passed half of their ttl, so that frequent tool calls cost little.
fn renew(open: &Open<'_>, session: &Session) -> CommandResult<()> {
    let ctx = open.context();
    let caller = Caller::new(Holder::agent(&session.agent));
    for name in held(open, session, |lease, now| lease.expires_at.since(now) <= lease.ttl / 2)? {
        // A lease that was lost meanwhile does not keep the others from being renewed.
        let renewed = open.store.write(Durability::Process, |tx| {
            let beat = Beat { revive: true, ..Beat::default() };
            kernel::renew(tx, &ctx, &caller, &name, beat).map(drop)
        });
        drop(kernel::recording_rejection(&*open.store, renewed));
    }
    Ok(())
}

/// Also runs when the conversation is cleared or another session is opened, because the work is not continued then. A
/// resumed session can claim it again.
fn release(app: &mut App<'_>, open: &Open<'_>, session: &Session, why: &str) -> CommandResult<()> {
    let ctx = open.context();
    let caller = Caller::new(Holder::agent(&session.agent));
    let is_word =
        !why.is_empty() && why.len() <= 64 && why.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_');
    let message =
        format!("its Claude Code session ended{}", if is_word { format!(" ({why})") } else { String::new() });
    for name in held(open, session, |lease, _| lease.is_open())? {
        let hook_filter = hooks::filter(app, open);
        let hook_contexts = open.write(|tx| {
            let finished = kernel::finish(tx, &ctx, &caller, &name, Finish::Release(Some(&message)), false)?;
            hook_filter.changed(tx, TaskStatus::InProgress, &finished.task)
        })?;
        hooks::deliver_async(app, open, &hook_contexts);
    }
    // The agent is not used any more, unless a process that it started still holds a lease.
    let filter = LeaseFilter { holder: Some(Holder::agent(&session.agent)), ..LeaseFilter::default() };
    if open.read(|view| view.leases(&filter))?.is_empty() {
        open.write(|tx| leave_agent(tx, &ctx, &session.agent).map(drop))?;
    }
    Ok(())
}
