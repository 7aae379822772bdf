//! Child processes, with their run time, processor time and memory.

use std::io::{Read, Write};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::{Error, Result, sys};

/// A child process that is killed and reaped on drop.
pub(super) struct ChildProcess(pub(super) Child);

impl ChildProcess {
    pub(super) fn start(command: &mut Command) -> Result<Self> {
        command.spawn().map(Self).map_err(Error::Spawn)
    }

    /// Fails if the process does.
    pub(super) fn wait(&mut self) -> Result<()> {
        let status = self.0.wait().map_err(Error::Spawn)?;
        if status.success() { Ok(()) } else { Err(Error::bench(format!("a command ended with {status}"))) }
    }
}

impl Drop for ChildProcess {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// The wall time of a process from before it is started to its end, and its user and system processor time where `/proc`
/// has it.
pub(super) fn run_time(mut command: Command) -> Result<(Duration, Option<Duration>)> {
    let begun = Instant::now();
    let mut child = ChildProcess::start(&mut command)?;
    // Leaves a zombie, so that /proc still has its times.
    sys::wait_for_exit(&child.0).map_err(Error::bench)?;
    let wall = begun.elapsed();
    let processor = processor_time(&Path::new("/proc").join(child.0.id().to_string()));
    child.wait()?;
    Ok((wall, processor))
}

/// Starts processes that do the same work at the same time: each begins when it gets a line on standard input, and answers how
/// many rounds it has done.
pub(super) fn run_together(commands: impl Iterator<Item = Command>) -> Result<Vec<u64>> {
    let start =
        |mut command: Command| ChildProcess::start(command.stdin(Stdio::piped()).stdout(Stdio::piped()));
    let mut children: Vec<ChildProcess> = commands.map(start).collect::<Result<_>>()?;
    for child in &mut children {
        let mut input = child.0.stdin.take().ok_or_else(|| Error::bench("no pipe to a process"))?;
        input.write_all(b"go\n").map_err(Error::Spawn)?;
    }
    children.iter_mut().map(rounds_of).collect()
}

/// Waits for a process to end, and reads how many rounds it has done.
fn rounds_of(child: &mut ChildProcess) -> Result<u64> {
    let mut output = String::new();
    if let Some(mut pipe) = child.0.stdout.take() {
        pipe.read_to_string(&mut output).map_err(Error::Spawn)?;
    }
    child.wait()?;
    let answer: Value = serde_json::from_str(&output).map_err(Error::bench)?;
    answer["data"]["rounds"].as_u64().ok_or_else(|| Error::bench(format!("a process answered {output}")))
}

/// The processor time of a thread, given its folder in `/proc`; or of a process with one thread, given that of the process.
pub(super) fn processor_time(folder: &Path) -> Option<Duration> {
    let text = std::fs::read_to_string(folder.join("schedstat")).ok()?;
    text.split_whitespace().next()?.parse().ok().map(Duration::from_nanos)
}

/// A size from `/proc/PID/status` (`VmRSS`, `RssAnon`), in megabytes.
pub(super) fn memory(pid: u32, field: &str) -> Option<f64> {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix(field)?.strip_prefix(':'))?;
    let kilobytes: f64 = line.split_whitespace().next()?.parse().ok()?;
    Some(kilobytes / 1000.0)
}
