//! Resume locks against a bare `flock` and against the create-new algorithm, interleaved in one run.
//!
//! Prints medians and their ratios; a ratio holds on any machine, a time only on this one.

#![expect(
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "a bench prints, and stops where it cannot go on"
)]

#[path = "../tests/rivals/mod.rs"]
mod rivals;

use std::cell::RefCell;
use std::fs::{File, OpenOptions};
use std::path::Path;
use std::time::{Duration, Instant};

use rivals::{CreateNew, foreign_json, kill_zero};
use tenure_lock::{ExclusiveLock, ProcessIdentity, ResumeLockData, ResumeLockManager, should_skip_database};

const ROUNDS: usize = 2_000;
/// The slow rivals start a program each time.
const SLOW_ROUNDS: usize = 200;

fn flock(path: &Path) -> Option<File> {
    let file = OpenOptions::new().read(true).write(true).create(true).truncate(false).open(path).unwrap();
    file.try_lock().ok().map(|()| file)
}

fn a_dead_pid() -> u32 {
    let mut child = std::process::Command::new("true").spawn().unwrap();
    child.wait().unwrap();
    child.id()
}

/// Median time of `work`, after `prepare`, which is not counted.
fn median(rounds: usize, mut prepare: impl FnMut(), mut work: impl FnMut()) -> Duration {
    let mut times: Vec<Duration> = (0..rounds)
        .map(|_| {
            prepare();
            let began = Instant::now();
            work();
            began.elapsed()
        })
        .collect();
    times.sort_unstable();
    times[rounds / 2]
}

fn micros(time: Duration) -> f64 {
    time.as_secs_f64() * 1e6
}

fn row(what: &str, budget: Option<f64>, ours: Duration, bare: Option<Duration>, rival: Option<Duration>) {
    let column = |other: Option<Duration>| {
        other.map_or_else(
            || format!("{:>9} {:>8}", "–", ""),
            |other| format!("{:>9.1} {:>7.2}×", micros(other), micros(ours) / micros(other)),
        )
    };
    let budget = budget.map_or_else(|| "–".to_owned(), |budget| format!("{budget:.0}"));
    println!("{what:<34} {budget:>7} {:>9.1}  {}  {}", micros(ours), column(bare), column(rival));
}

fn main() {
    let dir = tempfile::tempdir().unwrap();
    let manager = ResumeLockManager::new(dir.path()).unwrap();
    let ours = dir.path().join("resume_locks/job.lock");
    let (bare, rival) = (dir.path().join("bare"), dir.path().join("rival"));
    let dead = a_dead_pid();
    let stale = foreign_json("job", dead);

    println!(
        "p50 in µs, {ROUNDS} rounds ({SLOW_ROUNDS} where the rival starts a program); × is ours ÷ theirs"
    );
    println!("{:<34} {:>7} {:>9}  {:>18}  {:>18}", "", "budget", "ours", "bare flock", "create-new");

    let nothing = || {};
    row(
        "acquire and release",
        Some(100.0),
        median(ROUNDS, nothing, || drop(manager.acquire("job").unwrap())),
        Some(median(ROUNDS, nothing, || drop(flock(&bare).unwrap()))),
        Some(median(ROUNDS, nothing, || drop(CreateNew::acquire(&rival, kill_zero).unwrap()))),
    );

    let (held, held_bare, held_rival) = (
        manager.acquire("job").unwrap(),
        flock(&bare).unwrap(),
        CreateNew::acquire(&rival, kill_zero).unwrap(),
    );
    row(
        "refuse",
        Some(20.0),
        median(ROUNDS, nothing, || drop(manager.acquire("job").unwrap_err())),
        Some(median(ROUNDS, nothing, || assert!(flock(&bare).is_none()))),
        Some(median(SLOW_ROUNDS, nothing, || assert!(CreateNew::acquire(&rival, kill_zero).is_none()))),
    );
    drop((held, held_bare, held_rival));

    // The guards are kept until the clock has stopped: taking over is measured, not releasing.
    let takeover = |text: &str| {
        let kept = RefCell::new(None);
        let place = || {
            kept.take();
            std::fs::write(&ours, text).unwrap();
        };
        median(ROUNDS, place, || drop(kept.replace(Some(manager.acquire("job").unwrap()))))
    };
    let kept_rival = RefCell::new(None);
    let place_rival = || {
        kept_rival.take();
        std::fs::write(&rival, &stale).unwrap();
    };
    let takeover_rival = median(SLOW_ROUNDS, place_rival, || {
        drop(kept_rival.replace(Some(CreateNew::acquire(&rival, kill_zero).unwrap())));
    });
    row("take over a stale foreign file", Some(50.0), takeover(&stale), None, Some(takeover_rival));
    let mut rebooted = ResumeLockData::new("job");
    if let Some(mark) = &mut rebooted.tenure {
        mark.identity.boot_id = "earlier".into();
    }
    let rebooted = format!(" {}\n", serde_json::to_string_pretty(&rebooted).unwrap());
    row("take over a stale file of ours", Some(50.0), takeover(&rebooted), None, Some(takeover_rival));

    println!();
    let me = ProcessIdentity::current();
    row(
        "ProcessIdentity::current",
        None,
        median(ROUNDS, nothing, || drop(ProcessIdentity::current())),
        None,
        None,
    );
    row(
        "ProcessIdentity::liveness",
        None,
        median(ROUNDS, nothing, || {
            me.liveness();
        }),
        None,
        None,
    );
    let kill = median(SLOW_ROUNDS, nothing, || {
        kill_zero(me.pid);
    });
    let running = median(ROUNDS, nothing, || {
        tenure_lock::is_process_running(me.pid);
    });
    row("is_process_running", None, running, None, Some(kill));

    println!();
    let project = tempfile::tempdir().unwrap();
    let check = || drop(should_skip_database(project.path()));
    row("should_skip_database, no lock", None, median(ROUNDS, nothing, check), None, None);
    let exclusive = || drop(ExclusiveLock::acquire(project.path(), "bench", "1").unwrap());
    row("exclusive acquire and release", None, median(SLOW_ROUNDS, nothing, exclusive), None, None);
    let _held = ExclusiveLock::acquire(project.path(), "bench", "1").unwrap();
    row("should_skip_database, held", None, median(ROUNDS, nothing, check), None, None);
}
