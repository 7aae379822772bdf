//! `tenure tasks import`.

use std::fs::File;
use std::io::Read;
use std::path::PathBuf;

use clap::ValueEnum;
use serde_json::{Value, json};
use tenure_core::ErrorCode;
use tenure_core::config::HookEvent;
use tenure_core::id::TaskId;
use tenure_core::import::{self, Format};
use tenure_core::reference;
use tenure_core::rules;

use crate::answer::Answer;
use crate::app::App;
use crate::hooks;
use crate::identity::IdentityArgs;
use crate::report::{CommandResult, Report};
use crate::text::{Style, Text};

/// The largest import, in bytes. A hundred thousand tasks with their descriptions fit.
const MAX_BYTES: usize = 64 * 1024 * 1024;

/// Import tasks from a Markdown checklist, JSON, lodestar's spec.yaml or beads' JSONL
///
/// If one line is invalid, nothing is imported. Ids become keys; fields that tenure does not have are listed.
///
/// Example: tenure tasks import PLAN.md
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// The file, or `-` for standard input
    file: PathBuf,
    /// The format, if its name and content do not show it
    #[arg(long, value_enum)]
    format: Option<FormatArg>,
    #[command(flatten)]
    identity: IdentityArgs,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum FormatArg {
    Markdown,
    Json,
    Lodestar,
    Beads,
}

impl From<FormatArg> for Format {
    fn from(arg: FormatArg) -> Self {
        match arg {
            FormatArg::Markdown => Self::Markdown,
            FormatArg::Json => Self::Json,
            FormatArg::Lodestar => Self::Lodestar,
            FormatArg::Beads => Self::Beads,
        }
    }
}

pub(crate) fn run(app: &mut App<'_>, args: Args) -> CommandResult<Answer> {
    let open = app.open()?;
    let caller = app.identity(&args.identity)?.actor(None);
    let (name, read) = if args.file.as_os_str() == "-" {
        ("stdin".to_owned(), read_bounded(std::io::stdin()))
    } else {
        let read = File::open(app.env.cwd.join(&args.file)).and_then(read_bounded);
        (args.file.to_string_lossy().into_owned(), read)
    };
    let content = read.map_err(|e| unreadable(&args.file, &e))?;
    if content.len() > MAX_BYTES {
        let limit = MAX_BYTES / 1024 / 1024;
        return Err(Report::usage(format!("{name} is larger than {limit} MiB; split it into several files")));
    }
    let content =
        String::from_utf8(content).map_err(|_| Report::usage(format!("{name} is not UTF-8 text")))?;
    let import = import::parse(args.format.map(Format::from), &name, &content)
        .map_err(|e| Report::usage(format!("{name}: {e}")))?;
    let ctx = open.context();
    let hook_filter = hooks::filter(app, &open);
    let (taken, hook_contexts) = open.write(|tx| {
        let taken = rules::import(tx, &ctx, &caller, &import)?;
        let mut hook_contexts = Vec::new();
        if hook_filter.listens_to(HookEvent::TaskCreated) {
            let viewer = ctx.viewer(tx, None)?;
            for key in &taken.tasks {
                let id = TaskId::new(reference::task(tx, key)?.id);
                hook_contexts.extend(
                    tx.task(&id, &viewer)?.iter().flat_map(|task| hook_filter.created(tx.now(), task)),
                );
            }
        }
        Ok((taken, hook_contexts))
    })?;
    hooks::deliver(app, &open, &hook_contexts);

    let mut text = Text::new();
    let count = taken.tasks.len();
    text.styled(Style::Good, app.past("Imported", "Would import"))
        .and(Style::Plain, format!(" {count} {} from {name}", if count == 1 { "task" } else { "tasks" }));
    if !taken.new_sections.is_empty() {
        text.line(format!("  New sections: {}", taken.new_sections.join(", ")));
    }
    for remark in &import.unmapped {
        let place = remark.line.map(|n| format!("line {n}: ")).unwrap_or_default();
        let times = if remark.count > 1 { format!(" ({}×)", remark.count) } else { String::new() };
        text.styled(Style::Dim, format!("  {place}{}{times}: {}", remark.what, remark.why));
    }
    let unmapped: Vec<Value> = import
        .unmapped
        .iter()
        .map(|u| json!({"line": u.line, "what": u.what, "why": u.why, "count": u.count}))
        .collect();
    let data = json!({
        "imported": taken.tasks,
        "total": count,
        "sections": taken.new_sections,
        "unmapped": unmapped,
    });
    Ok(Answer::new(data, text))
}

/// Reads at most one byte more than an import may have.
fn read_bounded(from: impl Read) -> std::io::Result<Vec<u8>> {
    let mut content = Vec::new();
    from.take(MAX_BYTES as u64 + 1).read_to_end(&mut content)?;
    Ok(content)
}

fn unreadable(path: &std::path::Path, error: &std::io::Error) -> Report {
    match error.kind() {
        std::io::ErrorKind::NotFound => Report::usage(format!("there is no file {}", path.display())),
        _ => Report::io(error, ErrorCode::InvalidArguments, "read", path),
    }
}
