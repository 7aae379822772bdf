//! The help texts: an overview of all commands in groups, and the help of one command.
//!
//! The global options are explained once, by `tenure help options` and `tenure --help`. The help of a command only names them.
//! Guarantees: the overview, the options and the version are printed without building the parser, because that takes
//! longer than most commands run. A test compares their text with the parser's.

use std::ffi::OsString;
use std::fmt::Write as _;

use clap::{Command, CommandFactory};

use crate::cli::Cli;
use crate::commands;
use crate::text::{RenderOptions, Text};
use crate::verbs::Commands as _;

/// The commands in the order in which a new user needs them. A command that is in no group is listed last.
const GROUPS: &[(&str, &[&str])] = &[
    ("Begin", &["init", "demo", "status", "board", "web", "why", "whoami"]),
    ("Work", &["tasks", "sections", "agents", "msg", "events", "usage"]),
    ("Locks", &["locks", "exclusive"]),
    ("Runners", &["runners", "sessions", "jobs", "resume", "hooks", "projects"]),
    ("Agents", &["setup", "prime", "mcp"]),
    ("Configuration", &["config", "trust", "untrust", "store", "doctor", "self-check"]),
];
const OTHERS: &str = "More";

const GLOBAL_OPTIONS: &str = "Every command also takes the global options, such as --json, --quiet and -C PATH:\n  tenure help options";

/// All commands, as the parser knows them, with the help that users see: the global options are hidden in the help of a
/// command.
pub(crate) fn definition(width: usize) -> Command {
    let mut root = Cli::command().term_width(width);
    root.build();
    root.get_subcommands_mut().for_each(name_global_options);
    root
}

fn name_global_options(command: &mut Command) {
    let shown = std::mem::take(command)
        .mut_args(|arg| {
            let is_common = arg.is_global_set() || arg.get_id() == "help";
            let is_hidden = is_common || arg.is_hide_set();
            arg.hide(is_hidden)
        })
        .after_help(GLOBAL_OPTIONS);
    *command = shown;
    command.get_subcommands_mut().for_each(name_global_options);
}

/// [`made_overview`] as it was when this program was compiled, with every feature.
const OVERVIEW: &str = include_str!("help/overview.txt");
const OPTIONS: &str = "Global options, before or after the command:\n";

/// The answer to a command line that only asks for the version or for an overview: its name in JSON, and the text.
pub(crate) fn quick_answer(args: &[OsString], width: usize) -> Option<(&'static str, String)> {
    let [_, flag] = args else { return None };
    match flag.to_str()? {
        "-V" | "--version" => Some(("version", format!("tenure {}\n", env!("CARGO_PKG_VERSION")))),
        "-h" => Some(("help", short_overview(width))),
        "--help" => Some(("help", overview(width))),
        _ => None,
    }
}

/// The overview: all commands in groups, with what they do. `tenure --help`.
pub(crate) fn overview(width: usize) -> String {
    let (commands, options) = OVERVIEW.split_once(OPTIONS).unwrap_or((OVERVIEW, ""));
    let mut text = String::new();
    for line in commands.lines().filter(|line| listed_command(line).is_none_or(is_built)) {
        let _ = writeln!(text, "{line}");
    }
    fitted(&(text + OPTIONS + options), width)
}

/// The names of all commands in groups. `tenure -h`.
pub(crate) fn short_overview(width: usize) -> String {
    let (commands, _) = OVERVIEW.split_once(OPTIONS).unwrap_or((OVERVIEW, ""));
    let mut blocks = commands.split("\n\n");
    // What the program does, and its usage.
    let header: Vec<&str> = blocks.by_ref().take(2).collect();
    let mut text = header.join("\n\n") + "\n\n";
    for group in blocks {
        let Some((name, members)) = group.split_once(":\n") else { continue };
        let names: Vec<&str> =
            members.lines().filter_map(listed_command).filter(|name| is_built(name)).collect();
        let _ = writeln!(text, "  {name:<15}{}", names.join(", "));
    }
    text.push_str(
        "\n`tenure help COMMAND` explains a command, `tenure --help` has one line about each, and \
         `tenure help options` explains the options that every command takes.\n",
    );
    fitted(&text, width)
}

/// The global options. `tenure help options`.
pub(crate) fn options(width: usize) -> String {
    let (_, rest) = OVERVIEW.split_once(OPTIONS).unwrap_or_default();
    let (options, _) = rest.split_once("\n\n").unwrap_or((rest, ""));
    fitted(&format!("{OPTIONS}{options}"), width)
}

/// The command that a line of the overview is about.
fn listed_command(line: &str) -> Option<&str> {
    line.strip_prefix("  ")?.split(' ').next()
}

/// Whether this program has the command. Some need a feature.
fn is_built(name: &str) -> bool {
    commands::Command::DEFINITIONS.iter().any(|definition| definition.name == name)
}

/// Breaks lines that are too long between words.
fn fitted(text: &str, width: usize) -> String {
    let mut fitted = String::with_capacity(text.len());
    for line in text.lines() {
        // A character never has more columns than bytes.
        if line.len() <= width {
            fitted.extend([line, "\n"]);
            continue;
        }
        // A wrapped description continues in the column where it began.
        let indent = line.len() - line.trim_start().len();
        let name = line[indent..].find("  ").unwrap_or(0);
        let gap = line[indent + name..].len() - line[indent + name..].trim_start().len();
        let mut long = Text::new();
        long.line(line).hang(if name == 0 { 0 } else { name + gap });
        fitted.push_str(&long.render(RenderOptions { color: false, width: Some(width) }));
    }
    fitted
}

/// The overview as the parser defines it. No line is broken.
pub(crate) fn made_overview() -> String {
    let root = definition(0);
    let about = root.get_about().map(ToString::to_string).unwrap_or_default();
    let mut text = format!("{about}\n\nUsage: tenure [OPTIONS] [COMMAND]\n");
    let widest = groups(&root).iter().flat_map(|(_, members)| members).map(|c| c.get_name().len()).max();
    let widest = widest.unwrap_or(0);
    for (group, members) in groups(&root) {
        let _ = writeln!(text, "\n{group}:");
        for command in members {
            let about = command.get_about().map(ToString::to_string).unwrap_or_default();
            let _ = writeln!(text, "  {:widest$}  {about}", command.get_name());
        }
    }
    let _ = write!(text, "\n{}", made_options(&root));
    if let Some(exit_codes) = root.get_after_help() {
        let _ = writeln!(text, "\n{exit_codes}");
    }
    text
}

fn made_options(root: &Command) -> String {
    let mut root = root.clone().help_template(format!("{OPTIONS}{{options}}"));
    let text = root.render_help().to_string();
    let lines: Vec<&str> = text.lines().filter(|line| *line != "Global options:").collect();
    format!("{}\n", lines.join("\n").trim_end())
}

fn groups(root: &Command) -> Vec<(&'static str, Vec<&Command>)> {
    let shown = || root.get_subcommands().filter(|command| !command.is_hide_set());
    let mut groups: Vec<(&str, Vec<&Command>)> = GROUPS
        .iter()
        .map(|(group, names)| {
            (*group, names.iter().filter_map(|name| shown().find(|c| c.get_name() == *name)).collect())
        })
        .collect();
    let is_in_a_group = |name: &str| GROUPS.iter().any(|(_, names)| names.contains(&name));
    groups.push((OTHERS, shown().filter(|command| !is_in_a_group(command.get_name())).collect()));
    groups
}

#[cfg(test)]
mod tests {
    use clap::error::ErrorKind;

    use super::*;

    fn quick(flag: &str, width: usize) -> String {
        quick_answer(&["tenure".into(), flag.into()], width).unwrap().1
    }

    #[test]
    fn the_version_is_the_parsers() {
        for flag in ["-V", "--version"] {
            let error = definition(80).try_get_matches_from(["tenure", flag]).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::DisplayVersion);
            assert_eq!(quick(flag, 80), error.render().to_string());
        }
    }

    #[test]
    fn options_are_laid_out_as_the_parser_does() {
        for width in [72, 80, 90, 100] {
            assert_eq!(options(width), made_options(&definition(width)), "{width}");
            assert!(quick("--help", width).contains(&options(width)), "{width}");
        }
    }

    #[test]
    fn only_a_single_flag_is_answered_without_the_parser() {
        for words in [
            &["tenure"][..],
            &["tenure", "status"],
            &["tenure", "--version", "--json"],
            &["tenure", "--", "-h"],
        ] {
            let args: Vec<OsString> = words.iter().map(OsString::from).collect();
            assert_eq!(quick_answer(&args, 80), None, "{words:?}");
        }
    }
}
