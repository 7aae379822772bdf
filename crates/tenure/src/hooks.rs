//! Runs the hooks for the events of a command.
//!
//! Guarantees: hooks run after the commit, and nothing they do changes the command's answer or exit code. A failed hook
//! causes a warning and a line in `.tenure/logs/hooks.log`. Without configured hooks, with `--no-hooks` and in a dry run,
//! nothing is read, created or started.

use std::path::Path;

use serde_json::{Value, json};
use tenure_core::config::{Hook, Project};
use tenure_core::kernel::recording_rejection;
use tenure_core::store::Tx;
use tenure_runner::hooks::{Helper, HookContext, HookEnvironment, HookFilter, HookLog, fire};

use crate::app::{App, Open};
use crate::env::Env;
use crate::interrupt::Interrupts;
use crate::layers::ConfigReader;
use crate::project::ProjectPaths;
use crate::sys;

/// Selects the events of a change, inside the transaction of the change.
pub(crate) fn filter<'o>(app: &App<'o>, open: &'o Open<'_>) -> HookFilter<'o> {
    if app.global.no_hooks || app.global.dry_run {
        return HookFilter::new(&[], app.env.judge.as_ref());
    }
    HookFilter::new(&open.config.hooks, app.env.judge.as_ref()).with_ignored(&open.config.ignored_hooks)
}

/// Makes a change in one transaction and runs the hooks for the events that `body` returns with its result.
pub(crate) fn write_and_deliver<T>(
    app: &mut App<'_>,
    open: &Open<'_>,
    mut body: impl FnMut(&mut dyn Tx, &HookFilter<'_>) -> tenure_core::Result<(T, Vec<HookContext>)>,
) -> tenure_core::Result<T> {
    let hook_filter = filter(app, open);
    let written = open.write(|tx| body(tx, &hook_filter));
    let (result, hook_contexts) = recording_rejection(&*open.store, written)?;
    deliver(app, open, &hook_contexts);
    Ok(result)
}

/// Runs the hooks that listen to these events.
pub(crate) fn deliver(app: &mut App<'_>, open: &Open<'_>, contexts: &[HookContext]) {
    if !contexts.is_empty() {
        deliver_to(app, open, &open.config.hooks, contexts);
    }
}

/// Like [`deliver`], but waits for no hook. For a caller that holds a lease which is not renewed yet and which a slow hook
/// could outlast.
pub(crate) fn deliver_async(app: &mut App<'_>, open: &Open<'_>, contexts: &[HookContext]) {
    if !contexts.is_empty() {
        let hooks = open.config.hooks.iter().map(|hook| Hook { run_async: true, ..hook.clone() });
        deliver_to(app, open, &hooks.collect::<Vec<_>>(), contexts);
    }
}

fn deliver_to(app: &mut App<'_>, open: &Open<'_>, hooks: &[Hook], contexts: &[HookContext]) {
    let happened = |hook: &Hook| contexts.iter().any(|context| context.event == hook.event);
    let mut hooks: Vec<Hook> = hooks.iter().filter(|hook| happened(hook)).cloned().collect();
    let ignored = open.config.ignored_hooks.iter().any(happened);
    // A server runs for a long time, and the configuration or a script that it names may have changed since
    // it was opened.
    let changed = !hooks.is_empty() && !keep_trusted(&mut hooks, app.config_reader(), &open.paths);
    if ignored || changed {
        app.printer.warn(&not_run(&open.paths));
    }
    let hooks = hooks.as_slice();
    let waits = hooks
        .iter()
        .any(|hook| !hook.run_async && contexts.iter().any(|context| context.event == hook.event));
    // Ctrl+C stops a hook that the command waits for. The change is already committed.
    let interrupts = if waits { Interrupts::listen().ok() } else { None };
    let project = HookProject::of(open);
    let environment = project.environment(app, open, interrupts.as_ref());
    for outcome in fire(hooks, contexts, &environment, &helper()) {
        if let Some(warning) = outcome.warning() {
            app.printer.warn(&warning);
        }
    }
}

/// Keeps the hooks that are configured and trusted at this moment; false if one was dropped.
pub(crate) fn keep_trusted(hooks: &mut Vec<Hook>, reader: ConfigReader<'_>, paths: &ProjectPaths) -> bool {
    let before = hooks.len();
    // A file that is invalid at this moment counts as having no hooks.
    let current = reader.read(Some(paths), None).map(|config| config.hooks).unwrap_or_default();
    let same = |one: &Hook, other: &Hook| *one == Hook { run_async: one.run_async, ..other.clone() };
    hooks.retain(|hook| current.iter().any(|other| same(hook, other)));
    hooks.len() == before
}

/// Says that a hook would have run.
pub(crate) fn not_run(paths: &ProjectPaths) -> String {
    let root = crate::shell_quote::quote(&paths.root.to_string_lossy());
    format!("hooks of this project did not run, because it is not trusted; see `tenure trust -C {root}`")
}

/// The process that delivers `async` hooks. If the path of this binary is unknown, the hook fails with that message.
pub(crate) fn helper() -> Helper {
    Helper { program: crate::own_binary().unwrap_or_default(), args: vec!["hooks".into(), "deliver".into()] }
}

/// The `project` of a hook's payload, and the log of the project's hooks.
#[derive(Debug)]
pub(crate) struct HookProject {
    payload: Value,
    pub(crate) log: HookLog,
}

impl HookProject {
    pub(crate) fn of(open: &Open<'_>) -> Self {
        Self::at(&open.paths.root, &open.config.project)
    }

    pub(crate) fn at(root: &Path, project: &Project) -> Self {
        Self {
            payload: json!({
                "id": project.id.map(|id| id.to_string()),
                "name": project.name,
                "path": root.to_string_lossy(),
            }),
            log: HookLog::in_folder(ProjectPaths::new(root).logs()),
        }
    }

    /// For a caller that waits for no hook, so that there is nothing to interrupt.
    pub(crate) fn environment_without_stop<'s>(
        &'s self,
        root: &'s Path,
        env: &'s Env,
    ) -> HookEnvironment<'s> {
        sys::resolve_names_without_modules();
        HookEnvironment {
            root,
            project: &self.payload,
            vars: &env.vars,
            clock: env.clock.as_ref(),
            log: &self.log,
            stop: None,
        }
    }

    pub(crate) fn environment<'s>(
        &'s self,
        app: &App<'s>,
        open: &'s Open<'_>,
        interrupts: Option<&'s Interrupts>,
    ) -> HookEnvironment<'s> {
        let environment = self.environment_without_stop(&open.paths.root, app.env);
        HookEnvironment { stop: interrupts.map(Interrupts::fd), ..environment }
    }
}
