//! A temporary folder with a project in it, and this program run there by itself: where `demo` plays and `bench` measures.
//!
//! What runs there sees the caller's environment without anything of tenure's, and a home of its own. The folder goes when
//! this is dropped; after a `kill -9` it stays in the temporary directory.

use std::ffi::OsString;
use std::fs::DirBuilder;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use tenure_core::ErrorCode;
use tenure_sqlite::{OpenOptions, SqliteStore};

use crate::env::Env;
use crate::project::ProjectPaths;
use crate::report::{Outcome, Report};

#[derive(Debug)]
pub(crate) struct Scratch {
    binary: PathBuf,
    folder: PathBuf,
    vars: Vec<(OsString, OsString)>,
    keep: bool,
}

impl Scratch {
    /// The project's folder is there; the project itself is for the caller to make.
    pub(crate) fn new(env: &Env, name: &str) -> Outcome<Self> {
        let folder = std::env::temp_dir().join(format!("tenure-{name}-{}", env.ids.hex8().to_lowercase()));
        let failed = |e: std::io::Error| {
            Report::io(&e, ErrorCode::General, "make", &folder)
                .hint("use another place", format!("TMPDIR=/var/tmp tenure {name}"))
        };
        let mut private = DirBuilder::new();
        private.mode(0o700);
        private.create(&folder).and_then(|()| private.create(folder.join("project"))).map_err(failed)?;
        let folder = folder.canonicalize().map_err(failed)?;
        let foreign = |name: &OsString| !name.to_string_lossy().starts_with("TENURE_");
        let vars = env.vars.iter().filter(|(name, _)| foreign(name));
        Ok(Self {
            binary: crate::own_binary().map_err(cannot_run)?,
            vars: vars.map(|(name, value)| (name.clone(), value.clone())).collect(),
            folder,
            keep: false,
        })
    }

    /// Whether the folder stays.
    #[must_use]
    pub(crate) fn kept(mut self, keep: bool) -> Self {
        self.keep = keep;
        self
    }

    pub(crate) fn binary(&self) -> &Path {
        &self.binary
    }

    /// The project.
    pub(crate) fn root(&self) -> PathBuf {
        self.folder.join("project")
    }

    pub(crate) fn database(&self) -> PathBuf {
        ProjectPaths::new(self.root()).database()
    }

    pub(crate) fn store(&self, options: OpenOptions) -> Outcome<SqliteStore> {
        Ok(SqliteStore::open(&self.database(), options)?)
    }

    /// Adds lines to the project's configuration.
    pub(crate) fn configure(&self, lines: &str) -> Outcome<()> {
        let path = ProjectPaths::new(self.root()).config();
        let written = std::fs::read_to_string(&path).and_then(|old| std::fs::write(&path, old + lines));
        written.map_err(|e| Report::io(&e, ErrorCode::General, "write", &path))
    }

    /// This program with these words, in the project, heard by nobody.
    pub(crate) fn command(&self, words: &[&str]) -> Command {
        let mut command = self.silent(&self.binary);
        command.args(words).env("TENURE_HOME", self.folder.join("home"));
        command
    }

    /// Another program in the same surroundings.
    pub(crate) fn silent(&self, program: &Path) -> Command {
        let mut command = Command::new(program);
        command
            .env_clear()
            .envs(self.vars.iter().map(|(name, value)| (name, value)))
            .current_dir(self.root())
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null());
        command
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        if !self.keep {
            let _ = std::fs::remove_dir_all(&self.folder);
        }
    }
}

pub(crate) fn cannot_run(e: std::io::Error) -> Report {
    Report::new(ErrorCode::General, format!("cannot run a command: {e}"))
}
