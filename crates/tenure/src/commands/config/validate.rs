//! `tenure config validate`.

use std::path::PathBuf;

use serde_json::{Value, json};
use tenure_core::ErrorCode;
use tenure_core::config::{Config, Document, Layer, Layers};
use tenure_core::hints;

use super::{project, resolved};
use crate::answer::Answer;
use crate::app::App;
use crate::report::{CommandResult, Report};
use crate::text::{Style, Text};

/// Validate the configuration; exits 3 and prints the file, line and column of the first error
///
/// Example: tenure config validate .tenure/config.yaml
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Validate only this file (default: the project's, yours and the environment together)
    file: Option<PathBuf>,
}

pub(super) fn run(app: &mut App<'_>, args: Args) -> CommandResult<Answer> {
    let checked = match args.file {
        Some(file) => {
            let path = app.env.cwd.join(&file);
            alone(&path, &file.to_string_lossy())?;
            vec![file]
        }
        None => {
            resolved(app)?;
            let file = project(app)?.map(|project| project.paths.config());
            file.into_iter().chain(app.user_config()).filter(|path| path.is_file()).collect()
        }
    };
    let mut text = Text::new();
    for path in &checked {
        text.styled(Style::Good, "Valid").and(Style::Plain, format!("  {}", path.display()));
    }
    if checked.is_empty() {
        text.line("There is no configuration file; the defaults apply.");
    }
    let files: Vec<Value> = checked.iter().map(|path| json!(path.to_string_lossy())).collect();
    Ok(Answer::new(json!({"valid": true, "files": files, "total": files.len()}), text))
}

/// Validates one file on top of the defaults.
pub(super) fn alone(path: &std::path::Path, shown: &str) -> CommandResult<()> {
    let text = std::fs::read(path).map_err(|error| match error.kind() {
        std::io::ErrorKind::NotFound => {
            Report::usage(format!("there is no file {shown}")).hint(hints::list_config_files())
        }
        _ => Report::io(&error, ErrorCode::Config, "read", path),
    })?;
    let text = String::from_utf8(text)
        .map_err(|_| Report::new(ErrorCode::Config, format!("{shown} is not UTF-8 text")))?;
    let wrong = |e| Report::config(&e, Some(shown));
    let document = Document::parse(&text).map_err(wrong)?;
    let layer = Layer { path: shown, document: &document };
    Config::resolve(Layers { project: Some(layer), trusts_project: true, ..Layers::default() })
        .map(drop)
        .map_err(wrong)
}
