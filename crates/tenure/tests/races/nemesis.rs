//! Never stuck: processes are killed at random instants while they claim, wait, finish, let go and force; afterwards every
//! task reaches `completed` by itself, and the history has no fault.

use std::collections::BTreeMap;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use rustix::process::Signal;

use crate::checker::faults;
use tenure_testkit::cli::{Answer, Dice, HANG, Running, full_or};

use crate::harness::Project;
use crate::history::{Deed, Event, History};
use crate::watcher::{Enough, now, watch};

const WORKERS: u64 = 32;
const TASKS: usize = 50;
const TICKET_LIFE: i64 = 3000;

/// What a worker may do next. One line for each.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Verb {
    Claim,
    ClaimWaiting,
    Next,
    NextWaiting,
    Renew,
    Release,
    Done,
    Force,
    CleanUp,
    Run,
}

/// How often each is chosen, in relation to the others.
const ODDS: &[(Verb, usize)] = &[
    (Verb::Claim, 4),
    (Verb::ClaimWaiting, 5),
    (Verb::Next, 4),
    (Verb::NextWaiting, 3),
    (Verb::Renew, 2),
    (Verb::Release, 5),
    (Verb::Done, 2),
    (Verb::Force, 1),
    (Verb::CleanUp, 1),
    (Verb::Run, 4),
];

#[derive(Debug)]
struct Storm<'a> {
    project: &'a Project,
    /// Keys, with the ids that the feed has.
    tasks: BTreeMap<String, String>,
    kills_left: AtomicI64,
    completed: AtomicUsize,
    deeds: Mutex<Vec<Deed>>,
    verbs: Vec<Verb>,
    /// The server comes and goes, and processes are stopped for a while as well as killed.
    rough: bool,
}

/// A worker: a name, and what it believes to hold.
#[derive(Debug)]
struct Worker<'a> {
    storm: &'a Storm<'a>,
    name: String,
    dice: Dice,
    held: Vec<(String, i64)>,
}

impl Worker<'_> {
    fn work(&mut self, killing: bool) {
        let verb = *self.dice.pick(&self.storm.verbs);
        let keys: Vec<&String> = self.storm.tasks.keys().collect();
        let mut task = (*self.dice.pick(&keys)).clone();
        let mut fence = None;
        if matches!(verb, Verb::Renew | Verb::Release | Verb::Done) {
            // Half of the tasks are kept back for later, or the storm would soon have nothing to blow at.
            if verb == Verb::Done && self.storm.completed.load(Ordering::SeqCst) >= TASKS / 2 {
                return;
            }
            let Some(place) = self.held.len().checked_sub(1) else { return };
            let place = usize::try_from(self.dice.below(place as u64 + 1)).unwrap();
            let held = self.held.swap_remove(place);
            if verb == Verb::Renew {
                self.held.push(held.clone());
            }
            task = held.0;
            fence = Some(held.1);
        }
        let kill = killing && self.dice.one_in(2);
        self.act(verb, &task, fence, kill);
    }

    fn arguments(&mut self, verb: Verb, task: &str, fence: Option<i64>) -> Vec<String> {
        let ttl = format!("{}s", 1 + self.dice.below(2));
        let wait = format!("{}s", 1 + self.dice.below(3));
        // The kernel lets go of the command's own lock when the last of its processes is gone, and not before.
        let script = format!(
            "exec 9>>lock.{task}; flock -n 9 || echo {task} >> overlaps; sleep 0.0{}; {} tasks release {task}",
            self.dice.below(10),
            env!("CARGO_BIN_EXE_tenure")
        );
        let words: Vec<&str> = match verb {
            Verb::Claim => vec!["claim", task, "--ttl", &ttl],
            Verb::ClaimWaiting => vec!["claim", task, "--ttl", &ttl, "--wait", &wait],
            Verb::Next => vec!["next", "--claim", "--ttl", &ttl],
            Verb::NextWaiting => vec!["next", "--claim", "--ttl", &ttl, "--wait", &wait],
            Verb::Renew => vec!["renew", task],
            Verb::Release => vec!["release", task],
            Verb::Done => vec!["done", task],
            Verb::Force => vec!["release", task, "--force"],
            Verb::CleanUp => vec!["cleanup"],
            Verb::Run => vec!["run", task, "--ttl", &ttl],
        };
        let noun = if matches!(verb, Verb::Force | Verb::CleanUp) { "locks" } else { "tasks" };
        let mut words: Vec<String> =
            [&["--json", noun], words.as_slice()].concat().iter().map(|w| (*w).to_owned()).collect();
        match fence {
            // The credential speaks as well as the name does.
            Some(fence) if self.dice.one_in(2) => words.extend(["--fence".to_owned(), fence.to_string()]),
            _ => {}
        }
        words.extend(["--agent".to_owned(), self.name.clone()]);
        if verb == Verb::Run {
            words.extend(["--", "sh", "-c", &script].map(str::to_owned));
        }
        words
    }

    fn act(&mut self, verb: Verb, task: &str, fence: Option<i64>, kill: bool) -> Option<i32> {
        let words = self.arguments(verb, task, fence);
        let begun = now();
        let running = self.storm.project.spawn(&words.iter().map(String::as_str).collect::<Vec<_>>());
        let pid = running.pid();
        let mut killed = None;
        if kill {
            // Any instant of a command that takes milliseconds, and sometimes one of a long wait.
            let reach = if self.dice.one_in(4) { 1_500_000 } else { 60_000 };
            let instant = Duration::from_micros(self.dice.below(reach));
            if !running.ends_within(instant) && self.storm.kills_left.fetch_sub(1, Ordering::SeqCst) > 0 {
                killed = Some(now());
                running.signal(Signal::KILL);
            }
        }
        if !kill && self.storm.rough && self.dice.one_in(6) {
            self.pause(&running);
        }
        let answer = running.end();
        // It may have been quicker than the signal; then its word counts after all, and the kill does not.
        if killed.is_some() && answer.code.is_some() {
            killed = None;
            self.storm.kills_left.fetch_add(1, Ordering::SeqCst);
        }
        let mut deed = Deed {
            worker: self.name.clone(),
            pid,
            verb: match verb {
                Verb::Next | Verb::NextWaiting => "next",
                Verb::Claim | Verb::ClaimWaiting => "claim",
                Verb::Run => "run",
                _ => "other",
            },
            task: Some(self.storm.tasks[task].clone()),
            begun,
            ended: now(),
            killed,
            code: answer.code,
            ..Deed::default()
        };
        if killed.is_none() {
            self.listen(verb, &words, &answer, &mut deed);
        }
        self.storm.deeds.lock().unwrap().push(deed);
        answer.code
    }

    /// Stopped at any instant, for a moment or for so long that the server has given it up.
    fn pause(&mut self, running: &Running) {
        let instant = Duration::from_micros(self.dice.below(60_000));
        let pause = if self.dice.one_in(8) { 6_500 } else { self.dice.below(500) };
        if !running.ends_within(instant) {
            running.signal(Signal::STOP);
            std::thread::sleep(Duration::from_millis(pause));
            running.signal(Signal::CONT);
        }
    }

    /// What the process says that it has done.
    fn listen(&mut self, verb: Verb, words: &[String], answer: &Answer, deed: &mut Deed) {
        // 2 is for a task that is completed already, 4 for a lock that is none, 8 for a lease that was lost: also by who
        // was just given it, if ending what its predecessor had started took longer than the lease.
        let expected: &[i32] = match verb {
            Verb::Claim => &[0, 2, 6, 8],
            Verb::ClaimWaiting | Verb::Run => &[0, 2, 6, 8, 9],
            Verb::Next => &[0, 8, 10],
            Verb::NextWaiting => &[0, 8, 9],
            Verb::Renew | Verb::Release | Verb::Done => &[0, 8],
            Verb::Force => &[0, 4],
            Verb::CleanUp => &[0],
        };
        let unanswered = self.storm.rough && answer.code == Some(1) && answer.out.contains("STORE_ERROR");
        // It had given its task back, and before it heard that this was done, whoever got the task next has ended it.
        let ended = self.storm.rough && verb == Verb::Run && answer.code == Some(137);
        let is_expected = answer.code.is_some_and(|code| expected.contains(&code));
        assert!(unanswered || ended || is_expected, "{words:?}: {answer:?}");
        if answer.code != Some(0) || verb == Verb::Run {
            return;
        }
        let data = &answer.json()["data"];
        let id = data["task"]["id"].as_str().map(str::to_owned);
        match verb {
            Verb::Claim | Verb::ClaimWaiting | Verb::Next | Verb::NextWaiting => {
                let fence = data["lease"]["fence"].as_i64().unwrap();
                assert_eq!(data["lease"]["holder"]["id"], self.name.as_str(), "{data}");
                if data["lease"]["reacquired"] == false {
                    deed.granted = Some(fence);
                }
                deed.task = id;
                self.held.push((data["task"]["key"].as_str().unwrap().to_owned(), fence));
            }
            Verb::Done if data["changed"] == true => {
                self.storm.completed.fetch_add(1, Ordering::SeqCst);
                // Which lease it was is known only from the credential, or from what was believed to be held.
                let shown =
                    words.iter().position(|word| word == "--fence").map(|n| words[n + 1].parse().unwrap());
                deed.finished = shown.or_else(|| self.fence_of_completion(&data["task"]["id"]));
            }
            _ => {}
        }
    }

    /// Asked of the feed, where the process itself was not asked for a fence.
    fn fence_of_completion(&self, task: &serde_json::Value) -> Option<i64> {
        let feed = self.storm.project.feed();
        feed.iter()
            .rev()
            .find(|e| e["taskId"] == *task && e["to"] == "completed")
            .and_then(|e| e["fence"].as_i64())
    }

    /// Takes and finishes what there is, until everything is completed.
    fn finish_up(&mut self) {
        let deadline = Instant::now() + HANG;
        loop {
            if Instant::now() >= deadline {
                let left = self.storm.project.ok(&["tasks", "list", "--limit", "3"]);
                let held = self.storm.project.ok(&["locks", "list"]);
                panic!("not everything gets completed: {left} {held}");
            }
            self.held.clear();
            if self.act(Verb::NextWaiting, "F1", None, false) == Some(0) {
                let (task, fence) = self.held.pop().unwrap();
                self.act(Verb::Done, &task, Some(fence), false);
            } else {
                let left = self.storm.project.ok(&["tasks", "list", "--limit", "1"]);
                if left["total"] == 0 {
                    return;
                }
            }
        }
    }
}

fn prepare(project: &Project) -> BTreeMap<String, String> {
    project.ok(&["sections", "add", "Line"]);
    project.ok(&["sections", "add", "Crowd", "--parallel"]);
    project.add("F", 30);
    for (prefix, section) in [("L", "Line"), ("C", "Crowd")] {
        for key in project.add(prefix, 10) {
            project.ok(&["tasks", "update", &key, "--section", section]);
        }
    }
    let listed = project.ok(&["tasks", "list"]);
    let text = |value: &serde_json::Value| value.as_str().unwrap().to_owned();
    let tasks: BTreeMap<_, _> =
        listed["tasks"].as_array().unwrap().iter().map(|t| (text(&t["key"]), text(&t["id"]))).collect();
    assert_eq!(tasks.len(), TASKS);
    tasks
}

/// One line for everything that happened.
fn tell(history: &History) -> String {
    let feed = history.feed.iter().map(|event| format!("{event:?}\n"));
    let deeds = history.deeds.iter().map(|deed| format!("{deed:?}\n"));
    let looks = history.looks.iter().map(|look| format!("{look:?}\n"));
    feed.chain(deeds).chain(looks).collect()
}

#[test]
fn whoever_is_killed_when_ever_every_task_gets_completed_once() {
    let kills = full_or(1000, 100);
    let project = Project::with_config(CONFIG);
    blow(&project, kills, Dice::seed("nemesis"), false, || {});
}

pub(crate) const CONFIG: &str = "locking: {pollInterval: 1s}\ntasks: {maxAttempts: 100000}";

/// The storm, until so many were killed; then `calm` is called, and everything must get completed.
pub(crate) fn blow(project: &Project, kills: i64, seed: u64, rough: bool, calm: impl FnOnce()) {
    let tasks = prepare(project);
    let can_run = project.run(&["tasks", "run", "--help"]).code == Some(0);
    let mut verbs: Vec<Verb> =
        ODDS.iter().flat_map(|(verb, odds)| std::iter::repeat_n(*verb, *odds)).collect();
    verbs.retain(|verb| can_run || *verb != Verb::Run);
    let storm = Storm {
        project,
        tasks,
        kills_left: AtomicI64::new(kills),
        completed: AtomicUsize::new(0),
        deeds: Mutex::new(Vec::new()),
        verbs,
        rough,
    };
    let stop = AtomicBool::new(false);
    let begun = Instant::now();
    let looks = std::thread::scope(|scope| {
        let (storm, stop) = (&storm, &stop);
        let watcher = scope.spawn(move || watch(storm.project, stop));
        let enough = Enough(stop);
        let workers: Vec<_> = (0..WORKERS)
            .map(|n| {
                scope.spawn(move || {
                    let dice = Dice::new(seed.wrapping_add(n));
                    let mut worker = Worker { storm, name: format!("w{n}"), dice, held: Vec::new() };
                    while storm.kills_left.load(Ordering::SeqCst) > 0 && begun.elapsed() < 10 * HANG {
                        worker.work(true);
                    }
                    worker
                })
            })
            .collect();
        let workers: Vec<_> = workers.into_iter().map(|worker| worker.join().unwrap()).collect();
        eprintln!("nemesis: {kills} kills in {:.1?}", begun.elapsed());
        calm();
        let finishers: Vec<_> =
            workers.into_iter().take(8).map(|mut worker| scope.spawn(move || worker.finish_up())).collect();
        for finisher in finishers {
            finisher.join().unwrap();
        }
        drop(enough);
        watcher.join().unwrap()
    });
    project.ok(&["locks", "cleanup"]);

    let listed = project.ok(&["tasks", "list", "--status", "all", "--limit", "1000"]);
    let text = |value: &serde_json::Value| value.as_str().unwrap().to_owned();
    let statuses =
        listed["tasks"].as_array().unwrap().iter().map(|t| (text(&t["id"]), text(&t["status"]))).collect();
    let in_line = listed["tasks"].as_array().unwrap().iter().filter(|t| t["section"] == "Line");
    let history = History {
        feed: project.feed().iter().map(Event::read).collect(),
        deeds: storm.deeds.into_inner().unwrap(),
        looks,
        ticket_life: TICKET_LIFE,
        sections: in_line.map(|t| (text(&t["id"]), format!("section:{}", text(&t["sectionId"])))).collect(),
        statuses,
    };
    eprintln!(
        "nemesis: {} processes, {} killed, {} events, {} looks, runs: {can_run}, {:.1?} in all",
        history.deeds.len(),
        history.deeds.iter().filter(|deed| deed.killed.is_some()).count(),
        history.feed.len(),
        history.looks.len(),
        begun.elapsed()
    );
    let faults = faults(&history);
    if !faults.is_empty() {
        let file = std::env::temp_dir().join(format!("nemesis-{seed}.txt"));
        std::fs::write(&file, tell(&history)).unwrap();
        panic!("seed {seed}, whole history in {}: {faults:#?}", file.display());
    }
    let overlaps = std::fs::read_to_string(project.root().join("overlaps")).unwrap_or_default();
    assert_eq!(overlaps, "", "two commands ran on one task");
}
