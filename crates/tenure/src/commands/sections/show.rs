//! `tenure sections show`.

use serde_json::json;
use tenure_core::reference;
use tenure_core::section::Section;
use tenure_core::store::TaskFilter;

use super::view;
use crate::answer::Answer;
use crate::app::App;
use crate::commands::{lease_view, tasks};
use crate::identity::IdentityArgs;
use crate::report::CommandResult;
use crate::text::{Style, Text};

/// Show a section and its tasks
///
/// Example: tenure sections show Backend
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// The section
    name: String,
}

pub(super) fn run(app: &mut App<'_>, args: Args) -> CommandResult<Answer> {
    let open = app.open()?;
    let identity = app.identity(&IdentityArgs::default())?;
    let (section, (tasks, total)) = open.read(|store| {
        let section = reference::section(store, &args.name)?;
        let viewer = open.viewer(store, &identity)?;
        let filter = TaskFilter { section: Some(section.id.clone()), limit: 100, ..TaskFilter::default() };
        let page = store.list_tasks(&filter, &viewer)?;
        Ok((section, page))
    })?;
    let mut text = describe(app, &section);
    if !tasks.is_empty() {
        text.blank().table(&tasks::view::table(app, &tasks), app.printer.render_options());
    }
    let mut data = view::data(app, &section);
    let rows: Vec<_> = tasks.iter().map(|task| tasks::view::object(app, task)).collect();
    data["tasks"] = json!(rows);
    data["total"] = json!(total);
    Ok(Answer::new(data, text))
}

fn describe(app: &App<'_>, section: &Section) -> Text {
    let mut text = Text::new();
    text.styled(Style::Bold, section.name.clone());
    text.line(format!("Mode: {}   Priority: {}", section.mode.as_str(), section.priority));
    text.line(format!("Tasks: {} ({} open)", section.tasks, section.open_tasks));
    if !section.depends_on.is_empty() {
        text.line(format!("Depends on: {}", section.depends_on.join(", ")));
    }
    if !section.blocked_by.is_empty() {
        text.line(format!("Blocked by: {}", section.blocked_by.join(", ")));
    }
    if let Some(lease) = &section.lease {
        let rest = lease_view::remaining(lease, app.env.clock.now(), app.env.judge.as_ref());
        text.line(format!("Held by: {}  {rest}", lease_view::holder(lease)));
    }
    text
}
