//! Processor time and memory of a runner without work.

use std::path::Path;
use std::process::Stdio;
use std::time::{Duration, Instant};

use serde_json::Value;

use super::Bench;
use super::child::{ChildProcess, memory, processor_time};
use super::fixture::Fixture;
use crate::{Error, Result};

/// Longer than the interval between two heartbeats, so that one is always included.
const WATCHED: Duration = Duration::from_secs(31);
/// The limit for a runner to become idle.
const START_TIMEOUT: Duration = Duration::from_mins(1);

impl Bench<'_> {
    /// What an idle runner uses.
    pub fn idle_runner(&mut self) -> Result<()> {
        let fixture = self.fixture(0)?;
        // A runner does not start without a preset. This one is never called.
        let binary = Value::from(fixture.project.binary().to_string_lossy());
        let config = format!("runners: {{preset: none}}\npresets: {{none: {{command: [{binary}]}}}}\n");
        fixture.project.configure(&config)?;
        let args = ["runners", "start", "--foreground", "--idle-timeout", "1h"];
        let runner = ChildProcess::start(&mut fixture.project.command(&args))?;
        let deadline = Instant::now() + START_TIMEOUT;
        while !is_idle(&fixture)? {
            self.check_interrupts()?;
            if Instant::now() > deadline {
                return Err(Error::bench("a runner without work did not become idle in time"));
            }
            self.interrupts.wait(Duration::from_millis(100));
        }
        // Excludes the end of its start-up.
        self.interrupts.wait(Duration::from_secs(1));
        let (process, begun) = (Path::new("/proc").join(runner.0.id().to_string()), Instant::now());
        let Some(before) = time_of_threads(&process) else { return Ok(()) };
        self.interrupts.wait(if self.quick { Duration::from_secs(2) } else { WATCHED });
        self.check_interrupts()?;
        let Some(after) = time_of_threads(&process) else {
            return Err(Error::bench("the runner has ended"));
        };
        let share = after.saturating_sub(before).as_secs_f64() / begun.elapsed().as_secs_f64();
        self.results.at_most("idle runner, of one processor", share * 100.0, "%", 0.1);
        if let Some(size) = memory(runner.0.id(), "VmRSS") {
            self.results.at_most("idle runner, resident", size, "MB", 8.0);
        }
        if let Some(size) = memory(runner.0.id(), "RssAnon") {
            self.results.add("idle runner, private memory", size, "MB");
        }
        Ok(())
    }
}

fn is_idle(fixture: &Fixture) -> Result<bool> {
    let mut command = fixture.project.command(&["runners", "list", "--json"]);
    let output = command.stdout(Stdio::piped()).output().map_err(Error::Spawn)?;
    let answer: Value = serde_json::from_slice(&output.stdout).unwrap_or_default();
    Ok(answer["data"]["runners"][0]["status"] == "idle")
}

/// The processor time of all threads of a process, given its folder in `/proc`.
fn time_of_threads(process: &Path) -> Option<Duration> {
    let threads = std::fs::read_dir(process.join("task")).ok()?;
    threads.flatten().map(|thread| processor_time(&thread.path())).sum()
}
