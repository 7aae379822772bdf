//! Finding the project: out of a linked git worktree first, then up to the nearest `.tenure/` with a database.

use std::path::{Path, PathBuf};

use tenure_core::Error;

pub(crate) const FOLDER: &str = ".tenure";
pub(crate) const DATABASE: &str = "tenure.db";
pub(crate) const CONFIG: &str = "config.yaml";

/// A project's place on disk.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Place {
    /// The folder that has `.tenure/`.
    pub(crate) root: PathBuf,
}

impl Place {
    pub(crate) fn folder(&self) -> PathBuf {
        self.root.join(FOLDER)
    }

    pub(crate) fn database(&self) -> PathBuf {
        self.folder().join(DATABASE)
    }

    pub(crate) fn config(&self) -> PathBuf {
        self.folder().join(CONFIG)
    }
}

/// The nearest project at or above `start`: one with a database, or with a configuration by which its store is elsewhere.
/// `home` (`TENURE_HOME`) is never one.
pub(crate) fn find(
    start: &Path,
    home: Option<&Path>,
    is_elsewhere: &dyn Fn(&Path) -> bool,
) -> Result<Place, Error> {
    let begin = leave_worktree(start);
    let home = home.and_then(|h| h.canonicalize().ok());
    let mut clone_at = None;
    for root in begin.ancestors() {
        let folder = root.join(FOLDER);
        if !folder.is_dir() || is_home(&folder, home.as_deref()) {
            continue;
        }
        if folder.join(DATABASE).symlink_metadata().is_ok() {
            return Ok(Place { root: root.to_owned() });
        }
        if clone_at.is_none() && folder.join(CONFIG).is_file() {
            if is_elsewhere(root) {
                return Ok(Place { root: root.to_owned() });
            }
            clone_at = Some(root.to_owned());
        }
    }
    Err(Error::NotInitialized { start: start.to_owned(), clone_at })
}

/// Where `init` makes a project.
pub(crate) fn place_for_init(start: &Path, home: Option<&Path>) -> Result<Place, Error> {
    let root = leave_worktree(start);
    let home = home.and_then(|h| h.canonicalize().ok().or_else(|| Some(h.to_owned())));
    if is_home(&root.join(FOLDER), home.as_deref()) {
        return Err(Error::Config(
            "this folder's .tenure is tenure's own home, so it cannot be a project; use a folder below it"
                .to_owned(),
        ));
    }
    Ok(Place { root })
}

pub(crate) fn is_home(folder: &Path, home: Option<&Path>) -> bool {
    let Some(home) = home else { return false };
    folder == home || folder.canonicalize().is_ok_and(|real| real == home)
}

/// In a linked git worktree, the same place in the main checkout: all worktrees share one store.
fn leave_worktree(start: &Path) -> PathBuf {
    let start = start.canonicalize().unwrap_or_else(|_| start.to_owned());
    for top in start.ancestors() {
        let dot_git = top.join(".git");
        if dot_git.is_dir() {
            return start;
        }
        if !dot_git.is_file() {
            continue;
        }
        let Some(main) = main_checkout(&dot_git) else { return start };
        let below = start.strip_prefix(top).unwrap_or(Path::new(""));
        // Joining nothing would still add a slash, and make it another path to whoever compares.
        if below.as_os_str().is_empty() {
            return main;
        }
        let same = main.join(below);
        return if same.is_dir() { same } else { main };
    }
    start
}

/// A linked worktree's `.git` file names a folder that has `commondir`, the way to the repository's own `.git`. A
/// submodule's does not, and a bare repository has no checkout to go to.
fn main_checkout(dot_git: &Path) -> Option<PathBuf> {
    let text = std::fs::read_to_string(dot_git).ok()?;
    let named = Path::new(text.strip_prefix("gitdir:")?.trim());
    let own = dot_git.parent()?.join(named);
    let common = std::fs::read_to_string(own.join("commondir")).ok()?;
    let common = own.join(common.trim()).canonicalize().ok()?;
    if common.file_name()? != ".git" {
        return None;
    }
    Some(common.parent()?.to_owned())
}
