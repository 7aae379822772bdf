//! From the moment that somebody lets go, or dies, to the answer of who stands in line.

use std::io::Read;
use std::path::Path;
use std::process::Stdio;
use std::time::{Duration, Instant};

use tenure_core::holder::Incarnation;
use tenure_core::store::Store;
use tenure_lock::ProcessIdentity;

use super::ground::{Ground, Running, agent, claim, claimable, millis, percentile, release, tasks_for};
use super::{Bench, failed};
use crate::report::Outcome;
use crate::scratch::cannot_run;

/// Whoever does not stand in line by then never will.
const LONG: Duration = Duration::from_mins(1);

pub(super) fn measure(bench: &mut Bench<'_, '_>) -> Outcome<()> {
    hand_over(bench)?;
    take_over(bench)
}

fn hand_over(bench: &mut Bench<'_, '_>) -> Outcome<()> {
    let ground = bench.ground(1)?;
    let store = ground.store()?;
    let name = |round: usize| format!("w{round}");
    claim(store.as_ref(), &agent(&name(0)), "F1")?;
    let mut times = Vec::new();
    for round in 0..bench.rounds(200) {
        let next = waiter(&ground, store.as_ref(), "F1", &name(round + 1))?;
        release(store.as_ref(), &agent(&name(round)), "F1")?;
        let released = Instant::now();
        times.push(answered(next)?.saturating_duration_since(released));
        bench.go_on()?;
    }
    for (percent, budget) in [(50, 1.0), (99, 10.0)] {
        let time = millis(percentile(&mut times, percent));
        bench.table.wall(format!("release → next waiter has it, p{percent}"), time, "ms", budget);
    }
    Ok(())
}

fn take_over(bench: &mut Bench<'_, '_>) -> Outcome<()> {
    let rounds = bench.rounds(30);
    let ground = bench.ground(tasks_for(rounds))?;
    let store = ground.store()?;
    let mut times = Vec::new();
    for key in claimable().take(rounds) {
        let mut holder = Running::start(ground.scratch.silent(Path::new("/bin/sleep")).arg("100"))?;
        let process = ProcessIdentity::of(holder.0.id()).ok_or_else(|| failed("sleep does not run"))?;
        let caller = agent("holder").with_process(Incarnation { process, hostname: tenure_lock::hostname() });
        claim(store.as_ref(), &caller, &key)?;
        let next = waiter(&ground, store.as_ref(), &key, "next")?;
        let killed = Instant::now();
        holder.0.kill().map_err(cannot_run)?;
        holder.0.wait().map_err(cannot_run)?;
        times.push(answered(next)?.saturating_duration_since(killed));
        bench.go_on()?;
    }
    for (percent, name) in [(50, "p50"), (100, "worst")] {
        let time = millis(percentile(&mut times, percent));
        bench.table.at_most(format!("holder killed → waiter has it, {name}"), time, "ms", 1000.0);
    }
    Ok(())
}

/// Somebody who stands in line for `key`.
fn waiter(ground: &Ground, store: &dyn Store, key: &str, name: &str) -> Outcome<Running> {
    let mut command = ground.scratch.command(&["tasks", "claim", key, "--wait", "--agent", name]);
    let child = Running::start(command.stdout(Stdio::piped()))?;
    let deadline = Instant::now() + LONG;
    while store.read(|view| view.count_tickets())? == 0 {
        if Instant::now() > deadline {
            return Err(failed("a waiter never stood in line"));
        }
        std::thread::sleep(Duration::from_millis(1));
    }
    // It has its place; give it the moment that it takes to fall asleep.
    std::thread::sleep(Duration::from_millis(5));
    Ok(child)
}

/// Blocks until the waiter has said that the task is its own, and tells when that was.
fn answered(mut waiter: Running) -> Outcome<Instant> {
    let mut said = waiter.0.stdout.take().ok_or_else(|| failed("no pipe from a waiter"))?;
    said.read_exact(&mut [0]).map_err(failed)?;
    let at = Instant::now();
    waiter.wait()?;
    Ok(at)
}
