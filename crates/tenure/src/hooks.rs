//! Telling hooks what a command has done.
//!
//! Guarantees: hooks hear of it after the commit, and nothing they do changes the command's answer or exit code; a hook
//! that failed is a warning and a line in `.tenure/logs/hooks.log`. With no hooks configured, with `--no-hooks` and in a dry
//! run, nothing is read, made or started.

use std::os::fd::AsFd;
use std::path::Path;

use serde_json::{Value, json};
use tenure_core::config::{Hook, Project};
use tenure_runner::hooks::{Ears, Happening, Helper, HookLog, Setting, fire};

use crate::app::{App, Open};
use crate::env::Env;
use crate::interrupt::Interrupts;
use crate::project::ProjectPaths;

/// What a command asks about its change, inside of its transaction.
pub(crate) fn ears<'o>(app: &App<'o>, open: &'o Open<'_>) -> Ears<'o> {
    let is_deaf = app.global.no_hooks || app.global.dry_run;
    let hooks: &[Hook] = if is_deaf { &[] } else { &open.config.hooks };
    Ears::new(hooks, app.env.judge.as_ref())
}

/// Runs the hooks that listen for what happened.
pub(crate) fn tell(app: &mut App<'_>, open: &Open<'_>, news: &[Happening]) {
    if !news.is_empty() {
        tell_to(app, open, &open.config.hooks, news);
    }
}

/// The same while something is held that nobody renews yet: no hook is waited for, so that none can outlast the lease.
pub(crate) fn tell_meanwhile(app: &mut App<'_>, open: &Open<'_>, news: &[Happening]) {
    if !news.is_empty() {
        let hooks = open.config.hooks.iter().map(|hook| Hook { run_async: true, ..hook.clone() });
        tell_to(app, open, &hooks.collect::<Vec<_>>(), news);
    }
}

fn tell_to(app: &mut App<'_>, open: &Open<'_>, hooks: &[Hook], news: &[Happening]) {
    let waits = hooks.iter().any(|hook| !hook.run_async && news.iter().any(|news| news.event == hook.event));
    // Ctrl+C ends a hook that is waited for; what was committed is committed.
    let interrupts = if waits { Interrupts::listen().ok() } else { None };
    let around = Around::of(open);
    let setting = around.setting(app, open, interrupts.as_ref());
    for outcome in fire(hooks, news, &setting, &helper()) {
        if let Some(warning) = outcome.warning() {
            app.printer.warn(&warning);
        }
    }
}

/// Who outlives us and delivers. Without its own binary a hook cannot be handed over, and says so.
pub(crate) fn helper() -> Helper {
    Helper { program: crate::own_binary().unwrap_or_default(), args: vec!["hooks".into(), "deliver".into()] }
}

/// What hooks are told of the project, and where they are written down.
#[derive(Debug)]
pub(crate) struct Around {
    project: Value,
    pub(crate) log: HookLog,
}

impl Around {
    pub(crate) fn of(open: &Open<'_>) -> Self {
        Self::at(&open.paths.root, &open.config.project)
    }

    pub(crate) fn at(root: &Path, project: &Project) -> Self {
        Self {
            project: json!({
                "id": project.id.map(|id| id.to_string()),
                "name": project.name,
                "path": root.to_string_lossy(),
            }),
            log: HookLog::in_folder(ProjectPaths::new(root).folder().join("logs")),
        }
    }

    /// For somebody who waits for no hook.
    pub(crate) fn setting_for<'s>(&'s self, root: &'s Path, env: &'s Env) -> Setting<'s> {
        Setting {
            root,
            project: &self.project,
            vars: &env.vars,
            clock: env.clock.as_ref(),
            log: &self.log,
            stop: None,
        }
    }

    pub(crate) fn setting<'s>(
        &'s self,
        app: &App<'s>,
        open: &'s Open<'_>,
        interrupts: Option<&'s Interrupts>,
    ) -> Setting<'s> {
        Setting { stop: interrupts.map(AsFd::as_fd), ..self.setting_for(&open.paths.root, app.env) }
    }
}
