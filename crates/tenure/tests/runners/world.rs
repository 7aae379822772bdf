//! A project of its own for every test, with a pretend agent in it, and processes of the real program.

use std::fs::File;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use rustix::process::Signal;
use serde_json::Value;
use tempfile::TempDir;

use crate::processes;

/// What has not happened by then hangs.
pub(crate) const HANG: Duration = Duration::from_secs(90);

/// `long` with `TENURE_TEST_FULL=1`, else `short`.
pub(crate) fn full_or<T>(long: T, short: T) -> T {
    if std::env::var("TENURE_TEST_FULL").is_ok_and(|v| v == "1") { long } else { short }
}

#[derive(Debug)]
pub(crate) struct Project {
    folder: TempDir,
    root: PathBuf,
}

impl Project {
    /// Patient: nothing expires by itself.
    pub(crate) fn new() -> Self {
        Self::with("runners: {preset: pretend, killGrace: 300ms}\nlocking: {pollInterval: 1s}")
    }

    /// Leases run out after three seconds without a heartbeat.
    pub(crate) fn hasty() -> Self {
        Self::with(
            "runners: {preset: pretend, killGrace: 300ms, heartbeatInterval: 500ms, staleTimeout: 3s}\n\
             locking: {pollInterval: 500ms, taskTimeout: 3s, sectionTimeout: 3s}",
        )
    }

    pub(crate) fn with(config: &str) -> Self {
        let folder = tempfile::Builder::new().prefix("tnr").tempdir().unwrap();
        let at = folder.path().canonicalize().unwrap();
        for name in ["p", "h", "r", "agent", "out"] {
            std::fs::create_dir(at.join(name)).unwrap();
        }
        let [script, claude] = ["agent/pretend-agent.sh", "agent/claude"].map(|name| at.join(name));
        for path in [&script, &claude] {
            std::fs::write(path, include_str!("pretend-agent.sh")).unwrap();
            std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o755)).unwrap();
        }
        let project = Self { folder, root: at.join("p") };
        project.ok(&["init", "--name", "shop"]);
        let (script, claude, shared) = (script.display(), claude.display(), at.join("agent"));
        let shared = shared.display();
        let presets = format!(
            "presets:\n  pretend: {{command: ['{script}'], env: {{PRETEND: '{shared}'}}}}\n  \
             judge: {{command: ['{script}'], env: {{PRETEND: '{shared}', WORD: review}}}}\n  \
             claude: {{command: ['{claude}'], env: {{PRETEND: '{shared}'}}}}\n  \
             claude-judge: {{command: ['{claude}'], env: {{PRETEND: '{shared}', WORD: review}}}}\n",
        );
        project.configure(&format!("{presets}{config}\n"));
        project
    }

    /// Adds to the project's configuration.
    pub(crate) fn configure(&self, more: &str) {
        let path = self.root.join(".tenure/config.yaml");
        let before = std::fs::read_to_string(&path).unwrap();
        std::fs::write(&path, format!("{before}{more}\n")).unwrap();
    }

    pub(crate) fn root(&self) -> &Path {
        &self.root
    }

    fn at(&self, below: &str) -> PathBuf {
        self.folder.path().canonicalize().unwrap().join(below)
    }

    /// The folder that the agent shares with the test.
    pub(crate) fn shared(&self, name: &str) -> PathBuf {
        self.at("agent").join(name)
    }

    /// Lets an agent go on that waits for `name`.
    pub(crate) fn give(&self, name: &str) {
        std::fs::write(self.shared(name), "").unwrap();
    }

    /// Waits until an agent has done its step `mark NAME`.
    pub(crate) fn wait_for(&self, name: &str) {
        // The file is there a moment before its line; whoever is killed in between has left no mark.
        until(&format!("an agent has marked {name}"), || !self.marks(name).is_empty());
    }

    /// What agents have written into a file of theirs, line by line.
    pub(crate) fn marks(&self, name: &str) -> Vec<String> {
        let text = std::fs::read_to_string(self.shared(name)).unwrap_or_default();
        text.lines().map(str::to_owned).collect()
    }

    pub(crate) fn tenure_home(&self) -> PathBuf {
        self.at("h/.tenure")
    }

    pub(crate) fn command(&self, args: &[&str]) -> Command {
        let mut command = tenure(args, self.folder.path());
        command.env("TENURE_HOME", self.tenure_home()).current_dir(&self.root);
        command
    }

    pub(crate) fn spawn(&self, args: &[&str]) -> Running {
        Running::start(self.command(args), &self.at("out"))
    }

    pub(crate) fn run(&self, args: &[&str]) -> Answer {
        self.spawn(args).end()
    }

    /// Runs with `--json` and gives `data`; anything but success fails the test.
    pub(crate) fn ok(&self, args: &[&str]) -> Value {
        self.run(&[&["--json"], args].concat()).data()
    }

    /// A task whose agent takes these steps.
    pub(crate) fn task(&self, key: &str, steps: &[&str]) {
        self.task_in(key, steps, &[]);
    }

    pub(crate) fn task_in(&self, key: &str, steps: &[&str], more: &[&str]) {
        let lines: Vec<String> = steps
            .iter()
            .map(|step| if step.starts_with("review: ") { (*step).to_owned() } else { format!("do: {step}") })
            .collect();
        let title = format!("Task {key}");
        let text = lines.join("\n");
        let mut args = vec!["tasks", "add", &title, "--id", key, "-d", &text];
        args.extend(more);
        self.ok(&args);
    }

    pub(crate) fn show(&self, key: &str) -> Value {
        self.ok(&["tasks", "show", key])["task"].clone()
    }

    pub(crate) fn status(&self, key: &str) -> String {
        self.show(key)["status"].as_str().unwrap().to_owned()
    }

    pub(crate) fn wait_until(&self, key: &str, status: &str) {
        until(&format!("{key} is {status}"), || self.status(key) == status);
    }

    /// Open leases on tasks and sections.
    pub(crate) fn locks(&self) -> Vec<Value> {
        let all = self.ok(&["locks", "list"])["locks"].as_array().unwrap().clone();
        let held = |lock: &Value, kind: &str| lock["resource"].as_str().unwrap().starts_with(kind);
        all.into_iter().filter(|lock| held(lock, "task:") || held(lock, "section:")).collect()
    }

    pub(crate) fn feed(&self) -> Vec<Value> {
        let answer = self.run(&["--json", "events", "--limit", "1000000"]);
        assert_eq!(answer.code, Some(0), "{answer:?}");
        answer.json()["data"]["events"].as_array().unwrap().clone()
    }

    /// How often `task` was moved to `status`, as the feed has it.
    pub(crate) fn moves(&self, task: &str, status: &str) -> usize {
        let id = self.show(task)["id"].clone();
        let moved = |event: &&Value| event["taskId"] == id && event["to"] == status;
        self.feed().iter().filter(moved).count()
    }

    /// A runner in the foreground, once it has its place.
    pub(crate) fn runner(&self, args: &[&str]) -> Running {
        let mut all = vec!["runners", "start", "--foreground"];
        all.extend(args);
        let mut runner = self.spawn(&all);
        until("the runner has started", || {
            self.log(runner.pid()).contains(" started on ") || !runner.is_running()
        });
        runner
    }

    /// Runs a runner until nothing is left to do.
    pub(crate) fn work(&self, args: &[&str]) -> Answer {
        let mut all = vec!["runners", "start", "--foreground"];
        all.extend(args);
        self.run(&all)
    }

    /// What the runner with that process number has logged.
    pub(crate) fn log(&self, pid: u32) -> String {
        let path = self.tenure_home().join("runners/logs").join(format!("daemon-{pid}.log"));
        std::fs::read_to_string(path).unwrap_or_default()
    }

    pub(crate) fn wait_for_log(&self, pid: u32, words: &str) {
        until(&format!("runner {pid} logs {words:?}"), || self.log(pid).contains(words));
    }

    /// Living processes of agents, wherever they have gone.
    pub(crate) fn agents(&self) -> Vec<u32> {
        processes::with(&format!("PRETEND={}", self.at("agent").display()))
    }

    pub(crate) fn expect_no_agents(&self) {
        let left = self.agents();
        assert!(left.is_empty(), "processes of an agent that is over: {left:?}");
    }

    pub(crate) fn database(&self) -> PathBuf {
        self.root.join(".tenure/tenure.db")
    }

    /// Closes the gate before the store: nobody can write until this is dropped.
    pub(crate) fn hold_writers(&self) -> File {
        let path = self.database().with_extension("gate.lock");
        let file = File::options().read(true).write(true).create(true).truncate(false).open(path).unwrap();
        file.lock().unwrap();
        file
    }

    /// The logs of attempts, in the order of their names.
    pub(crate) fn attempt_logs(&self) -> Vec<PathBuf> {
        let folder = std::fs::read_dir(self.root.join(".tenure/logs")).unwrap();
        let mut found: Vec<_> = folder.map(|entry| entry.unwrap().path()).collect();
        found.sort();
        found
    }
}

impl Drop for Project {
    fn drop(&mut self) {
        processes::end_all(&format!("TENURE_HOME={}", self.tenure_home().display()));
    }
}

/// Looks again and again until `condition` holds; fails if it does not for a very long time.
pub(crate) fn until(what: &str, mut condition: impl FnMut() -> bool) {
    let deadline = Instant::now() + HANG;
    while !condition() {
        assert!(Instant::now() < deadline, "waited too long until {what}");
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// The real program with next to nothing in its environment: its home is `h` in this folder, its sockets are in `r`.
pub(crate) fn tenure(args: &[&str], folder: &Path) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_tenure"));
    command
        .args(args)
        .env_clear()
        .env("PATH", std::env::var_os("PATH").unwrap_or_default())
        .env("HOME", folder.join("h"))
        .env("XDG_RUNTIME_DIR", folder.join("r"))
        .env("USER", "tester")
        .stdin(Stdio::null());
    command
}

#[derive(Debug)]
pub(crate) struct Answer {
    /// None if a signal ended it.
    pub(crate) code: Option<i32>,
    pub(crate) out: String,
    pub(crate) err: String,
}

impl Answer {
    /// The data of a command that has succeeded.
    pub(crate) fn data(&self) -> Value {
        assert_eq!(self.code, Some(0), "{self:?}");
        self.json()["data"].clone()
    }

    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.out).unwrap_or_else(|e| panic!("{e}: {self:?}"))
    }
}

/// A process under way, its output in files, so that it never waits for a reader. Dropped, it is killed.
#[derive(Debug)]
pub(crate) struct Running {
    child: Child,
    out: PathBuf,
}

impl Running {
    pub(crate) fn start(mut command: Command, folder: &Path) -> Self {
        static NUMBER: std::sync::atomic::AtomicU32 = std::sync::atomic::AtomicU32::new(0);
        let number = NUMBER.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        let out = folder.join(number.to_string());
        command.stdout(File::create(&out).unwrap()).stderr(File::create(out.with_extension("err")).unwrap());
        Self { child: command.spawn().unwrap(), out }
    }

    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    pub(crate) fn signal(&self, signal: Signal) {
        processes::signal(self.pid(), signal);
    }

    pub(crate) fn is_running(&mut self) -> bool {
        self.child.try_wait().unwrap().is_none()
    }

    /// Its end, which has to come.
    pub(crate) fn end(mut self) -> Answer {
        let deadline = Instant::now() + HANG;
        let status = loop {
            if let Some(status) = self.child.try_wait().unwrap() {
                break status;
            }
            assert!(Instant::now() < deadline, "still running: {}", self.so_far());
            std::thread::sleep(Duration::from_millis(3));
        };
        let out = std::fs::read_to_string(&self.out).unwrap();
        Answer { code: status.code(), out, err: self.so_far() }
    }

    /// What it has said on standard error.
    pub(crate) fn so_far(&self) -> String {
        std::fs::read_to_string(self.out.with_extension("err")).unwrap_or_default()
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Random numbers that a seed repeats (splitmix64).
#[derive(Debug)]
pub(crate) struct Dice(u64);

impl Dice {
    /// From `TENURE_TEST_SEED`, or the clock; printed, so that the run can be repeated.
    pub(crate) fn for_test(name: &str) -> Self {
        let given = std::env::var("TENURE_TEST_SEED").ok().and_then(|text| text.parse().ok());
        let seed = given.unwrap_or_else(|| {
            let now = tenure_core::Clock::now(&tenure_core::SystemClock).as_millis();
            u64::try_from(now).unwrap() ^ u64::from(std::process::id())
        });
        eprintln!("{name}: TENURE_TEST_SEED={seed}");
        Self(seed)
    }

    pub(crate) fn below(&mut self, bound: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (z ^ (z >> 31)) % bound
    }
}
