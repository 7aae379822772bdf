//! The other parts of the composition: a person who adds tasks and overrides their status, runners, wake-ups, jobs, exclusive
//! locks, and a waiter for which there is never any work.

use std::process::{Child, Command, Stdio};
use std::time::Duration;

use rustix::process::Signal;
use serde_json::{Value, json};
use tenure_core::store::Store;
use tenure_testkit::cli::{Dice, HANG, Running, write_program};

use crate::history::{Call, Kill, now};
use crate::storm::{BOSS, EMPTY, PARALLEL, Request, SERIAL, Storm, open_tasks};

/// At most this many tasks are unfinished at a time.
const OPEN: usize = 12;

/// What the agent of a task does. `storm STEP` is skipped once the faults have stopped.
const AGENTS: &[&[&str]] = &[
    &["journal begin", "journal ok"],
    &["journal begin", "sleep 0.3", "journal tick", "sleep 0.3", "journal ok"],
    &["journal begin", "ticking", "sleep 0.2", "journal ok"],
    &["journal begin", "ticking", "storm sleep 2", "journal ok"],
    &["journal begin", "tenure tasks done $TENURE_TASK_ID", "journal said $code", "storm sleep 0.5"],
    &["journal begin", "tenure tasks done $TENURE_TASK_ID", "journal said $code", "ticking", "storm exit 3"],
    &["journal begin", "storm tenure tasks fail $TENURE_TASK_ID -m no; exit 0", "journal ok"],
    &["journal begin", "storm tenure tasks release $TENURE_TASK_ID; exit 0", "journal ok"],
    &["journal begin", "away", "storm exit 1", "journal ok"],
];

/// Adds tasks, retries failed ones, and overrides the status of some.
pub(crate) fn decide(storm: &Storm, store: &dyn Store) {
    let mut dice = storm.dice(BOSS);
    let mut number = 0;
    while !storm.is_over() {
        if storm.is_calm() {
            retry_failed(storm, &mut dice);
            storm.pause(200);
        } else if open_tasks(store).is_ok_and(|open| open.len() < OPEN) {
            number += 1;
            add_task(storm, number, &mut dice);
        } else if dice.one_in(4) {
            override_status(storm, &mut dice);
        } else {
            storm.pause(100);
        }
    }
}

fn add_task(storm: &Storm, number: u32, dice: &mut Dice) {
    let key = format!("K{number}");
    let text = steps(dice);
    let section = *dice.pick(&["", "", SERIAL, PARALLEL]);
    let mut words = vec!["--json", "tasks", "add", &key, "--id", &key, "-d", &text];
    if !section.is_empty() {
        words.extend(["--section", section]);
    }
    let on = format!("K{}", number.saturating_sub(1));
    if number > 1 && dice.one_in(5) {
        words.extend(["--depends-on", &on]);
    }
    storm.just_call(BOSS, "add", &words, dice);
    // Added even if the answer was lost, because the task may exist.
    storm.add_key(&key);
}

fn steps(dice: &mut Dice) -> String {
    let steps: Vec<String> = dice.pick(AGENTS).iter().map(|step| format!("do: {step}")).collect();
    steps.join("\n")
}

/// The tasks that are there at the beginning, with the keys `B1`, `B2` and so on.
pub(crate) fn add_first_tasks(storm: &Storm) {
    let mut dice = storm.dice("beginning");
    let sections = [None, None, Some(SERIAL), Some(PARALLEL)];
    let tasks: Vec<Value> = (1..=OPEN)
        .map(|n| {
            let (key, section) = (format!("B{n}"), dice.pick(&sections));
            json!({"id": key, "title": key, "description": steps(&mut dice), "section": section})
        })
        .collect();
    let file = storm.project.path("tasks.json");
    std::fs::write(&file, json!(tasks).to_string()).unwrap();
    storm.project.ok(&["tasks", "import", file.to_str().unwrap()]);
    for n in 1..=OPEN {
        storm.add_key(&format!("B{n}"));
    }
}

fn override_status(storm: &Storm, dice: &mut Dice) {
    let Some(key) = storm.some_key(dice) else { return };
    let choices: &[&[&str]] = &[
        &["tasks", "skip", &key, "-m", "no"],
        &["tasks", "retry", &key],
        &["tasks", "retry", &key],
        &["tasks", "update", &key, "--status", "review"],
        &["tasks", "approve", &key],
        &["tasks", "update", &key, "--status", "pending"],
        &["tasks", "update", &key, "--status", "pending", "--force"],
        &["runners", "stop"],
    ];
    let chosen = *dice.pick(choices);
    let at = now();
    let verb = if chosen[0] == "runners" { "stop" } else { "override" };
    let who: &[&str] = if verb == "override" { &["--agent", BOSS] } else { &[] };
    let call = storm.just_call(BOSS, verb, &[&["--json"], chosen, who].concat(), dice);
    if verb == "stop" {
        // Every runner that ran meanwhile may have been stopped.
        storm.record_kill(Kill { pid: 0, at, dead_by: None, attempt: None, command: call.words });
    }
}

/// In the end every task has to be completed, and an agent that failed in the storm succeeds now.
fn retry_failed(storm: &Storm, dice: &mut Dice) {
    let words = ["--json", "tasks", "list", "-s", "failed", "-s", "review", "--limit", "100"];
    let (call, answer) = storm.call(&Request::new(BOSS, "list", &words), dice);
    if call.code != Some(0) {
        return;
    }
    for task in answer.json()["data"]["tasks"].as_array().unwrap() {
        let verb = if task["status"] == "review" { "approve" } else { "retry" };
        let key = task["key"].as_str().unwrap();
        storm.just_call(BOSS, "override", &["--json", "tasks", verb, key, "--agent", BOSS], dice);
    }
}

/// Keeps one to three runners running.
pub(crate) fn run_runners(storm: &Storm) {
    let mut dice = storm.dice("runners");
    let mut running: Vec<(Running, Call)> = Vec::new();
    while !storm.is_over() {
        running =
            running.into_iter().filter_map(|(runner, call)| end_if_ended(storm, runner, call)).collect();
        let wanted = if storm.is_calm() { 1 } else { 1 + usize::try_from(dice.below(3)).unwrap() };
        if running.len() < wanted {
            // A second for the store to answer, which is less than some outages last.
            let mut words = vec!["--timeout", "1s", "runners", "start", "--foreground"];
            if !storm.is_calm() {
                match dice.below(6) {
                    0 => words.push("--once"),
                    1 => words.extend(["--section", SERIAL]),
                    2 => words.extend(["--idle-timeout", "0s"]),
                    _ => {}
                }
            }
            let words: Vec<String> = words.into_iter().map(str::to_owned).collect();
            let call = Call { verb: "runner", words: words.join(" "), begun: now(), ..Call::default() };
            running.push((Running::start(storm.command(&words, &mut dice)), call));
        }
        storm.pause(200);
    }
    for (runner, _) in running {
        runner.signal(Signal::TERM);
        runner.end();
    }
}

fn end_if_ended(storm: &Storm, mut runner: Running, call: Call) -> Option<(Running, Call)> {
    if runner.is_running() {
        return Some((runner, call));
    }
    let pid = runner.pid();
    let answer = runner.end();
    let killed = answer.code.is_none();
    storm.record(Call { pid, ended: now(), killed, code: answer.code, said: answer.err, ..call });
    None
}

/// Wakes the project up every now and then, as a timer would.
pub(crate) fn wake_up(storm: &Storm) {
    let mut dice = storm.dice("timer");
    while !storm.is_over() {
        storm.just_call("timer", "wakeup", &["--json", "runners", "wakeup"], &mut dice);
        storm.pause(700 + dice.below(600));
    }
}

/// Runs jobs one after another, and resumes them if their coordinator died.
pub(crate) fn run_jobs(storm: &Storm) {
    let mut dice = storm.dice("jobs");
    let item = storm.project.shared("item.sh");
    let journal = storm.project.shared("journal");
    let line = |text: &str| {
        format!("read -r up _ </proc/uptime; echo \"$up $TENURE_ATTEMPT {text}\" >>'{}'\n", journal.display())
    };
    write_program(&item, &format!("#!/bin/sh\n{}sleep 0.1\n{}", line("begin"), line("ok")));
    let items = storm.project.path("items.txt");
    std::fs::write(&items, "1\n2\n3\n4\n").unwrap();
    let (item, items) = (item.display().to_string(), items.display().to_string());
    let mut number = 0;
    while !storm.is_calm() {
        number += 1;
        let name = format!("job{number}");
        let words = [
            "--json",
            "jobs",
            "start",
            &name,
            "--items",
            &items,
            "--parallel",
            "2",
            "--retries",
            "20",
            "--",
            &item,
        ];
        storm.just_call("jobs", "job", &words, &mut dice);
        storm.pause(dice.below(300));
        resume_jobs(storm, &mut dice);
    }
    while !resume_jobs(storm, &mut dice) && !storm.is_over() {
        storm.pause(100);
    }
}

/// Resumes every job that is not completed. True if all are.
fn resume_jobs(storm: &Storm, dice: &mut Dice) -> bool {
    let (call, answer) = storm.call(&Request::new("jobs", "list", &["--json", "jobs", "list"]), dice);
    if call.code != Some(0) {
        return false;
    }
    let mut all = true;
    for job in answer.json()["data"]["jobs"].as_array().unwrap() {
        if job["status"] != "completed" {
            let call =
                storm.just_call("jobs", "job", &["--json", "resume", job["id"].as_str().unwrap()], dice);
            all &= call.code == Some(0);
        }
    }
    all
}

/// A process that holds the exclusive lock until it is killed.
struct Holder(Child);

impl Holder {
    fn new() -> Self {
        Self(Command::new("sleep").arg("1000").stdin(Stdio::null()).spawn().unwrap())
    }
}

impl Drop for Holder {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Takes the exclusive lock now and then, for itself or for a command.
pub(crate) fn lock_exclusively(storm: &Storm, name: &str) {
    let mut dice = storm.dice(name);
    let mut number = 0;
    let file = storm.project.shared("exclusive").display().to_string();
    while !storm.is_calm() {
        storm.pause(500 + dice.below(2000));
        if storm.is_calm() {
            break;
        }
        if dice.one_in(2) {
            let holder = Holder::new();
            let pid = holder.0.id().to_string();
            let words = ["--json", "exclusive", "acquire", "--holder", name, "--pid", &pid, "--wait", "1s"];
            if storm.just_call(name, "exclusive", &words, &mut dice).code == Some(0) {
                storm.pause(dice.below(500));
                let words = ["--json", "exclusive", "release", "--pid", &pid];
                storm.just_call(name, "exclusive", &words, &mut dice);
            }
        } else {
            number += 1;
            let script = format!(
                "echo {name}-{number} begin >>'{file}'; sleep 0.3; echo {name}-{number} end >>'{file}'"
            );
            let words =
                ["--json", "exclusive", "run", "--holder", name, "--wait", "1s", "--", "sh", "-c", &script];
            storm.just_call(name, "exclusive", &words, &mut dice);
        }
    }
}

/// Waits for work in a section that is always empty. It must keep no work from others.
pub(crate) fn wait_in_vain(storm: &Storm) {
    let mut dice = storm.dice("idler");
    let words = ["tasks", "next", "--claim", "--wait", "10m", "--section", EMPTY, "--agent", "idler"];
    let words: Vec<String> = words.iter().map(|word| (*word).to_owned()).collect();
    while !storm.is_over() {
        let waiter = Running::start(storm.command(&words, &mut dice));
        while !storm.is_over() && !waiter.ends_within(Duration::from_millis(200)) {}
        waiter.signal(Signal::KILL);
        assert!(waiter.ends_within(HANG));
    }
}
