//! Reads the configuration that applies: the user's file, the project's file and the environment.
//!
//! Guarantees: a project's setting that needs trust counts only if [`trust`] says so, for every caller. If the project's file
//! sets no such key, no further file is read.

use std::path::{Path, PathBuf};

use tenure_core::config::{Config, Document, Layer, Layers, Override};

use crate::cli::Global;
use crate::env::Env;
use crate::project::{self, ProjectPaths};
use crate::report::{CommandResult, Report};
use crate::trust;

/// What the configuration is read with. Copied into processes and threads that read it again later.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ConfigReader<'a> {
    pub(crate) env: &'a Env,
    pub(crate) global: &'a Global,
}

/// A new text of a configuration file, used in place of the file to validate it before it is written.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Replacement<'d> {
    User(&'d Document),
    /// The document, and whether it will be trusted.
    Project(&'d Document, bool),
}

impl ConfigReader<'_> {
    /// `--config`, else `~/.tenure/config.yaml`.
    pub(crate) fn user_file(&self) -> Option<PathBuf> {
        match &self.global.config {
            Some(path) => Some(self.env.cwd.join(path)),
            None => self.env.home().map(|home| home.join(project::CONFIG)),
        }
    }

    /// The resolved configuration. The precedence is: flags, environment, project, user, defaults.
    pub(crate) fn read(
        &self,
        paths: Option<&ProjectPaths>,
        replacement: Option<Replacement<'_>>,
    ) -> CommandResult<Config> {
        let user_path = self.user_file();
        if let Some(path) = self.global.config.as_ref().map(|p| self.env.cwd.join(p))
            && !path.is_file()
        {
            return Err(Report::new(
                tenure_core::ErrorCode::Config,
                format!("there is no configuration file {}", path.display()),
            ));
        }
        paths.map_or(Ok(()), crate::links::check_config)?;
        let project_path = paths.map(ProjectPaths::config);
        let user = match replacement {
            Some(Replacement::User(new)) => Some(new.clone()),
            _ => read_document(user_path.as_deref())?,
        };
        let (project, trusts_project) = match (replacement, paths) {
            (Some(Replacement::Project(new, trusted)), _) => (Some(new.clone()), trusted),
            (_, None) => (None, false),
            (_, Some(paths)) => {
                let document = read_document(project_path.as_deref())?;
                let trusted = document.as_ref().is_some_and(|found| trust::counts(self.env, paths, found));
                (document, trusted)
            }
        };
        let mut environment = Vec::new();
        for (variable, key) in [("TENURE_LEASE_TTL", "locking.leaseTtl"), ("TENURE_STORE", "store.url")] {
            if let Some(value) = self.env.var(variable) {
                environment.push(Override { key, value, label: variable });
            }
        }
        let shown =
            |path: Option<&PathBuf>| path.map(|p| p.to_string_lossy().into_owned()).unwrap_or_default();
        let (user_shown, project_shown) = (shown(user_path.as_ref()), shown(project_path.as_ref()));
        Config::resolve(Layers {
            flags: &[],
            environment: &environment,
            project: project.as_ref().map(|document| Layer { path: &project_shown, document }),
            trusts_project,
            user: user.as_ref().map(|document| Layer { path: &user_shown, document }),
        })
        .map_err(|e| Report::config(&e, None))
    }
}

pub(crate) fn read_document(path: Option<&Path>) -> CommandResult<Option<Document>> {
    let Some(path) = path else { return Ok(None) };
    let text = match std::fs::read_to_string(path) {
        Ok(text) => text,
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => return Ok(None),
        // Commands work without a usable home, so a path through a file counts as missing.
        Err(e) if e.kind() == std::io::ErrorKind::NotADirectory => return Ok(None),
        // The same for a folder that cannot be searched. A file that is known to exist and cannot be read is an error.
        Err(e) if e.kind() == std::io::ErrorKind::PermissionDenied && path.symlink_metadata().is_err() => {
            return Ok(None);
        }
        Err(e) => return Err(Report::io(&e, tenure_core::ErrorCode::Config, "read", path)),
    };
    let file = path.to_string_lossy();
    Document::parse(&text).map(Some).map_err(|e| Report::config(&e, Some(&file)))
}
