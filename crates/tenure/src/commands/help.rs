//! `tenure help`: the same text as `--help`.

use super::man;
use crate::answer::Answer;
use crate::app::App;
use crate::help;
use crate::printer::CommandName;
use crate::report::CommandResult;

/// Print the help of tenure or of one of its commands
///
/// Example: tenure help tasks claim
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// A command and its subcommand, or `options`
    words: Vec<String>,
}

pub(crate) fn run(app: &mut App<'_>, args: Args) -> CommandResult<Option<Answer>> {
    let width = app.printer.help_width();
    let words: Vec<&str> = args.words.iter().map(String::as_str).collect();
    let text = match words.as_slice() {
        [] => help::overview(width),
        ["options"] => help::options(width),
        _ => {
            let (command, name) = man::find(help::definition(width), &args.words)?;
            command.bin_name(name).render_long_help().to_string()
        }
    };
    app.printer.raw(CommandName { command: "help", subcommand: None }, "help", &text);
    Ok(None)
}
