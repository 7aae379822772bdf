//! The commands. A command or verb is one file: its `Args`, whose doc comment is the help, and its `run`.

use std::time::Duration;

use crate::answer::Answer;
use crate::app::App;
use crate::report::CommandResult;
use crate::supervised;
use crate::unsupported;
use crate::verbs::{Commands, verbs};

use exclusive::start as start_exclusive;

mod agents;
mod bench;
#[cfg(feature = "board")]
mod board;
#[cfg(any(feature = "board", feature = "web"))]
mod board_reader;
mod claude_hook;
mod completions;
mod config;
mod demo;
mod doctor;
mod events;
mod exclusive;
mod help;
mod hooks;
mod init;
mod jobs;
mod keep_lease;
pub(crate) mod lease_view;
mod limit;
mod locks;
mod man;
#[cfg(feature = "serve")]
mod mcp;
mod msg;
mod prime;
mod projects;
mod resume;
mod runners;
mod sections;
mod self_check;
mod sessions;
mod setup;
mod since;
mod start_attempt;
mod status;
mod store;
mod tasks;
mod trust;
mod untrust;
mod usage;
mod usage_view;
mod version;
#[cfg(feature = "web")]
mod web;
mod whoami;
mod why;

verbs! {
    enum Command;
    "init" => Init(init),
    "demo" => Demo(demo),
    "self-check" => SelfCheck(self_check),
    "status" => Status(status),
    #[cfg(feature = "board")]
    "board" => Board(board),
    "whoami" => Whoami(whoami),
    "why" => Why(why),
    "tasks" | "task" => Tasks(tasks) with verbs,
    "sections" | "section" => Sections(sections) with verbs,
    "locks" | "lock" => Locks(locks) with verbs,
    "agents" | "agent" => Agents(agents) with verbs,
    "msg" | "messages" => Msg(msg) with verbs,
    "events" => Events(events),
    "usage" => Usage(usage),
    "runners" | "runner" => Runners(runners) with verbs,
    "jobs" | "job" => Jobs(jobs) with verbs,
    "sessions" | "session" => Sessions(sessions) with verbs,
    "resume" => Resume(resume),
    "projects" => Projects(projects) with verbs,
    "exclusive" => Exclusive(exclusive) with verbs,
    "hooks" => Hooks(hooks) with verbs,
    "config" => Config(config) with verbs,
    "trust" => Trust(trust) with verbs,
    "untrust" => Untrust(untrust),
    "prime" => Prime(prime),
    "doctor" => Doctor(doctor),
    #[cfg(feature = "serve")]
    "mcp" => Mcp(mcp),
    #[cfg(feature = "web")]
    "web" => Web(web),
    "setup" => Setup(setup),
    "store" => Store(store) with verbs,
    "bench" => Bench(bench),
    "completions" => Completions(completions),
    "man" => Man(man),
    "help" => Help(help),
    "version" => Version(version),
    #[command(hide = true)]
    "start-attempt" => StartAttempt(start_attempt),
    #[command(hide = true)]
    "start-exclusive" => StartExclusive(start_exclusive),
    #[command(hide = true)]
    "claude-hook" => ClaudeHook(claude_hook),
    #[command(hide = true)]
    "keep-lease" => KeepLease(keep_lease),
}

impl Command {
    /// How long the command waits for a busy store without `--timeout`; `None` is the default.
    pub(crate) fn patience(&self) -> Option<Duration> {
        if let Self::ClaudeHook(args) = self { Some(args.patience()) } else { None }
    }

    /// Its name in the table of what agents under a runner may do. Flags of verbs are checked by the verbs.
    fn verb(&self) -> String {
        match self {
            Self::Demo(args) if args.is_pretend_agent() => "demo --pretend".to_owned(),
            _ => self.name().to_string(),
        }
    }
}

/// Runs the command. Without one it runs `status`, or prints a welcome outside a project. Refuses what an agent under a
/// runner may not do, and what this operating system does not support.
pub(crate) fn dispatch(app: &mut App<'_>, command: Option<Command>) -> CommandResult<Option<Answer>> {
    supervised::check_flags(app.env, app.global)?;
    if let Some(command) = &command {
        supervised::check(app.env, &command.verb())?;
        unsupported::check(&command.verb())?;
    }
    match command {
        None => status::bare(app).map(Some),
        Some(command) => command.run(app),
    }
}
