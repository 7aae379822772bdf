//! What an agent may do, and where it works. The arguments of a built-in preset are built from both.

use std::path::{Path, PathBuf};

use tenure_core::config::Permissions;
use tenure_core::hints::{self, Hint};
use tenure_core::supervised::callable_verbs;

/// What an agent may do.
#[derive(Debug, Clone, Copy)]
pub struct Access<'a> {
    pub permissions: Permissions,
    /// `runners.allow`: commands that may run where there is no sandbox.
    pub allow: &'a [String],
    /// Whether the programs that Claude Code's sandbox needs are installed.
    pub has_sandbox: bool,
    /// `None` if only the definition of the preset is needed, which does not depend on where the agent works.
    pub place: Option<&'a Place>,
}

/// Why an agent cannot be started with the configured permissions.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum AccessError {
    #[error("its sandbox needs bwrap and socat, which were not found on PATH, and runners.allow is empty")]
    NoSandbox,
    #[error("it cannot be limited to editing files, as runners.permissions requires")]
    NotLimited,
}

impl AccessError {
    /// What helps.
    pub fn hint(self) -> Hint {
        match self {
            Self::NoSandbox => hints::allow_commands(),
            Self::NotLimited => hints::permit_work(),
        }
    }
}

/// Where an agent works.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Place {
    /// The project.
    pub root: PathBuf,
    /// The folder in which the agent is started: the project, or one of its linked worktrees.
    pub workdir: PathBuf,
    /// This program.
    pub tenure: PathBuf,
}

impl Place {
    /// The folder with the store, which `tenure` writes to.
    pub(super) fn store_folder(&self) -> PathBuf {
        self.root.join(".tenure")
    }

    /// The file that decides what runs in this project. No agent needs to write it.
    pub(super) fn config_file(&self) -> PathBuf {
        self.store_folder().join("config.yaml")
    }

    /// The folders that a commit writes to. A linked worktree has one of its own and one that it shares.
    pub(super) fn git_folders(&self) -> Vec<PathBuf> {
        let is_one = |path: &PathBuf| path.is_file() || path.join("HEAD").is_file();
        let found = self.workdir.ancestors().map(|folder| folder.join(".git")).find(is_one);
        let Some(entry) = found else { return Vec::new() };
        if entry.is_dir() {
            return vec![entry];
        }
        let pointer = |file: &Path, before: &str| {
            let text = std::fs::read_to_string(file).ok()?;
            let target = text.trim().strip_prefix(before)?.trim().to_owned();
            file.parent()?.join(target).canonicalize().ok()
        };
        let own = pointer(&entry, "gitdir:");
        let shared = own.as_ref().and_then(|own| pointer(&own.join("commondir"), ""));
        own.into_iter().chain(shared).collect()
    }

    /// What decides which programs git runs. A commit does not write it.
    pub(super) fn git_settings(&self) -> Vec<PathBuf> {
        let below = |folder: PathBuf| ["config", "config.worktree", "hooks"].map(|name| folder.join(name));
        self.git_folders().into_iter().flat_map(below).filter(|path| path.exists()).collect()
    }
}

/// The commands `tenure VERB` that an agent under a runner may run.
pub(super) fn tenure_commands() -> impl Iterator<Item = String> {
    callable_verbs().into_iter().map(|verb| format!("tenure {verb}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn place(workdir: &Path) -> Place {
        let tenure = PathBuf::from("/usr/bin/tenure");
        Place { root: workdir.to_owned(), workdir: workdir.to_owned(), tenure }
    }

    #[test]
    fn a_commit_writes_to_the_folder_of_the_repository_that_contains_the_project() {
        let folder = tempfile::tempdir().unwrap();
        let git = folder.path().join(".git");
        std::fs::create_dir_all(git.join("hooks")).unwrap();
        std::fs::write(git.join("config"), "").unwrap();
        std::fs::write(git.join("HEAD"), "").unwrap();
        let below = folder.path().join("a/b");
        // An empty folder of this name is no repository.
        std::fs::create_dir_all(below.join(".git")).unwrap();
        assert_eq!(place(&below).git_folders(), vec![git.clone()]);
        assert_eq!(place(&below).git_settings(), [git.join("config"), git.join("hooks")]);
    }

    #[test]
    fn a_commit_in_a_linked_worktree_writes_to_its_own_and_to_the_shared_folder() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().canonicalize().unwrap();
        let (shared, own, tree) =
            (root.join("main/.git"), root.join("main/.git/worktrees/t"), root.join("t"));
        std::fs::create_dir_all(&own).unwrap();
        std::fs::create_dir_all(&tree).unwrap();
        std::fs::create_dir_all(shared.join("hooks")).unwrap();
        std::fs::write(own.join("commondir"), "../..\n").unwrap();
        std::fs::write(tree.join(".git"), format!("gitdir: {}\n", own.display())).unwrap();
        assert_eq!(place(&tree).git_folders(), [own, shared.clone()]);
        assert_eq!(place(&tree).git_settings(), [shared.join("hooks")]);
    }
}
