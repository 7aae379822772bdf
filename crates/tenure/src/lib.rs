//! The command-line tool: arguments in, one decision in the core, one answer out.
//!
//! [`run`] is the whole program. It takes its surroundings as values, so a test can call it in a world of its own.

use std::ffi::OsString;
use std::process::ExitCode;

use clap::{CommandFactory, FromArgMatches};

mod answer;
mod app;
mod atomic;
mod clearing;
mod cli;
mod commands;
mod env;
mod identity;
mod interrupt;
mod ownership;
mod printer;
mod project;
mod report;
mod shell;
mod terminal;
mod text;
mod waiting;

pub use env::{Env, Output};

use app::App;
use cli::{Cli, Global};
use printer::{CommandName, Printer};
use report::Report;

/// Runs one command line and says how it ended.
pub fn run(args: impl IntoIterator<Item = OsString>, env: Env, output: &mut Output) -> ExitCode {
    let args: Vec<OsString> = args.into_iter().collect();
    ExitCode::from(run_with(&args, &env, output))
}

/// [`run`], for tests that look at the number.
pub fn run_with(args: &[OsString], env: &Env, output: &mut Output) -> u8 {
    let color = !env.vars.contains_key(&OsString::from("NO_COLOR")) && !env.flag("CI");
    let parsed = Cli::command().try_get_matches_from(args).and_then(|m| Cli::from_arg_matches(&m));
    let cli = match parsed {
        Ok(cli) => cli,
        Err(error) => {
            let mut printer = Printer::new(output, wants_json(args, env), false, 0, color);
            return usage(&error, &mut printer);
        }
    };
    let global = Global {
        json: cli.global.json || env.flag("TENURE_JSON"),
        no_hooks: cli.global.no_hooks || env.flag("TENURE_NO_HOOKS"),
        ..cli.global
    };
    let color = color && !global.no_color;
    let printer = Printer::new(output, global.json, global.quiet, global.verbose, color);
    let mut app = App { env, global: &global, printer };
    let name =
        cli.command.as_ref().map_or(CommandName { command: "status", subcommand: None }, cli::Command::name);
    let begun = std::time::Instant::now();
    let code = match commands::dispatch(&mut app, cli.command) {
        Ok(Some(answer)) => {
            app.printer.answer(name, &answer);
            answer.exit
        }
        Ok(None) => 0,
        Err(report) => {
            app.printer.failure(name, &report);
            report.exit_code()
        }
    };
    app.printer.detail(2, || format!("took {:.1} ms, exit {code}", begun.elapsed().as_secs_f64() * 1000.0));
    code
}

/// Every command and flag, as the parser knows them.
pub fn command() -> clap::Command {
    Cli::command()
}

/// The file that this program was started from, also if it was replaced or deleted since.
fn own_binary() -> std::io::Result<std::path::PathBuf> {
    let path = std::env::current_exe()?;
    let running = std::path::Path::new("/proc/self/exe");
    Ok(if !path.exists() && running.exists() { running.to_owned() } else { path })
}

/// `--json` anywhere before `--` also governs usage errors.
fn wants_json(args: &[OsString], env: &Env) -> bool {
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

fn usage(error: &clap::Error, printer: &mut Printer<'_>) -> u8 {
    use clap::error::ErrorKind;
    let name = CommandName { command: "tenure", subcommand: None };
    let text = error.render().to_string();
    match error.kind() {
        ErrorKind::DisplayHelp => printer.raw(name, "help", &text),
        ErrorKind::DisplayVersion => printer.raw(name, "version", &text),
        ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand => {
            let report = Report::usage("a subcommand is missing");
            if printer.json {
                printer.failure(name, &report);
            } else {
                printer.draw(&text);
            }
            return report.exit_code();
        }
        _ => {
            let said = text.strip_prefix("error: ").unwrap_or(&text).trim_end();
            let (message, rest) = said.split_once("\n\n").unwrap_or((said, ""));
            let mut report = Report::usage(message);
            let is_tip = |line: &&str| !line.trim().is_empty();
            report.context = rest.lines().filter(is_tip).map(str::to_owned).collect();
            printer.failure(name, &report);
            return report.exit_code();
        }
    }
    0
}
