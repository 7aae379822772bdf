//! A project with one task, `T`, and helpers for attempts at it.

use std::ops::Deref;
use std::path::PathBuf;
use std::process::{Command, Output, Stdio};
use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;
use tenure_testkit::cli::{self, Running, Sandbox, StoreKind, Suite, until_within};

const SUITE: Suite = Suite { binary: env!("CARGO_BIN_EXE_tenure"), store: StoreKind::Sqlite };

/// Less than the default heartbeat interval, so an effect within this time was not caused by a heartbeat.
const LIMIT: Duration = Duration::from_secs(25);

pub(crate) fn wait_for(what: &str, happened: impl FnMut() -> bool) {
    until_within(LIMIT, what, happened);
}

/// In a separate sandbox, with `tenure` on `PATH`.
pub(crate) struct Project(cli::Project);

impl Deref for Project {
    type Target = cli::Project;

    fn deref(&self) -> &cli::Project {
        &self.0
    }
}

impl Project {
    /// The programs that a command uses are those of the system, whose environment macOS does not show.
    pub(crate) fn new() -> Self {
        Self::in_sandbox(Sandbox::new(SUITE))
    }

    /// The programs that a command uses are its own, as those of coding agents are.
    pub(crate) fn with_own_programs() -> Self {
        let sandbox = Sandbox::new(SUITE);
        sandbox.put_own_programs_on_path(&["sh", "sleep", "tmux"]);
        Self::in_sandbox(sandbox)
    }

    fn in_sandbox(sandbox: Arc<Sandbox>) -> Self {
        sandbox.put_tenure_on_path();
        let project = Self(sandbox.project("p"));
        project.ok(&["task", "add", "the task", "--id", "T"]);
        project
    }

    /// A path below the project's folder.
    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.root().join(name)
    }

    /// A command in this project without a terminal. Its pid is tenure's: `setsid` forks only for a group leader.
    pub(crate) fn command(&self, args: &[&str]) -> Command {
        let mut command = Command::new("setsid");
        command.arg(SUITE.binary).args(args);
        self.surround(&mut command);
        command
    }

    pub(crate) fn shell(&self, script: &str) -> Command {
        let mut command = Command::new("setsid");
        command.args(["sh", "-c", script]);
        self.surround(&mut command);
        command
    }

    pub(crate) fn run(&self, args: &[&str]) -> Output {
        finish(self.command(args))
    }

    pub(crate) fn code(&self, args: &[&str]) -> i32 {
        self.run(args).status.code().unwrap()
    }

    pub(crate) fn ok(&self, args: &[&str]) {
        let output = self.run(args);
        assert!(output.status.success(), "{args:?}: {}", String::from_utf8_lossy(&output.stderr));
    }

    pub(crate) fn json(&self, args: &[&str]) -> Value {
        let mut command = self.command(args);
        command.env("TENURE_JSON", "1");
        let output = finish(command);
        serde_json::from_slice(&output.stdout)
            .unwrap_or_else(|e| panic!("{args:?}: {e}: {}", String::from_utf8_lossy(&output.stdout)))
    }

    pub(crate) fn task(&self) -> Value {
        self.json(&["task", "show", "T"])["data"]["task"].clone()
    }

    pub(crate) fn status(&self) -> String {
        self.task()["status"].as_str().unwrap().to_owned()
    }

    pub(crate) fn attempts(&self) -> u64 {
        self.task()["attempts"].as_u64().unwrap()
    }

    /// The open lease, or null.
    pub(crate) fn lock(&self) -> Value {
        self.json(&["lock", "show", "T"])["data"]["lock"].clone()
    }

    pub(crate) fn wait_for_waiter(&self) {
        wait_for("one process waits for T", || self.json(&["lock", "show", "T"])["data"]["queue"] == 1);
    }

    /// `tasks run T --agent AGENT ARGS -- sh -c SCRIPT`, in the background.
    pub(crate) fn start(&self, agent: &str, args: &[&str], script: &str) -> Running {
        let mut words = vec!["tasks", "run", "T", "--agent", agent];
        words.extend(args);
        words.extend(["--", "sh", "-c", script]);
        Running::start(self.command(&words))
    }

    pub(crate) fn read(&self, name: &str) -> String {
        std::fs::read_to_string(self.path(name)).unwrap_or_default()
    }

    pub(crate) fn wait_for_file(&self, name: &str) {
        wait_for(name, || self.path(name).exists());
    }

    /// Pids, one per line.
    pub(crate) fn pids(&self, name: &str) -> Vec<u32> {
        self.read(name).lines().map(|line| line.trim().parse().unwrap()).collect()
    }

    pub(crate) fn wait_for_pids(&self, name: &str, count: usize) -> Vec<u32> {
        wait_for(name, || self.read(name).lines().count() == count);
        self.pids(name)
    }
}

/// The exit code, as a shell reports it, and standard error.
pub(crate) fn end(running: Running) -> (i32, String) {
    let answer = running.end();
    (answer.shell_code(), answer.err)
}

/// The output of a command through pipes; fails if the command, or a process that has inherited its pipes, does not end.
pub(crate) fn finish(mut command: Command) -> Output {
    let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let (sender, receiver) = std::sync::mpsc::channel();
    std::thread::spawn(move || sender.send(child.wait_with_output()));
    receiver.recv_timeout(LIMIT).expect("the command, or what it started, keeps its pipes open").unwrap()
}
