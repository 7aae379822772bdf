//! `tenure tasks export`.

use clap::ValueEnum;
use tenure_core::export;
use tenure_core::section::Section;
use tenure_core::text::escape_block;

use super::filter_args::FilterArgs;
use crate::answer::Answer;
use crate::app::App;
use crate::identity::IdentityArgs;
use crate::printer::CommandName;
use crate::report::CommandResult;
use crate::text::Text;

/// Export tasks as Markdown, JSON or CSV (default: all, as Markdown)
///
/// `tasks import` reads the Markdown and the JSON back as the same tasks. In CSV, text that a spreadsheet would treat as a formula
/// is prefixed with an apostrophe.
///
/// Example: tenure tasks export > PLAN.md
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// The format
    #[arg(long, value_enum, default_value_t = ExportFormat::Md)]
    format: ExportFormat,
    #[command(flatten)]
    filter: FilterArgs,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum ExportFormat {
    #[value(alias = "markdown")]
    Md,
    Json,
    Csv,
}

pub(crate) fn run(app: &mut App<'_>, args: Args) -> CommandResult<Option<Answer>> {
    let wanted = args.filter.wanted()?;
    let open = app.open()?;
    let identity = app.identity(&IdentityArgs::default())?;
    let (tasks, sections) = open.read(|view| {
        let tasks = args.filter.all(&open, view, &identity, &wanted)?;
        let used = |section: &Section| {
            args.filter.is_everything()
                || tasks.iter().any(|task| task.section.as_ref().is_some_and(|of| of.id == section.id))
        };
        let sections: Vec<_> = view.sections()?.into_iter().filter(used).collect();
        Ok((tasks, sections))
    })?;
    let document = export::document(&sections, &tasks);
    let content = match args.format {
        ExportFormat::Md => export::markdown(&sections, &tasks),
        ExportFormat::Json => serde_json::to_string_pretty(&document).unwrap_or_default() + "\n",
        ExportFormat::Csv => export::csv(&tasks),
    };
    if app.printer.json && args.format == ExportFormat::Json {
        return Ok(Some(Answer::new(document, Text::new())));
    }
    let name = CommandName { command: "tasks", subcommand: Some("export") };
    let content = if app.printer.out_is_terminal() { escape_block(&content).into_owned() } else { content };
    app.printer.raw(name, "content", &content);
    Ok(None)
}
