//! `tenure man`: manual pages, generated from the parser's definitions.

use clap::CommandFactory;
use tenure_core::Error;

use crate::answer::Answer;
use crate::app::App;
use crate::cli::Cli;
use crate::printer::CommandName;
use crate::report::{CommandResult, Report};

/// Print the manual page of tenure or of one of its commands
///
/// Example: tenure man tasks claim | man -l -
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// A command and its subcommand
    words: Vec<String>,
}

pub(crate) fn run(app: &mut App<'_>, args: Args) -> CommandResult<Option<Answer>> {
    let (command, name) = find(&args.words)?;
    let mut page = Vec::new();
    let title = name.replace(' ', "-");
    clap_mangen::Man::new(command.bin_name(name))
        .title(title)
        .source(concat!("tenure ", env!("CARGO_PKG_VERSION")))
        .render(&mut page)
        .map_err(|e| Error::General(format!("cannot generate the manual page: {e}")))?;
    let name = CommandName { command: "man", subcommand: None };
    app.printer.raw(name, "page", &String::from_utf8_lossy(&page));
    Ok(None)
}

/// The command that these words name, and its whole name.
pub(super) fn find(words: &[String]) -> CommandResult<(clap::Command, String)> {
    let mut command = Cli::command();
    command.build();
    let mut name = "tenure".to_owned();
    for word in words {
        let found = command.find_subcommand(word).cloned();
        command = found.ok_or_else(|| {
            Report::usage(format!("there is no command {name} {word}"))
                .hint("see all commands", format!("{name} --help"))
        })?;
        name = format!("{name} {}", command.get_name());
    }
    Ok((command, name))
}
