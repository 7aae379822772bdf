//! One file per verb: its arguments, whose doc comment is the help, and what it does.

use crate::answer::Answer;
use crate::app::App;
use crate::cli::Command;
use crate::report::Outcome;

pub(crate) mod agents;
pub(crate) mod bench;
pub(crate) mod claude_hook;
pub(crate) mod completions;
pub(crate) mod config;
pub(crate) mod demo;
pub(crate) mod doctor;
mod event_view;
pub(crate) mod events;
pub(crate) mod exclusive;
pub(crate) mod hooks;
pub(crate) mod init;
pub(crate) mod jobs;
pub(crate) mod keep_lease;
mod lease_view;
pub(crate) mod locks;
pub(crate) mod man;
#[cfg(feature = "serve")]
pub(crate) mod mcp;
pub(crate) mod msg;
mod newest;
pub(crate) mod prime;
pub(crate) mod projects;
pub(crate) mod resume;
mod runner_view;
pub(crate) mod runners;
pub(crate) mod sections;
pub(crate) mod sessions;
pub(crate) mod setup;
pub(crate) mod start_attempt;
pub(crate) mod status;
pub(crate) mod store;
pub(crate) mod tasks;
pub(crate) mod whoami;
pub(crate) mod why;

/// Runs the command; none is `status`, or a welcome where there is no project.
pub(crate) fn dispatch(app: &mut App<'_>, command: Option<Command>) -> Outcome<Option<Answer>> {
    let answer = match command {
        None => status::bare(app)?,
        Some(Command::Init(args)) => init::run(app, args)?,
        Some(Command::Demo(args)) => return demo::run(app, args),
        Some(Command::Status(args)) => status::run(app, args)?,
        Some(Command::Whoami(args)) => whoami::run(app, args)?,
        Some(Command::Why(args)) => why::run(app, args)?,
        Some(Command::Tasks(args)) => return tasks::run(app, *args),
        Some(Command::Sections(args)) => sections::run(app, args)?,
        Some(Command::Locks(args)) => locks::run(app, args)?,
        Some(Command::Agents(args)) => agents::run(app, args)?,
        Some(Command::Msg(args)) => msg::run(app, args)?,
        Some(Command::Events(args)) => return events::run(app, args),
        Some(Command::Runners(args)) => return runners::run(app, args),
        Some(Command::Jobs(args)) => return jobs::run(app, *args),
        Some(Command::Sessions(args)) => sessions::run(app, args)?,
        Some(Command::Resume(args)) => return resume::run(app, args),
        Some(Command::Projects(args)) => projects::run(app, args)?,
        Some(Command::Exclusive(args)) => return exclusive::run(app, args),
        Some(Command::Hooks(args)) => return hooks::run(app, args),
        Some(Command::Config(args)) => config::run(app, args)?,
        Some(Command::Prime(args)) => prime::run(app, args)?,
        Some(Command::Doctor(args)) => doctor::run(app, args)?,
        #[cfg(feature = "serve")]
        Some(Command::Mcp(args)) => return mcp::run(app, args),
        Some(Command::Setup(args)) => setup::run(app, args)?,
        Some(Command::Store(args)) => store::run(app, args)?,
        Some(Command::Bench(args)) => bench::run(app, args)?,
        Some(Command::Completions(args)) => {
            completions::run(app, args);
            return Ok(None);
        }
        Some(Command::Man(args)) => return man::run(app, args),
        Some(Command::StartAttempt(args)) => return start_attempt::run(app, args),
        Some(Command::ClaudeHook(args)) => {
            claude_hook::run(app, &args);
            return Ok(None);
        }
        Some(Command::KeepLease(args)) => return keep_lease::run(app, args),
    };
    Ok(Some(answer))
}
