//! `tenure store copy`: copies all rows to another store.

use std::collections::BTreeSet;
use std::path::PathBuf;

use serde_json::{Map, Value, json};
use tenure_core::kernel;
use tenure_core::lease::{Lease, LeaseState};
use tenure_core::store::{Cell, LeaseFilter, Movable, Table};
use tenure_core::{Error, ErrorCode};

use crate::answer::Answer;
use crate::app::{App, Open};
use crate::report::{CommandResult, Report};
use crate::shell_quote::quote;
use crate::store::Source;
use crate::text::Text;

/// Copy everything to another store: tasks, leases, events, messages, sessions and jobs
///
/// Copies all or nothing, and only while no lease is held. Every id, fence and number is kept. The project keeps using
/// its current store until you change store.url.
///
/// Example: tenure store copy --to postgres://ann@db.example/work
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// A PostgreSQL URL, `sqlite:` for the project's database file, or `sqlite:PATH`
    #[arg(long, value_name = "URL")]
    to: String,
}

pub(super) fn run(app: &mut App<'_>, args: Args) -> CommandResult<Answer> {
    let open = app.open()?;
    let target = target(app, &open, &args.to)?;
    if target.shown() == open.source.shown() {
        return Err(Report::usage(format!("the project already uses {}", target.shown()))
            .hint("see store.url", "tenure config show"));
    }
    let lapsed = lapsed_leases(&open)?;
    let mut counts = Map::new();
    let mut count = |table: &Table, rows: usize| {
        let key = camel_case(table.name);
        let so_far = counts.get(&key).and_then(Value::as_u64).unwrap_or(0);
        counts.insert(key, json!(so_far + rows as u64));
    };
    let from: &dyn Movable = open.store.movable();
    let mut fill = |put: &mut tenure_core::store::Put<'_>| {
        from.hand_over(&mut |table, rows| {
            refuse_new_leases(table, &rows, &lapsed)?;
            count(table, rows.len());
            put(table, rows)
        })
    };
    if app.global.dry_run {
        fill(&mut |_, _| Ok(()))?;
    } else {
        let name = open.config.project.name.as_deref().unwrap_or("project");
        let destination = target.create(name)?;
        destination.movable().take_over(&mut fill).map_err(|error| refusal(error, &target))?;
    }
    let shown = target.shown();
    let mut text = Text::new();
    let verb = app.past("Copied", "Would copy");
    text.line(format!("{verb} {} tasks and {} events to {shown}", counts["tasks"], counts["events"]));
    let answer = Answer::new(json!({"from": open.source.shown(), "to": shown, "rows": counts}), text);
    Ok(match target {
        _ if app.global.dry_run => answer,
        Source::Postgres { .. } => {
            answer.hint("use it", format!("tenure config set store.url {}", quote(&shown)))
        }
        Source::Sqlite { .. } => answer.hint("to use it, remove store.url", "tenure config edit"),
    })
}

fn target(app: &App<'_>, open: &Open<'_>, to: &str) -> CommandResult<Source> {
    let mut config = open.config.clone();
    let mut options = app.store_options();
    options.dry_run = false;
    match to.strip_prefix("sqlite:") {
        Some(path) => {
            let path =
                if path.is_empty() { open.paths.database() } else { app.env.cwd.join(PathBuf::from(path)) };
            Ok(Source::Sqlite { path, options })
        }
        None => {
            config.store_url = Some(to.to_owned());
            Ok(Source::of(&open.paths, &config, app.env, options)?)
        }
    }
}

/// The fences of open leases that have lapsed. A live lease is an error, because its holder would keep writing to this
/// store.
fn lapsed_leases(open: &Open<'_>) -> CommandResult<BTreeSet<i64>> {
    let ctx = open.context();
    let lapsed = open.read(|view| {
        let open = view.leases(&LeaseFilter::default())?;
        let live = |lease: &&Lease| lease.state(view.now(), ctx.judge) == LeaseState::Live;
        if let Some(held) = open.iter().find(live) {
            let name = held.resource.id.clone();
            let locked = kernel::locked(view, held.resource.clone(), &name, None, Some(held.clone()), 0)?;
            return Err(Error::Locked(Box::new(locked)));
        }
        Ok(open.iter().map(|lease| lease.fence.number()).collect())
    })?;
    Ok(lapsed)
}

/// Refuses a lease that was granted between [`lapsed_leases`] and the start of the copy.
fn refuse_new_leases(table: &Table, rows: &[Vec<Cell>], lapsed: &BTreeSet<i64>) -> tenure_core::Result<()> {
    if table.name != "leases" {
        return Ok(());
    }
    let index = |name: &str| table.columns.iter().position(|(column, _)| *column == name);
    let (Some(fence), Some(ended)) = (index("fence"), index("ended_at")) else { return Ok(()) };
    let is_new = |row: &Vec<Cell>| {
        row.get(ended) == Some(&Cell::Null)
            && !matches!(row.get(fence), Some(Cell::Int(number)) if lapsed.contains(number))
    };
    if rows.iter().any(is_new) {
        return Err(Error::store("a lease was granted while the copy started; nothing was copied"));
    }
    Ok(())
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
    let report = Report::from(error);
    if report.code == ErrorCode::Store {
        return Report::new(
            ErrorCode::Store,
            format!("nothing was copied to {}: {}", target.shown(), report.message),
        );
    }
    report
}
