//! `tenure completions`: the script with which a shell completes command lines.

use tenure_core::Error;

use crate::app::App;
use crate::complete;
use crate::printer::CommandName;
use crate::report::CommandResult;

/// Print completions for a shell
///
/// The shell then asks tenure for what may come next: commands and options, and the keys, sections, agents, jobs and settings
/// of the project.
///
/// Example: tenure completions bash > ~/.local/share/bash-completion/completions/tenure
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// The shell
    shell: clap_complete::Shell,
}

pub(crate) fn run(app: &mut App<'_>, args: Args) -> CommandResult<()> {
    let script = complete::registration(&args.shell.to_string())
        .map_err(|e| Error::General(format!("cannot generate completions for {}: {e}", args.shell)))?;
    let name = CommandName { command: "completions", subcommand: None };
    app.printer.raw(name, "script", &String::from_utf8_lossy(&script));
    Ok(())
}
