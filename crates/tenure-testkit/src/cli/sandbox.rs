//! One user on one machine: a temporary home, a search path, fixed variables, and the processes that the test starts
//! there.

use std::ffi::OsString;
use std::fs::File;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;

use rustix::process::Signal;
use serde_json::Value;
use tempfile::TempDir;
use tenure_core::config::{Document, TrustContent, TrustRecord};
use tenure_core::{Clock as _, SystemClock};

use super::{Answer, Project, Running, Suite, agent, faketime, processes, until};
use crate::postgres::Cluster;

/// Removed on drop, with every process that was started in it.
#[derive(Debug)]
pub struct Sandbox {
    suite: Suite,
    /// Without symbolic links, as the program prints paths.
    at: PathBuf,
    /// The server that has the rows; `None` on SQLite.
    server: Option<String>,
    _folder: TempDir,
}

impl Sandbox {
    /// On the store of the suite.
    pub fn new(suite: Suite) -> Arc<Self> {
        Self::on(suite, suite.is_on_postgres().then(|| Cluster::shared().url()))
    }

    /// On this PostgreSQL server, or on SQLite.
    pub fn on(suite: Suite, server: Option<String>) -> Arc<Self> {
        // A short name: the path of a socket has at most 103 bytes.
        let folder = tempfile::Builder::new().prefix("tn").tempdir().unwrap();
        let at = folder.path().canonicalize().unwrap();
        for name in ["home", "run", "bin", "agent", "projects"] {
            std::fs::create_dir(at.join(name)).unwrap();
        }
        Arc::new(Self { suite, at, server, _folder: folder })
    }

    pub fn suite(&self) -> Suite {
        self.suite
    }

    /// The URL of the server that has the rows; `None` on SQLite.
    pub fn server(&self) -> Option<&str> {
        self.server.as_deref()
    }

    pub fn path(&self, below: &str) -> PathBuf {
        self.at.join(below)
    }

    pub fn tenure_home(&self) -> PathBuf {
        self.path("home/.tenure")
    }

    /// `bin` of the sandbox, then the search path of the test.
    pub fn search_path(&self) -> OsString {
        let mut path = self.path("bin").into_os_string();
        path.push(":");
        path.push(std::env::var_os("PATH").unwrap_or_default());
        path
    }

    /// Makes `tenure` available by name.
    pub fn put_tenure_on_path(&self) {
        std::os::unix::fs::symlink(self.suite.binary, self.path("bin/tenure")).unwrap();
    }

    /// Copies these programs into the sandbox, first on its `PATH`. On macOS, or in a simulation of it, the copies do not count
    /// as system programs.
    pub fn put_own_programs_on_path(&self, names: &[&str]) {
        let path = std::env::var_os("PATH").unwrap_or_default();
        for name in names {
            let found =
                std::env::split_paths(&path).map(|folder| folder.join(name)).find(|file| file.is_file());
            // A program that is not installed is left out; the test that needs it fails.
            if let Some(program) = found {
                std::fs::copy(program, self.path("bin").join(name)).unwrap();
            }
        }
    }

    /// Replaces the user's configuration.
    pub fn configure_user(&self, text: &str) {
        let home = self.tenure_home();
        std::fs::create_dir_all(&home).unwrap();
        std::fs::set_permissions(&home, std::fs::Permissions::from_mode(0o700)).unwrap();
        std::fs::write(home.join("config.yaml"), text).unwrap();
    }

    /// Clears the environment of a command and sets what belongs to the sandbox.
    pub fn surround(&self, command: &mut Command) {
        command
            .env_clear()
            .env("PATH", self.search_path())
            .env("HOME", self.path("home"))
            .env("TENURE_HOME", self.tenure_home())
            .env("XDG_RUNTIME_DIR", self.path("run"))
            .env("USER", "tester")
            .env("TZ", "UTC")
            // Tests edit configurations by hand, so they trust every project. Tests about trust remove this
            // variable.
            .env("TENURE_TRUST", "1")
            .current_dir(&self.at)
            .stdin(Stdio::null());
        // Passed on, so that whole suites can run as on another system.
        if let Some(system) = std::env::var_os("TENURE_SIMULATE") {
            command.env("TENURE_SIMULATE", system);
        }
    }

    pub fn command(&self, args: &[&str]) -> Command {
        let mut command = Command::new(self.suite.binary);
        self.surround(&mut command);
        command.args(args);
        command
    }

    /// A command with a wall clock that is wrong by `skew`, such as `+2h`.
    pub fn skew(&self, ordinary: &Command, skew: &str) -> Command {
        let mut command = faketime();
        command.args(["-f", skew]).arg(ordinary.get_program()).args(ordinary.get_args());
        command.env_clear().stdin(Stdio::null());
        if let Some(folder) = ordinary.get_current_dir() {
            command.current_dir(folder);
        }
        for (name, value) in ordinary.get_envs() {
            command.env(name, value.unwrap_or_default());
        }
        command
    }

    pub fn spawn(&self, args: &[&str]) -> Running {
        Running::start(self.command(args))
    }

    #[track_caller]
    pub fn run(&self, args: &[&str]) -> Answer {
        self.spawn(args).end()
    }

    /// Runs with `--json` and returns `data`; fails the test unless the command succeeds.
    #[track_caller]
    pub fn ok(&self, args: &[&str]) -> Value {
        self.run(&[&["--json"], args].concat()).data()
    }

    /// A new project in `projects/NAME`.
    pub fn project(self: &Arc<Self>, name: &str) -> Project {
        let project = self.bare_project(name);
        project.init(&["--name", name]);
        project
    }

    /// A folder `projects/NAME` in which `init` has not run yet.
    pub fn bare_project(self: &Arc<Self>, name: &str) -> Project {
        Project::bare(Arc::clone(self), self.path("projects").join(name))
    }

    /// Records that a person has trusted the configuration of the project at `root` as it is now. Wake-up and agents
    /// need the record; other commands have the variable `TENURE_TRUST`.
    pub fn trust(&self, root: &Path) {
        let root = root.canonicalize().unwrap();
        let text = std::fs::read_to_string(root.join(".tenure/config.yaml")).unwrap_or_default();
        let Ok(document) = Document::parse(&text) else { return };
        let hash = |word: String| {
            let file = root.join(&word).canonicalize().ok().filter(|file| file.starts_with(&root))?;
            let file = File::open(file).ok().filter(|file| file.metadata().unwrap().is_file())?;
            Some((word, TrustContent::hash_file(file).unwrap()))
        };
        let files = document.words_that_may_name_files().into_iter().filter_map(hash).collect();
        let content = TrustContent { files, ..TrustContent::of(&document) };
        let path = root.to_str().unwrap().to_owned();
        let folder = self.tenure_home().join("trust");
        let file = folder.join(TrustRecord::file_name(&path));
        let record = TrustRecord { path, trusted_at: SystemClock.now(), content };
        std::fs::create_dir_all(&folder).unwrap();
        std::fs::set_permissions(&folder, std::fs::Permissions::from_mode(0o700)).unwrap();
        std::fs::write(file, serde_json::to_string(&record).unwrap()).unwrap();
    }

    /// Writes the pretend agent; returns its script and the folder that it shares with the test.
    pub fn install_agent(&self) -> (PathBuf, PathBuf) {
        let script = self.shared("pretend-agent.sh");
        write_program(&script, agent::SCRIPT);
        (script, self.path("agent"))
    }

    /// A file that the agents share with the test.
    pub fn shared(&self, name: &str) -> PathBuf {
        self.path("agent").join(name)
    }

    /// Releases the agents that wait for `name`.
    pub fn give(&self, name: &str) {
        std::fs::write(self.shared(name), "").unwrap();
    }

    /// Waits until an agent has done its step `mark NAME`.
    #[track_caller]
    pub fn wait_for(&self, name: &str) {
        // The file is created shortly before its line is written. An agent that is killed in between has left no
        // mark.
        until(&format!("an agent has marked {name}"), || !self.marks(name).is_empty());
    }

    /// The lines that agents have written into a shared file.
    pub fn marks(&self, name: &str) -> Vec<String> {
        let text = std::fs::read_to_string(self.shared(name)).unwrap_or_default();
        text.lines().map(str::to_owned).collect()
    }

    /// Live processes of agents, including those that have left their process group or session.
    pub fn agents(&self) -> Vec<u32> {
        processes::with(&self.agent_entry())
    }

    #[track_caller]
    pub fn expect_no_agents(&self) {
        let left = self.agents();
        assert!(left.is_empty(), "processes of an agent that is over: {left:?}");
    }

    /// Live processes of the program itself.
    pub fn tenures(&self) -> Vec<u32> {
        let agents = self.agents();
        processes::with(&self.home_entry()).into_iter().filter(|pid| !agents.contains(pid)).collect()
    }

    /// The log of the runner with this pid.
    pub fn log(&self, pid: u32) -> String {
        let path = self.tenure_home().join("runners/logs").join(format!("daemon-{pid}.log"));
        std::fs::read_to_string(path).unwrap_or_default()
    }

    #[track_caller]
    pub fn wait_for_log(&self, pid: u32, words: &str) {
        until(&format!("runner {pid} logs {words:?}"), || self.log(pid).contains(words));
    }

    /// Kills every process of the sandbox. The program's own processes are killed first, so that none of them records
    /// the death of an agent.
    pub fn kill_everything(&self) {
        for pid in self.tenures() {
            processes::signal(pid, Signal::KILL);
        }
        processes::end_all(&self.home_entry());
        processes::end_all(&self.agent_entry());
    }

    fn agent_entry(&self) -> String {
        format!("PRETEND={}", self.path("agent").display())
    }

    fn home_entry(&self) -> String {
        format!("TENURE_HOME={}", self.tenure_home().display())
    }
}

impl Drop for Sandbox {
    fn drop(&mut self) {
        self.kill_everything();
    }
}

/// Writes an executable file.
pub fn write_program(path: &Path, text: &str) {
    std::fs::write(path, text).unwrap();
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o755)).unwrap();
}
