//! Changes the description of a task in the user's editor, which uses the terminal in place of the board.

use std::fs;
use std::path::{Path, PathBuf};

use tenure_core::ErrorCode;
use tenure_core::id::TaskId;

use super::Reader;
use super::state::Target;
use super::verbs::Verb;
use crate::report::{CommandResult, Report};
use crate::{atomic, editor, sys};

/// A description to be stored: the command, and the file that it reads.
#[derive(Debug)]
pub(super) struct Edited {
    pub(super) args: Vec<String>,
    pub(super) file: PathBuf,
}

/// `None` if the description is as before.
pub(super) fn describe(reader: &Reader<'_, '_>, task: &TaskId) -> CommandResult<Option<Edited>> {
    let app = reader.app;
    let chosen = editor::choose(app)?;
    // The text for the editor is read now, so the change is refused only if the task changes from now on.
    let detail = reader.task(task)?;
    let before = detail.task.description.trim_end().to_owned();
    let file = app.home()?.join(format!("description-{}.md", app.env.ids.hex8()));
    let failed = |verb: &'static str| {
        let file = file.clone();
        move |e: std::io::Error| Report::io(&e, ErrorCode::General, verb, &file)
    };
    let write = |path: &Path, text: &str| atomic::write_secret(path, text, &app.env.ids.hex8());
    write(&file, &format!("{before}\n")).map_err(failed("write"))?;
    let mut command = editor::command(app, &chosen, &file);
    let is_saved = command.spawn().and_then(|mut child| sys::wait_in_job(&mut child));
    let is_saved = is_saved
        .map_err(|e| Report::new(ErrorCode::General, format!("cannot start the editor {chosen}: {e}")))?;
    let after = fs::read_to_string(&file).map_err(failed("read"))?;
    let after = after.trim_end();
    if !is_saved || after == before {
        let _ = fs::remove_file(&file);
        return Ok(None);
    }
    write(&file, after).map_err(failed("write"))?;
    let target = Target { task: Some(detail.line), section: None, runner: None };
    Ok(Some(Edited { args: Verb::Describe.args(&target, ""), file }))
}
