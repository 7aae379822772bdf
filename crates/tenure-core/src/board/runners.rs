//! The runners of a project that are not known to be dead.

use crate::error::Result;
use crate::holder::{Judge, Liveness};
use crate::runner::Runner;
use crate::store::{TaskLookup, View};

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
    let mut seen = Vec::new();
    for runner in view.runners(0)? {
        let alive = match judge.liveness(&runner.process) {
            Liveness::Dead => continue,
            Liveness::Alive => Some(true),
            Liveness::Unknown => None,
        };
        let section = runner.section.as_ref().map(|id| view.section(id)).transpose()?.flatten();
        let task = match &runner.current_task {
            Some(id) => view.find_tasks(TaskLookup::Id(id.as_str()), 1)?.pop(),
            None => None,
        };
        seen.push(RunnerLine { runner, section: section.map(|s| s.name), task: task.map(|t| t.key), alive });
    }
    Ok(seen)
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
