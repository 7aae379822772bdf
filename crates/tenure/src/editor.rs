//! The user's editor.

use std::path::Path;
use std::process::Command;

use tenure_core::hints;

use crate::app::App;
use crate::report::{CommandResult, Report};

/// The editors that are used if none is chosen, in this order.
const FALLBACKS: [&str; 4] = ["editor", "vi", "vim", "nano"];

/// `VISUAL`, `EDITOR`, or one that is installed.
pub(crate) fn choose(app: &App<'_>) -> CommandResult<String> {
    if let Some(editor) = app.env.var("VISUAL").or_else(|| app.env.var("EDITOR")) {
        return Ok(editor.to_owned());
    }
    let path = app.env.var("PATH").unwrap_or_default();
    let is_installed = |name: &&str| std::env::split_paths(path).any(|folder| folder.join(name).is_file());
    // Without a terminal, a fallback editor would wait for input forever.
    let found = FALLBACKS.into_iter().find(is_installed).filter(|_| app.env.terminal.is_some());
    found.map(str::to_owned).ok_or_else(|| {
        Report::usage("no editor: neither VISUAL nor EDITOR is set").hint(hints::name_editor())
    })
}

/// Opens a file. The editor may have arguments (`code --wait`), so it is run through a shell, as git does.
pub(crate) fn command(app: &App<'_>, editor: &str, path: &Path) -> Command {
    let mut command = Command::new("sh");
    command.arg("-c").arg(format!("{editor} \"$@\"")).arg(editor).arg(path);
    command.env_clear().envs(&app.env.vars).current_dir(&app.env.cwd);
    command
}
