//! The help texts: an overview of all commands in groups, and the help of one command.
//!
//! The global options are explained once, by `tenure help options` and `tenure --help`. The help of a command only names them.

use std::fmt::Write as _;

use clap::{Command, CommandFactory};

use crate::cli::Cli;
use crate::text::{RenderOptions, Text};

/// The commands in the order in which a new user needs them. A command that is in no group is listed last.
const GROUPS: &[(&str, &[&str])] = &[
    ("Begin", &["init", "demo", "status", "why", "whoami"]),
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
            arg.hide(is_common)
        })
        .after_help(GLOBAL_OPTIONS);
    *command = shown;
    command.get_subcommands_mut().for_each(name_global_options);
}

/// The overview: all commands in groups, with what they do. `tenure --help`.
pub(crate) fn overview(root: &Command, width: usize) -> String {
    let mut text = String::new();
    let widest = groups(root).iter().flat_map(|(_, members)| members).map(|c| c.get_name().len()).max();
    let widest = widest.unwrap_or(0);
    for (group, members) in groups(root) {
        let _ = writeln!(text, "\n{group}:");
        for command in members {
            let about = command.get_about().map(ToString::to_string).unwrap_or_default();
            let _ = writeln!(text, "  {:widest$}  {about}", command.get_name());
        }
    }
    let _ = write!(text, "\n{}", options(root));
    if let Some(exit_codes) = root.get_after_help() {
        let _ = writeln!(text, "\n{exit_codes}");
    }
    fitted(&(header(root) + &text), width)
}

/// The names of all commands in groups. `tenure -h`.
pub(crate) fn short_overview(root: &Command, width: usize) -> String {
    let mut text = String::from("\n");
    for (group, members) in groups(root) {
        let names: Vec<&str> = members.iter().map(|command| command.get_name()).collect();
        let _ = writeln!(text, "  {group:<15}{}", names.join(", "));
    }
    text.push_str(
        "\n`tenure help COMMAND` explains a command, `tenure --help` has one line about each, and \
         `tenure help options` explains the options that every command takes.\n",
    );
    fitted(&(header(root) + &text), width)
}

/// Breaks lines that are too long between words.
fn fitted(text: &str, width: usize) -> String {
    let mut fitted = Text::new();
    for line in text.lines() {
        // A description that is broken continues below its beginning.
        let indent = line.len() - line.trim_start().len();
        let name = line[indent..].find("  ").unwrap_or(0);
        let gap = line[indent + name..].len() - line[indent + name..].trim_start().len();
        fitted.line(line).hang(if name == 0 { 0 } else { name + gap });
    }
    fitted.render(RenderOptions { color: false, width: Some(width) })
}

/// The global options. `tenure help options`.
pub(crate) fn options(root: &Command) -> String {
    let mut root = root.clone().help_template("Global options, before or after the command:\n{options}");
    let text = root.render_help().to_string();
    let lines: Vec<&str> = text.lines().filter(|line| *line != "Global options:").collect();
    format!("{}\n", lines.join("\n").trim_end())
}

fn header(root: &Command) -> String {
    let about = root.get_about().map(ToString::to_string).unwrap_or_default();
    format!("{about}\n\nUsage: tenure [OPTIONS] [COMMAND]\n")
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
