//! The time from a release, or from the death of a holder, to the grant to the next waiter.

use std::io::Read;
use std::path::Path;
use std::process::Stdio;
use std::time::{Duration, Instant};

use tenure_core::holder::Incarnation;
use tenure_core::store::Store;
use tenure_lock::ProcessIdentity;

use super::Bench;
use super::child::ChildProcess;
use super::fixture::{Fixture, agent, claim, claimable_keys, release, tasks_for};
use super::statistics::{percentile, to_millis};
use crate::{Error, Result};

/// The limit for a waiter to be queued.
const QUEUE_TIMEOUT: Duration = Duration::from_mins(1);

impl Bench<'_> {
    /// From a release, and from the death of a holder, to the next waiter's answer.
    pub fn waiting(&mut self) -> Result<()> {
        self.hand_over()?;
        self.take_over()
    }

    fn hand_over(&mut self) -> Result<()> {
        let fixture = self.fixture(1)?;
        let store = fixture.store()?;
        let name = |round: usize| format!("w{round}");
        claim(store.as_ref(), &agent(&name(0)), "F1")?;
        let mut times = Vec::new();
        for round in 0..self.rounds(200) {
            let waiter = start_waiter(&fixture, store.as_ref(), "F1", &name(round + 1))?;
            release(store.as_ref(), &agent(&name(round)), "F1")?;
            let released = Instant::now();
            times.push(time_of_answer(waiter)?.saturating_duration_since(released));
            self.check_interrupts()?;
        }
        for (percent, budget) in [(50, 1.0), (99, 10.0)] {
            let time = to_millis(percentile(&mut times, percent));
            self.results.wall(format!("release → next waiter has it, p{percent}"), time, "ms", budget);
        }
        Ok(())
    }

    fn take_over(&mut self) -> Result<()> {
        let rounds = self.rounds(30);
        let fixture = self.fixture(tasks_for(rounds))?;
        let store = fixture.store()?;
        let mut times = Vec::new();
        for key in claimable_keys().take(rounds) {
            let mut sleep = fixture.project.other_command(Path::new("/bin/sleep"));
            let mut holder = ChildProcess::start(sleep.arg("100"))?;
            let process = ProcessIdentity::of(holder.0.id())
                .ok_or_else(|| Error::bench("the holder process is not running"))?;
            let incarnation = Incarnation { process, hostname: tenure_lock::hostname() };
            claim(store.as_ref(), &agent("holder").with_process(incarnation), &key)?;
            let waiter = start_waiter(&fixture, store.as_ref(), &key, "next")?;
            let killed = Instant::now();
            holder.0.kill().map_err(Error::Spawn)?;
            holder.0.wait().map_err(Error::Spawn)?;
            times.push(time_of_answer(waiter)?.saturating_duration_since(killed));
            self.check_interrupts()?;
        }
        for (percent, name) in [(50, "p50"), (100, "worst")] {
            let time = to_millis(percentile(&mut times, percent));
            self.results.at_most(format!("holder killed → waiter has it, {name}"), time, "ms", 1000.0);
        }
        Ok(())
    }
}

/// Starts a process that claims `key` with `--wait`, and returns once it is queued.
fn start_waiter(fixture: &Fixture, store: &dyn Store, key: &str, name: &str) -> Result<ChildProcess> {
    let mut command = fixture.project.command(&["tasks", "claim", key, "--wait", "--agent", name]);
    let waiter = ChildProcess::start(command.stdout(Stdio::piped()))?;
    let deadline = Instant::now() + QUEUE_TIMEOUT;
    while store.read(|view| view.count_tickets())? == 0 {
        if Instant::now() > deadline {
            return Err(Error::bench("a waiter was not queued in time"));
        }
        std::thread::sleep(Duration::from_millis(1));
    }
    // The ticket is written before the waiter sleeps. The measurement needs a sleeping waiter.
    std::thread::sleep(Duration::from_millis(5));
    Ok(waiter)
}

/// Waits for the waiter's first byte of output, which means that it has the task, and for its end.
fn time_of_answer(mut waiter: ChildProcess) -> Result<Instant> {
    let mut output = waiter.0.stdout.take().ok_or_else(|| Error::bench("no pipe from a waiter"))?;
    output.read_exact(&mut [0]).map_err(Error::bench)?;
    let answered = Instant::now();
    waiter.wait()?;
    Ok(answered)
}
