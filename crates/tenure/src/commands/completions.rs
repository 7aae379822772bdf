//! `tenure completions`: for the shell, made from the same definitions as the help.

use clap::CommandFactory;

use crate::app::App;
use crate::cli::Cli;
use crate::printer::CommandName;

/// Print completions for a shell
///
/// Example: tenure completions bash > ~/.local/share/bash-completion/completions/tenure
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Which shell
    shell: clap_complete::Shell,
}

pub(crate) fn run(app: &mut App<'_>, args: Args) {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut Cli::command(), "tenure", &mut script);
    let name = CommandName { command: "completions", subcommand: None };
    app.printer.raw(name, "script", &String::from_utf8_lossy(&script));
}
