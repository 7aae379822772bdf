//! `tenure prime`: a page of instructions for an agent, with the project's current state.

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
use crate::report::CommandResult;
use crate::text::Text;

const JOIN: &str = "get your own id with `tenure agents join`, and pass it to every command: `--agent ID`, \
                    or set TENURE_AGENT. Never share one.";

/// Maximum number of tasks in each list.
const SHOWN: u64 = 5;

/// Print instructions for an agent: what is ready, and how to claim, renew and finish tasks
///
/// Example: tenure prime --agent A1234ABCD
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    #[command(flatten)]
    identity: IdentityArgs,
}

pub(crate) fn run(app: &mut App<'_>, args: Args) -> CommandResult<Answer> {
    let open = app.open()?;
    let page = now(app, &open, &args.identity)?;
    let mut text = Text::new();
    text.block(0, &page);
    Ok(Answer::new(json!({"text": page}), text))
}

/// The page for this caller, with the project's current state.
pub(super) fn now(app: &App<'_>, open: &Open<'_>, identity_args: &IdentityArgs) -> CommandResult<String> {
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

/// The part of the page that does not depend on the caller or the project's state, for a file.
pub(super) fn for_any_time() -> String {
    format!(
        "## tenure assigns the work here\n\n\
         Run `tenure prime` first: it prints your id, what you hold and what is ready.\n\
         If it prints no id, {JOIN}\n\
         If TENURE_TASK_ID is set, you were started for that task: work on that task only.\n\n{}",
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
        (id.clone(), format!("You are {id}. Pass `--agent {id}` to every command, or set TENURE_AGENT."))
    } else {
        ("ID".to_owned(), format!("First {JOIN}"))
    };
    let mut page = format!(
        "# {}: tenure assigns the work\n\n{introduction}\n{} open, {} of them ready.\n",
        escape_line(project),
        if seen.open == 1 { "1 task is".to_owned() } else { format!("{} tasks are", seen.open) },
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
        "1. Claim the next task: `tenure task next --claim --agent {me}`. Exit 10: nothing is ready; stop, or add `--wait 10m`.\n   \
            Or a specific one: `tenure task claim {key} --agent {me}`. Exit 6: it is held; choose another.\n   \
            Read what the claim prints: description, source, messages and the last remark. All of a task: `tenure tasks show {key}`.\n\
         2. You hold it {how_long}. Renew it well before that, repeatedly: `tenure task renew {key} --agent {me}`.\n   \
            Exit 8: you no longer hold it. Stop immediately and change nothing more.\n\
         3. Before anything irreversible, `tenure task check {key} --agent {me}` must exit 0.\n\
         4. Report the result: `tenure task done {key} --agent {me}`, or `fail` or `release` with `-m WHY`.\n\
         5. Leave a note on the task: `tenure msg send --task {key} --from {me} -m TEXT`. Add work: `tenure tasks add TITLE`.\n\n\
         Work only on tasks you hold. Never use --force and never edit .tenure/ by hand. `tenure why {key}` explains a task's state; \
         every command takes --json.\n"
    )
}
