//! `tenure man`: manual pages, generated from the parser's definitions.

use std::path::{Path, PathBuf};

use clap::{Command, CommandFactory};
use serde_json::json;
use tenure_core::Error;
use tenure_core::hints;

use crate::answer::Answer;
use crate::app::App;
use crate::cli::Cli;
use crate::printer::CommandName;
use crate::report::{CommandResult, Report};
use crate::text::Text;

/// Print the manual page of tenure or of one of its commands
///
/// At a terminal it is shown with `man`. Without one, or if `man` cannot read it, its source is printed.
///
/// Example: tenure man tasks claim
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// A command and its subcommand
    words: Vec<String>,
    /// Write the pages of all commands into this folder, for a package
    #[arg(long, value_name = "FOLDER", conflicts_with = "words")]
    to: Option<PathBuf>,
}

pub(crate) fn run(app: &mut App<'_>, args: Args) -> CommandResult<Option<Answer>> {
    if let Some(folder) = &args.to {
        return write_all(app, folder).map(Some);
    }
    let (command, name) = find(Cli::command(), &args.words)?;
    let page = render(command, &name)?;
    let name = CommandName { command: "man", subcommand: None };
    let page = String::from_utf8_lossy(&page);
    if !app.printer.show_manual(&page) {
        app.printer.raw(name, "page", &page);
    }
    Ok(None)
}

fn write_all(app: &App<'_>, folder: &Path) -> CommandResult<Answer> {
    let mut whole = Cli::command();
    whole.build();
    let mut pages = Vec::new();
    collect(&whole, "tenure", &mut pages);
    let folder = app.env.cwd.join(folder);
    if !app.global.dry_run {
        let failed = |e| Error::General(format!("cannot write to {}: {e}", folder.display()));
        std::fs::create_dir_all(&folder).map_err(failed)?;
        for (command, name) in &pages {
            let file = folder.join(format!("{}.1", name.replace(' ', "-")));
            std::fs::write(file, render(command.clone(), name)?).map_err(failed)?;
        }
    }
    let mut text = Text::new();
    text.line(format!("{} pages in {}", pages.len(), folder.display()));
    Ok(Answer::new(json!({"pages": pages.len(), "folder": folder}), text))
}

/// This command and all below it, with their whole names and without the hidden ones.
fn collect(command: &Command, name: &str, pages: &mut Vec<(Command, String)>) {
    pages.push((command.clone(), name.to_owned()));
    for sub in command.get_subcommands().filter(|sub| !sub.is_hide_set() && sub.get_name() != "help") {
        collect(sub, &format!("{name} {}", sub.get_name()), pages);
    }
}

fn render(command: Command, name: &str) -> CommandResult<Vec<u8>> {
    let mut page = Vec::new();
    clap_mangen::Man::new(command.bin_name(name.to_owned()))
        .title(name.replace(' ', "-"))
        .source(concat!("tenure ", env!("CARGO_PKG_VERSION")))
        .render(&mut page)
        .map_err(|e| Error::General(format!("cannot generate the manual page: {e}")))?;
    Ok(page)
}

/// The command that these words name, and its whole name.
pub(super) fn find(root: Command, words: &[String]) -> CommandResult<(Command, String)> {
    let mut command = root;
    command.build();
    let mut name = "tenure".to_owned();
    for word in words {
        let found = command.find_subcommand(word).cloned();
        command = found.ok_or_else(|| {
            Report::usage(format!("there is no command {name} {word}")).hint(hints::help_for(&name))
        })?;
        name = format!("{name} {}", command.get_name());
    }
    Ok((command, name))
}
