//! Complete commands, from start to exit, compared with a process that does nothing.

use std::path::Path;
use std::time::Duration;

use super::Bench;
use super::child::run_time;
use super::fixture::{claimable_keys, tasks_for};
use super::statistics::median;
use crate::Result;

/// The commands, and how much longer than `/bin/true` each may take. The key of a task is appended to the last one.
const COMMANDS: [(&str, &[&str], f64); 5] = [
    ("--version", &["--version"], 2.0),
    ("--help", &["--help"], 2.0),
    ("tasks list", &["tasks", "list"], 3.0),
    ("task show", &["task", "show", "F1"], 3.0),
    ("task claim", &["task", "claim", "--agent", "a"], 4.0),
];

#[derive(Default)]
struct Times {
    wall: Vec<Duration>,
    processor: Vec<Duration>,
}

impl Bench<'_> {
    /// Short commands against `/bin/true`.
    pub fn processes(&mut self) -> Result<()> {
        let rounds = self.rounds(200);
        let (large, small) = (self.fixture(tasks_for(rounds))?, self.fixture(20)?);
        let mut times: [Times; COMMANDS.len() + 1] = Default::default();
        for key in claimable_keys().take(rounds) {
            let bin_true = large.project.other_command(Path::new("/bin/true"));
            let commands = COMMANDS.iter().enumerate().map(|(index, (_, args, _))| {
                if index < COMMANDS.len() - 1 {
                    return small.project.command(args);
                }
                let mut claim = large.project.command(args);
                claim.arg(&key);
                claim
            });
            for (command, times) in std::iter::once(bin_true).chain(commands).zip(&mut times) {
                let (wall, processor) = run_time(command)?;
                times.wall.push(wall);
                times.processor.extend(processor);
            }
            self.check_interrupts()?;
        }
        let [bin_true, commands @ ..] = &mut times;
        let results = &mut self.results;
        let wall = median(&mut bin_true.wall);
        results.add("/bin/true, whole process, wall", wall * 1000.0, "ms");
        for ((name, _, budget), times) in COMMANDS.iter().zip(commands.iter_mut()) {
            results.wall(format!("{name} ÷ /bin/true, wall"), median(&mut times.wall) / wall, "×", *budget);
        }
        let processor = median(&mut bin_true.processor);
        if processor > 0.0 {
            results.add("/bin/true, processor time", processor * 1000.0, "ms");
            for ((name, ..), times) in COMMANDS.iter().zip(commands) {
                let ratio = median(&mut times.processor) / processor;
                results.add(format!("{name} ÷ /bin/true, processor time"), ratio, "×");
            }
        }
        Ok(())
    }
}
