//! A soak test of about a minute: runners and agents are killed at random, tasks are added, exclusive locks come and go, and
//! wake-ups run. In the end every task was completed exactly once.

use std::time::{Duration, Instant};

use rustix::process::Signal;

use tenure_testkit::cli::{Dice, Project, Running, full_or, processes, until};

use crate::machine::Machine;

const PROJECTS: usize = 4;

struct Simulation<'m> {
    machine: &'m Machine,
    projects: Vec<Project>,
    keys: Vec<Vec<String>>,
    dice: Dice,
    kills: (usize, usize),
    locks: usize,
    wake_ups: usize,
}

impl Simulation<'_> {
    fn step(&mut self) {
        let at = usize::try_from(self.dice.below(PROJECTS as u64)).unwrap();
        match self.dice.below(10) {
            0..=2 => self.add(at),
            3 => self.kill(true),
            4 | 5 => self.kill(false),
            6 => self.lock(at),
            _ => self.wake_up(),
        }
    }

    fn add(&mut self, at: usize) {
        let key = format!("P{at}.{}", self.keys[at].len());
        let nap = format!("sleep 0.{}", self.dice.below(6));
        // The last step is the proof: it runs once per attempt that gets that far.
        self.projects[at].task(&key, &["fork", &nap, &format!("mark done-{key}")]);
        self.keys[at].push(key);
    }

    fn kill(&mut self, agent: bool) {
        let those = if agent { self.machine.agents() } else { self.runners() };
        if those.is_empty() {
            return;
        }
        let which = usize::try_from(self.dice.below(those.len() as u64)).unwrap();
        processes::signal(those[which], Signal::KILL);
        if agent { self.kills.1 += 1 } else { self.kills.0 += 1 }
    }

    fn runners(&self) -> Vec<u32> {
        let mut all: Vec<u32> = Vec::new();
        for project in &self.projects {
            all.extend(project.runners().iter().filter_map(|r| u32::try_from(r["pid"].as_u64()?).ok()));
        }
        all
    }

    /// A tool holds the exclusive lock for a moment, or dies while it holds it.
    fn lock(&mut self, at: usize) {
        let project = &self.projects[at];
        let holder = project.command(&["exclusive", "run", "--holder", "tool", "--", "sleep", "0.5"]);
        let mut holder = Running::start(holder);
        if self.dice.below(2) == 0 {
            std::thread::sleep(Duration::from_millis(100));
            holder.signal(Signal::KILL);
        }
        let end = Instant::now() + Duration::from_secs(1);
        while holder.is_running() && Instant::now() < end {
            std::thread::sleep(Duration::from_millis(10));
        }
        self.locks += 1;
    }

    fn wake_up(&mut self) {
        let decided = self.machine.wake_up(&[]);
        let failed: Vec<_> = decided.iter().filter(|(_, (decision, _))| decision == "error").collect();
        assert!(failed.is_empty(), "{failed:?}");
        self.wake_ups += 1;
    }
}

#[test]
fn every_task_is_completed_exactly_once_whichever_processes_die() {
    let machine = Machine::with(
        "runners: {preset: pretend, killGrace: 200ms, heartbeatInterval: 500ms, staleTimeout: 3s}\n\
         locking: {pollInterval: 300ms, taskTimeout: 5s, sectionTimeout: 5s}\ntasks: {maxAttempts: 1000}\n",
    );
    let projects: Vec<_> = (0..PROJECTS).map(|n| machine.project(&format!("p{n}"))).collect();
    let mut simulation = Simulation {
        machine: &machine,
        projects,
        keys: vec![Vec::new(); PROJECTS],
        dice: Dice::for_test("soak"),
        kills: (0, 0),
        locks: 0,
        wake_ups: 0,
    };
    let end = Instant::now() + Duration::from_secs(full_or(60, 8));
    while Instant::now() < end {
        simulation.step();
    }
    // From here on nothing is killed or added; only wake-ups run.
    until("everything is done", || {
        simulation.wake_up();
        let left = |project: &Project| project.ok(&["tasks", "list"])["total"].as_u64().unwrap();
        simulation.projects.iter().map(left).sum::<u64>() == 0
    });
    let tasks: usize = simulation.keys.iter().map(Vec::len).sum();
    for (project, keys) in simulation.projects.iter().zip(&simulation.keys) {
        let events = project.ok(&["events", "--limit", "1000000"])["events"].as_array().unwrap().clone();
        for key in keys {
            let task = project.ok(&["tasks", "show", key])["task"].clone();
            assert_eq!(task["status"], "completed", "{key}");
            let done = events.iter().filter(|e| e["taskId"] == task["id"] && e["to"] == "completed").count();
            assert_eq!(done, 1, "{key}");
        }
        assert!(
            project.ok(&["locks", "list"])["locks"]
                .as_array()
                .unwrap()
                .iter()
                .all(|lock| { lock["resource"].as_str().unwrap().starts_with("runner:") })
        );
    }
    until("nothing is left", || machine.tenures().is_empty() && machine.agents().is_empty());
    eprintln!(
        "{tasks} tasks, {} runners and {} agents killed, {} exclusive locks, {} wake-ups",
        simulation.kills.0, simulation.kills.1, simulation.locks, simulation.wake_ups
    );
    assert!(tasks > 5 && simulation.kills.0 > 0);
}
