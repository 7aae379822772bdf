//! Entries of the registry: finding a moved project, showing and changing an entry.

use std::path::{Path, PathBuf};

use serde_json::{Value, json};
use tenure_core::ErrorCode;
use tenure_core::hints;
use tenure_sqlite::{Directory, KnownProject};

use crate::answer::Answer;
use crate::app::App;
use crate::report::{CommandResult, Report};
use crate::sys;
use crate::text::Text;
use crate::trust;

/// The registered path of the project that was at `path`. It is found by its id, which a clone has too.
pub(in crate::commands) fn moved_to<'a>(
    app: &App<'_>,
    path: &Path,
    known: &'a [KnownProject],
) -> Option<&'a Path> {
    let id = known.iter().find(|project| project.path == path)?.project_id.as_ref()?;
    let same = |other: &&KnownProject| {
        other.path != path && other.project_id.as_ref() == Some(id) && app.project_at(&other.path).is_some()
    };
    known.iter().find(same).map(|other| other.path.as_path())
}

pub(super) const MISSING: &str = "missing";
/// Wake-up's decision has the same name.
pub(super) const UNREGISTERED: &str = "unregistered";
/// Also a decision of wake-up.
pub(super) const UNTRUSTED: &str = "untrusted";

/// Whether the project is missing, and otherwise whether wake-up is enabled for it and may start agents.
pub(super) fn state(app: &App<'_>, project: &KnownProject) -> &'static str {
    let Some(located) = app.project_at(&project.path) else { return MISSING };
    if !project.enabled {
        return "disabled";
    }
    // A file that cannot be read is reported by the commands that use it.
    let refused = trust::examine(app.env, &located.paths).is_ok_and(|found| !found.allows_agents(app.env));
    if refused { UNTRUSTED } else { "enabled" }
}

pub(super) fn object(project: &KnownProject, state: &str) -> Value {
    json!({
        "path": project.path,
        "name": project.name,
        "enabled": project.enabled,
        "state": state,
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
) -> CommandResult<Answer> {
    let path = match path {
        Some(path) => app.env.cwd.join(path),
        None => app.find().map_or_else(|_| app.env.cwd.clone(), |project| project.paths.root),
    };
    let path = sys::real_path(&path).unwrap_or(path);
    let not_registered = || {
        Report::new(ErrorCode::ProjectNotFound, format!("{} is not registered", path.display()))
            .hint(hints::list_projects())
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
    Ok(Answer::new(json!({"project": object(&after, state(app, &after))}), text))
}
