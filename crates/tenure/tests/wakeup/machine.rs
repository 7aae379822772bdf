//! One user on one machine: a home, a pretend agent, and as many projects as a test wants.

use std::collections::BTreeMap;
use std::fs::File;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use rustix::process::Signal;
use serde_json::Value;
use tempfile::TempDir;

use crate::processes;
use crate::world::{Answer, Running, tenure, until};

/// A `crontab` that keeps its text in a file beside it and otherwise behaves like Debian's. Nobody's real one is ever read.
const CRONTAB: &str = r#"#!/bin/sh
file=$(dirname "$0")/../crontab
case $1 in
-l) [ -e "$file" ] || { echo "no crontab for tester" >&2; exit 1; }; cat "$file" ;;
-r) rm "$file" ;;
-) [ ! -e "$file.readonly" ] || { echo "$file: Permission denied" >&2; exit 1; }; cat >"$file" ;;
*) exit 2 ;;
esac
"#;

#[derive(Debug)]
pub(crate) struct Machine {
    _folder: TempDir,
    at: PathBuf,
}

/// A runner is stale after three seconds without a heartbeat; everything else is patient.
pub(crate) const USUAL: &str = "runners: {preset: pretend, killGrace: 300ms, heartbeatInterval: 500ms, staleTimeout: 3s}\n\
     locking: {pollInterval: 500ms, taskTimeout: 10s, sectionTimeout: 10s}\ntasks: {maxAttempts: 1000}\n";

/// The same, with ten minutes between two heartbeats.
pub(crate) fn slow() -> String {
    USUAL
        .replace("heartbeatInterval: 500ms, staleTimeout: 3s", "heartbeatInterval: 10m, staleTimeout: 30m")
        .replace("taskTimeout: 10s", "taskTimeout: 60m")
}

impl Machine {
    pub(crate) fn new() -> Self {
        Self::with(USUAL)
    }

    pub(crate) fn with(config: &str) -> Self {
        let folder = tempfile::Builder::new().prefix("tnw").tempdir().unwrap();
        let at = folder.path().canonicalize().unwrap();
        for name in ["h/.tenure", "r", "agent", "bin", "out", "projects"] {
            std::fs::create_dir_all(at.join(name)).unwrap();
        }
        std::fs::set_permissions(at.join("h/.tenure"), std::fs::Permissions::from_mode(0o700)).unwrap();
        let script = at.join("agent/pretend-agent.sh");
        program(&script, include_str!("../runners/pretend-agent.sh"));
        program(&at.join("bin/crontab"), CRONTAB);
        let (script, shared) = (script.display().to_string(), at.join("agent"));
        let preset = format!(
            "presets:\n  pretend: {{command: ['{script}'], env: {{PRETEND: '{}'}}}}\n",
            shared.display()
        );
        std::fs::write(at.join("h/.tenure/config.yaml"), format!("{preset}{config}")).unwrap();
        Self { _folder: folder, at }
    }

    pub(crate) fn path(&self, below: &str) -> PathBuf {
        self.at.join(below)
    }

    pub(crate) fn search_path(&self) -> String {
        format!("{}:{}", self.path("bin").display(), std::env::var("PATH").unwrap_or_default())
    }

    pub(crate) fn home(&self) -> PathBuf {
        self.path("h/.tenure")
    }

    /// Makes a project, in `projects/`.
    pub(crate) fn project(&self, name: &str) -> Project<'_> {
        let root = self.at.join("projects").join(name);
        std::fs::create_dir_all(&root).unwrap();
        let project = Project { machine: self, root };
        project.ok(&["init", "--name", name]);
        project
    }

    pub(crate) fn command(&self, args: &[&str]) -> Command {
        let mut command = tenure(args, &self.at);
        command.env("PATH", self.search_path()).env("TENURE_HOME", self.home()).current_dir(&self.at);
        command
    }

    pub(crate) fn spawn(&self, args: &[&str]) -> Running {
        self.start(self.command(args))
    }

    pub(crate) fn start(&self, command: Command) -> Running {
        Running::start(command, &self.path("out"))
    }

    pub(crate) fn run(&self, args: &[&str]) -> Answer {
        self.spawn(args).end()
    }

    /// Runs with `--json` and gives `data`; anything but success fails the test.
    pub(crate) fn ok(&self, args: &[&str]) -> Value {
        self.run(&[&["--json"], args].concat()).data()
    }

    /// One wake-up: what it decided for each project, by the name of its folder, and why.
    pub(crate) fn wake_up(&self, more: &[&str]) -> BTreeMap<String, (String, String)> {
        let mut args = vec!["--json", "runners", "wakeup"];
        args.extend(more);
        let answer = self.run(&args);
        assert_eq!(answer.json()["success"], true, "{answer:?}");
        decisions(&answer.json()["data"])
    }

    pub(crate) fn wakeup_log(&self) -> String {
        std::fs::read_to_string(self.home().join("runners/logs/wakeup.log")).unwrap_or_default()
    }

    /// Lets agents go on that wait for `name`.
    pub(crate) fn give(&self, name: &str) {
        std::fs::write(self.path("agent").join(name), "").unwrap();
    }

    pub(crate) fn wait_for(&self, name: &str) {
        let path = self.path("agent").join(name);
        until(&format!("an agent has marked {name}"), || path.exists());
    }

    /// Living processes of agents, wherever they have gone.
    pub(crate) fn agents(&self) -> Vec<u32> {
        processes::with(&format!("PRETEND={}", self.path("agent").display()))
    }

    /// Living processes of the program itself.
    pub(crate) fn tenures(&self) -> Vec<u32> {
        let ours = processes::with(&format!("TENURE_HOME={}", self.home().display()));
        let agents = self.agents();
        ours.into_iter().filter(|pid| !agents.contains(pid)).collect()
    }
}

pub(crate) fn program(path: &Path, text: &str) {
    std::fs::write(path, text).unwrap();
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o755)).unwrap();
}

impl Drop for Machine {
    fn drop(&mut self) {
        processes::end_all(&format!("TENURE_HOME={}", self.home().display()));
        processes::end_all(&format!("PRETEND={}", self.path("agent").display()));
    }
}

pub(crate) fn decisions(data: &Value) -> BTreeMap<String, (String, String)> {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let name = |path: &Value| Path::new(&text(path)).file_name().unwrap().to_string_lossy().into_owned();
    let results = data["results"].as_array().unwrap_or_else(|| panic!("{data}"));
    results.iter().map(|r| (name(&r["project"]), (text(&r["decision"]), text(&r["reason"])))).collect()
}

#[derive(Debug)]
pub(crate) struct Project<'m> {
    pub(crate) machine: &'m Machine,
    pub(crate) root: PathBuf,
}

impl Project<'_> {
    pub(crate) fn command(&self, args: &[&str]) -> Command {
        let mut command = self.machine.command(args);
        command.current_dir(&self.root);
        command
    }

    pub(crate) fn run(&self, args: &[&str]) -> Answer {
        self.machine.start(self.command(args)).end()
    }

    pub(crate) fn ok(&self, args: &[&str]) -> Value {
        self.run(&[&["--json"], args].concat()).data()
    }

    /// A task whose agent takes these steps.
    pub(crate) fn task(&self, key: &str, steps: &[&str]) {
        let text: Vec<String> = steps.iter().map(|step| format!("do: {step}")).collect();
        self.ok(&["tasks", "add", &format!("Task {key}"), "--id", key, "-d", &text.join("\n")]);
    }

    pub(crate) fn status(&self, key: &str) -> String {
        self.ok(&["tasks", "show", key])["task"]["status"].as_str().unwrap().to_owned()
    }

    pub(crate) fn wait_until(&self, key: &str, status: &str) {
        until(&format!("{key} is {status}"), || self.status(key) == status);
    }

    /// A detached runner; its pid.
    pub(crate) fn runner(&self, more: &[&str]) -> u32 {
        let mut args = vec!["runners", "start"];
        args.extend(more);
        u32::try_from(self.ok(&args)["runner"]["pid"].as_u64().unwrap()).unwrap()
    }

    /// Living runners, as the project's own store has them.
    pub(crate) fn runners(&self) -> Vec<Value> {
        self.ok(&["status"])["runners"].as_array().unwrap().clone()
    }

    pub(crate) fn database(&self) -> PathBuf {
        self.root.join(".tenure/tenure.db")
    }

    /// Changes rows behind everybody's back.
    pub(crate) fn sql(&self, sql: &str) {
        let conn = rusqlite::Connection::open(self.database()).unwrap();
        conn.busy_timeout(std::time::Duration::from_secs(30)).unwrap();
        conn.execute_batch(sql).unwrap();
    }

    /// How often a task was moved to `status`, as the feed has it.
    pub(crate) fn moves(&self, task: &str, status: &str) -> usize {
        let id = self.ok(&["tasks", "show", task])["task"]["id"].clone();
        let events = self.ok(&["events", "--limit", "1000000"])["events"].as_array().unwrap().clone();
        events.iter().filter(|event| event["taskId"] == id && event["to"] == status).count()
    }

    /// Stops a process while it is not writing: inside the gate it would keep everybody from it.
    pub(crate) fn stop_between_writes(&self, pid: u32) {
        let queue = lock(&self.database().with_extension("queue.lock"));
        let gate = self.hold_writers();
        processes::signal(pid, Signal::STOP);
        until("it has stopped", || processes::state(pid) == Some('T'));
        drop((gate, queue));
    }

    /// Closes the gate before the store: nobody can write until this is dropped.
    pub(crate) fn hold_writers(&self) -> File {
        lock(&self.database().with_extension("gate.lock"))
    }
}

fn lock(path: &Path) -> File {
    let file = File::options().read(true).write(true).create(true).truncate(false).open(path).unwrap();
    file.lock().unwrap();
    file
}
