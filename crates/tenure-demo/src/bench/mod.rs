//! `tenure bench`: the speed budgets. Most are ratios to a raw limit that is measured alternately with them in the same
//! run, so that other work on the machine slows both sides alike.

use crate::{Error, Interrupts, Program, Result};

mod against;
mod child;
mod claims;
mod fixture;
mod history;
mod idle_runner;
mod locks;
mod mcp;
mod processes;
mod raw_claims;
mod results;
mod statistics;
mod tasks;
mod waiting;
mod writers;

pub use against::Rival;
pub use results::{Bound, Budget, Measurement, Results, Verdict};
pub use writers::claim_and_release;

use fixture::Fixture;

/// One run. Each public method measures one topic and adds its rows to the results.
pub struct Bench<'a> {
    program: &'a Program,
    interrupts: &'a dyn Interrupts,
    quick: bool,
    results: Results,
}

impl std::fmt::Debug for Bench<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Bench").field("results", &self.results).finish_non_exhaustive()
    }
}

impl<'a> Bench<'a> {
    /// With `quick`, there are fewer rounds and fewer tasks.
    pub fn new(program: &'a Program, interrupts: &'a dyn Interrupts, quick: bool) -> Self {
        Self { program, interrupts, quick, results: Results::new() }
    }

    /// What was measured. Fails if a signal has interrupted the run.
    pub fn finish(self) -> Result<Results> {
        self.check_interrupts()?;
        Ok(self.results)
    }

    /// The size of the executable. It has a budget only without the MCP server.
    pub fn binary_size(&mut self, has_mcp: bool) -> Result<()> {
        let bytes = std::fs::metadata(&self.program.binary).map_err(Error::bench)?.len();
        let megabytes = to_float(bytes) / 1e6;
        if has_mcp {
            self.results.add("this program, with MCP (8 without)", megabytes, "MB");
        } else {
            self.results.at_most("this program", megabytes, "MB", 8.0);
        }
        Ok(())
    }

    /// A new project with this many tasks.
    fn fixture(&self, tasks: usize) -> Result<Fixture> {
        let fixture = Fixture::new(self.program)?;
        fixture.add_tasks(tasks)?;
        Ok(fixture)
    }

    /// `full`, or a tenth of it in a quick run.
    fn rounds(&self, full: usize) -> usize {
        if self.quick { full.div_ceil(10) } else { full }
    }

    /// Every measuring loop calls this, so that a signal ends the bench.
    fn check_interrupts(&self) -> Result<()> {
        self.interrupts.check()
    }
}

#[expect(clippy::cast_precision_loss, reason = "counts that are divided")]
fn to_float(count: u64) -> f64 {
    count as f64
}
