//! The fast parser, which builds only the commands that the arguments name.
//!
//! Building the definition of every command takes longer than most commands run. Only a command whose name is among the
//! arguments can be called, so the others need not be built. If the arguments begin with the names of a command and its
//! verb, that verb is parsed alone, with the global options as its own, so that they need not be propagated. Guarantees: a
//! command line that this parser accepts is accepted by the whole definition too, with the same result. It has no help texts; a
//! command line that it rejects is parsed again with the whole definition, which prints help and errors.

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
    if let Some(cli) = parse_leaf(args) {
        return Ok(cli);
    }
    let is_named = |name: &str| args.iter().any(|arg| arg == name);
    Cli::from_arg_matches(&command(&is_named).try_get_matches_from(args)?)
}

/// Parses a command line that begins with the names of a command and, if it has verbs, of its verb. `None` if it does not, or if
/// something is wrong with it.
fn parse_leaf(args: &[OsString]) -> Option<Cli> {
    let words: Vec<&str> = args.iter().skip(1).take(DEEPEST).map_while(|arg| arg.to_str()).collect();
    let leaf = commands::Command::leaf(&words)?;
    let matches = alone(leaf.add_args).try_get_matches_from(&args[1 + leaf.depth..]).ok()?;
    let global = Global::from_arg_matches(&matches).ok()?;
    Some(Cli { global, command: Some((leaf.read)(&matches).ok()?) })
}

/// A verb by itself, with the global options as its own.
fn alone(add_args: fn(Command) -> Command) -> Command {
    let command = add_args(Command::new("tenure").no_binary_name(true));
    Global::augment_args(command).mut_args(|arg| arg.global(false))
}

/// The most words that name a verb, such as `runners cron install`.
const DEEPEST: usize = 3;

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
    fn a_verb_that_is_parsed_by_itself_is_what_the_whole_definition_makes_of_it() {
        for line in [
            "tasks claim T1 --agent ann --ttl 5m --json",
            "task claim -j --wait -C /tmp T1",
            "tasks claim list --wait 5m -vv --timeout 1h",
            "tasks list --status ready --sort -key --limit 3",
            "task next --claim --section Backend --agent bob -q",
            "tasks run T1 -- cargo test --help",
            "tasks done T1 T2 -m text",
            "runners cron install --dry-run",
            "store copy --to sqlite:",
            "trust list --no-color",
            "exclusive run --holder ci --no-wait -- ./release --json",
            "status --utc",
            "init",
        ] {
            let args: Vec<OsString> =
                std::iter::once("tenure").chain(line.split(' ')).map(OsString::from).collect();
            let whole = crate::command().try_get_matches_from(&args).unwrap();
            let whole = Cli::from_arg_matches(&whole).unwrap();
            let leaf = parse_leaf(&args).unwrap_or_else(|| panic!("{line} is not parsed by itself"));
            assert_eq!(format!("{leaf:?}"), format!("{whole:?}"), "{line}");
        }
        for line in [
            "tasks",
            "tasks --ready",
            "-j status",
            "tasks claim --help",
            "tasks claim",
            "nothing",
            "tasks nothing",
        ] {
            let args: Vec<OsString> =
                std::iter::once("tenure").chain(line.split(' ')).map(OsString::from).collect();
            assert!(parse_leaf(&args).is_none(), "{line}");
        }
    }

    #[test]
    fn every_verb_can_be_built_by_itself() {
        let mut built = 0;
        for (path, _) in outline(&crate::command()) {
            let words: Vec<&str> = path.split_whitespace().collect();
            if let Some(leaf) = commands::Command::leaf(&words) {
                assert_eq!(leaf.depth, words.len(), "{path}");
                alone(leaf.add_args).debug_assert();
                built += 1;
            }
        }
        assert!(built > 100, "{built}");
    }

    #[test]
    fn only_commands_and_verbs_that_are_named_are_built() {
        let fast = command(&|name| ["locks", "show"].contains(&name));
        let paths: Vec<_> = outline(&fast).into_iter().map(|(path, _)| path).collect();
        assert_eq!(paths, ["", " lock", " lock show", " locks", " locks show"]);
    }
}
