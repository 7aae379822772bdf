//! The arguments: global flags anywhere, one variant per command.

use std::path::PathBuf;
use std::time::Duration;

use clap::{ArgAction, Args, Parser, Subcommand};

use crate::app::parse_duration;
#[cfg(feature = "serve")]
use crate::commands::mcp;
use crate::commands::{
    agents, bench, claude_hook, completions, config, demo, doctor, events, exclusive, hooks, init, jobs,
    keep_lease, locks, man, msg, prime, projects, resume, runners, sections, sessions, setup, start_attempt,
    status, store, tasks, whoami, why,
};
use crate::printer::CommandName;

/// Decides who holds a piece of work, for how long, and what happens when the holder vanishes.
#[derive(Debug, Parser)]
#[command(
    name = "tenure",
    version,
    disable_help_subcommand = true,
    subcommand_required = false,
    infer_long_args = false,
    after_help = "Exit codes: 0 done, 1 failed, 2 bad arguments, 3 configuration, 4 not found, 5 permission, \
                  6 locked,\n7 a check failed, 8 you no longer hold it, 9 waited long enough, 10 nothing to do."
)]
pub(crate) struct Cli {
    #[command(flatten)]
    pub(crate) global: Global,
    #[command(subcommand)]
    pub(crate) command: Option<Command>,
}

/// Flags that every command takes, before or after its name.
#[derive(Debug, Clone, Default, Args)]
#[command(next_help_heading = "Global options")]
pub(crate) struct Global {
    /// One JSON object on standard output, also on failure
    #[arg(short, long, global = true)]
    pub(crate) json: bool,
    /// Say only what was asked for
    #[arg(short, long, global = true)]
    pub(crate) quiet: bool,
    /// Say on standard error which project, files and store are used (-vv: and how long it took)
    #[arg(short, long, global = true, action = ArgAction::Count)]
    pub(crate) verbose: u8,
    /// No colours
    #[arg(long, global = true)]
    pub(crate) no_color: bool,
    /// Use this file instead of ~/.tenure/config.yaml
    #[arg(long, global = true, value_name = "PATH")]
    pub(crate) config: Option<PathBuf>,
    /// Show what would happen and write nothing
    #[arg(long, global = true)]
    pub(crate) dry_run: bool,
    /// Give up waiting after this long (exit 9)
    #[arg(long, global = true, value_name = "DUR", value_parser = parse_duration)]
    pub(crate) timeout: Option<Duration>,
    /// Run no hooks
    #[arg(long, global = true)]
    pub(crate) no_hooks: bool,
    /// Never wait: answer at once
    #[arg(long, global = true)]
    pub(crate) no_wait: bool,
    /// The project, or a folder in it
    #[arg(short = 'C', long, global = true, value_name = "PATH")]
    pub(crate) project: Option<PathBuf>,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    Init(init::Args),
    Demo(demo::Args),
    Status(status::Args),
    Whoami(whoami::Args),
    Why(why::Args),
    #[command(visible_alias = "task")]
    Tasks(Box<tasks::Args>),
    #[command(visible_alias = "section")]
    Sections(sections::Args),
    #[command(visible_alias = "lock")]
    Locks(locks::Args),
    #[command(visible_alias = "agent")]
    Agents(agents::Args),
    #[command(visible_alias = "messages")]
    Msg(msg::Args),
    Events(events::Args),
    #[command(visible_alias = "runner")]
    Runners(runners::Args),
    #[command(visible_alias = "job")]
    Jobs(Box<jobs::Args>),
    #[command(visible_alias = "session")]
    Sessions(sessions::Args),
    Resume(resume::Args),
    Projects(projects::Args),
    Exclusive(exclusive::Args),
    Hooks(hooks::Args),
    Config(config::Args),
    Prime(prime::Args),
    Doctor(doctor::Args),
    #[cfg(feature = "serve")]
    Mcp(mcp::Args),
    Setup(setup::Args),
    Store(store::Args),
    Bench(bench::Args),
    Completions(completions::Args),
    Man(man::Args),
    #[command(hide = true)]
    StartAttempt(start_attempt::Args),
    #[command(hide = true)]
    ClaudeHook(claude_hook::Args),
    #[command(hide = true)]
    KeepLease(keep_lease::Args),
}

impl Command {
    /// How long it may wait unless told otherwise, if that is not for the command itself to say.
    pub(crate) fn patience(&self) -> Option<Duration> {
        matches!(self, Self::ClaudeHook(_)).then_some(claude_hook::PATIENCE)
    }

    pub(crate) fn name(&self) -> CommandName<'static> {
        let (command, subcommand) = match self {
            Self::Init(_) => ("init", None),
            Self::Demo(_) => ("demo", None),
            Self::Status(_) => ("status", None),
            Self::Whoami(_) => ("whoami", None),
            Self::Why(_) => ("why", None),
            Self::Tasks(args) => ("tasks", Some(args.subcommand())),
            Self::Sections(args) => ("sections", Some(args.subcommand())),
            Self::Locks(args) => ("locks", Some(args.subcommand())),
            Self::Agents(args) => ("agents", Some(args.subcommand())),
            Self::Msg(args) => ("msg", Some(args.subcommand())),
            Self::Events(_) => ("events", None),
            Self::Runners(args) => ("runners", Some(args.subcommand())),
            Self::Jobs(args) => ("jobs", Some(args.subcommand())),
            Self::Sessions(args) => ("sessions", Some(args.subcommand())),
            Self::Resume(_) => ("resume", None),
            Self::Projects(args) => ("projects", Some(args.subcommand())),
            Self::Exclusive(args) => ("exclusive", Some(args.subcommand())),
            Self::Hooks(args) => ("hooks", Some(args.subcommand())),
            Self::Config(args) => ("config", Some(args.subcommand())),
            Self::Prime(_) => ("prime", None),
            Self::Doctor(_) => ("doctor", None),
            #[cfg(feature = "serve")]
            Self::Mcp(_) => ("mcp", None),
            Self::Setup(_) => ("setup", None),
            Self::Store(args) => ("store", Some(args.subcommand())),
            Self::Bench(_) => ("bench", None),
            Self::Completions(_) => ("completions", None),
            Self::Man(_) => ("man", None),
            Self::StartAttempt(_) => ("start-attempt", None),
            Self::ClaudeHook(_) => ("claude-hook", None),
            Self::KeepLease(_) => ("keep-lease", None),
        };
        CommandName { command, subcommand }
    }
}
