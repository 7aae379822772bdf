//! `tenure untrust`: withdraws trust.

use std::path::PathBuf;

use serde_json::json;

use super::trust::project_or_clone;
use crate::answer::Answer;
use crate::app::App;
use crate::project::ProjectPaths;
use crate::report::CommandResult;
use crate::sys;
use crate::text::Text;
use crate::trust;

/// Withdraw your trust in a project
///
/// Settings that run a command or connect to something no longer apply, and no agent is started in the project. Running
/// processes continue.
///
/// Example: tenure untrust
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// The project's folder, which need not exist any more (default: the current project)
    path: Option<PathBuf>,
}

pub(crate) fn run(app: &mut App<'_>, args: Args) -> CommandResult<Answer> {
    let paths = match args.path {
        Some(path) => {
            let path = app.env.cwd.join(path);
            ProjectPaths::new(sys::real_path(&path).unwrap_or(path))
        }
        None => project_or_clone(app)?,
    };
    let root = paths.root.display();
    let mut text = Text::new();
    let known = trust::is_known(app.env, &paths);
    if known {
        text.line(format!("{} {root}", app.past("No longer trusted:", "Would no longer trust")));
    } else {
        text.line(format!("{root} was not trusted; nothing changed."));
    }
    if known && !app.global.dry_run {
        trust::forget(app.env, &paths)?;
    }
    // If the folder is gone or its file cannot be read, no setting can count.
    let examined = trust::examine(app.env, &paths).ok();
    let state = examined.as_ref().map_or("nothing", |examined| examined.state.as_str());
    let keys: Vec<String> =
        examined.map(|examined| examined.content.keys.into_keys().collect()).unwrap_or_default();
    Ok(Answer::new(json!({"trust": {"path": paths.root, "state": state, "keys": keys}}), text))
}
