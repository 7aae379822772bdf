//! A project in a temporary folder, and commands that run in it.
//!
//! The commands get the caller's environment without tenure's variables, and a `TENURE_HOME` inside the folder. The folder is
//! removed on drop; after a `kill -9` it stays in the temporary directory.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use tenure_sqlite::SqliteStore;

use crate::{Error, Program, Result, sys};

#[derive(Debug)]
pub(crate) struct TempProject {
    program: Program,
    folder: PathBuf,
    keep: bool,
}

impl TempProject {
    /// Makes the project's folder. The caller runs `tenure init` in it.
    pub(crate) fn new(program: &Program, command: &'static str) -> Result<Self> {
        let folder = format!("tenure-{command}-{}", program.ids.hex8().to_lowercase());
        let folder = std::env::temp_dir().join(folder);
        let failed = |source| Error::TempFolder { command, path: folder.clone(), source };
        let private = sys::private_folder();
        private.create(&folder).and_then(|()| private.create(folder.join("project"))).map_err(failed)?;
        let folder = folder.canonicalize().map_err(failed)?;
        let mut program = program.clone();
        let is_tenures = |name: &OsString| name.to_string_lossy().starts_with("TENURE_");
        program.vars.retain(|(name, _)| !is_tenures(name));
        Ok(Self { program, folder, keep: false })
    }

    /// Whether the folder outlives this value.
    #[must_use]
    pub(crate) fn keep(mut self, keep: bool) -> Self {
        self.keep = keep;
        self
    }

    pub(crate) fn binary(&self) -> &Path {
        &self.program.binary
    }

    /// A variable of the commands' environment.
    pub(crate) fn var(&self, name: &str) -> Option<OsString> {
        self.program.vars.iter().find(|(known, _)| known == name).map(|(_, value)| value.clone())
    }

    /// The project's folder.
    pub(crate) fn root(&self) -> PathBuf {
        self.folder.join("project")
    }

    pub(crate) fn database(&self) -> PathBuf {
        self.root().join(&self.program.database)
    }

    pub(crate) fn store(&self) -> Result<SqliteStore> {
        Ok(SqliteStore::open(&self.database(), self.program.store_options.clone())?)
    }

    /// Appends lines to the project's configuration.
    pub(crate) fn configure(&self, lines: &str) -> Result<()> {
        let path = self.root().join(&self.program.config);
        let written = std::fs::read_to_string(&path).and_then(|old| std::fs::write(&path, old + lines));
        written.map_err(|source| Error::File { verb: "write", path, source })
    }

    /// A tenure command in the project. Its input and output are `/dev/null`.
    pub(crate) fn command(&self, args: &[&str]) -> Command {
        let mut command = self.other_command(self.binary());
        // This program writes the project's configuration itself.
        command.args(args).env("TENURE_HOME", self.folder.join("home")).env("TENURE_TRUST", "1");
        command
    }

    /// Another program, in the same folder and environment.
    pub(crate) fn other_command(&self, program: &Path) -> Command {
        let mut command = Command::new(program);
        command
            .env_clear()
            .envs(self.program.vars.iter().map(|(name, value)| (name, value)))
            .current_dir(self.root())
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null());
        command
    }
}

impl Drop for TempProject {
    fn drop(&mut self) {
        if !self.keep {
            let _ = std::fs::remove_dir_all(&self.folder);
        }
    }
}
