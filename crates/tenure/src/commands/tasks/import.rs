//! `tenure tasks import`.

use std::path::PathBuf;

use clap::ValueEnum;
use serde_json::{Value, json};
use tenure_core::Error;
use tenure_core::config::HookEvent;
use tenure_core::hints;
use tenure_core::holder::Caller;
use tenure_core::id::TaskId;
use tenure_core::import::{self, Format, Import};
use tenure_core::reference;
use tenure_core::rules::{self, UpdateOutcome};
use tenure_core::store::Tx;
use tenure_runner::hooks::{HookContext, HookFilter};

use super::import_source;
use super::update_view;
use crate::answer::Answer;
use crate::app::{App, Open};
use crate::hooks;
use crate::identity::IdentityArgs;
use crate::report::{CommandResult, Report};
use crate::shell_quote;
use crate::text::{Style, Text};

/// Import tasks from a Markdown checklist, JSON, or the files of another tool
///
/// If one line is invalid, nothing is imported. Ids become keys; fields that tenure does not have are listed. With --update, existing
/// tasks get the fields of the file; their statuses do not change, and nothing is deleted.
///
/// Example: tenure tasks import PLAN.md --update --dry-run
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// The file, or `-` for standard input; for Backlog.md and vibe-kanban also the folder
    file: PathBuf,
    /// The file's format (default: detected from its name and content)
    #[arg(long, value_enum, value_name = "NAME", alias = "format")]
    from: Option<ImportFormat>,
    /// Change the tasks that are in the project already, and show the difference
    #[arg(long)]
    update: bool,
    #[command(flatten)]
    identity: IdentityArgs,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum ImportFormat {
    Markdown,
    Json,
    Lodestar,
    Beads,
    BacklogMd,
    TaskMaster,
    VibeKanban,
    Github,
}

impl From<ImportFormat> for Format {
    fn from(arg: ImportFormat) -> Self {
        match arg {
            ImportFormat::Markdown => Self::Markdown,
            ImportFormat::Json => Self::Json,
            ImportFormat::Lodestar => Self::Lodestar,
            ImportFormat::Beads => Self::Beads,
            ImportFormat::BacklogMd => Self::BacklogMd,
            ImportFormat::TaskMaster => Self::TaskMaster,
            ImportFormat::VibeKanban => Self::VibeKanban,
            ImportFormat::Github => Self::Github,
        }
    }
}

pub(crate) fn run(app: &mut App<'_>, args: Args) -> CommandResult<Answer> {
    let open = app.open()?;
    let caller = app.identity(&args.identity)?.actor(None);
    let source = import_source::read(&app.env.cwd, &args.file)?;
    let name = &source.name;
    let files: Vec<(&str, &str)> =
        source.files.iter().map(|(name, text)| (name.as_str(), text.as_str())).collect();
    let import = import::parse_files(args.from.map(Format::from), &files)
        .map_err(|e| Report::usage(format!("{name}: {e}")))?;
    let report = |error: Error| report_of(error, name, &args.file.to_string_lossy());
    if args.update {
        let updated = update(app, &open, &caller, &import).map_err(report)?;
        let mut text = update_view::text(app, name, &updated);
        left_out(&mut text, &import);
        return Ok(Answer::new(update_view::data(&updated, unmapped(&import)), text));
    }
    let taken = add(app, &open, &caller, &import).map_err(report)?;
    let mut text = Text::new();
    let count = taken.tasks.len();
    text.styled(Style::Good, app.past("Imported", "Would import"))
        .and(Style::Plain, format!(" {count} {} from {name}", if count == 1 { "task" } else { "tasks" }));
    if !taken.new_sections.is_empty() {
        text.line(format!("  New sections: {}", taken.new_sections.join(", ")));
    }
    left_out(&mut text, &import);
    let data = json!({
        "imported": taken.tasks,
        "total": count,
        "sections": taken.new_sections,
        "unmapped": unmapped(&import),
    });
    Ok(Answer::new(data, text))
}

fn add(
    app: &mut App<'_>,
    open: &Open<'_>,
    caller: &Caller,
    import: &Import,
) -> Result<rules::Imported, Error> {
    let (ctx, hook_filter) = (open.context(), hooks::filter(app, open));
    let (taken, hook_contexts) = open.write(|tx| {
        let taken = rules::import(tx, &ctx, caller, import)?;
        let hook_contexts = created(open, &hook_filter, tx, taken.tasks.iter().map(String::as_str))?;
        Ok((taken, hook_contexts))
    })?;
    hooks::deliver(app, open, &hook_contexts);
    Ok(taken)
}

fn update(
    app: &mut App<'_>,
    open: &Open<'_>,
    caller: &Caller,
    import: &Import,
) -> Result<rules::ImportUpdate, Error> {
    let (ctx, hook_filter) = (open.context(), hooks::filter(app, open));
    let (updated, hook_contexts) = open.write(|tx| {
        let updated = rules::update_import(tx, &ctx, caller, import)?;
        let added = updated.tasks.iter().filter(|task| task.outcome == UpdateOutcome::Added);
        let hook_contexts = created(open, &hook_filter, tx, added.map(|task| task.key.as_str()))?;
        Ok((updated, hook_contexts))
    })?;
    hooks::deliver(app, open, &hook_contexts);
    Ok(updated)
}

/// The hook events of new tasks.
fn created<'k>(
    open: &Open<'_>,
    hook_filter: &HookFilter<'_>,
    tx: &dyn Tx,
    keys: impl Iterator<Item = &'k str>,
) -> Result<Vec<HookContext>, Error> {
    let mut hook_contexts = Vec::new();
    if hook_filter.listens_to(HookEvent::TaskCreated) {
        let viewer = open.context().viewer(tx, None)?;
        for key in keys {
            let id = TaskId::new(reference::task(tx, key)?.id);
            let task = tx.task(&id, &viewer)?;
            hook_contexts.extend(task.iter().flat_map(|task| hook_filter.created(tx.now(), task)));
        }
    }
    Ok(hook_contexts)
}

/// Names the file, and where it helps, the command that updates.
fn report_of(error: Error, name: &str, argument: &str) -> Report {
    let names_line = matches!(error, Error::DependencyCycle { .. } | Error::AlreadyImported { .. });
    let is_known = matches!(error, Error::AlreadyImported { .. });
    let mut report = Report::from(error);
    if names_line {
        report.message = format!("{name}: {}", report.message);
    }
    if is_known {
        return report.hint(hints::preview_update(shell_quote::last_arg(argument)));
    }
    report
}

/// What the import could not represent.
fn left_out(text: &mut Text, import: &Import) {
    for remark in &import.unmapped {
        let place = remark.line.map(|n| format!("line {n}: ")).unwrap_or_default();
        let times = if remark.count > 1 { format!(" ({}×)", remark.count) } else { String::new() };
        text.styled(Style::Dim, format!("  {place}{}{times}: {}", remark.what, remark.why));
    }
}

fn unmapped(import: &Import) -> Value {
    let rows = import.unmapped.iter();
    rows.map(|u| json!({"line": u.line, "what": u.what, "why": u.why, "count": u.count})).collect()
}
