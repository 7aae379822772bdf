//! Resume locks compared with a bare `flock` and with the create-new algorithm, interleaved in one run.
//!
//! Prints medians and their ratios; ratios are comparable between machines, absolute times are not.

#![expect(
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "a bench prints its results and panics on errors"
)]

#[path = "../tests/rivals/mod.rs"]
mod rivals;

use std::path::Path;
use std::time::Duration;

use rivals::{CreateNew, foreign_json, kill_zero};
use tenure_lock::measure::{self, Compared, left_by_another_tool, timed};
use tenure_lock::{ExclusiveLock, ProcessIdentity, ResumeLockData, should_skip_database};

const ROUNDS: usize = 2_000;
/// Fewer rounds, because the slow rivals start a program each time.
const SLOW_ROUNDS: usize = 200;

fn a_dead_pid() -> u32 {
    let mut child = std::process::Command::new("true").spawn().unwrap();
    child.wait().unwrap();
    child.id()
}

fn median<T>(rounds: usize, mut work: impl FnMut() -> T) -> Duration {
    let [median] = measure::medians(rounds, [&mut || Ok(timed(&mut work).0)]).unwrap();
    median
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

fn compared(what: &str, budget: f64, times: Compared, rival: Duration) {
    row(what, Some(budget), times.ours, Some(times.bare), Some(rival));
}

/// The rival's lock is kept until the clock has stopped.
fn rival_takes_over(rival: &Path) -> Duration {
    let stale = foreign_json("job", a_dead_pid());
    let mut work = || {
        std::fs::write(rival, &stale)?;
        let (took, lock) = timed(|| CreateNew::acquire(rival, kill_zero));
        assert!(lock.is_some());
        Ok(took)
    };
    let [median] = measure::medians(SLOW_ROUNDS, [&mut work]).unwrap();
    median
}

fn main() {
    let dir = tempfile::tempdir().unwrap();
    let (folder, rival) = (dir.path(), dir.path().join("rival"));

    println!(
        "p50 in µs, {ROUNDS} rounds ({SLOW_ROUNDS} where the rival starts a program); × is ours ÷ theirs"
    );
    println!("{:<34} {:>7} {:>9}  {:>18}  {:>18}", "", "budget", "ours", "bare flock", "create-new");

    compared(
        "acquire and release",
        100.0,
        measure::acquire_and_release(folder, ROUNDS).unwrap(),
        median(ROUNDS, || drop(CreateNew::acquire(&rival, kill_zero).unwrap())),
    );
    let held = CreateNew::acquire(&rival, kill_zero).unwrap();
    compared(
        "refuse",
        15.0,
        measure::refuse(folder, ROUNDS).unwrap(),
        median(SLOW_ROUNDS, || assert!(CreateNew::acquire(&rival, kill_zero).is_none())),
    );
    drop(held);
    let taken = rival_takes_over(&rival);
    let foreign = measure::take_over(folder, ROUNDS, &left_by_another_tool("job")).unwrap();
    compared("take over a stale foreign file", 50.0, foreign, taken);
    let mut rebooted = ResumeLockData::new("job");
    if let Some(mark) = &mut rebooted.tenure {
        mark.identity.boot_id = "earlier".into();
    }
    let ours = measure::take_over(folder, ROUNDS, &rebooted).unwrap();
    compared("take over a stale file of ours", 50.0, ours, taken);

    println!();
    let me = ProcessIdentity::current();
    row("ProcessIdentity::current", None, median(ROUNDS, ProcessIdentity::current), None, None);
    row("ProcessIdentity::liveness", None, median(ROUNDS, || me.liveness()), None, None);
    let kill = median(SLOW_ROUNDS, || kill_zero(me.pid));
    let running = median(ROUNDS, || tenure_lock::is_process_running(me.pid));
    row("is_process_running", None, running, None, Some(kill));

    println!();
    let project = tempfile::tempdir().unwrap();
    let check = || should_skip_database(project.path());
    row("should_skip_database, no lock", None, median(ROUNDS, check), None, None);
    let exclusive = || drop(ExclusiveLock::acquire(project.path(), "bench", "1").unwrap());
    row("exclusive acquire and release", None, median(SLOW_ROUNDS, exclusive), None, None);
    let _held = ExclusiveLock::acquire(project.path(), "bench", "1").unwrap();
    row("should_skip_database, held", None, median(ROUNDS, check), None, None);
}
