//! `tenure config edit`.

use std::path::Path;
use std::process::Stdio;

use serde_json::json;
use tenure_core::ErrorCode;
use tenure_core::config::{Document, TrustState};
use tenure_core::hints;

use super::{Layer, failed, project, read, resolved, target, template, validate};
use crate::answer::Answer;
use crate::app::App;
use crate::atomic;
use crate::commands::trust::restate;
use crate::editor;
use crate::report::{CommandResult, Report};
use crate::text::Text;
use crate::trust;

/// Open a configuration file in your editor ($VISUAL, $EDITOR, or one that is installed) and validate it afterwards
///
/// A new file starts with every setting as a comment. If the saved file is invalid, exits 3 and leaves it as you saved it.
///
/// Example: EDITOR=nano tenure config edit --user
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Edit your user configuration instead of the project's
    #[arg(long)]
    user: bool,
}

pub(super) fn run(app: &mut App<'_>, args: Args) -> CommandResult<Answer> {
    let (layer, path) = target(app, args.user)?;
    let editor = editor::choose(app)?;
    let before = read(&path)?;
    // Whether the edited file is trusted depends on its content before the edit.
    let paths = project(app)?.map(|project| project.paths).filter(|_| layer == Layer::Project);
    let old = Document::parse(before.as_deref().unwrap_or_default()).ok();
    let state =
        paths.as_ref().zip(old).map(|(paths, old)| trust::examine_document(app.env, paths, old).state);
    let data = |changed: bool| json!({"layer": layer.as_str(), "file": path.to_string_lossy(), "created": before.is_none(), "changed": changed});
    let mut text = Text::new();
    if app.global.dry_run {
        text.line(format!("Would open {} with {editor}", path.display()));
        return Ok(Answer::new(data(false), text));
    }
    if before.is_none() {
        create(app, &path)?;
    }
    open(app, &editor, &path)?;
    let after = read(&path)?;
    validate::alone(&path, &path.to_string_lossy()).and_then(|()| resolved(app).map(drop)).map_err(
        |report| report.note("The file is kept as you saved it.").hint(hints::edit_again(again(args.user))),
    )?;
    let changed = after != before;
    let mut counts = true;
    if let (Some(paths), Some(state)) = (&paths, state) {
        let document = Document::parse(after.as_deref().unwrap_or_default())
            .map_err(|e| Report::config(&e, Some(&path.to_string_lossy())))?;
        counts = if changed { restate(app, paths, state, document) } else { state == TrustState::Trusted };
    }
    let word = if changed { "Saved" } else { "No changes in" };
    text.line(format!("{word} {}", path.display()));
    let mut answer = Answer::new(data(changed), text);
    if changed && !counts {
        answer.text.line(
            "  Settings that run commands or connect to something have no effect, because the project is not trusted.",
        );
        answer = answer.hint(hints::trust_settings());
    }
    Ok(answer)
}

fn again(user: bool) -> &'static str {
    if user { " --user" } else { "" }
}

fn create(app: &App<'_>, path: &Path) -> CommandResult<()> {
    let real = atomic::follow(path).map_err(|e| failed(&e, "write", path))?;
    if let Some(folder) = real.parent() {
        atomic::make_folder(folder).map_err(|e| failed(&e, "create", folder))?;
    }
    atomic::write(path, &template::text(), &app.env.ids.hex8()).map_err(|e| failed(&e, "write", path))
}

/// Unless standard output is a terminal, it is reserved for the answer.
fn open(app: &App<'_>, editor: &str, path: &Path) -> CommandResult<()> {
    let mut command = editor::command(app, editor, path);
    if app.printer.json || !app.printer.out_is_terminal() {
        command.stdout(Stdio::from(std::io::stderr()));
    }
    let status = command
        .status()
        .map_err(|e| Report::new(ErrorCode::General, format!("cannot start the editor {editor}: {e}")))?;
    if status.success() {
        return Ok(());
    }
    let how = status.code().map_or_else(|| "was killed".to_owned(), |code| format!("exited with {code}"));
    Err(Report::new(ErrorCode::General, format!("the editor {editor} {how}; the file was not checked"))
        .hint(hints::validate_config()))
}
