//! What the runner needs from the program: the agent's command and environment, the prompt, the directory and hooks.

use std::ffi::OsString;
use std::path::PathBuf;
use std::process::Command;

use tenure_core::config::{Config, Hook, HookEvent, Lookup, Origin};
use tenure_core::id::TaskId;
use tenure_core::kernel;
use tenure_core::lease::Resource;
use tenure_core::runner::Runner;
use tenure_core::store::{EventFilter, LeaseFilter, Store};
use tenure_core::task::{Task, TaskStatus};
use tenure_core::{Error, Result, wire};
use tenure_runner::agents::Place;
use tenure_runner::daemon::log::DaemonLog;
use tenure_runner::daemon::{AgentPreset, Beginning, Purpose, ResumeReason, RunnerCallbacks, RunnerEvent};
use tenure_runner::hooks::{HookContext, HookFilter, fire};
use tenure_runner::preset::{
    self, AgentCommand, Conversation, PresetSource, SESSION_MARKERS, UnusablePreset,
};
use tenure_runner::prompt::{self, Brief, Role};
use tenure_runner::spec_section::spec_text;
use tenure_sqlite::{Directory, KnownRunner};

use super::review_diff;
use crate::commands::start_attempt;
use crate::env::Env;
use crate::hooks::{self, HookProject};
use crate::project::ProjectPaths;
use crate::trust::{self, Examined};

pub(super) struct RunnerHost<'a> {
    pub(super) env: &'a Env,
    pub(super) config: &'a Config,
    pub(super) root: PathBuf,
    /// The folder in which agents are started.
    pub(super) workdir: PathBuf,
    pub(super) open: &'a (dyn Fn() -> Result<Box<dyn Store>> + Sync),
    /// Empty with `--no-hooks`.
    pub(super) hooks: Vec<Hook>,
    pub(super) log: &'a DaemonLog,
    /// What was trusted when the runner started.
    pub(super) trusted: &'a Examined,
}

impl RunnerHost<'_> {
    fn resolve(&self, name: &str) -> Result<AgentCommand> {
        preset::resolve(name, &self.presets()).map_err(|e| Error::Config(e.to_string()))
    }

    fn presets(&self) -> PresetSource<'_> {
        let path = self.env.vars.get(&OsString::from("PATH")).map(OsString::as_os_str);
        PresetSource::of(self.config, &self.root, path)
    }

    fn diff_since(&self, task: &Task) -> Option<String> {
        let store = (self.open)().ok()?;
        let first = store
            .read(|view| {
                view.leases(&LeaseFilter {
                    resource: Some(Resource::task(&task.id)),
                    include_ended: true,
                    limit: Some(1),
                    ..LeaseFilter::default()
                })
            })
            .ok()?
            .into_iter()
            .next()?;
        review_diff::since(&self.workdir, first.acquired_at)
    }

    fn hook_contexts(&self, what: RunnerEvent<'_>) -> Vec<HookContext> {
        let now = self.env.clock.now();
        let judge = self.env.judge.as_ref();
        let of_runner = |event, runner: &Runner| {
            vec![HookContext::new(event, now).with("runner", wire::runner(runner, None))]
        };
        match what {
            RunnerEvent::RunnerStarted(runner) => of_runner(HookEvent::RunnerStarted, runner),
            RunnerEvent::RunnerStopped(runner) => of_runner(HookEvent::RunnerStopped, runner),
            RunnerEvent::RunnerFailed(runner) => of_runner(HookEvent::RunnerFailed, runner),
            RunnerEvent::LeaseLost(task) => {
                vec![HookContext::new(HookEvent::LeaseLost, now).with("task", wire::task(task, now, judge))]
            }
            RunnerEvent::TaskEnded(task) => {
                let hook_filter = HookFilter::new(&self.hooks, judge);
                let read = |store: Box<dyn Store>| {
                    store.read(|view| hook_filter.changed(view, TaskStatus::InProgress, task))
                };
                (self.open)().and_then(read).unwrap_or_default()
            }
        }
    }

    /// `PATH` with the folder of this binary first, so that the agent runs the same tenure.
    fn path(&self) -> Option<OsString> {
        let own = crate::own_binary().ok()?.parent()?.to_owned();
        let rest = self.env.vars.get(&OsString::from("PATH")).cloned().unwrap_or_default();
        std::env::join_paths(std::iter::once(own).chain(std::env::split_paths(&rest))).ok()
    }
}

impl RunnerCallbacks for RunnerHost<'_> {
    /// The runner keeps the configuration that it was started with, but an agent may change the files that it names.
    fn check(&self) -> Result<()> {
        if self.trusted.files_are_unchanged(self.env) {
            return Ok(());
        }
        let root = self.root.clone();
        let message = "a file that the trusted settings name has changed, so no agent is started".to_owned();
        Err(Error::Untrusted { message, root })
    }

    fn preset(&self, name: &str) -> Result<AgentPreset> {
        let command = self.resolve(name)?;
        let require_report = self.config.runners.require_report.unwrap_or(command.agent.is_known());
        let can_begin = command.can_begin();
        Ok(AgentPreset { agent: command.agent, scope: command.scope(), require_report, can_begin })
    }

    fn unusable(&self, preset: &str) -> Option<Box<UnusablePreset>> {
        preset::resolve_or_park(preset, &self.presets()).err()
    }

    fn agent(&self, name: &str, conversation: Option<Conversation<'_>>) -> Result<Command> {
        let agent = self.resolve(name)?;
        let own =
            crate::own_binary().map_err(|e| Error::General(format!("cannot find the tenure binary: {e}")))?;
        let mut command = Command::new(&own);
        let place = Place { root: self.root.clone(), workdir: self.workdir.clone(), tenure: own };
        let args = agent.args_at(&place, conversation);
        command.arg("start-attempt").arg("--").arg(&agent.program).args(args);
        command.env_clear();
        for (name, value) in &self.env.vars {
            let text = name.to_string_lossy();
            let ours = [
                "TENURE_JSON",
                "TENURE_NO_WAIT",
                "TENURE_AGENT",
                "TENURE_LEASE",
                "TENURE_FENCE",
                "TENURE_ATTEMPT",
                "TENURE_REPORT",
                trust::VARIABLE,
            ];
            if !ours.contains(&text.as_ref()) && !SESSION_MARKERS.contains(&text.as_ref()) {
                command.env(name, value);
            }
        }
        if let Some(path) = self.path() {
            command.env("PATH", path);
        }
        // The agent's commands use the same store as the runner, even if the project's file changes meanwhile.
        if let Some(url) = &self.config.store_url {
            command.env("TENURE_STORE", url);
        }
        command.envs(&agent.env);
        start_attempt::pass_store(&mut command, &ProjectPaths::new(&self.root), self.config);
        Ok(command)
    }

    /// Known only for a built-in command: a configured one may read its conversations from elsewhere.
    fn has_conversation(&self, preset: &str, conversation: &str) -> Option<bool> {
        let agent = self.resolve(preset).ok().filter(|agent| agent.granted.is_some())?;
        let variable = |name: &str| {
            let own = agent.env.get(name).map(OsString::from);
            own.or_else(|| self.env.vars.get(&OsString::from(name)).cloned()).map(PathBuf::from)
        };
        agent.agent.has_conversation(&variable, conversation)
    }

    fn prompt(&self, task: &Task, purpose: Purpose, beginning: &Beginning) -> Result<String> {
        match beginning {
            Beginning::Resumed(ResumeReason::Unreported) => return Ok(prompt::ask(&task.key)),
            Beginning::Resumed(ResumeReason::Interrupted) | Beginning::Fresh | Beginning::Lost(_) => {}
        }
        let store = (self.open)()?;
        let id: &TaskId = &task.id;
        let (messages, events) = store.read(|view| {
            // The messages that the claim has marked as shown, and those that were sent since.
            let messages = match &task.lease {
                Some(lease) => kernel::notes(view, task, &lease.holder)?.messages,
                None => Vec::new(),
            };
            let filter =
                EventFilter { task: Some(id.clone()), last: true, limit: 500, ..EventFilter::default() };
            Ok((messages, view.events(&filter)?))
        })?;
        if matches!(beginning, Beginning::Resumed(_)) {
            return Ok(prompt::go_on(&task.key, &messages));
        }
        let spec = task.source_file.as_deref().map(|source| spec_text(&self.root, source));
        let setbacks = prompt::setbacks(&events);
        let diff = if purpose == Purpose::Review { self.diff_since(task) } else { None };
        let role = match purpose {
            Purpose::Work => Role::Work,
            Purpose::Review => Role::Review { diff: diff.as_deref() },
        };
        let template = match purpose {
            Purpose::Work => {
                let configured = self.config.runners.prompt_template.as_deref();
                // The user's own configuration may name any file.
                let of_project = matches!(
                    self.config.get("runners.promptTemplate"),
                    Ok(Lookup::Setting(entry)) if matches!(entry.origin, Origin::Project { .. })
                );
                prompt::template(configured, &self.root, of_project)
                    .map_err(|e| Error::Config(e.to_string()))?
            }
            Purpose::Review => prompt::REVIEW.into(),
        };
        let brief = Brief {
            task,
            spec: spec.as_ref().map(|found| found.as_ref()),
            messages: &messages,
            setbacks: &setbacks,
            role,
        };
        let prompt = prompt::render(&template, &brief).map_err(|e| Error::Config(e.to_string()))?;
        Ok(match beginning {
            Beginning::Lost(message) => format!("{}{prompt}", prompt::recap(message.as_deref())),
            _ => prompt,
        })
    }

    /// Best effort: a home that cannot be written does not stop the runner.
    fn announce(&self, runner: &Runner, section: Option<&str>) {
        let Some(home) = self.env.home() else { return };
        if let Ok(directory) = Directory::open(&home, self.env.clock.clone()) {
            let known = KnownRunner { runner: runner.clone(), section_name: section.map(str::to_owned) };
            let _ = directory.save_runner(&known);
        }
    }

    /// Does not wait for hooks: one that hangs must not delay the runner.
    fn notify(&self, what: RunnerEvent<'_>) {
        if self.hooks.is_empty() {
            return;
        }
        let mut hooks = self.hooks.clone();
        if !self.trusted.files_are_unchanged(self.env) {
            let of_project = self.trusted.document.hooks();
            hooks.retain(|hook| !of_project.iter().any(|other| other.name == hook.name));
            self.log.line(&hooks::not_run(&ProjectPaths::new(&self.root)));
        }
        let project = HookProject::at(&self.root, &self.config.project);
        let environment = project.environment_without_stop(&self.root, self.env);
        for outcome in fire(&hooks, &self.hook_contexts(what), &environment, &hooks::helper()) {
            if let Some(warning) = outcome.warning() {
                self.log.line(&warning);
            }
        }
    }
}
