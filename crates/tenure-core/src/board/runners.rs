//! The runners of a project that are not known to be dead.

use crate::error::Result;
use crate::holder::{Judge, Liveness};
use crate::row_names::RowNames;
use crate::runner::Runner;
use crate::store::View;

/// A runner that is not known to be dead.
#[derive(Debug, Clone, PartialEq)]
pub struct RunnerLine {
    pub runner: Runner,
    /// The name of the section that it works on.
    pub section: Option<String>,
    /// The key of the task that it works on.
    pub task: Option<String>,
    /// `None` if it is on another machine or in another container.
    pub alive: Option<bool>,
}

pub fn running_runners(view: &dyn View, judge: &dyn Judge) -> Result<Vec<RunnerLine>> {
    let mut running = view.runners(0)?;
    running.retain(|runner| judge.liveness(&runner.process) != Liveness::Dead);
    let mut names = RowNames::default();
    let tasks = running.iter().filter_map(|runner| runner.current_task.clone());
    names.learn(view, tasks, running.iter().filter_map(|runner| runner.section.clone()))?;
    let line = |runner: Runner| RunnerLine {
        section: runner.section.as_ref().and_then(|id| names.section(id)).map(str::to_owned),
        task: runner.current_task.as_ref().and_then(|id| names.task(id)).map(|task| task.key.clone()),
        alive: (judge.liveness(&runner.process) == Liveness::Alive).then_some(true),
        runner,
    };
    Ok(running.into_iter().map(line).collect())
}

impl RunnerLine {
    /// `f47ac10b  running on F001 (pid 123, claude)`
    pub fn sentence(&self) -> String {
        let short: String = self.runner.id.chars().take(8).collect();
        let what = match (&self.task, &self.section) {
            (Some(task), _) => format!(" on {task}"),
            (None, Some(section)) => format!(" in {section}"),
            (None, None) => String::new(),
        };
        let (process, preset) = (&self.runner.process, &self.runner.preset);
        let pid = process.process.pid;
        let host = if self.alive.is_none() { format!(" on {}", process.hostname) } else { String::new() };
        format!("{short}  {}{what} (pid {pid}{host}, {preset})", self.runner.status.as_str())
    }
}
