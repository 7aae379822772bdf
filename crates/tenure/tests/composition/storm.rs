//! The test: starts everything, stops the faults after a while, measures how long the rest of the work takes, and checks the
//! history.

use std::collections::BTreeMap;
use std::panic::AssertUnwindSafe;
use std::process::Command;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use rustix::process::Signal;
use tenure_core::holder::HolderKind;
use tenure_core::store::{LeaseFilter, Store, TaskFilter, Viewer};
use tenure_core::task::{Task, TaskStatus};
use tenure_testkit::cli::{self, Answer, Dice, HANG, Running, Sandbox, full_or};
use tenure_testkit::postgres::Cluster;
use tenure_testkit::proxy::Proxy;

use crate::checker::{explain, faults};
use crate::faults::Skew;
use crate::history::{AttemptRow, Call, History, Kill, LeaseRow, Line, Pause, TaskRow, now};
use crate::observer::{Observed, observe};
use crate::{SUITE, bystanders, faults as nemesis, mcp, workers};

const CONFIG: &str = "\
runners: {preset: pretend, maxConcurrent: 3, killGrace: 300ms, heartbeatInterval: 500ms, staleTimeout: 8s, idleTimeout: 1m}
locking: {pollInterval: 1s, taskTimeout: 8s, sectionTimeout: 8s}
";
/// Three times `locking.pollInterval`.
const TICKET_LIFE: i64 = 3000;
/// History that is older than this many milliseconds is removed.
const RETENTION: i64 = 5000;
/// All work that is ready when the faults stop has to be completed within this time, on an idle machine.
const PROGRESS: Duration = Duration::from_secs(10);
/// How long a command that only reads takes on an idle machine; a slower one gets more time in proportion.
const USUAL_COMMAND: Duration = Duration::from_millis(40);
pub(crate) const SERIAL: &str = "Serial";
pub(crate) const PARALLEL: &str = "Parallel";
/// No task is ever in this section, and there is always a waiter for it.
pub(crate) const EMPTY: &str = "Empty";
/// May change the status of a task that it does not hold.
pub(crate) const BOSS: &str = "boss";

/// The server and the way to it, on PostgreSQL.
#[derive(Debug)]
pub(crate) struct Server {
    pub(crate) cluster: Cluster,
    pub(crate) proxy: Proxy,
}

#[derive(Debug)]
pub(crate) struct Storm {
    pub(crate) project: cli::Project,
    pub(crate) server: Option<Server>,
    pub(crate) seed: u64,
    skew: Skew,
    /// The faults have stopped, and everything that is left has to be completed.
    calm: AtomicBool,
    over: AtomicBool,
    calls: Mutex<Vec<Call>>,
    kills: Mutex<Vec<Kill>>,
    pauses: Mutex<Vec<Pause>>,
    /// The keys of all tasks.
    keys: Mutex<Vec<String>>,
    /// The keys of the tasks that the workers hold.
    held: Mutex<Vec<String>>,
}

/// What a process of the program is asked to do.
#[derive(Debug, Clone)]
pub(crate) struct Request {
    pub(crate) actor: String,
    pub(crate) verb: &'static str,
    pub(crate) words: Vec<String>,
    pub(crate) section: Option<&'static str>,
    pub(crate) presents: Option<i64>,
}

impl Request {
    pub(crate) fn new(actor: &str, verb: &'static str, words: &[&str]) -> Self {
        let words = words.iter().map(|word| (*word).to_owned()).collect();
        Self { actor: actor.to_owned(), verb, words, section: None, presents: None }
    }
}

impl Storm {
    fn new(seed: u64) -> Self {
        let server = SUITE.is_on_postgres().then(|| {
            let cluster = Cluster::private(&["fsync=off"]);
            let proxy = Proxy::to(cluster.port());
            Server { cluster, proxy }
        });
        let url = server.as_ref().map(|server| server.cluster.tcp_url("tenure", server.proxy.port()));
        let sandbox = Sandbox::on(SUITE, url);
        sandbox.put_tenure_on_path();
        let project = sandbox.project("shop");
        project.configure(&format!("{}{CONFIG}", sandbox.agent_presets()));
        project.ok(&["config", "set", "store.retention", &format!("{RETENTION}ms")]);
        project.ok(&["sections", "add", SERIAL]);
        project.ok(&["sections", "add", PARALLEL, "--parallel"]);
        project.ok(&["sections", "add", EMPTY]);
        Self {
            skew: Skew::new(&project),
            project,
            server,
            seed,
            calm: AtomicBool::new(false),
            over: AtomicBool::new(false),
            calls: Mutex::default(),
            kills: Mutex::default(),
            pauses: Mutex::default(),
            keys: Mutex::default(),
            held: Mutex::default(),
        }
    }

    pub(crate) fn is_calm(&self) -> bool {
        self.calm.load(Ordering::SeqCst)
    }

    pub(crate) fn is_over(&self) -> bool {
        self.over.load(Ordering::SeqCst)
    }

    /// The random choices of one actor.
    pub(crate) fn dice(&self, actor: &str) -> Dice {
        let salt = actor.bytes().fold(0_u64, |sum, byte| sum.wrapping_mul(131).wrapping_add(u64::from(byte)));
        Dice::new(self.seed ^ salt.wrapping_mul(0x9e37_79b9))
    }

    pub(crate) fn add_key(&self, key: &str) {
        self.keys.lock().unwrap().push(key.to_owned());
    }

    /// One of the newest tasks, so that many actors want the same few tasks.
    pub(crate) fn some_key(&self, dice: &mut Dice) -> Option<String> {
        let keys = self.keys.lock().unwrap();
        let recent = keys.len().saturating_sub(if dice.one_in(2) { 3 } else { 12 });
        (!keys.is_empty()).then(|| dice.pick(&keys[recent..]).clone())
    }

    pub(crate) fn note_held(&self, key: &str) {
        self.held.lock().unwrap().push(key.to_owned());
    }

    pub(crate) fn note_given_up(&self, key: &str) {
        let mut held = self.held.lock().unwrap();
        if let Some(at) = held.iter().position(|held| held == key) {
            held.swap_remove(at);
        }
    }

    /// A task that a worker holds, so that a claim of it has to wait.
    pub(crate) fn some_held_key(&self, dice: &mut Dice) -> Option<String> {
        let held = self.held.lock().unwrap();
        (!held.is_empty()).then(|| dice.pick(&held).clone())
    }

    pub(crate) fn record(&self, call: Call) {
        self.calls.lock().unwrap().push(call);
    }

    pub(crate) fn record_kill(&self, kill: Kill) {
        self.kills.lock().unwrap().push(kill);
    }

    pub(crate) fn record_pause(&self, pause: Pause) {
        self.pauses.lock().unwrap().push(pause);
    }

    /// A pause that ends early when the storm is over.
    pub(crate) fn pause(&self, millis: u64) {
        let end = Instant::now() + Duration::from_millis(millis);
        while Instant::now() < end && !self.is_over() {
            std::thread::sleep(Duration::from_millis(10).min(end.saturating_duration_since(Instant::now())));
        }
    }

    /// A process of the program. A few of them are on a machine whose clock is wrong.
    pub(crate) fn command(&self, words: &[String], dice: &mut Dice) -> Command {
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        let mut command = self.project.command(&words);
        if dice.one_in(5) {
            self.skew.set(&mut command, dice.pick::<&str>(&["+2h", "-2h"]));
        }
        command
    }

    /// Runs a command and records it. With `kill`, it is killed at some instant of its first tenths of a second.
    pub(crate) fn call(&self, request: &Request, dice: &mut Dice) -> (Call, Answer) {
        let begun = now();
        let running = Running::start(self.command(&request.words, dice));
        let pid = running.pid();
        if !self.is_calm() && dice.one_in(12) {
            let instant = Duration::from_micros(dice.below(100_000));
            if !running.ends_within(instant) {
                let at = now();
                running.signal(Signal::KILL);
                running.ends_within(HANG);
                let command = request.words.join(" ");
                self.record_kill(Kill { pid, at, dead_by: Some(now()), attempt: None, command });
            }
        }
        let answer = running.end();
        let mut call = Call {
            actor: request.actor.clone(),
            pid,
            verb: request.verb,
            words: request.words.join(" "),
            section: request.section.map(str::to_owned),
            presented: request.presents,
            begun,
            ended: now(),
            killed: answer.code.is_none(),
            code: answer.code,
            said: answer.err.clone(),
            ..Call::default()
        };
        if let Ok(json) = serde_json::from_str::<serde_json::Value>(&answer.out) {
            call.read(&json["data"], &json["error"]);
        }
        (call, answer)
    }

    /// Calls and records, and ignores the answer.
    pub(crate) fn just_call(&self, actor: &str, verb: &'static str, words: &[&str], dice: &mut Dice) -> Call {
        let (call, _) = self.call(&Request::new(actor, verb, words), dice);
        self.record(call.clone());
        call
    }

    /// The store, accessed without the proxy.
    fn store(&mut self) -> Box<dyn Store> {
        self.project.store_variable = self.server.as_ref().map(|server| server.cluster.url());
        let store = self.project.store();
        self.project.store_variable = None;
        store
    }
}

/// Tasks that are neither completed nor skipped.
pub(crate) fn open_tasks(store: &dyn Store) -> tenure_core::Result<Vec<Task>> {
    let mut tasks = all_tasks(store)?;
    tasks.retain(|task| !matches!(task.status, TaskStatus::Completed | TaskStatus::Skipped));
    Ok(tasks)
}

fn all_tasks(store: &dyn Store) -> tenure_core::Result<Vec<Task>> {
    let filter = TaskFilter { limit: u64::from(u32::MAX), ..TaskFilter::default() };
    Ok(store.read(|view| view.list_tasks(&filter, &Viewer::default()))?.0)
}

/// How many times slower than usual a command is now.
fn slowness(storm: &Storm) -> f64 {
    let begun = Instant::now();
    for _ in 0..5 {
        storm.project.ok(&["tasks", "list", "--limit", "1"]);
    }
    (begun.elapsed().as_secs_f64() / 5.0 / USUAL_COMMAND.as_secs_f64()).max(1.0)
}

/// Waits until all work is completed, and returns how long that took.
fn complete(storm: &Storm, store: &dyn Store) -> Result<Duration, String> {
    let begun = Instant::now();
    loop {
        let open = open_tasks(store).unwrap();
        if open.is_empty() {
            return Ok(begun.elapsed());
        }
        if begun.elapsed() > PROGRESS.mul_f64(slowness(storm).max(2.0)) {
            let open: Vec<_> = open
                .iter()
                .map(|task| format!("{} is {}, {:?}", task.key, task.status, task.lease))
                .collect();
            let open = open.join("\n");
            return Err(format!("no progress {:.1?} after the faults stopped:\n{open}", begun.elapsed()));
        }
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// Ends the storm, even if something failed.
struct Ending<'a>(&'a Storm);

impl Drop for Ending<'_> {
    fn drop(&mut self) {
        self.0.calm.store(true, Ordering::SeqCst);
        self.0.over.store(true, Ordering::SeqCst);
    }
}

#[test]
fn everything_beside_everything_keeps_the_rules_and_all_work_is_completed() {
    let seconds = std::env::var("TENURE_TEST_SECONDS").ok().and_then(|text| text.parse().ok());
    let length = Duration::from_secs(seconds.unwrap_or_else(|| full_or(600, 10)));
    let mut storm = Storm::new(Dice::seed("composition"));
    let (watching, counting, deciding) = (storm.store(), storm.store(), storm.store());
    bystanders::add_first_tasks(&storm);
    let stop = AtomicBool::new(false);
    let (progress, observed) = std::thread::scope(|scope| {
        let stop = &stop;
        let observer = scope.spawn(move || observe(watching.as_ref(), stop));
        // The observer has to end even if something failed; otherwise the test would hang instead of reporting the failure.
        let progress =
            std::panic::catch_unwind(AssertUnwindSafe(|| rage(&storm, counting.as_ref(), deciding, length)));
        if progress.is_ok() {
            // The runners that wake-up started would stay idle for a while.
            storm.project.ok(&["runners", "stop", "--all"]);
            // A runner that did not stop in time was killed, which leaves its row to the next wake-up.
            storm.project.ok(&["runners", "wakeup"]);
            storm.project.ok(&["locks", "cleanup"]);
        }
        stop.store(true, Ordering::SeqCst);
        let observed = observer.join().unwrap();
        (progress.unwrap_or_else(|panic| std::panic::resume_unwind(panic)), observed)
    });
    finish(&storm, counting.as_ref(), observed, progress);
}

/// Runs all actors, with faults for `length` and then without, until everything is completed. Returns how long that took.
fn rage(
    storm: &Storm,
    store: &dyn Store,
    deciding: Box<dyn Store>,
    length: Duration,
) -> Result<Duration, String> {
    let begun = Instant::now();
    std::thread::scope(|scope| {
        let _ending = Ending(storm);
        for n in 0..3 {
            scope.spawn(move || workers::work(storm, &format!("w{n}")));
        }
        for n in 0..2 {
            scope.spawn(move || mcp::work(storm, &format!("m{n}")));
        }
        scope.spawn(move || bystanders::decide(storm, deciding.as_ref()));
        scope.spawn(|| bystanders::run_runners(storm));
        scope.spawn(|| bystanders::wake_up(storm));
        scope.spawn(|| bystanders::run_jobs(storm));
        for n in 0..2 {
            scope.spawn(move || bystanders::lock_exclusively(storm, &format!("tool{n}")));
        }
        scope.spawn(|| bystanders::wait_in_vain(storm));
        let nemesis = scope.spawn(|| nemesis::strike(storm));
        while begun.elapsed() < length && !nemesis.is_finished() {
            std::thread::sleep(Duration::from_millis(10));
        }
        storm.calm.store(true, Ordering::SeqCst);
        nemesis.join().unwrap();
        storm.project.give("calm");
        complete(storm, store)
    })
}

/// Checks what is left and the history.
fn finish(storm: &Storm, store: &dyn Store, observed: Observed, progress: Result<Duration, String>) {
    let jobs = storm.project.ok(&["jobs", "list"])["jobs"].clone();
    let left = storm.project.sandbox().agents();
    let doctor = storm.project.run(&["--json", "doctor"]);
    let history = collect(storm, store, observed);
    eprintln!(
        "composition: {} calls, {} killed or stopped, {} events, {} of {} leases removed, {} attempts, {} tasks, {} jobs; the rest took {}, with commands {:.1} times slower than usual",
        history.calls.len(),
        history.kills.len(),
        history.feed.len(),
        history.leases.len() - history.kept.len(),
        history.leases.len(),
        history.attempts.len(),
        history.tasks.len(),
        jobs.as_array().unwrap().len(),
        progress.as_ref().map_or_else(|_| "too long".to_owned(), |time| format!("{time:.1?}")),
        slowness(storm),
    );
    let mut found = faults(&history);
    // On PostgreSQL the server dates all events.
    let times = || history.feed.iter().map(|event| event.recorded);
    if storm.server.is_none() && times().max().unwrap_or(0) - times().min().unwrap_or(0) < 3_600_000 {
        found.push("no event has a wrong time, so the skew took no effect".to_owned());
    }
    if let Err(why) = &progress {
        found.push(why.clone());
    }
    for job in jobs.as_array().unwrap().iter().filter(|job| job["status"] != "completed") {
        found.push(format!("a job was not completed: {job}"));
    }
    if !left.is_empty() {
        found.push(format!("processes of agents are left: {left:?}"));
    }
    if doctor.code != Some(0) {
        found.push(format!("doctor: {}", doctor.out));
    }
    let file = std::env::temp_dir().join(format!("composition-{}.txt", storm.seed));
    if progress.as_ref().is_ok_and(|time| *time > PROGRESS) {
        std::fs::write(&file, history.to_string()).unwrap();
        eprintln!("composition: slow, but so is the machine; whole history in {}", file.display());
    }
    if !found.is_empty() {
        std::fs::write(&file, history.to_string()).unwrap();
        let relevant = explain(&history, &found);
        panic!(
            "TENURE_TEST_SEED={}, whole history in {}: {found:#?}\n{relevant}",
            storm.seed,
            file.display()
        );
    }
}

fn collect(storm: &Storm, store: &dyn Store, observed: Observed) -> History {
    let filter = LeaseFilter { include_ended: true, ..LeaseFilter::default() };
    let kept = store.read(|view| view.leases(&filter)).unwrap();
    let leases = observed.leases.into_iter().map(|(fence, lease)| {
        let row = LeaseRow {
            resource: lease.resource.to_string(),
            of_runner: lease.holder.kind == HolderKind::Runner,
            holder: lease.holder.id,
            pid: lease.process.map(|process| process.process.pid),
            ttl: i64::try_from(lease.ttl.as_millis()).unwrap(),
            reason: lease.ended.map(|(_, reason)| reason.as_str().to_owned()),
        };
        (fence, row)
    });
    let mut attempts: BTreeMap<String, AttemptRow> = BTreeMap::new();
    for event in observed.events.values() {
        let (Some(id), Some(fence), Some(resource)) = (&event.attempt, event.fence, &event.resource) else {
            continue;
        };
        let row = attempts.entry(id.clone()).or_default();
        (row.fence, row.resource) = (fence, resource.clone());
        row.ended |= event.is("attempt.ended");
    }
    let journal = storm.project.marks("journal");
    let (kills, calls) = (storm.kills.lock().unwrap(), storm.calls.lock().unwrap());
    History {
        feed: observed.events.into_values().collect(),
        leases: leases.collect(),
        attempts,
        kept: kept.iter().map(|lease| lease.fence.number()).collect(),
        retention: RETENTION,
        end: now(),
        tasks: tasks(store),
        calls: calls.clone(),
        snapshots: observed.snapshots,
        beats: observed.beats,
        alive: observed.alive,
        journal: journal.iter().map(|line| Line::parse(line)).collect(),
        exclusive: storm.project.marks("exclusive"),
        kills: kills.clone(),
        pauses: storm.pauses.lock().unwrap().clone(),
        ticket_life: TICKET_LIFE,
        overriders: vec![BOSS.to_owned()],
    }
}

fn tasks(store: &dyn Store) -> BTreeMap<String, TaskRow> {
    let tasks = all_tasks(store).unwrap();
    let ids: BTreeMap<String, String> =
        tasks.iter().map(|task| (task.key.clone(), task.id.to_string())).collect();
    let row = |task: &Task| TaskRow {
        status: task.status.to_string(),
        section: task.section.as_ref().map(|section| section.id.to_string()),
        section_name: task.section.as_ref().map(|section| section.name.clone()),
        serial: task.section.as_ref().is_some_and(|section| section.serial),
        depends_on: task.depends_on.iter().map(|key| ids.get(key).unwrap_or(key).clone()).collect(),
    };
    tasks.iter().map(|task| (task.id.to_string(), row(task))).collect()
}
