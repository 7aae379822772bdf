//! Child processes, with their run time, processor time and memory.

use std::path::Path;
use std::process::{Child, Command};
use std::time::{Duration, Instant};

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
