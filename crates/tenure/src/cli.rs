//! The command line: the global flags, which may come before or after the command, and the command.

use std::path::PathBuf;
use std::time::Duration;

use clap::{ArgAction, Args, Parser};

use crate::app::parse_duration;
use crate::commands::Command;

/// Decides who holds a piece of work, for how long, and what happens when the holder vanishes.
#[derive(Debug, Parser)]
#[command(
    name = "tenure",
    version,
    disable_help_subcommand = true,
    subcommand_required = false,
    infer_long_args = false,
    after_help = "Exit codes: 0 success, 1 failure, 2 invalid arguments, 3 configuration error, 4 not found, 5 permission denied,\n\
                  6 locked, 7 check failed, 8 lease lost, 9 timed out waiting, 10 nothing to do."
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
    /// Print one JSON object to standard output, also on failure
    #[arg(short, long, global = true)]
    pub(crate) json: bool,
    /// Print only the requested data: for a new or claimed task its key, without hints
    #[arg(short, long, global = true)]
    pub(crate) quiet: bool,
    /// Print the project, files and store in use to standard error (-vv: also the time taken)
    #[arg(short, long, global = true, action = ArgAction::Count)]
    pub(crate) verbose: u8,
    /// Disable colours
    #[arg(long, global = true)]
    pub(crate) no_color: bool,
    /// Print long output directly instead of through a pager
    #[arg(long, global = true)]
    pub(crate) no_pager: bool,
    /// Show times in UTC instead of the local time zone
    #[arg(long, global = true)]
    pub(crate) utc: bool,
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
    /// Never wait for a lock or for work
    #[arg(long, global = true)]
    pub(crate) no_wait: bool,
    /// Use the project in this folder or above it
    #[arg(short = 'C', long, global = true, value_name = "PATH")]
    pub(crate) project: Option<PathBuf>,
}
