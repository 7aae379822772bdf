//! Tasks as JSON and as table rows.

use serde_json::{Value, json};
use tenure_core::Timestamp;
use tenure_core::holder::Judge;
use tenure_core::lease::LeaseState;
use tenure_core::task::{Task, TaskStatus};
use tenure_core::wire::{self, TaskAnswer, TaskJson};

use crate::app::App;
use crate::table::{Table, cut, keep};
use crate::text::Style;
use tenure_core::short_id::ShortIds;

pub(crate) fn object<'t>(app: &App<'_>, task: &'t Task) -> TaskJson<'t> {
    wire::task(task, app.env.clock.now(), app.env.judge.as_ref())
}

/// `{"task": …}`.
pub(crate) fn data(app: &App<'_>, task: &Task) -> Value {
    json!(TaskAnswer { task: object(app, task) })
}

pub(crate) fn table(app: &App<'_>, tasks: &[Task]) -> Table {
    let mut table = Table::new([keep("KEY"), keep("STATUS"), cut("SECTION"), cut("HOLDER"), cut("TITLE")]);
    let ids = ShortIds::of(tasks.iter().filter_map(|task| Some(task.lease.as_ref()?.holder.id.as_str())));
    for task in tasks {
        table.styled_row(vec![
            (Style::Bold, task.key.clone()),
            status_cell(app, task),
            (Style::Plain, task.section.as_ref().map_or_else(|| "-".to_owned(), |s| s.name.clone())),
            (Style::Plain, holder_cell(app, task, ids)),
            (Style::Plain, task.title.clone()),
        ]);
    }
    table
}

fn holder_cell(app: &App<'_>, task: &Task, ids: ShortIds) -> String {
    match &task.lease {
        Some(lease) if lease.state(app.env.clock.now(), app.env.judge.as_ref()) == LeaseState::Live => {
            ids.show(&lease.holder.id).to_owned()
        }
        _ => "-".to_owned(),
    }
}

pub(crate) fn style(status: TaskStatus) -> Style {
    match status {
        TaskStatus::Completed => Style::Good,
        TaskStatus::Failed => Style::Bad,
        TaskStatus::InProgress | TaskStatus::Review => Style::Warn,
        TaskStatus::Skipped => Style::Dim,
        TaskStatus::Pending => Style::Plain,
    }
}

pub(super) fn status_cell(app: &App<'_>, task: &Task) -> (Style, String) {
    let computed = computed_state(task, app.env.clock.now(), app.env.judge.as_ref());
    (style(task.status), computed.unwrap_or(task.status.as_str()).to_owned())
}

/// The computed state of a task, which its status does not show: blocked or lapsed.
pub(crate) fn computed_state(task: &Task, now: Timestamp, judge: &dyn Judge) -> Option<&'static str> {
    let lapsed = task.lease.as_ref().is_some_and(|lease| lease.state(now, judge) != LeaseState::Live);
    match task.status {
        TaskStatus::Pending if !task.blocked_by.is_empty() => Some("blocked"),
        TaskStatus::InProgress if lapsed => Some("lapsed"),
        _ => None,
    }
}
