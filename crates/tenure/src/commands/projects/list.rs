//! `tenure projects list`.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use serde_json::json;
use tenure_core::hints;
use tenure_sqlite::Directory;

use super::registry::{MISSING, UNREGISTERED, UNTRUSTED, moved_to, object, state};
use crate::answer::Answer;
use crate::app::App;
use crate::candidates::unregistered;
use crate::report::CommandResult;
use crate::table::{Table, cut, cut_start, keep};
use crate::text::{Style, Text};

/// List registered projects, and unregistered ones in runners.wakeup.projectPaths
///
/// Example: tenure projects list
#[derive(Debug, Default, clap::Args)]
pub(crate) struct Args {}

pub(super) fn run(app: &mut App<'_>, _: Args) -> CommandResult<Answer> {
    let home = app.home()?;
    let projects = match Directory::open_existing(&home, app.env.clock.clone())? {
        Some(directory) => directory.projects()?,
        None => Vec::new(),
    };
    // The registry is readable without a valid configuration.
    let candidates = unregistered(app, &projects).unwrap_or_else(|report| {
        app.printer.warn(&format!("cannot list unregistered projects: {}", report.message));
        BTreeMap::new()
    });
    let mut table = Table::new([cut("NAME"), keep("STATE"), cut_start("PATH")]);
    let mut rows = Vec::new();
    let (mut missing, mut untrusted) = (None, None);
    for project in &projects {
        let state = state(app, project);
        let mut row = object(project, state);
        let mut shown = project.path.to_string_lossy().into_owned();
        if state == MISSING {
            missing = missing.or(Some(&project.path));
            if let (Some(to), Some(fields)) = (moved_to(app, &project.path, &projects), row.as_object_mut()) {
                let _ = write!(shown, " (now at {})", to.display());
                fields.insert("movedTo".into(), json!(to));
            }
        }
        if state == UNTRUSTED {
            untrusted = untrusted.or(Some(&project.path));
        }
        let style = if [MISSING, UNTRUSTED].contains(&state) { Style::Warn } else { Style::Plain };
        table.styled_row(vec![
            (Style::Plain, project.name.clone().unwrap_or_default()),
            (style, state.to_owned()),
            (Style::Plain, shown),
        ]);
        rows.push(row);
    }
    for path in candidates.keys() {
        table.styled_row(vec![
            (Style::Plain, String::new()),
            (Style::Warn, UNREGISTERED.to_owned()),
            (Style::Plain, path.to_string_lossy().into_owned()),
        ]);
        rows.push(json!({
            "path": path,
            "name": null,
            "enabled": false,
            "state": UNREGISTERED,
            "registeredAt": null,
            "lastSeenAt": null,
        }));
    }
    let mut text = Text::new();
    if rows.is_empty() {
        text.line("No projects.");
    } else {
        text.table(&table, app.printer.render_options());
    }
    let mut answer = Answer::new(json!({"projects": rows, "total": rows.len()}), text);
    if let Some(path) = missing {
        let path = crate::shell_quote::last_arg(&path.to_string_lossy());
        answer = answer.hint(hints::unregister(path));
    }
    if let Some(path) = untrusted {
        let path = crate::shell_quote::quote(&path.to_string_lossy());
        answer = answer.hint(hints::trust_at(path));
    }
    answer.hints.extend(candidates.into_values());
    Ok(if rows.is_empty() { answer.hint(hints::init_here()) } else { answer })
}
