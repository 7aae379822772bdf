//! `tenure config set`.

use std::path::Path;
use std::time::Duration;

use serde_json::json;
use tenure_core::config::{self, Authority, Config, ConfigError, Document, Lookup, Origin, TrustState};
use tenure_core::hints;

use super::{Layer, failed, object, project, read, target};
use crate::answer::Answer;
use crate::app::App;
use crate::atomic;
use crate::commands::trust::restate;
use crate::layers::Replacement;
use crate::report::{CommandResult, Report};
use crate::shell_quote::last_arg;
use crate::text::Text;
use crate::trust;

/// Change one setting; the rest of the file is preserved, including comments
///
/// Writes to the project's file inside a project, otherwise to your user file. An invalid value is refused and nothing is
/// written.
///
/// Example: tenure config set runners.preset codex
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// A key such as `locking.leaseTtl`
    key: String,
    /// The value; lists and hooks in YAML, such as `[a, b]`
    #[arg(allow_hyphen_values = true)]
    value: String,
    /// Write to your user file, which applies to all projects
    #[arg(long)]
    user: bool,
}

/// How long to wait for another writer of the file, which takes milliseconds.
const PATIENCE: Duration = Duration::from_secs(5);

pub(super) fn run(app: &mut App<'_>, args: Args) -> CommandResult<Answer> {
    let (layer, path) = target(app, args.user)?;
    if layer == Layer::Project {
        refuse_user_only(&args)?;
    }
    let change = change(app, layer, &path, &|text| config::set(text, &args.key, &args.value))?;
    answer(app, &args.key, layer, &path, change.changed, &change.effective)
}

/// A change of one file.
pub(super) struct ConfigChange {
    pub(super) changed: bool,
    /// The configuration with the change, even if a dry run has not written it.
    pub(super) effective: Config,
}

/// Edits a file under its lock. The result is validated before it is written.
pub(super) fn change(
    app: &mut App<'_>,
    layer: Layer,
    path: &Path,
    edit: &dyn Fn(&str) -> Result<String, ConfigError>,
) -> CommandResult<ConfigChange> {
    let real = atomic::follow(path).map_err(|e| failed(&e, "write", path))?;
    let folder = real.parent().unwrap_or(Path::new(".")).to_owned();
    let _lock = if app.global.dry_run {
        None
    } else {
        // The arguments are validated before any file or folder is created.
        edit("").map_err(|e| Report::config(&e, None))?;
        atomic::make_folder(&folder).map_err(|e| failed(&e, "create", &folder))?;
        let patience = app.global.timeout.map_or(PATIENCE, |limit| limit.min(PATIENCE));
        Some(atomic::lock(&folder, patience).map_err(|e| failed(&e, "lock", &folder))?)
    };
    let before = read(path)?.unwrap_or_default();
    let file = path.to_string_lossy();
    let after = edit(&before).map_err(|error| {
        let report = Report::config(&error, Some(&file));
        match error {
            ConfigError::CannotEdit { .. } if layer == Layer::User => {
                report.hint(hints::edit_by_hand(" --user"))
            }
            ConfigError::CannotEdit { .. } => report.hint(hints::edit_by_hand("")),
            _ => report,
        }
    })?;
    let document = Document::parse(&after).map_err(|e| Report::config(&e, Some(&file)))?;
    let paths = project(app)?.map(|project| project.paths);
    let reader = app.config_reader();
    // The whole result is validated, including settings that are not trusted yet.
    let replacement = match layer {
        Layer::Project => Replacement::Project(&document, true),
        Layer::User => Replacement::User(&document),
    };
    let mut effective = reader.read(paths.as_ref(), Some(replacement))?;
    let changed = after != before;
    if let (Layer::Project, Some(paths)) = (layer, &paths) {
        // The trust of the text that is edited, not of what another process writes meanwhile.
        let old = Document::parse(&before).map_err(|e| Report::config(&e, Some(&file)))?;
        let state = trust::examine_document(app.env, paths, old).state;
        let mut counts = state == TrustState::Trusted;
        if changed && !app.global.dry_run {
            atomic::write(path, &after, &app.env.ids.hex8()).map_err(|e| failed(&e, "write", path))?;
            counts = restate(app, paths, state, document.clone());
        }
        if !counts && !trust::counts(app.env, paths, &document) {
            effective = reader.read(Some(paths), Some(Replacement::Project(&document, false)))?;
        }
    } else if changed && !app.global.dry_run {
        atomic::write(path, &after, &app.env.ids.hex8()).map_err(|e| failed(&e, "write", path))?;
    }
    Ok(ConfigChange { changed, effective })
}

/// A key that is about the user's machine has no effect in a project's file.
fn refuse_user_only(args: &Args) -> CommandResult<()> {
    let is_it = |key: &&config::Key| key.name == args.key && key.authority == Authority::UserOnly;
    if !config::KEYS.iter().any(|key| is_it(&key)) {
        return Ok(());
    }
    let hint = hints::set_for_user(&args.key, last_arg(&args.value));
    Err(Report::usage(format!("{} applies only in your user file", args.key)).hint(hint))
}

fn answer(
    app: &App<'_>,
    key: &str,
    layer: Layer,
    path: &Path,
    changed: bool,
    effective: &Config,
) -> CommandResult<Answer> {
    let found = effective.get(key).map_err(|e| Report::config(&e, None))?;
    let Lookup::Setting(entry) = &found else {
        return Err(Report::usage(format!("{key} is a group of settings; give one of its keys")));
    };
    let mut text = Text::new();
    if changed {
        text.line(format!("{} {key} in {}", app.past("Set", "Would set"), path.display()));
    } else {
        text.line(format!("{key} already has this value in {}; nothing changed", path.display()));
    }
    let wins = match (&entry.origin, layer) {
        (Origin::User { .. }, Layer::User) | (Origin::Project { .. }, Layer::Project) => true,
        // Hooks of both files apply; the list's origin is the file with the higher precedence.
        _ => key == "hooks" && !effective.is_untrusted(key),
    };
    let untrusted = layer == Layer::Project && effective.is_untrusted(key);
    if untrusted {
        text.line("  it has no effect, because the project is not trusted");
    } else if !wins {
        text.line(format!("  overridden here by {}, from {}", entry.display, entry.origin));
    }
    let data = json!({
        "setting": object(entry),
        "layer": layer.as_str(),
        "file": path.to_string_lossy(),
        "changed": changed,
        "inEffect": wins,
    });
    let answer = Answer::new(data, text);
    Ok(if untrusted { answer.hint(hints::trust_settings()) } else { answer })
}
