//! A project in a folder of its own, and the commands that a test runs in it.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;

/// Nothing that a test waits for takes this long, on however busy a machine.
pub(crate) const LIMIT: Duration = Duration::from_mins(1);

#[derive(Debug)]
pub(crate) struct Context {
    folder: tempfile::TempDir,
}

impl Context {
    pub(crate) fn new() -> Self {
        let mut builder = tempfile::Builder::new();
        builder.prefix("tenure-mcp-");
        // In memory where that is possible: it is not the disk that is tested.
        let folder = builder.tempdir_in("/dev/shm").or_else(|_| builder.tempdir()).unwrap();
        let world = Self { folder };
        for name in ["home", "work"] {
            std::fs::create_dir(world.path(name)).unwrap();
        }
        world.cli(&["init", "--name", "shop"]);
        world
    }

    pub(crate) fn with_tasks(count: usize) -> Self {
        let world = Self::new();
        let plan: Vec<String> = (1..=count).map(|n| format!("- [ ] task number {n}")).collect();
        std::fs::write(world.path("work/plan.md"), plan.join("\n")).unwrap();
        world.cli(&["tasks", "import", "plan.md"]);
        world
    }

    pub(crate) fn path(&self, below: &str) -> PathBuf {
        self.folder.path().join(below)
    }

    pub(crate) fn configure(&self, text: &str) {
        let path = self.path("work/.tenure/config.yaml");
        let before = std::fs::read_to_string(&path).unwrap_or_default();
        std::fs::write(&path, format!("{before}\n{text}\n")).unwrap();
    }

    pub(crate) fn surround(&self, command: &mut Command) {
        let binaries = Path::new(env!("CARGO_BIN_EXE_tenure")).parent().unwrap().display();
        command.env_clear().current_dir(self.path("work")).stdin(Stdio::null());
        command.env("PATH", format!("{binaries}:{}", std::env::var("PATH").unwrap_or_default()));
        command.env("HOME", self.path("home")).env("USER", "tester");
    }

    pub(crate) fn command(&self, words: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_tenure"));
        command.args(words);
        self.surround(&mut command);
        command
    }

    /// The envelope of a command, whatever its exit code.
    pub(crate) fn try_cli(&self, words: &[&str]) -> Value {
        let mut all = vec!["--json"];
        all.extend(words);
        let output = self.command(&all).output().unwrap();
        serde_json::from_slice(&output.stdout)
            .unwrap_or_else(|e| panic!("{words:?}: {e}: {}", String::from_utf8_lossy(&output.stderr)))
    }

    /// The data of a command that succeeds.
    pub(crate) fn cli(&self, words: &[&str]) -> Value {
        let envelope = self.try_cli(words);
        assert_eq!(envelope["success"], true, "{words:?}: {envelope}");
        envelope["data"].clone()
    }

    pub(crate) fn task(&self, key: &str) -> Value {
        self.cli(&["tasks", "show", key])["task"].clone()
    }
}

/// Waits for a condition, never for a time.
#[track_caller]
pub(crate) fn until(what: &str, mut holds: impl FnMut() -> bool) {
    let deadline = Instant::now() + LIMIT;
    while !holds() {
        assert!(Instant::now() < deadline, "never: {what}");
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// Memory of a process in kB: what it has now, or has had at most.
pub(crate) fn memory(pid: u32, field: &str) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    let line = status.lines().find(|line| line.starts_with(field)).unwrap();
    line.split_whitespace().nth(1).unwrap().parse().unwrap()
}

pub(crate) fn is_there(pid: u32) -> bool {
    tenure_lock::is_process_running(pid)
}

pub(crate) fn kill(pid: u32, signal: &str) {
    let killed = Command::new("kill").args([&format!("-{signal}"), &pid.to_string()]).status().unwrap();
    assert!(killed.success());
}
