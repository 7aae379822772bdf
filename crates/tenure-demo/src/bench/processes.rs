//! Complete commands, from start to exit, compared with a process that does nothing.

use std::path::Path;
use std::time::Duration;

use super::Bench;
use super::child::run_time;
use super::fixture::{claimable_keys, tasks_for};
use super::statistics::median;
use crate::Result;

impl Bench<'_> {
    /// `tasks list` and `task claim` against `/bin/true`.
    pub fn processes(&mut self) -> Result<()> {
        let rounds = self.rounds(200);
        let (large, small) = (self.fixture(tasks_for(rounds))?, self.fixture(20)?);
        let (mut walls, mut processor_times): ([Vec<Duration>; 3], [Vec<Duration>; 3]) = Default::default();
        for key in claimable_keys().take(rounds) {
            let bin_true = large.project.other_command(Path::new("/bin/true"));
            let list = small.project.command(&["tasks", "list"]);
            let claim = large.project.command(&["task", "claim", &key, "--agent", "a"]);
            for (index, command) in [bin_true, list, claim].into_iter().enumerate() {
                let (wall, processor) = run_time(command)?;
                walls[index].push(wall);
                processor_times[index].extend(processor);
            }
            self.check_interrupts()?;
        }
        let results = &mut self.results;
        let [bin_true, list, claim] = walls.each_mut().map(|times| median(times));
        results.add("/bin/true, whole process, wall", bin_true * 1000.0, "ms");
        results.wall("tasks list ÷ /bin/true, wall", list / bin_true, "×", 4.0);
        results.wall("task claim ÷ /bin/true, wall", claim / bin_true, "×", 5.0);
        let [bin_true, list, claim] = processor_times.each_mut().map(|times| median(times));
        if bin_true > 0.0 {
            results.add("/bin/true, processor time", bin_true * 1000.0, "ms");
            results.add("tasks list ÷ /bin/true, processor time", list / bin_true, "×");
            results.add("task claim ÷ /bin/true, processor time", claim / bin_true, "×");
        }
        Ok(())
    }
}
