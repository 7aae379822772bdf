//! The fast parser, which builds only the commands that the arguments name.
//!
//! Building the definition of every command takes longer than most commands run. Only a command whose name is among the
//! arguments can be called, so the others need not be built. Guarantees: a command line that this parser accepts is
//! accepted by the whole definition too, with the same result. It has no help texts; a command line that it rejects is
//! parsed again with the whole definition, which prints help and errors.

use std::ffi::OsString;

use clap::{Args, Command, FromArgMatches};

use crate::cli::{Cli, Global};
use crate::commands;
use crate::verbs::Commands;

/// A command or verb, as far as parsing needs it. [`crate::verbs::verbs!`] writes these.
pub(crate) struct Definition {
    pub(crate) name: &'static str,
    pub(crate) alias: Option<&'static str>,
    /// Adds the arguments, without verbs.
    pub(crate) add_args: fn(Command) -> Command,
    pub(crate) verbs: &'static [Definition],
}

pub(crate) fn parse(args: &[OsString]) -> Result<Cli, clap::Error> {
    let is_named = |name: &str| args.iter().any(|arg| arg == name);
    Cli::from_arg_matches(&command(&is_named).try_get_matches_from(args)?)
}

fn command(is_named: &dyn Fn(&str) -> bool) -> Command {
    let top = Command::new("tenure").disable_help_subcommand(true);
    with_named(Global::augment_args(top), commands::Command::DEFINITIONS, is_named)
}

fn with_named(parent: Command, definitions: &[Definition], is_named: &dyn Fn(&str) -> bool) -> Command {
    let named = definitions.iter().filter(|d| is_named(d.name) || d.alias.is_some_and(is_named));
    parent.subcommands(named.map(|definition| {
        let command = (definition.add_args)(Command::new(definition.name).aliases(definition.alias));
        with_named(command, definition.verbs, is_named)
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
    fn with_every_command_named_it_is_the_whole_definition() {
        let mut fast = command(&|_| true);
        let mut whole = crate::command();
        fast.build();
        whole.build();
        assert_eq!(outline(&fast), outline(&whole));
    }

    #[test]
    fn only_commands_and_verbs_that_are_named_are_built() {
        let fast = command(&|name| ["locks", "show"].contains(&name));
        let paths: Vec<_> = outline(&fast).into_iter().map(|(path, _)| path).collect();
        assert_eq!(paths, ["", " lock", " lock show", " locks", " locks show"]);
    }
}
