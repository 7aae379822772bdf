//! The nemesis: kills and pauses processes, and takes the store away.

use std::process::Command;
use std::time::{Duration, Instant};

use rustix::process::Signal;
use tenure_runner::Process;
use tenure_testkit::cli::{Dice, Project, Running, processes, until};
use tenure_testkit::proxy::Cut;

use crate::history::{Kill, Pause, now};
use crate::storm::Storm;

/// Strikes until the storm is calm. Afterwards nothing is paused and the store is there.
pub(crate) fn strike(storm: &Storm) {
    let mut dice = storm.dice("nemesis");
    std::thread::scope(|scope| {
        scope.spawn(|| take_store_away(storm));
        let mut paused: Vec<(Pause, Instant)> = Vec::new();
        while !storm.is_calm() {
            storm.pause(100 + dice.below(250));
            for (pause, _) in paused.extract_if(.., |(_, until)| Instant::now() >= *until) {
                resume(storm, pause);
            }
            let mut stop = |pid, millis| {
                let pause =
                    Pause { pid, from: now(), to: 0, is_runner: command_of(pid).contains(" runners start ") };
                processes::signal(pid, Signal::STOP);
                paused.push((pause, Instant::now() + Duration::from_millis(millis)));
            };
            if dice.one_in(4)
                && let Some(pid) = waiter(storm, &mut dice)
            {
                // Its ticket stays live, so no other process takes the work that is reserved for it.
                stop(pid, 1_000 + dice.below(1_500));
                continue;
            }
            let Some(pid) = victim(storm, &mut dice) else { continue };
            if dice.one_in(2) {
                kill(storm, pid);
            } else {
                stop(pid, if dice.one_in(8) { 4_000 } else { 50 + dice.below(800) });
            }
        }
        for (pause, _) in paused {
            resume(storm, pause);
        }
    });
}

fn resume(storm: &Storm, pause: Pause) {
    processes::signal(pause.pid, Signal::CONT);
    storm.record_pause(Pause { to: now(), ..pause });
}

fn all_processes(storm: &Storm) -> Vec<u32> {
    processes::with(&format!("TENURE_HOME={}", storm.project.tenure_home().display()))
}

/// A process that waits for work.
fn waiter(storm: &Storm, dice: &mut Dice) -> Option<u32> {
    let waits = |pid: &u32| command_of(*pid).contains(" --wait ");
    let all: Vec<u32> = all_processes(storm).into_iter().filter(waits).collect();
    (!all.is_empty()).then(|| *dice.pick(&all))
}

/// Any process of the program or of its agents. Those that supervise an attempt are chosen more often.
fn victim(storm: &Storm, dice: &mut Dice) -> Option<u32> {
    let mut all = all_processes(storm);
    let supervisors: Vec<u32> = all.iter().copied().filter(|pid| supervises(*pid)).collect();
    if dice.one_in(2) && !supervisors.is_empty() {
        all = supervisors;
    }
    (!all.is_empty()).then(|| *dice.pick(&all))
}

fn supervises(pid: u32) -> bool {
    let command = command_of(pid);
    [" runners start ", " tasks run ", " jobs start ", " resume "].iter().any(|words| command.contains(words))
}

fn command_of(pid: u32) -> String {
    let command = std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
    String::from_utf8_lossy(&command).replace('\0', " ")
}

fn kill(storm: &Storm, pid: u32) {
    let Some(process) = Process::open(pid) else { return };
    let environ = std::fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
    let mark = environ.split(|byte| *byte == 0).find_map(|entry| entry.strip_prefix(b"TENURE_ATTEMPT="));
    let attempt = mark.map(|mark| String::from_utf8_lossy(mark).into_owned());
    let command = command_of(pid);
    let at = now();
    if process.signal(Signal::KILL).is_ok() {
        until("a killed process is dead", || !processes::is_alive(pid));
        storm.record_kill(Kill { pid, at, dead_by: Some(now()), attempt, command });
    }
}

/// Now and then no process can write, or even reach the store.
fn take_store_away(storm: &Storm) {
    let mut dice = storm.dice("outages");
    let mut number = 0;
    while !storm.is_calm() {
        number += 1;
        // The second outage is a long one.
        let length = if number % 4 == 2 { 3_000 } else { 100 + dice.below(900) };
        match &storm.server {
            None => hold_database(storm, length),
            Some(server) => match dice.below(4) {
                0 => {
                    server.proxy.close();
                    storm.pause(length);
                    server.proxy.open();
                }
                1 => {
                    server.proxy.hold();
                    storm.pause(length);
                    server.proxy.release();
                }
                2 => {
                    let how = *dice.pick(&[Cut::Before, Cut::After]);
                    server.proxy.cut(how, 2 + dice.below(4));
                    storm.pause(length);
                    server.proxy.cut(Cut::Never, 1);
                }
                _ => {
                    server.cluster.stop_immediately();
                    storm.pause(length / 2);
                    server.cluster.start();
                }
            },
        }
        storm.pause(1500 + dice.below(2000));
    }
}

/// Another program has the database locked.
fn hold_database(storm: &Storm, millis: u64) {
    let connection = rusqlite::Connection::open(storm.project.database()).unwrap();
    connection.busy_timeout(Duration::from_secs(5)).unwrap();
    // Fails if a paused process is in a transaction for all that time.
    if connection.execute_batch("BEGIN IMMEDIATE").is_ok() {
        storm.pause(millis);
        connection.execute_batch("ROLLBACK").unwrap();
    }
}

/// Gives a process a clock that is wrong by two hours. The wrapper `faketime` would be another process, which would be killed
/// instead, so only the variables that it sets are used.
#[derive(Debug)]
pub(crate) struct Skew {
    library: String,
}

impl Skew {
    /// Fails unless a wrong clock has an effect on processes of this machine.
    pub(crate) fn new(project: &Project) -> Self {
        let command = |words: &[&str]| {
            let mut command = Command::new(words[0]);
            project.surround(&mut command);
            command.args(&words[1..]);
            command
        };
        let answer = |command: Command| Running::start(command).end().out.trim().to_owned();
        // The wrapper fails if an earlier process with its pid has left a semaphore behind.
        let asks = || answer(command(&["faketime", "-f", "+2h", "printenv", "LD_PRELOAD"]));
        let library = (0..5).map(|_| asks()).find(|library| !library.is_empty()).unwrap_or_default();
        let skew = Self { library };
        let mut ahead = command(&["date", "+%s"]);
        skew.set(&mut ahead, "+2h");
        let seconds = |text: String| text.parse::<i64>().unwrap_or_else(|e| panic!("{e}: {text:?}"));
        let ahead = seconds(answer(ahead)) - seconds(answer(command(&["date", "+%s"])));
        assert!((7100..7300).contains(&ahead), "the skew took no effect: {ahead} s");
        skew
    }

    pub(crate) fn set(&self, command: &mut Command, by: &str) {
        command.env("LD_PRELOAD", &self.library).env("FAKETIME", by);
    }
}
