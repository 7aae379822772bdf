//! Command lines that could not be read, and those that only asked for help.
//!
//! The parser stops before it knows the command, so what the envelope needs, whether JSON is wanted and which command
//! was meant, is read off the words here.

use std::ffi::OsString;

use clap::error::ErrorKind;

use crate::env::Env;
use crate::printer::{CommandName, Printer};
use crate::report::Report;

/// `--json` anywhere before `--` also governs usage errors.
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

/// Says what is wrong with the words, or prints the help they asked for.
pub(crate) fn print(error: &clap::Error, args: &[OsString], printer: &mut Printer<'_>) -> u8 {
    let mut root = crate::command();
    root.build();
    let name = name(&root, args);
    let text = error.render().to_string();
    match error.kind() {
        ErrorKind::DisplayHelp => printer.raw(name, "help", &text),
        ErrorKind::DisplayVersion => printer.raw(name, "version", &text),
        _ => {
            let report = report(&text);
            printer.failure(name, &report);
            return report.exit_code();
        }
    }
    0
}

fn report(text: &str) -> Report {
    let said = text.strip_prefix("error: ").unwrap_or(text).trim_end();
    let (message, rest) = said.split_once("\n\n").unwrap_or((said, ""));
    let mut report = Report::usage(plain(message));
    report.context = rest.lines().filter(|line| !line.trim().is_empty()).map(str::to_owned).collect();
    report
}

/// Without the standard library's way to say that something is no number.
fn plain(message: &str) -> String {
    message
        .replace("invalid digit found in string", "it must be a whole number")
        .replace("cannot parse integer from empty string", "it must be a whole number")
        .replace("number too large to fit in target type", "the number is too large")
        .replace("number too small to fit in target type", "the number is too small")
}

/// The command that was meant: the first word that is one, and the first after it that is a subcommand of it.
fn name<'a>(root: &'a clap::Command, args: &[OsString]) -> CommandName<'a> {
    let mut words = Positionals { args: args.iter().skip(1), root };
    let Some(command) = words.find_map(|word| root.find_subcommand(&word)) else {
        return CommandName { command: "tenure", subcommand: None };
    };
    let subcommand = words.find_map(|word| command.find_subcommand(&word));
    CommandName { command: command.get_name(), subcommand: subcommand.map(clap::Command::get_name) }
}

/// Positionals before `--` that are neither flags nor the values of global flags.
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
