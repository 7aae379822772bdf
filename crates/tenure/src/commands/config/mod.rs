//! `tenure config`: shows and changes settings.

use std::path::{Path, PathBuf};

use serde_json::{Value, json};
use tenure_core::ErrorCode;
use tenure_core::config::{Config, Origin, Setting};

use crate::app::App;
use crate::project::{Located, Project};
use crate::report::{CommandResult, Report};
use crate::verbs::verbs;

mod edit;
mod get;
mod path;
mod set;
mod show;
mod template;
mod unset;
mod validate;

/// Show, change and validate settings
///
/// Precedence: flags, environment, the project's file, your user file, defaults.
///
/// Example: tenure config set locking.leaseTtl 30m
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    #[command(subcommand)]
    verb: Option<Verb>,
}

verbs! {
    enum Verb, default Show;
    "show" => Show(show),
    "get" => Get(get),
    "set" => Set(set),
    "unset" => Unset(unset),
    "path" => Path(path),
    "validate" => Validate(validate),
    "edit" => Edit(edit),
}

/// The project whose configuration applies. A fresh clone, which has the file but no database, counts as well.
fn project(app: &App<'_>) -> CommandResult<Option<Project>> {
    Ok(match app.locate(&app.start()?) {
        Located::Project(project) | Located::Clone(project) => Some(project),
        Located::Nothing => None,
    })
}

fn resolved(app: &App<'_>) -> CommandResult<Config> {
    project(app)?.map_or_else(|| app.config(None), |project| project.config)
}

/// The file that a change is written to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Layer {
    User,
    Project,
}

impl Layer {
    fn as_str(self) -> &'static str {
        match self {
            Self::User => "user",
            Self::Project => "project",
        }
    }
}

/// The project's file inside a project, unless `user` is set; the user's file elsewhere.
fn target(app: &App<'_>, user: bool) -> CommandResult<(Layer, PathBuf)> {
    if let (false, Some(project)) = (user, project(app)?) {
        crate::ownership::check(&project.paths, app.env)?;
        return Ok((Layer::Project, project.paths.config()));
    }
    match app.user_config() {
        Some(path) => Ok((Layer::User, path)),
        None => Err(app.home().err().unwrap_or_else(|| Report::usage("there is no user configuration"))),
    }
}

/// The file's text, or `None` if it does not exist.
fn read(path: &Path) -> CommandResult<Option<String>> {
    match std::fs::read_to_string(path) {
        Ok(text) => Ok(Some(text)),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(failed(&error, "read", path)),
    }
}

fn failed(error: &std::io::Error, verb: &str, path: &Path) -> Report {
    Report::io(error, ErrorCode::Config, verb, path)
}

fn object(entry: &Setting) -> Value {
    let mut object = json!({
        "key": entry.key,
        "value": entry.value,
        "origin": entry.origin.kind(),
        "description": entry.about,
    });
    if let Some(fields) = object.as_object_mut() {
        match &entry.origin {
            Origin::User { path, line } | Origin::Project { path, line } => {
                fields.insert("file".into(), json!(path));
                fields.insert("line".into(), json!(line));
            }
            Origin::Environment { variable } => {
                fields.insert("variable".into(), json!(variable));
            }
            Origin::Flag { flag } => {
                fields.insert("flag".into(), json!(flag));
            }
            _ => {}
        }
    }
    object
}
