//! A registered project: where it is now, how it is shown, and changing its entry.

use std::path::{Path, PathBuf};

use serde_json::{Value, json};
use tenure_core::ErrorCode;
use tenure_sqlite::{Directory, KnownProject};

use crate::answer::Answer;
use crate::app::App;
use crate::project;
use crate::report::{Outcome, Report};
use crate::text::Text;

pub(super) fn is_there(project: &KnownProject) -> bool {
    project.path.join(project::FOLDER).join(project::DATABASE).exists()
}

/// Where the project that was at `path` is now, as far as the registry knows: by its id, which a clone shares.
pub(in crate::commands) fn moved_to<'a>(path: &Path, known: &[&'a KnownProject]) -> Option<&'a Path> {
    let id = known.iter().find(|project| project.path == path)?.project_id.as_ref()?;
    let same = |other: &&&KnownProject| {
        other.path != path && other.project_id.as_ref() == Some(id) && is_there(other)
    };
    known.iter().find(same).map(|other| other.path.as_path())
}

/// Whether the project is still where it was registered.
pub(super) fn state(project: &KnownProject) -> &'static str {
    if !is_there(project) {
        "missing"
    } else if project.enabled {
        "enabled"
    } else {
        "disabled"
    }
}

pub(super) fn object(project: &KnownProject) -> Value {
    json!({
        "path": project.path,
        "name": project.name,
        "enabled": project.enabled,
        "state": state(project),
        "registeredAt": project.registered_at,
        "lastSeenAt": project.last_seen_at,
    })
}

/// Changes the entry of the project at `path` with `act`.
pub(super) fn change(
    app: &mut App<'_>,
    path: Option<PathBuf>,
    done: &str,
    verb: &str,
    act: impl Fn(&Directory, &Path) -> tenure_core::Result<bool>,
) -> Outcome<Answer> {
    let path = match path {
        Some(path) => app.env.cwd.join(path),
        None => app.find().map_or_else(|_| app.env.cwd.clone(), |place| place.root),
    };
    let path = path.canonicalize().unwrap_or(path);
    let not_registered = || {
        Report::new(ErrorCode::General, format!("{} is not registered", path.display()))
            .hint("see which are", "tenure projects list")
    };
    let directory =
        Directory::open_existing(&app.home()?, app.env.clock.clone())?.ok_or_else(not_registered)?;
    let project = directory.project(&path)?.ok_or_else(not_registered)?;
    if !app.global.dry_run {
        act(&directory, &path)?;
    }
    let mut text = Text::new();
    let would = format!("Would {verb}");
    text.line(format!("{} {}", if app.global.dry_run { &would } else { done }, path.display()));
    let after = directory.project(&path)?.unwrap_or(project);
    Ok(Answer::new(json!({"project": object(&after)}), text))
}
