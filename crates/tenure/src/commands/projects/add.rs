//! `tenure projects add`.

use std::path::PathBuf;

use serde_json::json;

use super::registry::{object, state};
use crate::answer::Answer;
use crate::app::App;
use crate::report::CommandResult;
use crate::text::Text;

/// Register a project
///
/// Example: tenure projects add ~/src/shop
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// The project's folder (default: the current project)
    path: Option<PathBuf>,
}

pub(super) fn run(app: &mut App<'_>, args: Args) -> CommandResult<Answer> {
    let start = match args.path {
        Some(path) => app.folder(&path)?,
        None => app.start()?,
    };
    let project = app.find_from(&start)?;
    let root = project.paths.root;
    let tenure_core::config::Project { name, id } = project.config?.project;
    let mut text = Text::new();
    text.line(format!("{} {}", app.past("Registered", "Would register"), root.display()));
    if app.global.dry_run {
        return Ok(Answer::new(json!({"project": {"path": root, "name": name}}), text));
    }
    let directory = app.directory()?;
    directory.register(&root, name.as_deref(), id.map(|id| id.to_string()).as_deref())?;
    let project = directory.project(&root)?;
    let object = project.map(|project| object(&project, state(app, &project)));
    Ok(Answer::new(json!({"project": object}), text))
}
