//! `tenure claude-hook`: what Claude Code's hooks call, as `tenure setup claude` has written them.
//!
//! Guarantees: whatever goes wrong, it exits 0 and says nothing, because a hook of ours must never be in the way of a session;
//! it touches only what this session's own agent holds. The agent is named after the session, so each hook knows it from
//! what Claude Code tells it on standard input; no state of ours is kept anywhere. Not guaranteed: that the name reaches
//! the shell calls of every version of Claude Code. So the page says it, too.

use std::fs::File;
use std::io::{IsTerminal, Read, Write};
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde_json::{Value, json};
use tenure_core::error::TaskName;
use tenure_core::holder::{Caller, Holder};
use tenure_core::kernel::{self, Beat, Finish};
use tenure_core::lease::{Lease, LeaseState, ResourceKind};
use tenure_core::rules::leave_agent;
use tenure_core::store::{Durability, LeaseFilter};
use tenure_core::task::TaskStatus;
use tenure_core::text::check_agent_id;
use tenure_core::{Error, Timestamp};

use super::prime;
use crate::app::{App, Open};
use crate::hooks;
use crate::identity::IdentityArgs;
use crate::report::{Outcome, Report};
use crate::shell_quote::quote;
use crate::text::Text;

/// A store that is busy is waited for this long: Claude Code waits for its hooks.
pub(crate) const PATIENCE: Duration = Duration::from_secs(2);
/// What is longer is not read. A tool's whole answer comes along.
const LONGEST: u64 = 16 * 1024 * 1024;
/// So much of the file with the exports is looked at.
const LONGEST_EXPORTS: u64 = 1024 * 1024;

/// Do what is due at an event of a Claude Code session (for its hooks)
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// The event
    #[arg(value_enum)]
    event: SessionEvent,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum SessionEvent {
    /// Give the session a name of its own, and tell it how to work here
    SessionStart,
    /// Renew what it holds, if that is due
    PostToolUse,
    /// Give back what it holds
    SessionEnd,
}

/// IdentityArgs the session acts for.
struct Session {
    agent: String,
    /// The agent is this session's alone. One that was given to it may be used by others: a runner, another window.
    is_own: bool,
}

pub(crate) fn run(app: &mut App<'_>, args: Args) {
    if let Err(report) = handle(app, args.event) {
        app.printer.detail(1, || report.message);
    }
}

fn handle(app: &mut App<'_>, event: SessionEvent) -> Outcome<()> {
    if app.env.var("TENURE_ATTEMPT").is_some() {
        // Whoever started it for one task has told it everything, and renews and ends the lease.
        return Ok(());
    }
    let told = read_event()?;
    let session = session(app, &told)?;
    let project = app.find_from(&start(app)?)?;
    match event {
        SessionEvent::SessionStart => {
            if session.is_own && !app.global.dry_run {
                export(app, &session.agent)?;
            }
            let open = app.open_at(project)?;
            tell(app, &open, &session)
        }
        SessionEvent::PostToolUse => {
            let open = app.open_at(project)?;
            renew(app, &open, &session)
        }
        SessionEvent::SessionEnd if session.is_own => {
            let open = app.open_at(project)?;
            let why = told.get("reason").and_then(Value::as_str).unwrap_or_default();
            release(app, &open, &session, why)
        }
        SessionEvent::SessionEnd => Ok(()),
    }
}

fn read_event() -> Outcome<Value> {
    let stdin = std::io::stdin();
    if stdin.is_terminal() {
        return Err(Report::usage("Claude Code gives its hooks a JSON object on standard input"));
    }
    let mut text = Vec::new();
    let failed = |why: String| Report::from(Error::General(format!("no event could be read: {why}")));
    stdin.lock().take(LONGEST).read_to_end(&mut text).map_err(|e| failed(e.to_string()))?;
    serde_json::from_slice(&text).map_err(|e| failed(e.to_string()))
}

/// The agent that the environment names, or one that is named after the session.
fn session(app: &App<'_>, told: &Value) -> Outcome<Session> {
    if let Some(given) = app.env.var("TENURE_AGENT") {
        return Ok(Session { agent: given.to_owned(), is_own: false });
    }
    let id = told.get("session_id").and_then(Value::as_str).filter(|id| !id.is_empty());
    let id = id.ok_or_else(|| Report::usage("the event has no session_id"))?;
    let agent = format!("claude-{id}");
    check_agent_id(&agent).map_err(Error::from)?;
    Ok(Session { agent, is_own: true })
}

/// The session's folder, wherever its shell may be by now.
fn start(app: &App<'_>) -> Outcome<PathBuf> {
    let is_named = app.global.project.is_some() || app.env.var("TENURE_PROJECT").is_some();
    match app.env.var("CLAUDE_PROJECT_DIR").map(Path::new) {
        Some(folder) if !is_named && folder.is_dir() => Ok(app.env.cwd.join(folder)),
        _ => app.start(),
    }
}

/// Has every shell call of this session act for its agent. Claude Code reads the file before each of them; it calls us again
/// when a session is resumed, cleared or compacted, and the last line counts.
fn export(app: &App<'_>, agent: &str) -> Outcome<()> {
    let Some(path) = app.env.var("CLAUDE_ENV_FILE").map(|path| app.env.cwd.join(path)) else { return Ok(()) };
    let failed = |e: std::io::Error| Report::io(&e, tenure_core::ErrorCode::General, "write", &path);
    let mut there = String::new();
    if let Ok(file) = File::open(&path) {
        file.take(LONGEST_EXPORTS).read_to_string(&mut there).map_err(failed)?;
    }
    let line = format!("export TENURE_AGENT={}", quote(agent));
    let said = there.lines().rfind(|line| line.starts_with("export TENURE_AGENT="));
    if said == Some(line.as_str()) {
        return Ok(());
    }
    let before = if there.is_empty() || there.ends_with('\n') { "" } else { "\n" };
    let mut file = File::options().append(true).create(true).open(&path).map_err(failed)?;
    file.write_all(format!("{before}{line}\n").as_bytes()).map_err(failed)
}

/// What Claude Code adds to the session: our text as it is, or in the object that it understands.
fn tell(app: &mut App<'_>, open: &Open<'_>, session: &Session) -> Outcome<()> {
    let who = IdentityArgs { agent: Some(session.agent.clone()), ..IdentityArgs::default() };
    let page = prime::now(app, open, &who)?;
    let mut text = Text::new();
    text.block(0, &page);
    let object = json!({"hookSpecificOutput": {"hookEventName": "SessionStart", "additionalContext": page}});
    app.printer.stream(&object, &text);
    Ok(())
}

/// Leases that were claimed by hand. Whoever supervises a process renews and ends its lease by itself.
fn held(
    app: &App<'_>,
    open: &Open<'_>,
    session: &Session,
    is_due: fn(&Lease, Timestamp) -> bool,
) -> Outcome<Vec<TaskName>> {
    let holder = Holder::agent(&session.agent);
    let filter = LeaseFilter {
        kinds: Some(vec![ResourceKind::Task]),
        holder: Some(holder.clone()),
        ..LeaseFilter::default()
    };
    Ok(open.read(|view| {
        let now = view.now();
        let mut leases = view.leases(&filter)?;
        leases.retain(|lease| {
            let is_live = lease.state(now, app.env.judge.as_ref()) == LeaseState::Live;
            is_live && lease.process.is_none() && is_due(lease, now)
        });
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

/// At most once per half of its time, however many tools are used.
fn renew(app: &App<'_>, open: &Open<'_>, session: &Session) -> Outcome<()> {
    let ctx = open.context();
    let caller = Caller::new(Holder::agent(&session.agent));
    for name in held(app, open, session, |lease, now| lease.expires_at.since(now) <= lease.ttl / 2)? {
        // One that was lost meanwhile does not keep the others from being renewed.
        let _ = open.store.write(Durability::Process, |tx| {
            kernel::renew(tx, &ctx, &caller, &name, Beat::default()).map(drop)
        });
    }
    Ok(())
}

/// Also when the session is left for another or its conversation is cleared: nobody goes on with its work then. One
/// that is resumed may take it again.
fn release(app: &mut App<'_>, open: &Open<'_>, session: &Session, why: &str) -> Outcome<()> {
    let ctx = open.context();
    let caller = Caller::new(Holder::agent(&session.agent));
    let is_word =
        !why.is_empty() && why.len() <= 64 && why.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_');
    let message =
        format!("its Claude Code session ended{}", if is_word { format!(" ({why})") } else { String::new() });
    for name in held(app, open, session, |_, _| true)? {
        let ears = hooks::ears(app, open);
        let news = open.write(|tx| {
            let finished = kernel::finish(tx, &ctx, &caller, &name, Finish::Release(Some(&message)), false)?;
            ears.changed(tx, TaskStatus::InProgress, &finished.task)
        })?;
        hooks::tell_meanwhile(app, open, &news);
    }
    // Nobody has this name any more, unless something that it has started still runs.
    let filter = LeaseFilter { holder: Some(Holder::agent(&session.agent)), ..LeaseFilter::default() };
    if open.read(|view| view.leases(&filter))?.is_empty() {
        open.write(|tx| leave_agent(tx, &ctx, &session.agent).map(drop))?;
    }
    Ok(())
}
