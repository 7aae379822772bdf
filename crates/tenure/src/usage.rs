//! Command lines that could not be parsed, and those that ask for help.
//!
//! The parser fails before it knows the command. The envelope needs the command's name and whether JSON is wanted, so
//! both are derived from the arguments here.

use std::ffi::OsString;

use clap::error::{ContextKind, ContextValue, ErrorKind};
use tenure_core::hints::{self, Hint};

use crate::env::Env;
use crate::fast_parser;
use crate::help;
use crate::printer::{CommandName, Printer};
use crate::report::Report;
use crate::shell_quote::quote;

/// Whether usage errors are printed as JSON: `--json` anywhere before `--`, or `TENURE_JSON`.
pub(crate) fn wants_json(args: &[OsString], env: &Env) -> bool {
    let ours = args.iter().skip(1).take_while(|arg| *arg != "--");
    env.flag("TENURE_JSON") || ours.into_iter().any(|arg| is_json_flag(&arg.to_string_lossy()))
}

/// `--json`, or a `j` among short flags before one that takes a value.
fn is_json_flag(arg: &str) -> bool {
    if arg == "--json" {
        return true;
    }
    match arg.strip_prefix('-') {
        Some(short) if !short.starts_with('-') => {
            short.chars().take_while(|c| matches!(c, 'j' | 'q' | 'v')).any(|c| c == 'j')
        }
        _ => false,
    }
}

/// Prints the usage error, or the requested help, and returns the exit code.
pub(crate) fn print(
    mut error: clap::Error,
    args: &[OsString],
    width: usize,
    printer: &mut Printer<'_>,
) -> u8 {
    let root = help::definition(width);
    let name = name(&root, args);
    suggest_only_shown_commands(&mut error, &root);
    let text = error.render().to_string();
    match error.kind() {
        ErrorKind::DisplayHelp if name.command == "tenure" => {
            let is_long = args.iter().any(|arg| arg == "--help");
            let text = if is_long { help::overview(width) } else { help::short_overview(width) };
            printer.raw(name, "help", &text);
        }
        ErrorKind::DisplayHelp => printer.raw(name, "help", &text),
        // The help of a command that needs a subcommand says more than an error.
        ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand if !printer.json => {
            printer.draw(&text);
            return Report::usage("").exit_code();
        }
        ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand => {
            let report = Report::usage(format!("`tenure {name}` needs a subcommand"))
                .hint(hints::list_subcommands(name));
            printer.failure(name, &report);
            return report.exit_code();
        }
        ErrorKind::DisplayVersion => printer.raw(name, "version", &text),
        _ => {
            let mut report = report(&text);
            report.hints.extend(meant(&error, &root, name, args));
            printer.failure(name, &report);
            return report.exit_code();
        }
    }
    0
}

/// Removes hidden commands from the tip of an error.
fn suggest_only_shown_commands(error: &mut clap::Error, root: &clap::Command) {
    let is_hidden = |name: &String| root.find_subcommand(name).is_some_and(clap::Command::is_hide_set);
    if let Some(ContextValue::Strings(names)) = error.remove(ContextKind::SuggestedSubcommand) {
        let shown: Vec<String> = names.into_iter().filter(|name| !is_hidden(name)).collect();
        if !shown.is_empty() {
            error.insert(ContextKind::SuggestedSubcommand, ContextValue::Strings(shown));
        }
    }
}

/// The commands that take a verb before all others of the same name: `tenure list` is `tenure tasks list`.
const FIRST: &str = "tasks";

/// What an unknown command was meant to be: a verb without its command, such as `tenure claim F001`, or something to be shown, such as
/// `tenure task F001`. Only what the parser accepts is suggested.
fn meant(
    error: &clap::Error,
    root: &clap::Command,
    name: CommandName<'_>,
    args: &[OsString],
) -> Option<Hint> {
    let ContextValue::String(word) = error.get(ContextKind::InvalidSubcommand)? else { return None };
    let at = args.iter().skip(1).position(|arg| arg == word.as_str())? + 1;
    let with = |inserted: &str| {
        let mut line = args.to_vec();
        line.insert(at, inserted.into());
        fast_parser::parse(&line).is_ok().then(|| shown(&line[1..]))
    };
    if name.command != "tenure" {
        // A verb has no digit; the keys of tasks, and the ids of everything else, usually do.
        let is_id = name.subcommand.is_none() && word.contains(|c: char| c.is_ascii_digit());
        return is_id.then(|| with("show")).flatten().map(hints::show_named);
    }
    let first = root.find_subcommand(FIRST);
    let others = root.get_subcommands().filter(|group| !group.is_hide_set() && group.get_name() != FIRST);
    let has_verb =
        |group: &&clap::Command| group.find_subcommand(word).is_some_and(|verb| !verb.is_hide_set());
    first
        .into_iter()
        .chain(others)
        .filter(has_verb)
        .find_map(|group| with(group.get_name()))
        .map(hints::add_command)
}

/// The arguments as they can be pasted into a shell.
fn shown(args: &[OsString]) -> String {
    let word = |arg: &OsString| {
        let arg = arg.to_string_lossy();
        let flag = &arg[..arg.len() - arg.trim_start_matches('-').len()];
        let rest = &arg[flag.len()..];
        if flag.is_empty() || !rest.is_empty() { format!("{flag}{}", quote(rest)) } else { flag.to_owned() }
    };
    args.iter().map(word).collect::<Vec<_>>().join(" ")
}

fn report(text: &str) -> Report {
    let body = text.strip_prefix("error: ").unwrap_or(text).trim_end();
    let (message, rest) = body.split_once("\n\n").unwrap_or((body, ""));
    let mut report = Report::usage(plain(message));
    report.context = rest.lines().filter(|line| !line.trim().is_empty()).map(str::to_owned).collect();
    report
}

/// Replaces the standard library's messages about numbers with plainer ones.
fn plain(message: &str) -> String {
    message
        .replace("invalid digit found in string", "it must be a whole number")
        .replace("cannot parse integer from empty string", "it must be a whole number")
        .replace("number too large to fit in target type", "the number is too large")
        .replace("number too small to fit in target type", "the number is too small")
}

/// The command's name: the first positional that is a command, and the first after it that is one of its verbs.
fn name<'a>(root: &'a clap::Command, args: &[OsString]) -> CommandName<'a> {
    let mut words = Positionals { args: args.iter().skip(1), root };
    let Some(command) = words.find_map(|word| root.find_subcommand(&word)) else {
        return CommandName { command: "tenure", subcommand: None };
    };
    let subcommand = words.find_map(|word| command.find_subcommand(&word));
    CommandName { command: command.get_name(), subcommand: subcommand.map(clap::Command::get_name) }
}

/// The arguments before `--` that are neither flags nor values of global flags.
struct Positionals<'a, I> {
    args: I,
    root: &'a clap::Command,
}

impl<'a, I: Iterator<Item = &'a OsString>> Iterator for Positionals<'a, I> {
    type Item = String;

    fn next(&mut self) -> Option<String> {
        loop {
            let word = self.args.next()?.to_string_lossy().into_owned();
            if word == "--" {
                return None;
            }
            if !word.starts_with('-') {
                return Some(word);
            }
            let flag = self.root.get_arguments().find(|arg| {
                let short = arg.get_short().is_some_and(|c| word == format!("-{c}"));
                short || arg.get_long().is_some_and(|long| word == format!("--{long}"))
            });
            if flag.is_some_and(|flag| flag.get_action().takes_values()) {
                self.args.next()?;
            }
        }
    }
}
