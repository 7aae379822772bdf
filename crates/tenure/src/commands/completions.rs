//! `tenure completions`: shell completions, generated from the parser's definitions.

use clap::{Args as _, Command, CommandFactory};

use crate::app::App;
use crate::cli::{Cli, Global};
use crate::printer::CommandName;

/// Print completions for a shell
///
/// Example: tenure completions bash > ~/.local/share/bash-completion/completions/tenure
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// The shell
    shell: clap_complete::Shell,
}

pub(crate) fn run(app: &mut App<'_>, args: Args) {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut shown(), "tenure", &mut script);
    let name = CommandName { command: "completions", subcommand: None };
    app.printer.raw(name, "script", &String::from_utf8_lossy(&script));
}

/// The definitions without hidden commands, which some shells would offer otherwise.
fn shown() -> Command {
    let whole = Cli::command();
    let shown = whole.get_subcommands().filter(|sub| !sub.is_hide_set()).cloned();
    let top = Command::new("tenure").version(env!("CARGO_PKG_VERSION")).disable_help_subcommand(true);
    Global::augment_args(top).subcommands(shown)
}
