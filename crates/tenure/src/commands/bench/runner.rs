//! A runner that has nothing to do.

use std::path::Path;
use std::process::Stdio;
use std::time::{Duration, Instant};

use serde_json::Value;

use super::ground::{Ground, Running, megabytes, on_processor};
use super::{Bench, failed};
use crate::report::Outcome;
use crate::scratch::cannot_run;

/// Longer than a heartbeat takes to come round.
const WATCHED: Duration = Duration::from_secs(31);
const LONG: Duration = Duration::from_mins(1);

pub(super) fn measure(bench: &mut Bench<'_, '_>) -> Outcome<()> {
    let ground = bench.ground(0)?;
    // A preset must be there, though nothing calls it.
    let binary = Value::from(ground.scratch.binary().to_string_lossy());
    let config = format!("runners: {{preset: none}}\npresets: {{none: {{command: [{binary}]}}}}\n");
    ground.scratch.configure(&config)?;
    let mut command = ground.scratch.command(&["runners", "start", "--foreground", "--idle-timeout", "1h"]);
    let runner = Running::start(&mut command)?;
    let deadline = Instant::now() + LONG;
    while !is_idle(&ground)? {
        bench.go_on()?;
        if Instant::now() > deadline {
            return Err(failed("a runner without work never came to rest"));
        }
        bench.interrupts.wait(Duration::from_millis(100));
    }
    // What it did to get there does not count.
    bench.interrupts.wait(Duration::from_secs(1));
    let (process, begun) = (Path::new("/proc").join(runner.0.id().to_string()), Instant::now());
    let Some(before) = on_processors(&process) else { return Ok(()) };
    bench.interrupts.wait(if bench.quick { Duration::from_secs(2) } else { WATCHED });
    bench.go_on()?;
    let Some(after) = on_processors(&process) else { return Err(failed("the runner has ended")) };
    let share = after.saturating_sub(before).as_secs_f64() / begun.elapsed().as_secs_f64();
    bench.table.at_most("idle runner, of one processor", share * 100.0, "%", 0.1);
    for (what, line, budget) in
        [("idle runner, resident", "VmRSS", Some(10.0)), ("idle runner, memory of its own", "RssAnon", None)]
    {
        match (megabytes(runner.0.id(), line), budget) {
            (Some(size), Some(budget)) => bench.table.at_most(what, size, "MB", budget),
            (Some(size), None) => bench.table.told(what, size, "MB"),
            (None, _) => {}
        }
    }
    Ok(())
}

fn is_idle(ground: &Ground) -> Outcome<bool> {
    let output = ground
        .scratch
        .command(&["runners", "list", "--json"])
        .stdout(Stdio::piped())
        .output()
        .map_err(cannot_run)?;
    let answer: Value = serde_json::from_slice(&output.stdout).unwrap_or_default();
    Ok(answer["data"]["runners"][0]["status"] == "idle")
}

/// The processor time of all threads.
fn on_processors(process: &Path) -> Option<Duration> {
    let threads = std::fs::read_dir(process.join("task")).ok()?;
    threads.flatten().map(|thread| on_processor(&thread.path())).sum()
}
