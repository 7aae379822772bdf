//! The parser, made only as far as it is needed.
//!
//! Making the definition of every command costs more than most commands themselves. So first a tree of names is made, in
//! which a command gets its arguments when it turns out to be the one that was called. It accepts exactly what the whole
//! definition accepts; whatever it does not, is left to the whole definition, which has the words for help and errors.

use std::ffi::OsString;

use clap::{Args, Command};

use crate::cli::Global;
use crate::commands::{
    agents, completions, config, demo, events, exclusive, hooks, init, jobs, keep_lease, locks, man, msg,
    projects, resume, runners, sections, sessions, start_attempt, status, store, tasks, whoami, why,
};

/// A command's name, its other name, and what gives it its arguments.
pub(crate) type Entry = (&'static str, Option<&'static str>, fn(Command) -> Command);

const COMMANDS: &[Entry] = &[
    ("init", None, init::Args::augment_args),
    ("demo", None, demo::Args::augment_args),
    ("status", None, status::Args::augment_args),
    ("whoami", None, whoami::Args::augment_args),
    ("why", None, why::Args::augment_args),
    ("tasks", Some("task"), tasks::lazily),
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
    ("store", None, store::Args::augment_args),
    ("completions", None, completions::Args::augment_args),
    ("man", None, man::Args::augment_args),
    ("start-attempt", None, start_attempt::Args::augment_args),
    ("keep-lease", None, keep_lease::Args::augment_args),
];

pub(crate) fn matches(args: &[OsString]) -> Result<clap::ArgMatches, clap::Error> {
    tree().try_get_matches_from(args)
}

fn tree() -> Command {
    let top = Command::new("tenure").disable_help_subcommand(true);
    with_entries(Global::augment_args(top), COMMANDS)
}

pub(crate) fn with_entries(parent: Command, entries: &[Entry]) -> Command {
    parent.subcommands(entries.iter().map(|(name, other, make)| {
        let command = Command::new(*name).defer(*make);
        match other {
            Some(other) => command.alias(*other),
            None => command,
        }
    }))
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
        let mut lazy = tree();
        let mut whole = crate::command();
        lazy.build();
        whole.build();
        assert_eq!(outline(&lazy), outline(&whole));
    }
}
