//! `tenure demo`: two runners, a killed agent, a killed runner, a late write and an exclusive lock, with real
//! processes and a real store. It checks the results, so it also tests the machine it runs on.

use std::path::PathBuf;
use std::time::Duration;

use crate::{Check, Interrupts, Program, Result};

mod checks;
mod driver;
mod narration;
mod pretend_agent;
mod scenes;

pub use narration::Tone;
pub use pretend_agent::work as run_pretend_agent;

use driver::Driver;

/// The output of the demo.
pub trait Screen {
    fn show(&mut self, line: Line<'_>);

    /// The current progress. Called several times a second.
    fn show_progress(&mut self, progress: Progress);
}

/// One line of output.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Line<'a> {
    /// The title of what follows.
    Scene(&'a str),
    /// The arguments of a tenure command that is run now, possibly in the background.
    Command { args: &'a [&'a str], background: bool },
    /// The error of the command above.
    Failure { exit: i32, message: &'a str },
    /// An event.
    Note { elapsed: Duration, tone: Tone, text: &'a str },
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Progress {
    pub elapsed: Duration,
    pub completed: usize,
    pub tasks: usize,
}

/// The results of the demo.
#[derive(Debug)]
pub struct Findings {
    pub checks: Vec<Check>,
    /// From the release of a task to the grant to its waiter.
    pub hand_off_ms: Option<u128>,
    /// From the kill of a runner to the grant of its task to another runner.
    pub takeover_ms: Option<u128>,
    /// The project's folder. It is removed unless it should be kept.
    pub folder: PathBuf,
}

/// Runs the demo. With `keep`, its folder is not removed.
pub fn run(
    program: &Program,
    interrupts: &dyn Interrupts,
    screen: &mut dyn Screen,
    keep: bool,
) -> Result<Findings> {
    let mut driver = Driver::new(program, interrupts, screen, keep)?;
    let seen = scenes::run_all(&mut driver)?;
    let mut checks = checks::check_feed(&seen.feed);
    checks.extend(seen.checks);
    Ok(Findings {
        checks,
        hand_off_ms: seen.hand_off_ms,
        takeover_ms: seen.takeover_ms,
        folder: driver.project.root(),
    })
}
