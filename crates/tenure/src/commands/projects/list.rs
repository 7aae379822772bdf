//! `tenure projects list`.

use serde_json::json;
use tenure_sqlite::{Directory, KnownProject};

use super::registry::{is_there, moved_to, object, state};
use crate::answer::Answer;
use crate::app::App;
use crate::report::Outcome;
use crate::text::{Style, Table, Text};

/// List them
///
/// Example: tenure projects list
#[derive(Debug, Default, clap::Args)]
pub(crate) struct Args {}

pub(super) fn run(app: &mut App<'_>, _: Args) -> Outcome<Answer> {
    let home = app.home()?;
    let projects = match Directory::open_existing(&home, app.env.clock.clone())? {
        Some(directory) => directory.projects()?,
        None => Vec::new(),
    };
    let all: Vec<&KnownProject> = projects.iter().collect();
    let gone_to =
        |project: &KnownProject| if is_there(project) { None } else { moved_to(&project.path, &all) };
    let mut text = Text::new();
    if projects.is_empty() {
        text.line("No projects yet.");
    } else {
        let mut table = Table::new(&["NAME", "STATE", "PATH"]);
        for project in &projects {
            let style = if state(project) == "missing" { Style::Warn } else { Style::Plain };
            let path = project.path.to_string_lossy();
            let moved = gone_to(project).map(|to| format!(" (now at {})", to.display())).unwrap_or_default();
            table.styled_row(vec![
                (Style::Plain, project.name.clone().unwrap_or_default()),
                (style, state(project).to_owned()),
                (Style::Plain, format!("{path}{moved}")),
            ]);
        }
        text.table(&table, app.printer.look());
    }
    let rows: Vec<_> = projects
        .iter()
        .map(|project| {
            let mut row = object(project);
            if let (Some(to), Some(fields)) = (gone_to(project), row.as_object_mut()) {
                fields.insert("movedTo".into(), json!(to));
            }
            row
        })
        .collect();
    let mut answer = Answer::new(json!({"projects": rows, "total": rows.len()}), text);
    if let Some(gone) = projects.iter().find(|project| !is_there(project)) {
        let path = crate::shell::last(&gone.path.to_string_lossy());
        answer = answer.hint("forget one that is gone", format!("tenure projects remove {path}"));
    }
    Ok(if projects.is_empty() { answer.hint("make one here", "tenure init") } else { answer })
}
