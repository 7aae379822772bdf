//! `tenure store copy`: moves the project to another store.

use std::path::PathBuf;

use serde_json::{Map, Value, json};
use tenure_core::hints;
use tenure_core::store::{RowCounts, StoreAt, count_movable_rows, move_store};
use tenure_core::{Error, ErrorCode};

use crate::answer::Answer;
use crate::app::{App, Open};
use crate::report::{CommandResult, Report};
use crate::shell_quote::quote;
use crate::store::{Source, setting_of};
use crate::text::Text;

/// Move the project to another store: tasks, leases, events, messages, sessions and jobs
///
/// Copies everything while no lease is held, then seals this store: from then on every command that still uses it fails
/// and names the new one. Every id, fence and number is kept. An interrupted copy continues when the
/// command is run again. A copy never overwrites rows, except in a store that was itself copied to this one.
///
/// Example: tenure store copy --to postgres://ann@db.example/work
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// A PostgreSQL URL, or `sqlite:` for the project's database file
    #[arg(long, value_name = "URL")]
    to: String,
}

pub(super) fn run(app: &mut App<'_>, args: Args) -> CommandResult<Answer> {
    let open = app.open()?;
    let target = target(app, &open, &args.to)?;
    if target.shown() == open.source.shown() {
        return Err(
            Report::usage(format!("the project already uses {}", target.shown())).hint(hints::show_config())
        );
    }
    let from = StoreAt { store: open.store.movable(), url: &open.source.url() };
    let judge = open.env.judge.as_ref();
    let counts = if app.global.dry_run {
        count_movable_rows(from.store, judge)?
    } else {
        let name = open.config.project.name.as_deref().unwrap_or("project");
        let destination = target.create(name)?;
        let to = StoreAt { store: destination.movable(), url: &target.url() };
        move_store(from, to, judge).map_err(|error| refusal(error, &target))?
    };
    let shown = target.shown();
    let of = |table: &str| counts.iter().find(|(name, _)| *name == table).map_or(0, |(_, count)| *count);
    let mut text = Text::new();
    let verb = app.past("Copied", "Would copy");
    text.line(format!("{verb} {} tasks and {} events to {shown}", of("tasks"), of("events")));
    if !app.global.dry_run {
        text.line(format!("{} is sealed: it refuses every command from now on", open.source.shown()));
    }
    let answer = Answer::new(json!({"from": open.source.shown(), "to": shown, "rows": rows(&counts)}), text);
    if app.global.dry_run {
        return Ok(answer);
    }
    Ok(answer.hint(hints::use_new_store(quote(setting_of(&target.url())))))
}

fn target(app: &App<'_>, open: &Open<'_>, to: &str) -> CommandResult<Source> {
    let mut options = app.store_options();
    options.dry_run = false;
    let Some(path) = to.strip_prefix("sqlite:") else {
        return Ok(Source::at(to, &open.paths, &open.config, app.env, options)?);
    };
    let database = open.paths.database();
    if !path.is_empty() && app.env.cwd.join(PathBuf::from(path)) != database {
        return Err(Report::usage(format!("a project's database file is {}", database.display()))
            .hint(hints::back_up_to(quote(path))));
    }
    Ok(Source::Sqlite { path: database, options })
}

fn rows(counts: &RowCounts) -> Map<String, Value> {
    counts.iter().map(|(table, count)| (camel_case(table), json!(count))).collect()
}

/// `task_deps` becomes `taskDeps`.
fn camel_case(name: &str) -> String {
    let mut words = name.split('_');
    let first = words.next().unwrap_or_default().to_owned();
    words.fold(first, |before, word| {
        let (head, tail) = word.split_at(word.len().min(1));
        before + &head.to_ascii_uppercase() + tail
    })
}

fn refusal(error: Error, target: &Source) -> Report {
    let is_held = matches!(error, Error::Locked(_));
    let mut report = Report::from(error);
    if report.code == ErrorCode::Store {
        report.message = format!("the copy to {} is not complete: {}", target.shown(), report.message);
    }
    if is_held {
        report.context.push("A store can be copied only while nothing is held.".to_owned());
    }
    report
}
