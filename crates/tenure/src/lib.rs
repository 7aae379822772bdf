//! The command-line tool. A command parses its arguments, runs one decision of the core and prints one answer.
//!
//! [`run`] is the whole program. It takes its environment as values, so a test can supply another one.
//!
//! ```
//! use tenure::{Env, Output, run_with};
//!
//! let mut output = Output::standard();
//! let args = ["tenure", "tasks", "claim", "--help"].map(std::ffi::OsString::from);
//! assert_eq!(run_with(&args, &Env::of_this_process(), &mut output), 0);
//!
//! // Every command and flag, as the parser knows them.
//! assert!(tenure::command().find_subcommand("tasks").is_some());
//! ```

use std::ffi::OsString;
use std::io::Write as _;
use std::process::ExitCode;

use clap::{CommandFactory, FromArgMatches};

mod answer;
mod app;
mod atomic;
mod candidates;
mod cli;
mod commands;
mod complete;
mod editor;
mod env;
mod execution;
mod fast_parser;
mod follow;
mod help;
mod hooks;
mod identity;
mod interrupt;
mod late_notice;
mod layers;
mod links;
mod local_time;
#[cfg(any(feature = "serve", feature = "web"))]
mod loopback;
mod ownership;
mod pager;
mod printer;
mod project;
mod reap;
mod report;
mod resume_lock;
mod store;
mod supervised;
mod sys;
mod table;
mod text;
mod trace;
mod tracked;
mod trust;
mod unsupported;
mod usage;
mod verbs;
mod wait_bar;
mod waiting;

pub use complete::complete;
pub use env::{Env, Output};

use app::App;
use cli::{Cli, Global};
use commands::Command;
use printer::{CommandName, Printer};
use tenure_core::shell_quote;
use verbs::Commands;

/// Runs one command line and returns its exit code.
pub fn run(args: impl IntoIterator<Item = OsString>, env: Env, output: &mut Output) -> ExitCode {
    sys::share_one_heap();
    sys::survive_file_size_limit();
    let args: Vec<OsString> = args.into_iter().collect();
    ExitCode::from(run_with(&args, &env, output))
}

/// [`run`], with the exit code as a number.
pub fn run_with(args: &[OsString], env: &Env, output: &mut Output) -> u8 {
    if let Some(answer) = complete::answer(args, env) {
        return u8::from(output.out.write_all(&answer).is_err());
    }
    let color = !env.vars.contains_key(&OsString::from("NO_COLOR"))
        && !env.flag("CI")
        && env.var("TERM") != Some("dumb");
    let width = output.help_width();
    if let Some((key, text)) = help::quick_answer(args, width) {
        let global = Global { json: env.flag("TENURE_JSON"), ..Global::default() };
        let name = CommandName { command: "tenure", subcommand: None };
        Printer::new(output, &global, color).with_pager(env, &global).raw(name, key, &text);
        return 0;
    }
    let whole = || {
        let matches = help::definition(width).try_get_matches_from(args)?;
        Cli::from_arg_matches(&matches)
    };
    let cli = match fast_parser::parse(args).or_else(|_| whole()) {
        Ok(cli) => cli,
        Err(error) => {
            let global = Global { json: usage::wants_json(args, env), ..Global::default() };
            let mut printer = Printer::new(output, &global, color).with_pager(env, &global);
            return usage::print(error, args, width, &mut printer);
        }
    };
    let global = Global {
        json: cli.global.json || env.flag("TENURE_JSON"),
        timeout: cli.global.timeout.or_else(|| cli.command.as_ref().and_then(Command::patience)),
        no_hooks: cli.global.no_hooks || env.flag("TENURE_NO_HOOKS"),
        ..cli.global
    };
    trace::start(env, global.verbose);
    let printer = Printer::new(output, &global, color).with_pager(env, &global);
    let shared = std::cell::OnceCell::new();
    let mut app = App { env, shared: &shared, global: &global, printer, wait_handles: Vec::new() };
    let name =
        cli.command.as_ref().map_or(CommandName { command: "status", subcommand: None }, Command::name);
    let begun = std::time::Instant::now();
    let span = tracing::debug_span!("command", name = name.command, verb = name.subcommand).entered();
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
    drop(span);
    app.printer.detail(2, || format!("took {:.1} ms, exit {code}", begun.elapsed().as_secs_f64() * 1000.0));
    drop(app);
    tenure_sqlite::close_left_open();
    code
}

/// Every command and flag, as the parser knows them.
pub fn command() -> clap::Command {
    Cli::command()
}

/// The overview of all commands as the parser defines it, which the stored one has to equal.
pub fn overview() -> String {
    help::made_overview()
}

/// The file that this program was started from, even if it has been replaced or deleted since.
fn own_binary() -> std::io::Result<std::path::PathBuf> {
    let path = std::env::current_exe()?;
    let running = if path.exists() { None } else { sys::running_binary() };
    Ok(running.unwrap_or(path))
}
