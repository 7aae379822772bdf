//! Projects below `runners.wakeup.projectPaths` that are not registered.
//!
//! Guarantees: only file names are inspected. Nothing of a candidate is read, opened or run, because it may have come
//! with a clone.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use tenure_core::hints::{self, Hint};
use tenure_runner::wakeup;
use tenure_sqlite::KnownProject;

use crate::app::App;
use crate::project::{FolderKind, candidate_at};
use crate::report::CommandResult;
use crate::shell_quote;

/// The candidates, each with the command that registers it.
pub(crate) fn unregistered(
    app: &App<'_>,
    registered: &[KnownProject],
) -> CommandResult<BTreeMap<PathBuf, Hint>> {
    let user = app.env.user_home();
    let home = app.env.home();
    let kind = |root: &Path| candidate_at(root, home.as_deref());
    let mut found = BTreeMap::new();
    for path in &app.config(None)?.runners.wakeup.project_paths {
        let Some(base) = wakeup::expand(path, user) else { continue };
        for root in wakeup::below(&base, &|folder| kind(folder).is_some()) {
            if registered.iter().any(|project| project.path == root) {
                continue;
            }
            if let Some(candidate) = kind(&root) {
                let hint = how_to_register(&root, candidate);
                found.insert(root, hint);
            }
        }
    }
    Ok(found)
}

fn how_to_register(root: &Path, candidate: FolderKind) -> Hint {
    let path = root.to_string_lossy();
    match candidate {
        FolderKind::Project => hints::register_for_wakeup(shell_quote::last_arg(&path)),
        // `projects add` refuses a clone without a store; `init` creates the store and registers the project.
        FolderKind::Configured => hints::init_for_wakeup(shell_quote::quote(&path)),
    }
}
