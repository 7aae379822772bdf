//! One invocation: its environment, its global flags, and the project that it works on.

use std::cell::OnceCell;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use tenure_core::config::Config;
use tenure_core::duration;
use tenure_core::error::TaskName;
use tenure_core::hints;
use tenure_core::outcome::{NoOutcomes, Outcomes};
use tenure_core::store::{Durability, StoreHint, Tx, View, Viewer};
use tenure_core::{Context, Error, Policy, Result};
use tenure_demo::Program;
use tenure_runner::OutcomeFiles;
use tenure_sqlite::{Directory, OpenOptions};

use crate::cli::Global;
use crate::env::Env;
use crate::identity::{Identity, IdentityArgs};
use crate::interrupt::Interrupts;
use crate::late_notice::{self, LateNotice};
use crate::layers::ConfigReader;
use crate::local_time::LocalTime;
use crate::printer::Printer;
use crate::project::{self, Located, Project, ProjectPaths};
use crate::report::{CommandResult, Report};
use crate::store::{Backend, Doorbell, Source};
use crate::sys;

const COPY: &str = "this is a copy of another project and can only be read; \
                    `tenure store adopt` makes it a separate project";

#[derive(Debug)]
pub(crate) struct App<'a> {
    pub(crate) env: &'a Env,
    /// The environment to use with a store on a server: the server's clock, and a judge that treats processes of other
    /// machines as unknown. In a copy of a store: a judge that treats the original's processes as unknown.
    pub(crate) shared: &'a OnceCell<Env>,
    pub(crate) global: &'a Global,
    pub(crate) printer: Printer<'a>,
    /// Signal handlers and doorbells of finished waits. They are dropped only after the answer is printed, so that it is
    /// printed sooner.
    pub(crate) wait_handles: Vec<(Interrupts, Option<Doorbell>)>,
}

/// A project that was found, with its configuration and its store.
#[derive(Debug)]
pub(crate) struct Open<'a> {
    pub(crate) paths: ProjectPaths,
    pub(crate) config: Config,
    pub(crate) store: Backend,
    pub(crate) source: Source,
    /// Outcomes of attempts that could not be written to the store.
    pub(crate) outcomes: Box<dyn Outcomes>,
    pub(crate) env: &'a Env,
}

impl<'a> App<'a> {
    /// The folder to look for the project from: `-C`, else `TENURE_PROJECT`, else the current folder.
    pub(crate) fn start(&self) -> CommandResult<PathBuf> {
        let named = self.global.project.as_deref().or_else(|| self.env.var("TENURE_PROJECT").map(Path::new));
        let Some(named) = named else { return Ok(self.env.cwd.clone()) };
        self.folder(named)
    }

    pub(crate) fn folder(&self, named: &Path) -> CommandResult<PathBuf> {
        let path = self.env.cwd.join(named);
        if !sys::real_path(&path).is_ok_and(|real| real.is_dir()) {
            return Err(Report::usage(format!("there is no folder {}", path.display())));
        }
        Ok(path)
    }

    pub(crate) fn find(&self) -> CommandResult<Project> {
        self.find_from(&self.start()?)
    }

    pub(crate) fn find_from(&self, start: &Path) -> CommandResult<Project> {
        let clone_at = match self.locate(start) {
            Located::Project(project) => return Ok(project),
            Located::Clone(clone) => Some(clone.paths.root),
            Located::Nothing => None,
        };
        let root = clone_at.clone().unwrap_or_else(|| start.to_owned());
        let mut report = Report::from(Error::NotInitialized { start: start.to_owned(), clone_at });
        // `init` works in the current folder, so a hint about another folder has to name it.
        if root != self.env.cwd {
            report.hints = vec![hints::init_at(crate::shell_quote::quote(&root.to_string_lossy()))];
        }
        Err(report)
    }

    /// The nearest project at or above `start`.
    pub(crate) fn locate(&self, start: &Path) -> Located {
        project::locate(start, self.env.home().as_deref(), &|paths| self.config(Some(paths)))
    }

    /// The project in exactly this folder.
    pub(crate) fn project_at(&self, root: &Path) -> Option<Project> {
        match project::locate_at(root, self.env.home().as_deref(), &|paths| self.config(Some(paths))) {
            Located::Project(project) => Some(project),
            Located::Clone(_) | Located::Nothing => None,
        }
    }

    pub(crate) fn open(&mut self) -> CommandResult<Open<'a>> {
        let project = self.find()?;
        let open = self.open_at(project)?;
        if open.store.is_copy() {
            self.printer.warn(COPY);
        }
        open.store.hint(StoreHint::EndsWithProcess);
        Ok(open)
    }

    pub(crate) fn open_at(&mut self, project: Project) -> CommandResult<Open<'a>> {
        let Project { paths, config } = project;
        self.print_files_used(&paths);
        crate::ownership::check(&paths, self.env)?;
        crate::links::check(&paths)?;
        let config = config?;
        let source = self.source(&paths, &config)?;
        self.printer.detail(1, || format!("store    {}", source.shown()));
        let notice = (source.is_on_server() && self.printer.shows_waits())
            .then(|| LateNotice::new(format!("Waiting for {}...", source.shown())));
        let store = source.open()?;
        drop(notice);
        if let Some(warning) = store.warning() {
            self.printer.warn(warning);
        }
        if store.is_copy() {
            self.env = self.shared.get_or_init(|| Env { judge: store.judge(self.env), ..self.env.clone() });
        }
        if let Some(clock) = store.server_clock() {
            self.env =
                self.shared.get_or_init(|| Env { clock, judge: store.judge(self.env), ..self.env.clone() });
        }
        let outcomes = self.outcomes(&store);
        Ok(Open { paths, config, store, source, outcomes, env: self.env })
    }

    /// Where outcomes of this store are kept while it does not answer.
    fn outcomes(&self, store: &Backend) -> Box<dyn Outcomes> {
        match (self.env.home(), store.id()) {
            (Some(home), Ok(id)) if !store.is_copy() => Box::new(OutcomeFiles::new(&home, id.as_str())),
            _ => Box::new(NoOutcomes),
        }
    }

    pub(crate) fn source(&self, paths: &ProjectPaths, config: &Config) -> CommandResult<Source> {
        Ok(Source::of(paths, config, self.env, self.store_options())?)
    }

    /// Prints, with `-v`, the project and the files in use.
    fn print_files_used(&mut self, paths: &ProjectPaths) {
        self.printer.detail(1, || format!("project  {}", paths.root.display()));
        for path in [Some(paths.config()), self.user_config()].into_iter().flatten() {
            let missing = if path.is_file() { "" } else { " (missing)" };
            self.printer.detail(1, || format!("config   {}{missing}", path.display()));
        }
    }

    pub(crate) fn store_options(&self) -> OpenOptions {
        let mut options = OpenOptions::new(self.env.clock.clone());
        options.dry_run = self.global.dry_run;
        options.on_wait = self.printer.shows_waits().then_some(late_notice::print);
        if let Some(timeout) = self.global.timeout {
            options.patience = options.patience.min(timeout);
        }
        options
    }

    /// This program, as the demo and the bench start it.
    pub(crate) fn own_program(&self) -> CommandResult<Program> {
        let relative = ProjectPaths::new("");
        Ok(Program {
            binary: crate::own_binary().map_err(tenure_demo::Error::Spawn)?,
            vars: self.env.vars.clone().into_iter().collect(),
            database: relative.database(),
            config: relative.config(),
            store_options: self.store_options(),
            ids: Arc::clone(&self.env.ids),
        })
    }

    /// `--config`, else `~/.tenure/config.yaml`.
    pub(crate) fn user_config(&self) -> Option<PathBuf> {
        self.config_reader().user_file()
    }

    pub(crate) fn config_reader(&self) -> ConfigReader<'a> {
        ConfigReader { env: self.env, global: self.global }
    }

    /// The resolved configuration.
    pub(crate) fn config(&self, paths: Option<&ProjectPaths>) -> CommandResult<Config> {
        self.config_reader().read(paths, None)
    }

    pub(crate) fn directory(&self) -> CommandResult<Directory> {
        let home = self.home()?;
        Ok(Directory::open(&home, self.env.clock.clone())?)
    }

    pub(crate) fn home(&self) -> CommandResult<PathBuf> {
        self.env.home().ok_or_else(Report::no_home)
    }

    /// Shows times in the user's time zone, or in UTC with `--utc`.
    pub(crate) fn local_time(&self) -> LocalTime {
        if self.global.utc { LocalTime::utc() } else { LocalTime::of(self.env) }
    }

    pub(crate) fn identity(&self, args: &IdentityArgs) -> CommandResult<Identity> {
        Identity::of(self.env, args)
    }

    /// How long a command that waits by default may wait; `None` means that it does not wait.
    pub(crate) fn default_patience(&self, open: &Open<'_>) -> Option<Duration> {
        (!self.never_waits()).then_some(open.config.locking.wait_timeout)
    }

    /// A dry run never waits either, because it would not keep what it waited for.
    pub(crate) fn never_waits(&self) -> bool {
        self.global.no_wait || self.env.flag("TENURE_NO_WAIT") || self.global.dry_run
    }

    /// How long a command with a `--wait` option may wait; `None` means that it does not wait. The flag takes precedence
    /// over `TENURE_NO_WAIT`.
    pub(crate) fn asked_patience(&self, open: &Open<'_>, wait: Option<Option<Duration>>) -> Option<Duration> {
        if self.global.no_wait || self.global.dry_run {
            return None;
        }
        wait.map(|given| given.unwrap_or(open.config.locking.wait_timeout))
    }

    /// The verb to use in an answer: `done`, or `would` in a dry run.
    pub(crate) fn past<'t>(&self, done: &'t str, would: &'t str) -> &'t str {
        if self.global.dry_run { would } else { done }
    }
}

impl Open<'_> {
    pub(crate) fn context(&self) -> Context<'_> {
        Context {
            judge: self.env.judge.as_ref(),
            ids: self.env.ids.as_ref(),
            outcomes: self.outcomes.as_ref(),
            policy: Policy {
                ticket_life: self.config.locking.poll_interval.saturating_mul(3),
                max_attempts: self.config.tasks.max_attempts,
                max_rejections: self.config.tasks.max_rejections,
                review: self.config.review.enabled,
            },
        }
    }

    pub(crate) fn read<T>(&self, body: impl FnMut(&dyn View) -> Result<T>) -> Result<T> {
        self.store.read(body)
    }

    /// A change that survives power loss.
    pub(crate) fn write<T>(&self, body: impl FnMut(&mut dyn Tx) -> Result<T>) -> Result<T> {
        self.store.write(Durability::Power, body)
    }

    pub(crate) fn viewer(&self, view: &dyn View, identity: &Identity) -> Result<Viewer> {
        let me = identity.is_named().then_some(&identity.holder);
        self.context().viewer(view, me)
    }

    pub(crate) fn resolve(&self, reference: &str) -> Result<TaskName> {
        self.read(|view| tenure_core::reference::task(view, reference))
    }
}

/// A duration on the command line.
pub(crate) fn parse_duration(text: &str) -> std::result::Result<Duration, String> {
    duration::parse(text).map_err(|e| e.to_string())
}

pub(crate) fn parse_ttl(text: &str) -> std::result::Result<Duration, String> {
    duration::parse_ttl(text).map_err(|e| e.to_string())
}

/// The argument itself, or standard input if it is `-`.
pub(crate) fn read_text(argument: &str) -> CommandResult<String> {
    if argument != "-" {
        return Ok(argument.to_owned());
    }
    std::io::read_to_string(std::io::stdin())
        .map_err(|e| Report::from(Error::General(format!("cannot read standard input: {e}"))))
}
