//! Worker processes, gates that start them simultaneously, and bounded waiting.

use std::cell::RefCell;
use std::fs::File;
use std::hash::BuildHasher;
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

pub(crate) const PATIENCE: Duration = Duration::from_mins(1);

/// Full counts on request, otherwise reduced ones.
pub(crate) fn count(reduced: usize, full: usize) -> usize {
    if std::env::var_os("TENURE_TEST_FULL").is_some_and(|value| value == "1") { full } else { reduced }
}

/// A generator whose seed is printed; it only needs to differ between runs.
pub(crate) struct Random(u64);

impl Random {
    pub(crate) fn new(test: &str) -> Self {
        let seed =
            std::env::var("TENURE_TEST_SEED").ok().and_then(|seed| seed.parse().ok()).unwrap_or_else(|| {
                // The standard library seeds its hash maps randomly.
                std::hash::RandomState::new().hash_one(std::process::id()) | 1
            });
        println!("{test}: TENURE_TEST_SEED={seed}");
        Self(seed)
    }

    pub(crate) fn below(&mut self, limit: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % limit
    }
}

pub(crate) fn role(role: &str, dir: &Path) -> Command {
    role_under(&[], role, dir)
}

/// A worker started through another program, such as `unshare`.
pub(crate) fn role_under(prefix: &[&str], role: &str, dir: &Path) -> Command {
    let this = std::env::current_exe().unwrap();
    let mut command = match prefix.split_first() {
        Some((program, arguments)) => {
            let mut command = Command::new(program);
            command.args(arguments).arg(this);
            command
        }
        None => Command::new(this),
    };
    command.env("TENURE_LOCK_ROLE", role).env("TENURE_LOCK_DIR", dir);
    command
}

/// A worker whose output lines are read with a timeout. Killed when dropped.
pub(crate) struct Worker {
    pub(crate) child: Child,
    stdin: Option<ChildStdin>,
    lines: Receiver<String>,
}

impl Worker {
    pub(crate) fn start(mut command: Command) -> Self {
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let output = child.stdout.take().unwrap();
        let (sender, lines) = channel();
        std::thread::spawn(move || {
            for line in BufReader::new(output).lines() {
                if line.is_err() || line.is_ok_and(|line| sender.send(line).is_err()) {
                    return;
                }
            }
        });
        Self { stdin: child.stdin.take(), child, lines }
    }

    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    pub(crate) fn line(&self) -> String {
        self.lines.recv_timeout(PATIENCE).expect("the worker writes a line in time")
    }

    pub(crate) fn expect(&self, line: &str) {
        assert_eq!(self.line(), line);
    }

    #[cfg(unix)]
    pub(crate) fn send(&mut self, line: &str) {
        writeln!(self.stdin.as_mut().unwrap(), "{line}").unwrap();
    }

    pub(crate) fn kill(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }

    /// Ends the worker by closing its input.
    pub(crate) fn finish(mut self) {
        drop(self.stdin.take());
        let patience = Instant::now() + PATIENCE;
        while self.child.try_wait().unwrap().is_none() {
            assert!(Instant::now() < patience, "the worker does not end");
            std::thread::sleep(Duration::from_millis(1));
        }
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[cfg(unix)]
pub(crate) fn wait_until(what: &str, mut condition: impl FnMut() -> bool) {
    let patience = Instant::now() + PATIENCE;
    while !condition() {
        assert!(Instant::now() < patience, "waited in vain for: {what}");
        std::thread::sleep(Duration::from_millis(1));
    }
}

/// A file that the test holds locked; closing it wakes all waiting workers at once. Each lock has its own open file, because
/// not every system lets one be unlocked and locked again.
pub(crate) struct Gate {
    path: PathBuf,
    closed: RefCell<Option<File>>,
}

impl Gate {
    pub(crate) fn closed(path: PathBuf) -> Self {
        let gate = Self { path, closed: RefCell::new(None) };
        gate.close();
        gate
    }

    pub(crate) fn open(&self) {
        self.closed.take();
    }

    pub(crate) fn close(&self) {
        let file = File::create(&self.path).unwrap();
        file.lock().unwrap();
        self.closed.replace(Some(file));
    }

    /// Called by the workers.
    pub(crate) fn pass(path: &Path) {
        File::open(path).unwrap().lock_shared().unwrap();
    }
}

/// Workers that run rounds in lockstep.
pub(crate) struct Race {
    go: Gate,
    done: Gate,
    workers: Vec<Worker>,
}

impl Race {
    pub(crate) fn start(dir: &Path, roles: &[&str]) -> Self {
        let go = Gate::closed(dir.join("go"));
        let done = Gate::closed(dir.join("done"));
        let workers: Vec<_> = roles.iter().map(|name| Worker::start(role(name, dir))).collect();
        for worker in &workers {
            worker.expect("ready");
        }
        Self { go, done, workers }
    }

    /// One round: all workers start simultaneously, and every answer arrives before any lock is released. Answers are
    /// indexed by worker.
    pub(crate) fn round(&self, check: impl FnOnce(&[String])) {
        self.go.open();
        let answers: Vec<String> = self.workers.iter().map(Worker::line).collect();
        self.go.close();
        check(&answers);
        self.done.open();
        for worker in &self.workers {
            worker.expect("done");
        }
        self.done.close();
    }
}

/// The worker's part of a race: `attempt` returns the answer and a value that is kept until the end of the round.
pub(crate) fn run_rounds<T>(dir: &Path, mut attempt: impl FnMut() -> (&'static str, T)) {
    let (go, done) = (dir.join("go"), dir.join("done"));
    say("ready");
    loop {
        Gate::pass(&go);
        let (answer, kept) = attempt();
        say(answer);
        Gate::pass(&done);
        drop(kept);
        say("done");
    }
}

/// Exits if the test has closed the pipe.
pub(crate) fn say(line: &str) {
    let mut out = std::io::stdout().lock();
    if writeln!(out, "{line}").and_then(|()| out.flush()).is_err() {
        std::process::exit(0);
    }
}

pub(crate) fn tell_skipped(test: &str, why: &str) {
    eprintln!("SKIPPED {test}: {why}");
    println!("SKIPPED {test}: {why}");
}
