//! Where each program stores its conversations on this machine, and whether it still has one.
//!
//! The answer is known only if the program's folder of conversations exists. Otherwise the program may keep them somewhere
//! else, so resuming is tried.

use std::path::{Path, PathBuf};

/// A variable of the program's environment.
pub type Variable<'a> = &'a dyn Fn(&str) -> Option<PathBuf>;

/// Whether the program has the conversation with this name; `None` if that is not known.
pub(super) type Stored = fn(Variable<'_>, &str) -> Option<bool>;

/// `~/.claude/projects/FOLDER/NAME.jsonl`
pub(super) fn claude(variable: Variable<'_>, name: &str) -> Option<bool> {
    let projects = home(variable, "CLAUDE_CONFIG_DIR", ".claude")?.join("projects");
    let file = format!("{name}.jsonl");
    Some(entries(&projects)?.iter().any(|project| project.join(&file).exists()))
}

/// `~/.codex/sessions/YEAR/MONTH/DAY/rollout-TIME-NAME.jsonl`
pub(super) fn codex(variable: Variable<'_>, name: &str) -> Option<bool> {
    let below = |folders: Vec<PathBuf>| -> Vec<PathBuf> {
        folders.iter().flat_map(|folder| entries(folder).unwrap_or_default()).collect()
    };
    let years = entries(&home(variable, "CODEX_HOME", ".codex")?.join("sessions"))?;
    let is_it = |file: &PathBuf| file.to_string_lossy().ends_with(&format!("-{name}.jsonl"));
    Some(below(below(below(years))).iter().any(is_it))
}

/// `~/.copilot/session-state/NAME`
pub(super) fn copilot(variable: Variable<'_>, name: &str) -> Option<bool> {
    let sessions = home(variable, "COPILOT_HOME", ".copilot")?.join("session-state");
    entries(&sessions)?;
    Some(sessions.join(name).exists())
}

/// `~/.gemini/tmp/PROJECT/chats/session-TIME-BEGINNING.jsonl`, with the beginning of the name.
pub(super) fn gemini(variable: Variable<'_>, name: &str) -> Option<bool> {
    let projects = home(variable, "GEMINI_CLI_HOME", "")?.join(".gemini/tmp");
    let beginning = name.split('-').next().unwrap_or(name);
    let chats = entries(&projects)?
        .into_iter()
        .flat_map(|project| entries(&project.join("chats")).unwrap_or_default());
    let stem = |path: &PathBuf| path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
    Some(chats.into_iter().any(|chat| stem(&chat).ends_with(beginning)))
}

/// The folder that the variable `own` names, or else `folder` in the user's home.
fn home(variable: Variable<'_>, own: &str, folder: &str) -> Option<PathBuf> {
    variable(own).or_else(|| variable("HOME").map(|home| home.join(folder)))
}

/// The paths in a folder; `None` if it cannot be read.
fn entries(folder: &Path) -> Option<Vec<PathBuf>> {
    let entries = std::fs::read_dir(folder).ok()?;
    Some(entries.filter_map(|entry| entry.ok().map(|entry| entry.path())).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    const NAME: &str = "c91a2786-b275-40d1-a4ad-766ea9a5b565";

    #[test]
    fn a_conversation_is_found_where_the_program_stores_it() {
        let cases: [(Stored, String, &str); 4] = [
            (claude, format!(".claude/projects/-home-ann-shop/{NAME}.jsonl"), ".claude/projects"),
            (
                codex,
                format!(".codex/sessions/2026/11/16/rollout-2026-11-16T21-55-10-{NAME}.jsonl"),
                ".codex/sessions",
            ),
            (copilot, format!(".copilot/session-state/{NAME}/events.jsonl"), ".copilot/session-state"),
            (
                gemini,
                ".gemini/tmp/shop/chats/session-2026-11-16T21-55-c91a2786.jsonl".to_owned(),
                ".gemini/tmp",
            ),
        ];
        for (stored, file, folder) in cases {
            let home = tempfile::tempdir().unwrap();
            let variable = |name: &str| (name == "HOME").then(|| home.path().to_owned());
            assert_eq!(stored(&variable, NAME), None, "{folder} does not exist");
            std::fs::create_dir_all(home.path().join(folder)).unwrap();
            assert_eq!(stored(&variable, NAME), Some(false), "{folder}");
            let file = home.path().join(file);
            std::fs::create_dir_all(file.parent().unwrap()).unwrap();
            std::fs::write(&file, "").unwrap();
            assert_eq!(stored(&variable, NAME), Some(true), "{}", file.display());
            assert_eq!(stored(&variable, "00000000-b275"), Some(false), "{folder}");
            assert_eq!(stored(&|_| None, NAME), None, "without a home");
        }
    }

    #[test]
    fn a_variable_may_name_the_folder() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::create_dir_all(folder.path().join("session-state").join(NAME)).unwrap();
        let variable = |name: &str| (name == "COPILOT_HOME").then(|| folder.path().to_owned());
        assert_eq!(copilot(&variable, NAME), Some(true));
    }
}
