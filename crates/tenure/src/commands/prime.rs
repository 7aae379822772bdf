//! `tenure prime`: one page for an agent, made from the project as it is now.

use std::fmt::Write;

use serde_json::json;
use tenure_core::duration::format_short;
use tenure_core::lease::LeaseState;
use tenure_core::store::{MessageFilter, TaskFilter};
use tenure_core::task::{Task, TaskStatus};
use tenure_core::text::escape_line;

use crate::answer::Answer;
use crate::app::{App, Open};
use crate::identity::{Identity, IdentityArgs};
use crate::report::Outcome;
use crate::text::Text;

const JOIN: &str = "get a name of your own with `tenure agents join`, and give it to every command: `--agent ID`, \
                    or set TENURE_AGENT. Never share one.";

/// So many tasks are shown; the rest is a number.
const SHOWN: u64 = 5;

/// Print a page of instructions for an agent: what is ready, how to claim, renew and finish
///
/// Example: tenure prime --agent A1234ABCD
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    #[command(flatten)]
    identity: IdentityArgs,
}

pub(crate) fn run(app: &mut App<'_>, args: Args) -> Outcome<Answer> {
    let open = app.open()?;
    let page = now(app, &open, &args.identity)?;
    let mut text = Text::new();
    text.block(0, &page);
    Ok(Answer::new(json!({"text": page}), text))
}

/// The page as it is true now, for whoever is named.
pub(super) fn now(app: &App<'_>, open: &Open<'_>, identity_args: &IdentityArgs) -> Outcome<String> {
    let identity = app.identity(identity_args)?;
    let seen = open.read(|view| {
        let viewer = open.viewer(view, &identity)?;
        let list = |filter: TaskFilter| view.list_tasks(&filter, &viewer);
        let page = TaskFilter { limit: SHOWN, ..TaskFilter::default() };
        let mine = identity.is_named().then(|| identity.holder.clone());
        let messages = match &mine {
            Some(holder) => {
                let for_me = Some(holder.id.clone());
                view.messages(&MessageFilter { to: for_me, limit: 1, ..MessageFilter::default() })?.1
            }
            None => 0,
        };
        let held = match mine {
            Some(holder) => list(TaskFilter { held_by: Some(holder), ..page.clone() })?.0,
            None => Vec::new(),
        };
        let open_statuses = TaskStatus::ALL.into_iter().filter(|status| !status.is_finished()).collect();
        Ok(Snapshot {
            open: list(TaskFilter { statuses: Some(open_statuses), limit: 0, ..page.clone() })?.1,
            ready: list(TaskFilter { ready: true, ..page })?,
            held: held
                .into_iter()
                .filter(|task| {
                    let state = task.lease.as_ref().map(|l| l.state(view.now(), app.env.judge.as_ref()));
                    state == Some(LeaseState::Live)
                })
                .collect(),
            messages,
        })
    })?;
    let name = open.config.project.name.clone().unwrap_or_else(|| "this project".to_owned());
    Ok(page(&name, &identity, &seen, &format_short(open.config.locking.lease_ttl)))
}

/// The part of the page that is true for everybody and at any time: for a file that is kept.
pub(super) fn for_any_time() -> String {
    format!(
        "## Work here is handed out by tenure\n\n\
         `tenure prime` says who you are, what you hold and what is ready now: run it first.\n\
         If it does not name you, {JOIN}\n\
         If TENURE_TASK_ID is set, you were started for that task: do it and no other.\n\n{}",
        how_to_work("ID", "T", "as long as the claim says")
    )
}

struct Snapshot {
    open: u64,
    ready: (Vec<Task>, u64),
    held: Vec<Task>,
    messages: u64,
}

fn page(project: &str, identity: &Identity, seen: &Snapshot, ttl: &str) -> String {
    let (me, introduction) = if identity.is_named() {
        let id = identity.holder.id.clone();
        (
            id.clone(),
            format!("You are {id}; say so with `--agent {id}` in every command, or set TENURE_AGENT."),
        )
    } else {
        ("ID".to_owned(), format!("First {JOIN}"))
    };
    let mut page = format!(
        "# {}: tenure hands out the work\n\n{introduction}\n{} tasks are open, {} of them ready.\n",
        escape_line(project),
        seen.open,
        seen.ready.1
    );
    let mut list = |title: &str, tasks: &[Task]| {
        if !tasks.is_empty() {
            let _ = writeln!(page, "\n{title}");
        }
        for task in tasks {
            let _ = writeln!(page, "- {} {}", task.key, escape_line(&task.title));
        }
    };
    list("You hold:", &seen.held);
    list("Ready now, in this order:", &seen.ready.0);
    if seen.messages > 0 {
        let _ =
            writeln!(page, "\nMessages for you: {} (`tenure msg list --mine --agent {me}`)", seen.messages);
    }
    let key = seen.held.first().or(seen.ready.0.first()).map_or("T", |task| task.key.as_str());
    let _ = write!(page, "\n## How to work\n{}", how_to_work(&me, key, &format!("for {ttl}")));
    page
}

fn how_to_work(me: &str, key: &str, how_long: &str) -> String {
    format!(
        "1. Take one: `tenure task next --claim --agent {me}`. Exit 10: nothing is ready; stop, or add `--wait 10m`.\n   \
            A certain one: `tenure task claim {key} --agent {me}`. Exit 6: somebody has it; take another.\n\
         2. It is yours {how_long}: `tenure task renew {key} --agent {me}` well before that, again and again.\n   \
            Exit 8: you no longer hold it. Stop at once and change nothing more.\n\
         3. Before anything that cannot be undone: `tenure task check {key} --agent {me}` must exit 0.\n\
         4. Say how it ended: `tenure task done {key} --agent {me}`, or `fail` or `release` with `-m WHY`.\n\
         5. Word for whoever is next: `tenure msg send --task {key} --from {me} -m TEXT`. New work: `tenure tasks add TITLE`.\n\n\
         Work only on what you hold. Never use --force, never edit .tenure/ by hand. `tenure why {key}` explains; \
         every command takes --json.\n"
    )
}
