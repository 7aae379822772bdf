//! A project in a folder of its own, and the processes that a test lets loose in it.

use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;

/// Nothing that a test waits for takes this long, on however busy a machine. It is less than a heartbeat's default
/// interval, so what happens within it was not found out by one.
const LIMIT: Duration = Duration::from_secs(25);

pub(crate) struct Project {
    folder: tempfile::TempDir,
}

impl Project {
    /// With one task, `T`.
    pub(crate) fn new() -> Self {
        let project = Self { folder: tempfile::tempdir().unwrap() };
        project.ok(&["init"]);
        project.ok(&["task", "add", "the task", "--id", "T"]);
        project
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().canonicalize().unwrap().join(name)
    }

    pub(crate) fn configure(&self, text: &str) {
        let path = self.path(".tenure/config.yaml");
        let before = std::fs::read_to_string(&path).unwrap_or_default();
        std::fs::write(&path, format!("{before}\n{text}\n")).unwrap();
    }

    /// A command in this project that has neither a terminal nor anything of the surroundings. Its pid is tenure's:
    /// `setsid` forks only for the leader of a group.
    pub(crate) fn command(&self, args: &[&str]) -> Command {
        let mut command = Command::new("setsid");
        command.arg(env!("CARGO_BIN_EXE_tenure")).args(args);
        self.surround(&mut command);
        command
    }

    pub(crate) fn shell(&self, script: &str) -> Command {
        let mut command = Command::new("setsid");
        command.args(["sh", "-c", script]);
        self.surround(&mut command);
        command
    }

    pub(crate) fn surround(&self, command: &mut Command) {
        let binaries = Path::new(env!("CARGO_BIN_EXE_tenure")).parent().unwrap().display();
        command.env_clear().current_dir(self.folder.path()).stdin(Stdio::null());
        command.env("PATH", format!("{binaries}:/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin"));
        command.env("HOME", self.path("home")).env("TENURE_HOME", self.path("home/.tenure"));
        command.env("USER", "tester");
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
        wait_for("the waiter", || self.json(&["lock", "show", "T"])["data"]["queue"] == 1);
    }

    /// `tasks run T --agent AGENT ARGS -- sh -c SCRIPT`, in the background.
    pub(crate) fn start(&self, agent: &str, args: &[&str], script: &str) -> Running {
        let mut words = vec!["tasks", "run", "T", "--agent", agent];
        words.extend(args);
        words.extend(["--", "sh", "-c", script]);
        Running::of(self.command(&words))
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

impl Drop for Project {
    /// What a failed test leaves behind is known by its home, which nobody else has.
    fn drop(&mut self) {
        let home = format!("TENURE_HOME={}", self.path("home/.tenure").display());
        for pid in all_pids() {
            let environment = std::fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
            if environment.split(|b| *b == 0).any(|entry| entry == home.as_bytes()) {
                let _ = Command::new("kill").args(["-KILL", &pid.to_string()]).stderr(Stdio::null()).status();
            }
        }
    }
}

/// A process in the background, killed at the latest with the test.
pub(crate) struct Running {
    child: Child,
}

impl Running {
    pub(crate) fn of(mut command: Command) -> Self {
        Self { child: command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap() }
    }

    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    pub(crate) fn signal(&self, name: &str) {
        signal(self.pid(), name);
    }

    /// Its exit code (128 and the signal, if one ended it) and what it said on standard error.
    pub(crate) fn wait(mut self) -> (i32, String) {
        wait_for("the end of a command", || self.child.try_wait().unwrap().is_some());
        let status = self.child.wait().unwrap();
        let mut said = String::new();
        // Not to the end: what it has left behind may hold the pipe.
        let mut stderr = self.child.stderr.take().unwrap();
        let mut buffer = vec![0; 64 * 1024];
        let length = std::io::Read::read(&mut stderr, &mut buffer).unwrap();
        said.push_str(&String::from_utf8_lossy(&buffer[..length]));
        (status.code().unwrap_or_else(|| 128 + status.signal().unwrap_or(0)), said)
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The output of a command, or a failure if it, or somebody who holds its pipes, does not come to an end.
pub(crate) fn finish(mut command: Command) -> Output {
    let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let (sender, receiver) = std::sync::mpsc::channel();
    std::thread::spawn(move || sender.send(child.wait_with_output()));
    receiver.recv_timeout(LIMIT).expect("the command, or what it started, keeps its pipes open").unwrap()
}

pub(crate) fn wait_for(what: &str, mut happened: impl FnMut() -> bool) {
    let end = Instant::now() + LIMIT;
    while !happened() {
        assert!(Instant::now() < end, "waited too long for {what}");
        std::thread::sleep(Duration::from_millis(10));
    }
}

pub(crate) fn signal(pid: u32, name: &str) {
    assert!(Command::new("kill").args([&format!("-{name}"), &pid.to_string()]).status().unwrap().success());
}

/// Runs: neither gone nor a zombie.
pub(crate) fn is_alive(pid: u32) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    let state = stat.rsplit(')').next().and_then(|rest| rest.split_whitespace().next());
    state.is_some_and(|state| state != "Z")
}

pub(crate) fn all_pids() -> Vec<u32> {
    let entries = std::fs::read_dir("/proc").unwrap();
    entries.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok()).collect()
}
