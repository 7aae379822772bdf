//! The command line: global flags, before or after the command, and the command.

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
