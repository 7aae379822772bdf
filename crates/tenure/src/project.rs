//! Decides whether a folder is a project and which store it uses. This is the only module that does, and the only one
//! that knows where a project keeps its files.
//!
//! A project has `.tenure/tenure.db`, or `.tenure/config.yaml` and a `store.url` that applies to it. A folder with only a
//! configuration is a clone in which `tenure init` has not run yet. A `store.url` in a file that is not trusted makes a
//! project whose store is never opened.

use std::path::{Path, PathBuf};

use tenure_core::config::Config;
use tenure_core::{Error, ErrorCode};

use crate::report::{CommandResult, Report};
use crate::sys;

const FOLDER: &str = ".tenure";
const DATABASE: &str = "tenure.db";
pub(crate) const CONFIG: &str = "config.yaml";

/// The paths of a project's files, whether or not they exist.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ProjectPaths {
    /// The folder that contains `.tenure/`.
    pub(crate) root: PathBuf,
}

impl ProjectPaths {
    pub(crate) fn new(root: impl Into<PathBuf>) -> Self {
        Self { root: root.into() }
    }

    pub(crate) fn folder(&self) -> PathBuf {
        self.root.join(FOLDER)
    }

    pub(crate) fn database(&self) -> PathBuf {
        self.folder().join(DATABASE)
    }

    pub(crate) fn config(&self) -> PathBuf {
        self.folder().join(CONFIG)
    }

    pub(crate) fn logs(&self) -> PathBuf {
        self.folder().join("logs")
    }

    /// The address and the token of `tenure mcp --http`.
    pub(crate) fn mcp_address(&self) -> PathBuf {
        self.folder().join("mcp.json")
    }

    /// The folders and files with fixed names that tenure creates.
    pub(crate) fn own_files(&self) -> Vec<PathBuf> {
        let database = self.database();
        let beside = ["-wal", "-shm"].map(|ending| self.folder().join(format!("{DATABASE}{ending}")));
        let locks = ["gate.lock", "queue.lock", "open.lock"].map(|ending| database.with_extension(ending));
        let mut files = vec![self.folder(), self.config(), self.logs(), self.mcp_address(), database];
        files.extend(beside.into_iter().chain(locks));
        files
    }

    /// Every commit to a database file, and every change of the project's settings, changes one of these files.
    pub(crate) fn changing_files(&self) -> [PathBuf; 3] {
        [self.database(), self.folder().join(format!("{DATABASE}-wal")), self.config()]
    }

    /// The store that the project uses with this configuration.
    pub(crate) fn store<'c>(&self, config: &'c Config) -> StoreLocation<'c> {
        match config.store_url.as_deref() {
            _ if config.has_untrusted_store() => StoreLocation::Untrusted,
            Some(url) => StoreLocation::Server(url),
            None => StoreLocation::File(self.database()),
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum StoreLocation<'c> {
    File(PathBuf),
    /// The URL of a PostgreSQL server.
    Server(&'c str),
    /// The project's file names another store, and no person has trusted it. Nothing may be opened.
    Untrusted,
}

/// A located project.
#[derive(Debug, Clone)]
pub(crate) struct Project {
    pub(crate) paths: ProjectPaths,
    /// Read once, while locating. A project with an invalid configuration is still a project.
    pub(crate) config: CommandResult<Config>,
}

#[derive(Debug)]
pub(crate) enum Located {
    Project(Project),
    /// A configuration without a store: `tenure init` creates the project.
    Clone(Project),
    Nothing,
}

/// Reads the configuration that applies to a project.
type ReadConfig<'a> = &'a dyn Fn(&ProjectPaths) -> CommandResult<Config>;

/// The nearest project at or above `start`, or else the nearest clone. A linked git worktree shares the project of the
/// main checkout. `home` (`TENURE_HOME`) is never a project.
pub(crate) fn locate(start: &Path, home: Option<&Path>, read_config: ReadConfig<'_>) -> Located {
    let mut nearest = Located::Nothing;
    for root in leave_worktree(start).ancestors() {
        match locate_at(root, home, read_config) {
            Located::Project(project) => return Located::Project(project),
            Located::Clone(clone) if matches!(nearest, Located::Nothing) => nearest = Located::Clone(clone),
            Located::Clone(_) | Located::Nothing => {}
        }
    }
    nearest
}

/// Locates a project in exactly this folder, without looking at its ancestors.
pub(crate) fn locate_at(root: &Path, home: Option<&Path>, read_config: ReadConfig<'_>) -> Located {
    let paths = ProjectPaths::new(root);
    let folder = paths.folder();
    if !folder.is_dir() || is_home(&folder, home) {
        return Located::Nothing;
    }
    if let Err(report) = check_readable(&paths) {
        return Located::Project(Project { paths, config: Err(report) });
    }
    let has_database = has_database(&paths);
    if !has_database && !paths.config().is_file() {
        return Located::Nothing;
    }
    let config = check_path(root).map_err(Into::into).and_then(|()| read_config(&paths));
    // An invalid configuration may be intended to name a server, and its error has to be reported.
    let has_server =
        config.as_ref().map_or(true, |config| !matches!(paths.store(config), StoreLocation::File(_)));
    let project = Project { paths, config };
    if has_database || has_server { Located::Project(project) } else { Located::Clone(project) }
}

/// A folder that may not be entered is a project of another user, not a missing one.
fn check_readable(paths: &ProjectPaths) -> CommandResult<()> {
    match paths.database().symlink_metadata() {
        Err(error) if error.kind() == std::io::ErrorKind::PermissionDenied => {
            let message =
                format!("{} belongs to another user, who does not let you read it", paths.folder().display());
            Err(Report::new(ErrorCode::PermissionDenied, message)
                .note("Run tenure as its owner, or use your own project."))
        }
        _ => Ok(()),
    }
}

/// A dangling link counts: opening the store reports it.
fn has_database(paths: &ProjectPaths) -> bool {
    paths.database().symlink_metadata().is_ok()
}

/// What a folder is, judged by the names of its files. None of them is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum FolderKind {
    /// It has a database.
    Project,
    /// It has only a configuration: a project on a server, or a clone that needs `tenure init`.
    Configured,
}

/// Whether the folder may be a project. A linked git worktree is not: its project is that of the main checkout.
pub(crate) fn candidate_at(root: &Path, home: Option<&Path>) -> Option<FolderKind> {
    let paths = ProjectPaths::new(root);
    let candidate = if has_database(&paths) {
        FolderKind::Project
    } else if paths.config().is_file() {
        FolderKind::Configured
    } else {
        return None;
    };
    (!is_home(&paths.folder(), home) && leave_worktree(root) == root).then_some(candidate)
}

/// Where `init` creates a project.
pub(crate) fn paths_for_init(start: &Path, home: Option<&Path>) -> Result<ProjectPaths, Error> {
    let paths = ProjectPaths::new(leave_worktree(start));
    check_path(&paths.root)?;
    if is_home(&paths.folder(), home) {
        return Err(Error::Config(
            "this folder's .tenure is TENURE_HOME, so it cannot be a project; use a folder below it"
                .to_owned(),
        ));
    }
    Ok(paths)
}

/// A project's path is stored and printed as text, in JSON and in the user's registry.
fn check_path(root: &Path) -> Result<(), Error> {
    if root.to_str().is_some() {
        return Ok(());
    }
    Err(Error::invalid(format!("the path {} is not UTF-8, so it cannot be a project", root.display())))
}

fn is_home(folder: &Path, home: Option<&Path>) -> bool {
    let Some(home) = home else { return false };
    let real = |path: &Path| sys::real_path(path).ok();
    folder == home || real(folder).is_some_and(|folder| real(home) == Some(folder))
}

/// In a linked git worktree, the same folder in the main checkout: all worktrees share one store.
fn leave_worktree(start: &Path) -> PathBuf {
    let start = sys::real_path(start).unwrap_or_else(|_| start.to_owned());
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
        // Joining an empty path would add a slash, and the result would no longer compare equal.
        if below.as_os_str().is_empty() {
            return main;
        }
        let same = main.join(below);
        return if same.is_dir() { same } else { main };
    }
    start
}

/// A linked worktree's `.git` file names a folder whose `commondir` file leads to the repository's `.git`. A submodule's
/// does not, and a bare repository has no checkout.
fn main_checkout(dot_git: &Path) -> Option<PathBuf> {
    let text = std::fs::read_to_string(dot_git).ok()?;
    let named = Path::new(text.strip_prefix("gitdir:")?.trim());
    let own = dot_git.parent()?.join(named);
    let common = std::fs::read_to_string(own.join("commondir")).ok()?;
    let common = sys::real_path(&own.join(common.trim())).ok()?;
    if common.file_name()? != ".git" {
        return None;
    }
    Some(common.parent()?.to_owned())
}
