//! Recognises a database that came with the repository: git tracks it, or it is a symbolic link. Another person wrote
//! its rows, but agents would be prompted with its tasks, and `resume` would run the commands of its jobs.
//!
//! Guarantees: nothing of the repository's configuration is run to find out. Not guaranteed: recognising a database that
//! came in another way, such as in an archive.

use std::path::Path;
use std::process::{Child, Command, Stdio};

use tenure_core::ErrorCode;
use tenure_core::hints;
use tenure_runner::processes::children;

use crate::env::Env;
use crate::project::ProjectPaths;
use crate::report::{CommandResult, Report};
use crate::shell_quote::quote;

/// Refuses a database that came with the repository.
pub(crate) fn refuse(env: &Env, paths: &ProjectPaths) -> CommandResult<()> {
    crate::links::check(paths)?;
    let database = paths.database();
    if !database.exists() || !is_tracked(env, &paths.root, &database) {
        return Ok(());
    }
    let shown = database.display();
    let message = format!("{shown} is tracked by git, so its tasks may have been written by someone else");
    let mut report = Report::new(ErrorCode::Untrusted, message);
    *report.details = serde_json::json!({"path": database});
    let root = quote(&paths.root.to_string_lossy());
    Err(report.hint(hints::untrack_database(root, quote(&database.to_string_lossy()))))
}

/// Without git, or outside a repository, a file counts as not tracked.
fn is_tracked(env: &Env, root: &Path, database: &Path) -> bool {
    if !root.ancestors().any(|folder| folder.join(".git").exists()) {
        return false;
    }
    let mut git = Command::new("git");
    // A file system monitor is a program that the repository's configuration may name.
    git.args(["-c", "core.fsmonitor=false", "-C"])
        .arg(root)
        .args(["ls-files", "--cached", "--"])
        .arg(database);
    git.env_clear();
    for name in ["PATH", "HOME"] {
        git.envs(env.var(name).map(|value| (name, value)));
    }
    git.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null());
    let output = children::spawn(&mut git).and_then(Child::wait_with_output);
    output.is_ok_and(|output| output.status.success() && !output.stdout.is_empty())
}
