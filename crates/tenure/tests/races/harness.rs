//! A project of its own for every test, and processes of the real program in it, each with a deadline.

use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::mpsc::{Sender, channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, PidfdFlags, Signal, WaitId, WaitIdOptions, kill_process, pidfd_open, waitid};
use serde_json::Value;
use tempfile::TempDir;
use tenure_core::SystemClock;
use tenure_core::store::{Durability, EventFilter, Store};
use tenure_core::wire;
use tenure_postgres::{Address, PostgresStore, Surroundings};
use tenure_sqlite::{OpenOptions, SqliteStore};
use tenure_testkit::postgres::Cluster;

/// A process that has not ended by then hangs.
pub(crate) const HANG: Duration = Duration::from_mins(2);

/// `long` with `TENURE_TEST_FULL=1`, else `short`.
pub(crate) fn full_or<T>(long: T, short: T) -> T {
    let full = std::env::var("TENURE_TEST_FULL").is_ok_and(|v| v == "1");
    if full { long } else { short }
}

/// How often a race is run: on a server, where each takes longer, fewer times unless all are asked for.
pub(crate) fn rounds(long: usize, short: usize) -> usize {
    full_or(long, if on_postgres() { short.div_ceil(4) } else { short })
}

/// The same tests are compiled twice, once for each store.
pub(crate) fn on_postgres() -> bool {
    env!("CARGO_CRATE_NAME") == "races_postgres"
}

#[derive(Debug)]
pub(crate) struct Project {
    folder: TempDir,
    root: PathBuf,
    /// The server, if the rows are not in a file.
    pub(crate) url: Option<String>,
}

impl Project {
    /// A folder that is no project yet.
    pub(crate) fn bare() -> Self {
        Self::bare_on(on_postgres().then(|| Cluster::shared().url()))
    }

    pub(crate) fn bare_on(url: Option<String>) -> Self {
        let folder = tempfile::Builder::new().prefix("tn").tempdir().unwrap();
        let root = folder.path().join("p");
        std::fs::create_dir(&root).unwrap();
        for name in ["h", "r"] {
            std::fs::create_dir(folder.path().join(name)).unwrap();
        }
        Self { folder, root, url }
    }

    pub(crate) fn new() -> Self {
        let project = Self::bare();
        project.ok(&["init"]);
        project
    }

    /// A project whose waiters look again after `poll`, and lose their place after three times that.
    pub(crate) fn with_config(config: &str) -> Self {
        Self::new().configured(config)
    }

    pub(crate) fn configured(self, config: &str) -> Self {
        let project = self;
        let path = project.root.join(".tenure/config.yaml");
        let before = std::fs::read_to_string(&path).unwrap();
        std::fs::write(&path, format!("{before}{config}\n")).unwrap();
        project
    }

    pub(crate) fn root(&self) -> &Path {
        &self.root
    }

    /// The program, in this project, with nothing of the surroundings but the path to other programs.
    pub(crate) fn command(&self, args: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_tenure"));
        self.surround(&mut command);
        command.args(args);
        command
    }

    /// The same without a controlling terminal, so that nobody can be named as the person there.
    pub(crate) fn anonymous(&self, args: &[&str]) -> Command {
        if !has_terminal() {
            return self.command(args);
        }
        let mut command = Command::new("setsid");
        self.surround(&mut command);
        command.arg(env!("CARGO_BIN_EXE_tenure")).args(args);
        command
    }

    fn surround(&self, command: &mut Command) {
        let home = self.folder.path().join("h");
        command
            .env_clear()
            .env("PATH", std::env::var_os("PATH").unwrap_or_default())
            .env("HOME", &home)
            .env("TENURE_HOME", home.join(".tenure"))
            .env("XDG_RUNTIME_DIR", self.folder.path().join("r"))
            .env("USER", "tester")
            .current_dir(&self.root)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        if let Some(url) = &self.url {
            command.env("TENURE_STORE", url);
        }
    }

    pub(crate) fn spawn(&self, args: &[&str]) -> Running {
        Running::start(self.command(args))
    }

    pub(crate) fn run(&self, args: &[&str]) -> Answer {
        self.spawn(args).end()
    }

    /// Runs with `--json` and gives `data`; anything but success fails the test.
    pub(crate) fn ok(&self, args: &[&str]) -> Value {
        self.run(&[&["--json"], args].concat()).data()
    }

    /// Adds `count` tasks with the keys `PREFIX1` … and gives those keys.
    pub(crate) fn add(&self, prefix: &str, count: usize) -> Vec<String> {
        let keys: Vec<String> = (1..=count).map(|n| format!("{prefix}{n}")).collect();
        let rows: Vec<Value> =
            keys.iter().map(|key| serde_json::json!({"id": key, "title": format!("task {key}")})).collect();
        let file = self.root.join(format!("{prefix}.json"));
        std::fs::write(&file, serde_json::to_string(&rows).unwrap()).unwrap();
        self.ok(&["tasks", "import", file.to_str().unwrap()]);
        keys
    }

    pub(crate) fn database(&self) -> PathBuf {
        self.root.join(".tenure/tenure.db")
    }

    pub(crate) fn id(&self) -> String {
        self.ok(&["config", "get", "project.id"])["setting"]["value"].as_str().unwrap().to_owned()
    }

    pub(crate) fn store(&self) -> Box<dyn Store> {
        if let Some(url) = &self.url {
            let address = Address::parse(url, &Surroundings::default()).unwrap();
            return Box::new(
                PostgresStore::open(address, &self.id(), tenure_postgres::OpenOptions::default()).unwrap(),
            );
        }
        let options = OpenOptions::new(Arc::new(SystemClock));
        Box::new(SqliteStore::open(&self.database(), options).unwrap())
    }

    /// The whole feed, as the command line would print it.
    pub(crate) fn feed(&self) -> Vec<Value> {
        let filter = EventFilter { limit: u64::from(u32::MAX), ..EventFilter::default() };
        let events = self.store().read(|view| view.events(&filter)).unwrap();
        events.iter().map(|event| serde_json::json!(wire::event(event))).collect()
    }

    /// Closes the gate before the store, so that writers started meanwhile all stand before it when it opens.
    pub(crate) fn hold_writers(&self) -> HeldGate {
        if self.url.is_some() {
            return HeldGate::hold_turn(self.store());
        }
        let path = self.database().with_extension("queue.lock");
        let file = File::options().read(true).write(true).create(true).truncate(false).open(path).unwrap();
        file.lock().unwrap();
        HeldGate { _file: Some(file), turn: None }
    }

    /// Waits until the open lease of `task` has run out.
    pub(crate) fn wait_until_expired(&self, task: &str) {
        until(&format!("the lease of {task} runs out"), || {
            self.ok(&["locks", "show", task])["lock"]["expired"].as_bool() == Some(true)
        });
    }

    /// How many stand in line for `task`.
    pub(crate) fn queue(&self, task: &str) -> u64 {
        self.ok(&["locks", "show", task])["queue"].as_u64().unwrap()
    }

    pub(crate) fn wait_for_queue(&self, task: &str, length: u64) {
        until(&format!("{length} stand in line for {task}"), || self.queue(task) == length);
    }
}

/// Whoever wants to write waits until this is dropped.
#[derive(Debug)]
pub(crate) struct HeldGate {
    _file: Option<File>,
    turn: Option<(Sender<()>, JoinHandle<()>)>,
}

impl HeldGate {
    /// On a server: a transaction that does nothing for a while.
    fn hold_turn(store: Box<dyn Store>) -> Self {
        let (open, opened) = channel();
        let (begun, has_begun) = channel();
        let hold = std::thread::spawn(move || {
            let _ = store.write(Durability::Process, |_| {
                let _ = begun.send(());
                let _ = opened.recv();
                Ok(())
            });
        });
        has_begun.recv().unwrap();
        Self { _file: None, turn: Some((open, hold)) }
    }
}

impl Drop for HeldGate {
    fn drop(&mut self) {
        if let Some((open, hold)) = self.turn.take() {
            drop(open);
            drop(hold.join());
        }
    }
}

/// Looks again and again until `condition` holds; fails if it does not for a very long time.
pub(crate) fn until(what: &str, mut condition: impl FnMut() -> bool) {
    let deadline = Instant::now() + HANG;
    while !condition() {
        assert!(Instant::now() < deadline, "waited too long until {what}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

fn has_terminal() -> bool {
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap_or_default();
    let number = stat.rsplit_once(')').and_then(|(_, rest)| rest.split_whitespace().nth(4)).unwrap_or("0");
    number != "0"
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
        assert_eq!(self.code, Some(0), "{}{}", self.out, self.err);
        self.json()["data"].clone()
    }

    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.out).unwrap_or_else(|e| panic!("{e}: {self:?}"))
    }
}

fn drain(pipe: Option<impl Read + Send + 'static>) -> JoinHandle<String> {
    std::thread::spawn(move || {
        let mut text = String::new();
        if let Some(mut pipe) = pipe {
            pipe.read_to_string(&mut text).unwrap();
        }
        text
    })
}

/// A process under way. Dropped, it is killed.
#[derive(Debug)]
pub(crate) struct Running {
    child: Option<Child>,
}

impl Running {
    pub(crate) fn start(mut command: Command) -> Self {
        Self { child: Some(command.spawn().unwrap()) }
    }

    pub(crate) fn pid(&self) -> u32 {
        self.child.as_ref().unwrap().id()
    }

    pub(crate) fn signal(&self, signal: Signal) {
        kill_process(os_pid(self.pid()), signal).unwrap();
    }

    pub(crate) fn is_running(&mut self) -> bool {
        self.child.as_mut().unwrap().try_wait().unwrap().is_none()
    }

    /// True if it ended within `time`. It is not reaped by this.
    pub(crate) fn ends_within(&self, time: Duration) -> bool {
        let fd = pidfd_open(os_pid(self.pid()), PidfdFlags::empty()).unwrap();
        let deadline = Instant::now() + time;
        loop {
            let left = deadline.saturating_duration_since(Instant::now());
            let timeout = Timespec {
                tv_sec: i64::try_from(left.as_secs()).unwrap(),
                tv_nsec: i64::from(left.subsec_nanos()),
            };
            match poll(&mut [PollFd::new(&fd, PollFlags::IN)], Some(&timeout)) {
                Ok(0) => return false,
                Ok(_) => return true,
                Err(rustix::io::Errno::INTR) => {}
                Err(e) => panic!("poll: {e}"),
            }
        }
    }

    pub(crate) fn end(mut self) -> Answer {
        let child = self.child.as_mut().unwrap();
        // Read while it runs: a full pipe would keep it from ending.
        let (out, err) = (drain(child.stdout.take()), drain(child.stderr.take()));
        let ended = self.ends_within(HANG);
        if !ended {
            self.signal(Signal::KILL);
        }
        let status = self.child.take().unwrap().wait().unwrap();
        let answer = Answer { code: status.code(), out: out.join().unwrap(), err: err.join().unwrap() };
        assert!(ended, "still running after {HANG:?}: {answer:?}");
        answer
    }

    /// Its end, and the processor time that it used in all.
    pub(crate) fn end_with_cpu(self) -> (Answer, Duration) {
        let pid = os_pid(self.pid());
        waitid(WaitId::Pid(pid), WaitIdOptions::EXITED | WaitIdOptions::NOWAIT).unwrap();
        let used = cpu(self.pid());
        (self.end(), used)
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        if let Some(child) = &mut self.child {
            drop(child.kill());
            drop(child.wait());
        }
    }
}

/// What a process has used of the processors so far; also of one that has ended and is not reaped yet.
pub(crate) fn cpu(pid: u32) -> Duration {
    let text = std::fs::read_to_string(format!("/proc/{pid}/schedstat")).unwrap();
    Duration::from_nanos(text.split_whitespace().next().unwrap().parse().unwrap())
}

pub(crate) fn os_pid(pid: u32) -> Pid {
    Pid::from_raw(i32::try_from(pid).unwrap()).unwrap()
}

/// Starts all of them before a closed gate, opens it, and gives their answers in order.
pub(crate) fn contest(project: &Project, commands: Vec<Command>) -> Vec<Answer> {
    let gate = project.hold_writers();
    let running: Vec<Running> = commands.into_iter().map(Running::start).collect();
    drop(gate);
    running.into_iter().map(Running::end).collect()
}
