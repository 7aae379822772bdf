//! File locks, timed by `tenure_lock` against a bare `flock`.

use tenure_lock::measure;

use super::Bench;
use crate::temp_project::TempProject;
use crate::{Error, Result};

impl Bench<'_> {
    /// Acquiring, refusing and taking over a file lock.
    pub fn locks(&mut self) -> Result<()> {
        let project = TempProject::new(self.program, "bench")?;
        let (folder, rounds) = (project.root(), self.rounds(2000));
        let left = measure::left_by_another_tool("job");
        for (what, budget, times) in [
            ("acquire and release", 100.0, measure::acquire_and_release(&folder, rounds)),
            ("refuse", 15.0, measure::refuse(&folder, rounds)),
            ("take over from a dead holder", 50.0, measure::take_over(&folder, rounds, &left)),
        ] {
            let times = times.map_err(|source| Error::File {
                verb: "lock a file in",
                path: folder.clone(),
                source,
            })?;
            let (lock, bare) = (times.ours.as_secs_f64(), times.bare.as_secs_f64());
            self.results.wall(format!("file lock: {what}"), lock * 1e6, "µs", budget);
            self.results.add(format!("file lock: {what} ÷ bare flock"), lock / bare, "×");
        }
        Ok(())
    }
}
