//! The parser, made only as far as it is needed.
//!
//! Making the definition of every command costs more than most commands themselves. So here only those commands are made
//! whose names stand somewhere among the arguments: no other can be the one that was called. It accepts exactly what the
//! whole definition accepts; whatever it does not, is left to the whole definition, which has the words for help and errors.

use std::ffi::OsString;

use clap::{Args, Command};

use crate::cli::Global;
#[cfg(feature = "serve")]
use crate::commands::mcp;
use crate::commands::{
    agents, bench, claude_hook, completions, config, demo, doctor, events, exclusive, hooks, init, jobs,
    keep_lease, locks, man, msg, prime, projects, resume, runners, sections, sessions, setup, start_attempt,
    status, store, tasks, whoami, why,
};

/// A command's name, its other name, and what gives it its arguments.
pub(crate) type Entry = (&'static str, Option<&'static str>, fn(Command) -> Command);

/// All but `tasks`, whose verbs are entries of their own.
const COMMANDS: &[Entry] = &[
    ("init", None, init::Args::augment_args),
    ("demo", None, demo::Args::augment_args),
    ("status", None, status::Args::augment_args),
    ("whoami", None, whoami::Args::augment_args),
    ("why", None, why::Args::augment_args),
    ("sections", Some("section"), sections::Args::augment_args),
    ("locks", Some("lock"), locks::Args::augment_args),
    ("agents", Some("agent"), agents::Args::augment_args),
    ("msg", Some("messages"), msg::Args::augment_args),
    ("events", None, events::Args::augment_args),
    ("runners", Some("runner"), runners::Args::augment_args),
    ("jobs", Some("job"), jobs::Args::augment_args),
    ("sessions", Some("session"), sessions::Args::augment_args),
    ("resume", None, resume::Args::augment_args),
    ("projects", None, projects::Args::augment_args),
    ("exclusive", None, exclusive::Args::augment_args),
    ("hooks", None, hooks::Args::augment_args),
    ("config", None, config::Args::augment_args),
    ("prime", None, prime::Args::augment_args),
    ("doctor", None, doctor::Args::augment_args),
    #[cfg(feature = "serve")]
    ("mcp", None, mcp::Args::augment_args),
    ("setup", None, setup::Args::augment_args),
    ("store", None, store::Args::augment_args),
    ("bench", None, bench::Args::augment_args),
    ("completions", None, completions::Args::augment_args),
    ("man", None, man::Args::augment_args),
    ("start-attempt", None, start_attempt::Args::augment_args),
    ("claude-hook", None, claude_hook::Args::augment_args),
    ("keep-lease", None, keep_lease::Args::augment_args),
];

pub(crate) fn matches(args: &[OsString]) -> Result<clap::ArgMatches, clap::Error> {
    tree(&|name| args.iter().any(|arg| arg == name)).try_get_matches_from(args)
}

fn tree(is_named: &dyn Fn(&str) -> bool) -> Command {
    let top = Command::new("tenure").disable_help_subcommand(true);
    let top = with_entries(Global::augment_args(top), COMMANDS, is_named);
    let tasks =
        || with_entries(tasks::list::Args::augment_args(Command::new("tasks")), tasks::VERBS, is_named);
    if is_named("tasks") || is_named("task") { top.subcommand(tasks().alias("task")) } else { top }
}

fn with_entries(parent: Command, entries: &[Entry], is_named: &dyn Fn(&str) -> bool) -> Command {
    let named = entries.iter().filter(|(name, other, _)| is_named(name) || other.is_some_and(is_named));
    parent.subcommands(named.map(|(name, other, make)| make(Command::new(*name)).aliases(*other)))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every name that leads to a command, with the names of its arguments.
    fn outline(command: &Command) -> Vec<(String, Vec<String>)> {
        let mut found = Vec::new();
        let mut open = vec![(String::new(), command.clone())];
        while let Some((path, command)) = open.pop() {
            let mut arguments: Vec<_> = command.get_arguments().map(|a| a.get_id().to_string()).collect();
            arguments.sort();
            let own = arguments.into_iter().filter(|a| a != "help" && a != "version").collect();
            found.push((path.clone(), own));
            for sub in command.get_subcommands() {
                for name in std::iter::once(sub.get_name()).chain(sub.get_all_aliases()) {
                    open.push((format!("{path} {name}"), sub.clone()));
                }
            }
        }
        found.sort();
        found
    }

    #[test]
    fn the_tree_of_names_is_the_whole_definition() {
        let mut lazy = tree(&|_| true);
        let mut whole = crate::command();
        lazy.build();
        whole.build();
        assert_eq!(outline(&lazy), outline(&whole));
    }
}
