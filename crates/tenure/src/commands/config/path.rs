//! `tenure config path`.

use serde_json::{Value, json};

use super::{Layer, project};
use crate::answer::Answer;
use crate::app::App;
use crate::report::CommandResult;
use crate::table::{Table, keep};
use crate::text::{Style, Text};

/// Show the paths of the configuration files, and whether each exists
///
/// Example: tenure config path
#[derive(Debug, clap::Args)]
pub(crate) struct Args {}

pub(super) fn run(app: &mut App<'_>, _args: Args) -> CommandResult<Answer> {
    let project = project(app)?.map(|project| (Layer::Project, project.paths.config()));
    let user = app.user_config().map(|path| (Layer::User, path));
    let mut table = Table::new([keep("LAYER"), keep("EXISTS"), keep("FILE")]);
    let mut rows: Vec<Value> = Vec::new();
    for (layer, path) in project.into_iter().chain(user) {
        let exists = path.is_file();
        table.styled_row(vec![
            (Style::Plain, layer.as_str().to_owned()),
            (if exists { Style::Good } else { Style::Dim }, if exists { "yes" } else { "no" }.to_owned()),
            (Style::Plain, path.to_string_lossy().into_owned()),
        ]);
        rows.push(json!({"layer": layer.as_str(), "path": path.to_string_lossy(), "exists": exists}));
    }
    let mut text = Text::new();
    if rows.is_empty() {
        text.line("No files: this is not a project, and neither HOME nor TENURE_HOME is set.");
    } else {
        text.table(&table, app.printer.render_options());
    }
    Ok(Answer::new(json!({"files": rows, "total": rows.len()}), text))
}
