//! `tenure runners cron`: the system timer that calls wake-up.

use crate::verbs::verbs;

mod install;
mod status;
mod timers;
mod uninstall;

pub(in crate::commands) use timers::{fired, parse_kind, patience, timer_states};

/// Install, uninstall and inspect the timer that calls wake-up
///
/// Example: tenure runners cron install
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    #[command(subcommand)]
    verb: Option<Verb>,
}

verbs! {
    enum Verb, default Status;
    "install" => Install(install),
    "uninstall" => Uninstall(uninstall),
    "status" => Status(status),
}
