//! Hooks with real processes and a real server.

#![expect(clippy::unwrap_used, reason = "a test stops where it fails")]

mod scripts;
mod server;
mod webhooks;

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use tenure_core::config::{Hook, HookAction, HookEvent};
use tenure_core::{SystemClock, Timestamp};
use tenure_runner::hooks::{HookContext, HookEnvironment, HookLog, Outcome, run};

/// A project with scripts, and the environment that its hooks see.
struct Project {
    folder: tempfile::TempDir,
    told: Value,
    vars: BTreeMap<OsString, OsString>,
}

impl Project {
    fn new() -> Self {
        let path = std::env::var_os("PATH").unwrap();
        Self {
            folder: tempfile::tempdir().unwrap(),
            told: json!({"name": "sample"}),
            vars: BTreeMap::from([("PATH".into(), path)]),
        }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn var(mut self, name: &str, value: &str) -> Self {
        self.vars.insert(name.into(), value.into());
        self
    }

    /// A hook that runs this shell script.
    fn script(&self, text: &str, args: &[&str]) -> Hook {
        let path = self.path("hook.sh");
        std::fs::write(&path, format!("#!/bin/sh\n{text}\n")).unwrap();
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
        let args = args.iter().map(|&arg| arg.to_owned()).collect();
        hook(HookAction::Script { command: "./hook.sh".into(), args })
    }

    fn log(&self) -> HookLog {
        HookLog::in_folder(self.path("logs"))
    }

    fn log_text(&self) -> String {
        std::fs::read_to_string(self.path("logs/hooks.log")).unwrap()
    }

    fn run(&self, hook: &Hook, context: &HookContext) -> Outcome {
        run(hook, context, &self.environment(&self.log()))
    }

    fn environment<'a>(&'a self, log: &'a HookLog) -> HookEnvironment<'a> {
        HookEnvironment {
            root: self.folder.path(),
            project: &self.told,
            vars: &self.vars,
            clock: &SystemClock,
            log,
            stop: None,
        }
    }

    fn read(&self, name: &str) -> String {
        std::fs::read_to_string(self.path(name)).unwrap_or_default()
    }
}

fn hook(action: HookAction) -> Hook {
    Hook {
        name: "sample".into(),
        event: HookEvent::TaskCompleted,
        action,
        timeout: Duration::from_secs(20),
        run_async: false,
        retry: 0,
    }
}

fn titled(title: &str) -> HookContext {
    HookContext::new(HookEvent::TaskCompleted, Timestamp::from_millis(0))
        .with("task", json!({"key": "F001", "title": title, "section": null}))
}

fn wait_for(what: &str, mut happened: impl FnMut() -> bool) {
    let end = Instant::now() + Duration::from_secs(20);
    while !happened() {
        assert!(Instant::now() < end, "waited too long for {what}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// Whether a process still runs: a zombie does not.
fn is_running(pid: &str) -> bool {
    let state = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    state.rsplit_once(") ").is_some_and(|(_, rest)| !rest.starts_with(['Z', 'X']))
}
