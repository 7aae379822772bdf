//! The projects of this machine for the board: which there are, which may be opened, and the threads that serve them.
//!
//! Guaranteed: a project that is not trusted, belongs to another user or is missing is not opened. The exception is the project
//! in whose folder the server was started: every other command opens its store as well. A request is served with the settings
//! and the trust that the project has when the request is served.

use std::cell::OnceCell;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use tenure_core::ErrorCode;
use tenure_core::config::{Config, TrustRecord};
use tenure_serve::Refusal;
use tenure_serve::web::{Action, Following, ProjectRow, Projects, Requests, Served};
use tenure_sqlite::Directory;

use super::handler::WebHandler;
use super::verbs;
use crate::app::App;
use crate::cli::Global;
use crate::env::{Env, Output};
use crate::follow::Follower;
use crate::identity::IdentityArgs;
use crate::ownership;
use crate::printer::Printer;
use crate::report::{CommandResult, Report};
use crate::shell_quote::quote;
use crate::trust;

/// The shortest time between two reads of a store that changes all the time.
const PAUSE: Duration = Duration::from_millis(100);
/// How often a follower checks whether the project's settings and trust are still the same.
const RECHECK: Duration = Duration::from_secs(5);

/// Variables that identify the caller of a command. They do not apply to a person at a browser.
const IDENTITIES: [&str; 5] =
    ["TENURE_AGENT", "TENURE_LEASE", "TENURE_FENCE", "TENURE_TASK_ID", "TENURE_ATTEMPT"];

#[derive(Debug)]
pub(super) struct MachineProjects {
    env: Env,
    global: Global,
    /// The project in whose folder the server was started.
    own: Option<PathBuf>,
}

/// The name of a project in URLs.
pub(super) fn slug(root: &Path) -> String {
    TrustRecord::file_name(&root.to_string_lossy()).chars().take(12).collect()
}

impl MachineProjects {
    pub(super) fn new(app: &App<'_>, own: Option<PathBuf>) -> Self {
        let mut env = app.env.clone();
        for name in IDENTITIES {
            env.vars.remove(std::ffi::OsStr::new(name));
        }
        // The actor of changes is `USER@HOST:web`. The server cannot ask a question, so trust cannot be given
        // here.
        env.terminal = Some("web".to_owned());
        env.terminal_leader = None;
        env.input_is_terminal = false;
        let global = Global { json: true, quiet: true, ..app.global.clone() };
        Self { env, global, own }
    }

    /// Calls `body` with an invocation for the project at `root`, as a command in its folder would have it.
    fn with_app<T>(&self, root: &Path, body: impl FnOnce(&mut App<'_>) -> T) -> T {
        let (shared, mut output) = (OnceCell::new(), Output::sink());
        let env = Env { cwd: root.to_owned(), ..self.env.clone() };
        let global = Global { project: Some(root.to_owned()), ..self.global.clone() };
        let printer = Printer::new(&mut output, &global, false);
        let mut app = App { env: &env, shared: &shared, global: &global, printer, wait_handles: Vec::new() };
        body(&mut app)
    }

    /// The project with this name in URLs, if it may be opened.
    fn root(&self, slug: &str) -> CommandResult<PathBuf> {
        let found = self.rows().into_iter().find(|(_, row)| row.slug == slug);
        match found {
            Some((root, ProjectRow { closed: None, .. })) => Ok(root),
            Some((_, row)) => Err(Report::new(ErrorCode::PermissionDenied, row.closed.unwrap_or_default())),
            None => Err(Report::new(ErrorCode::NotInitialized, "there is no such project")),
        }
    }

    /// Opens the project and serves its requests.
    fn serve_at(&self, root: &Path, requests: &mut Requests) -> CommandResult<Served> {
        self.with_app(root, |app| {
            let mut open = app.find().and_then(|project| app.open_at(project))?;
            let config = open.config.clone();
            // No change waits for a hook.
            open.config.hooks.iter_mut().for_each(|hook| hook.run_async = true);
            let identity = app.identity(&IdentityArgs::default())?;
            let mut handler = WebHandler::new(app, &open, identity);
            Ok(requests.serve(&mut handler, &|| self.is_current(root, &config)))
        })
    }

    /// Whether the project may still be opened, and has these settings.
    fn is_current(&self, root: &Path, config: &Config) -> bool {
        self.with_app(root, |app| {
            let project = app.project_at(root).filter(|_| self.why_closed(app, root).is_none());
            project.is_some_and(|project| project.config.is_ok_and(|now| now == *config))
        })
    }

    fn rows(&self) -> Vec<(PathBuf, ProjectRow)> {
        let known = self.with_app(&self.env.cwd, |app| {
            let directory = Directory::open_existing(&app.home()?, app.env.clock.clone())?;
            Ok::<_, Report>(directory.map(|directory| directory.projects()).transpose()?.unwrap_or_default())
        });
        let mut paths: Vec<(PathBuf, Option<String>)> =
            known.unwrap_or_default().into_iter().map(|project| (project.path, project.name)).collect();
        if let Some(own) = self.own.as_ref().filter(|own| paths.iter().all(|(path, _)| path != *own)) {
            paths.insert(0, (own.clone(), None));
        }
        paths.into_iter().map(|(path, name)| (path.clone(), self.row(&path, name))).collect()
    }

    fn row(&self, path: &Path, name: Option<String>) -> ProjectRow {
        let (closed, hint) = match self.with_app(path, |app| self.why_closed(app, path)) {
            None => (None, None),
            Some((why, hint)) => (Some(why), hint),
        };
        ProjectRow { slug: slug(path), name, path: path.to_string_lossy().into_owned(), closed, hint }
    }

    /// Why the project is not opened, and the command that solves this. Its store is not touched.
    fn why_closed(&self, app: &App<'_>, path: &Path) -> Option<(String, Option<String>)> {
        let quoted = quote(&path.to_string_lossy());
        let Some(project) = app.project_at(path) else {
            return Some(("missing".to_owned(), Some(format!("tenure projects remove {quoted}"))));
        };
        if let Err(report) = ownership::check(&project.paths, app.env) {
            return Some((report.message, None));
        }
        if let Err(report) = &project.config {
            return Some((report.message.clone(), None));
        }
        if self.own.as_deref() == Some(path) {
            return None;
        }
        let is_trusted =
            trust::examine(app.env, &project.paths).is_ok_and(|found| found.allows_agents(app.env));
        (!is_trusted)
            .then(|| ("not trusted, so not opened".to_owned(), Some(format!("tenure trust -C {quoted}"))))
    }
}

impl Projects for MachineProjects {
    fn list(&self) -> Vec<ProjectRow> {
        self.rows().into_iter().map(|(_, row)| row).collect()
    }

    fn serve(&self, project: &str, mut requests: Requests) {
        loop {
            match self.root(project).and_then(|root| self.serve_at(&root, &mut requests)) {
                Ok(Served::All) => return,
                Ok(Served::UntilStale) => {}
                Err(report) => return requests.refuse(&refusal(report)),
            }
        }
    }

    fn follow(&self, project: &str, following: &Following) {
        let Ok(root) = self.root(project) else { return };
        self.with_app(&root, |app| {
            let Ok(open) = app.find().and_then(|project| app.open_at(project)) else { return };
            let mut follower = Follower::new(&open.store, PAUSE);
            let mut checked = Instant::now();
            while follower.begin_read().is_ok() {
                following.changed();
                loop {
                    let woken = follower.wait(&[following.fd()], Some(RECHECK));
                    if following.is_over() {
                        return;
                    }
                    if checked.elapsed() >= RECHECK {
                        checked = Instant::now();
                        if !self.is_current(&root, &open.config) {
                            // Makes the pages read again, which opens and follows the project again if that is
                            // allowed.
                            following.changed();
                            return;
                        }
                    }
                    if woken.changed {
                        break;
                    }
                }
            }
        });
    }

    fn act_apart(&self, project: &str, action: &Action) -> Result<String, Refusal> {
        let root = self.root(project).map_err(refusal)?;
        self.with_app(&root, |app| verbs::act_apart(app, action)).map_err(refusal)
    }
}

pub(super) fn refusal(report: Report) -> Refusal {
    let hints = report.hints.iter().map(|hint| format!("{}: {}", hint.why, hint.command));
    let context = report.context.iter().cloned().chain(hints).collect();
    Refusal { code: report.code, message: report.message, details: report.details, context }
}
