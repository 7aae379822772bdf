//! Which values an argument takes, and where they are found.

use std::cell::OnceCell;
use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use clap::Arg;
use tenure_core::config::{Config, HookEvent, KEYS, Kind};
use tenure_core::event::EventKind;
use tenure_core::store::{LeaseFilter, TaskFilter, View};
use tenure_core::task::TaskStatus;
use tenure_core::{Context, Policy, Result};
use tenure_sqlite::OpenOptions;

use crate::app::App;
use crate::cli::Global;
use crate::commands::lease_view;
use crate::env::{Env, Output};
use crate::printer::Printer;
use crate::store::Source;

/// Maximum number of tasks that are offered.
const TASKS: u64 = 1000;
/// Maximum number of jobs, sessions and runners that are offered.
const RECENT: u64 = 50;

#[derive(Debug, Clone)]
pub(super) struct Candidate {
    pub(super) value: String,
    pub(super) help: Option<String>,
}

impl Candidate {
    fn new(value: impl Into<String>, help: impl Into<String>) -> Self {
        let help = help.into();
        Self { value: value.into(), help: Some(help).filter(|help| !help.is_empty()) }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Values {
    Tasks,
    Sections,
    Agents,
    Jobs,
    Sessions,
    JobsAndSessions,
    Runners,
    Locks,
    Hooks,
    Presets,
    Settings,
    /// The values of the setting with this type.
    OfSetting(Kind),
    StatusFilters,
    Statuses,
    EventKinds,
    HookEvents,
    UsageSums,
}

impl Values {
    /// The values of an argument of the command `path`; `None` if they cannot be listed.
    pub(super) fn of(path: &str, arg: &Arg, words: &[OsString]) -> Option<Self> {
        let group = path.split(' ').next().unwrap_or_default();
        Some(match (group, arg.get_id().as_str()) {
            ("exclusive" | "store", _) => return None,
            ("sections", "name") if path == "sections add" => return None,
            (_, "task" | "tasks" | "depends_on") | ("tasks" | "msg", "after" | "on" | "not_on") => {
                Self::Tasks
            }
            (_, "section") | ("sections", "name" | "after" | "on" | "not_on") => Self::Sections,
            (_, "agent" | "to" | "from") | ("agents", "id") => Self::Agents,
            (_, "job") => Self::Jobs,
            (_, "session") => Self::Sessions,
            ("resume", "id") => Self::JobsAndSessions,
            ("runners", "id") => Self::Runners,
            ("runners", "preset") => Self::Presets,
            ("locks", "reference") => Self::Locks,
            ("hooks", "name") => Self::Hooks,
            ("hooks", "event") => Self::HookEvents,
            ("config", "key") => Self::Settings,
            ("config", "value") => Self::OfSetting(setting_before(words)?),
            ("tasks", "status") if path == "tasks update" => Self::Statuses,
            ("tasks", "status") => Self::StatusFilters,
            ("events", "kind") => Self::EventKinds,
            ("usage", "by") => Self::UsageSums,
            _ => return None,
        })
    }

    /// Values that are the same everywhere.
    pub(super) fn fixed(self) -> Option<Vec<Candidate>> {
        let words = |words: &[&str]| words.iter().map(|word| Candidate::new(*word, "")).collect();
        let statuses = || TaskStatus::ALL.iter().map(|status| status.as_str()).collect::<Vec<_>>();
        Some(match self {
            Self::Statuses => words(&statuses()),
            Self::StatusFilters => {
                let further = ["blocked", "ready", "lapsed", "active", "all"];
                words(&statuses().into_iter().chain(further).collect::<Vec<_>>())
            }
            Self::EventKinds => words(&EventKind::ALL.iter().map(|kind| kind.as_str()).collect::<Vec<_>>()),
            Self::HookEvents => {
                HookEvent::list().split(", ").map(|event| Candidate::new(event, "")).collect()
            }
            Self::UsageSums => words(&["task", "agent", "day"]),
            Self::Settings => {
                let keys = KEYS.iter().filter(|key| !key.name.contains('*'));
                keys.map(|key| Candidate::new(key.name, key.about)).collect()
            }
            Self::OfSetting(Kind::Flag) => words(&["true", "false"]),
            Self::OfSetting(Kind::Permissions) => words(&["edit", "work", "full"]),
            _ => return None,
        })
    }

    /// Values from the project that the command line refers to. `None` if no project may be read.
    pub(super) fn look_up(self, words: &[OsString], env: &Env, patience: Duration) -> Option<Vec<Candidate>> {
        let global = Global { project: project_in(words), ..Global::default() };
        let mut output = Output::sink();
        let printer = Printer::new(&mut output, &global, false);
        let shared = OnceCell::new();
        let app = App { env, shared: &shared, global: &global, printer, wait_handles: Vec::new() };
        let project = app.find().ok()?;
        let config = project.config.ok()?;
        match self {
            Self::Presets | Self::OfSetting(_) => return Some(presets(&config)),
            Self::Hooks => {
                let hook =
                    |hook: &tenure_core::config::Hook| Candidate::new(&hook.name, hook.event.to_string());
                return Some(config.hooks.iter().map(hook).collect());
            }
            _ => {}
        }
        crate::ownership::check(&project.paths, env).ok()?;
        crate::links::check(&project.paths).ok()?;
        let options = OpenOptions { patience, read_only: true, ..OpenOptions::new(env.clock.clone()) };
        let store = Source::of(&project.paths, &config, env, options).ok()?.find().ok()??;
        store.read(|view| self.stored(view, env)).ok()
    }

    fn stored(self, view: &dyn View, env: &Env) -> Result<Vec<Candidate>> {
        Ok(match self {
            Self::Tasks => {
                let policy =
                    Policy { ticket_life: Duration::ZERO, max_attempts: 1, max_rejections: 1, review: false };
                let viewer = Context::new(env.judge.as_ref(), env.ids.as_ref(), policy).viewer(view, None)?;
                let filter = TaskFilter { limit: TASKS, ..TaskFilter::default() };
                let tasks = view.list_tasks(&filter, &viewer)?.0;
                tasks.into_iter().map(|task| Candidate::new(task.key, task.title)).collect()
            }
            Self::Sections => {
                view.sections()?.into_iter().map(|section| Candidate::new(section.name, "")).collect()
            }
            Self::Agents => {
                let here = view.agents()?.into_iter().filter(|agent| agent.left_at.is_none());
                here.map(|agent| Candidate::new(agent.id, agent.name.unwrap_or_default())).collect()
            }
            Self::Jobs => jobs(view)?,
            Self::Sessions => sessions(view)?,
            Self::JobsAndSessions => [jobs(view)?, sessions(view)?].concat(),
            Self::Runners => {
                let runner = |runner: tenure_core::runner::Runner| {
                    Candidate::new(beginning(&runner.id), runner.status.as_str())
                };
                view.runners(RECENT)?.into_iter().map(runner).collect()
            }
            Self::Locks => {
                let mut locks = Vec::new();
                for lease in view.leases(&LeaseFilter::default())? {
                    let name = lease_view::resource_name(view, &lease.resource)?;
                    locks.push(Candidate::new(name, lease.holder.to_string()));
                }
                locks
            }
            _ => Vec::new(),
        })
    }
}

fn jobs(view: &dyn View) -> Result<Vec<Candidate>> {
    Ok(view.jobs(RECENT)?.0.into_iter().map(|job| Candidate::new(job.name, beginning(&job.id))).collect())
}

fn sessions(view: &dyn View) -> Result<Vec<Candidate>> {
    let session = |session: tenure_core::session::Session| {
        Candidate::new(beginning(&session.id), session.options.preset)
    };
    Ok(view.sessions(RECENT)?.0.into_iter().map(session).collect())
}

fn beginning(id: &str) -> &str {
    id.get(..8).unwrap_or(id)
}

fn presets(config: &Config) -> Vec<Candidate> {
    tenure_runner::preset::names(&config.presets).into_iter().map(|name| Candidate::new(name, "")).collect()
}

/// The value of `-C` or `--project` on the line.
fn project_in(words: &[OsString]) -> Option<PathBuf> {
    words.iter().enumerate().find_map(|(at, word)| {
        let word = word.to_str()?;
        match word {
            "-C" | "--project" => words.get(at + 1).map(PathBuf::from),
            _ => word.strip_prefix("--project=").map(PathBuf::from),
        }
    })
}

/// The type of the setting that `config set` names on the line, if its values can be listed.
fn setting_before(words: &[OsString]) -> Option<Kind> {
    let name = words.iter().skip_while(|word| *word != "set").nth(1)?.to_str()?;
    let key = KEYS.iter().find(|key| key.name == name)?;
    let is_preset = ["runners.preset", "review.preset"].contains(&key.name);
    (is_preset || matches!(key.kind, Kind::Flag | Kind::Permissions)).then_some(key.kind)
}
