//! The time from a release, or from the death of a holder, to the grant to the next waiter, in raw commits.

use std::io::Read;
use std::path::Path;
use std::process::Stdio;
use std::time::{Duration, Instant};

use tenure_core::holder::Incarnation;
use tenure_core::store::Store;
use tenure_lock::ProcessIdentity;

use super::child::{ChildProcess, run_together};
use super::fixture::{Fixture, agent, claim, claimable_keys, release, task_key, tasks_for};
use super::raw_claims::RawClaims;
use super::statistics::{median, percentile, to_millis};
use super::{Bench, to_float};
use crate::{Error, Result};

/// The limit for a waiter to be queued.
const QUEUE_TIMEOUT: Duration = Duration::from_mins(1);

/// The number of processes that pass one task round.
const WAITERS: usize = 8;

impl Bench<'_> {
    /// From a release, and from the death of a holder, to the next waiter's answer, and how fast waiters pass a task round. The
    /// program must accept `bench --json --waiter KEY MS`, and claim and release the task until the time is up.
    pub fn waiting(&mut self) -> Result<()> {
        self.hand_over()?;
        self.take_over()?;
        self.pass_round()
    }

    fn hand_over(&mut self) -> Result<()> {
        let rounds = self.rounds(200);
        let fixture = self.fixture(1)?;
        let store = fixture.store()?;
        let mut raw = RawCommits::create(&fixture, rounds)?;
        let name = |round: usize| format!("w{round}");
        claim(store.as_ref(), &agent(&name(0)), "F1")?;
        let mut times = Vec::new();
        for round in 0..rounds {
            let waiter = start_waiter(&fixture, store.as_ref(), "F1", &name(round + 1))?;
            let released = release(store.as_ref(), &agent(&name(round)), "F1")?;
            times.push(time_of_answer(waiter)?.saturating_duration_since(released));
            raw.commit()?;
            self.check_interrupts()?;
        }
        let commit = raw.median();
        self.results.add("raw commit of a claim's rows, synced", commit * 1000.0, "ms");
        let ratio = percentile(&mut times, 50).as_secs_f64() / commit;
        self.results.wall("release → next waiter has it, p50 ÷ raw commit", ratio, "×", 2.0);
        let slowest = to_millis(percentile(&mut times, 99));
        self.results.wall("release → next waiter has it, p99", slowest, "ms", 10.0);
        Ok(())
    }

    fn take_over(&mut self) -> Result<()> {
        let rounds = self.rounds(60);
        let fixture = self.fixture(tasks_for(rounds))?;
        let store = fixture.store()?;
        let mut raw = RawCommits::create(&fixture, rounds)?;
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
            raw.commit()?;
            self.check_interrupts()?;
        }
        let ratio = percentile(&mut times, 50).as_secs_f64() / raw.median();
        self.results.wall("holder killed → waiter has it, p50 ÷ raw commit", ratio, "×", 4.0);
        let slowest = to_millis(percentile(&mut times, 100));
        self.results.at_most("holder killed → waiter has it, worst", slowest, "ms", 1000.0);
        Ok(())
    }

    fn pass_round(&mut self) -> Result<()> {
        let time = Duration::from_millis(if self.quick { 500 } else { 5000 });
        let fixture = self.fixture(1)?;
        // Half of the raw commits before and half after, so that a change of the machine's speed affects both.
        let mut raw = RawCommits::create(&fixture, 400)?;
        raw.commits(200)?;
        let args = ["bench", "--json", "--waiter", "F1", &time.as_millis().to_string()];
        let rounds = run_together((0..WAITERS).map(|_| fixture.project.command(&args)))?;
        raw.commits(200)?;
        self.check_interrupts()?;
        let rate = to_float(rounds.iter().sum()) / time.as_secs_f64();
        self.results.add(format!("{WAITERS} waiters pass one task round"), rate, "/s");
        let what = format!("{WAITERS} waiters, rounds per second ÷ raw commits");
        self.results.at_least(what, rate * raw.median(), "×", 0.4);
        Ok(())
    }
}

/// Raw commits of a claim's rows, timed one by one.
struct RawCommits {
    claims: RawClaims,
    times: Vec<Duration>,
}

impl RawCommits {
    fn create(fixture: &Fixture, commits: usize) -> Result<Self> {
        let claims = RawClaims::create(&fixture.project.root().join("raw.db"), commits)?;
        Ok(Self { claims, times: Vec::new() })
    }

    fn commit(&mut self) -> Result<()> {
        let number = self.times.len() + 1;
        let begun = Instant::now();
        self.claims.claim(&task_key(number), number)?;
        self.times.push(begun.elapsed());
        Ok(())
    }

    fn commits(&mut self, count: usize) -> Result<()> {
        (0..count).try_for_each(|_| self.commit())
    }

    /// In seconds.
    fn median(&mut self) -> f64 {
        median(&mut self.times)
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
