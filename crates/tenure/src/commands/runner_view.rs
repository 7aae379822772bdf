//! The runners, and what is parked, in the project's store, as `status` and `why` show them.

use tenure_core::duration::format_rounded;
use tenure_core::holder::{Judge, Liveness};
use tenure_core::parking::Parking;
use tenure_core::runner::Runner;
use tenure_core::store::{View, Viewer};
use tenure_core::wire::RunnerJson;
use tenure_core::{Result, wire};

/// A runner that is not known to be dead.
#[derive(Debug)]
pub(super) struct RunnerView {
    runner: Runner,
    section: Option<String>,
    /// The key of the task that it works on.
    task: Option<String>,
    alive: Option<bool>,
}

pub(super) fn runners(view: &dyn View, judge: &dyn Judge, viewer: &Viewer) -> Result<Vec<RunnerView>> {
    let mut seen = Vec::new();
    for runner in view.runners(0)? {
        let alive = match judge.liveness(&runner.process) {
            Liveness::Dead => continue,
            Liveness::Alive => Some(true),
            Liveness::Unknown => None,
        };
        let section = runner.section.as_ref().map(|id| view.section(id)).transpose()?.flatten();
        let task = runner.current_task.as_ref().map(|id| view.task(id, viewer)).transpose()?.flatten();
        seen.push(RunnerView { runner, section: section.map(|s| s.name), task: task.map(|t| t.key), alive });
    }
    Ok(seen)
}

impl RunnerView {
    pub(super) fn object(&self) -> RunnerJson<'_> {
        RunnerJson { alive: Some(self.alive), ..wire::runner(&self.runner, self.section.as_deref()) }
    }

    pub(super) fn line(&self) -> String {
        let short: String = self.runner.id.chars().take(8).collect();
        let what = match (&self.task, &self.section) {
            (Some(task), _) => format!(" on {task}"),
            (None, Some(section)) => format!(" in {section}"),
            (None, None) => String::new(),
        };
        let (process, preset) = (&self.runner.process, &self.runner.preset);
        let pid = process.process.pid;
        // A runner whose liveness is unknown is on another machine or in another container.
        let host = if self.alive.is_none() { format!(" on {}", process.hostname) } else { String::new() };
        format!("{short}  {}{what} (pid {pid}{host}, {preset})", self.runner.status.as_str())
    }
}

/// `Account claude is parked: claude reports a usage limit; wake-up tries it again in 40s`
pub(super) fn parked_line(parking: &Parking, now: tenure_core::Timestamp) -> String {
    let why = parking.reason.as_deref().unwrap_or("its last attempts did not work");
    let next = match (parking.tries_at(), &parking.until_changed) {
        (Some(at), _) if at > now => format!("; wake-up tries it again in {}", format_rounded(at.since(now))),
        (Some(_), _) => "; the next wake-up tries it again".to_owned(),
        (None, Some(_)) => "; it is tried again when its configuration changes".to_owned(),
        (None, None) => "; it is tried again by `tenure runners start`".to_owned(),
    };
    let label = parking.subject.label();
    let mut letters = label.chars();
    let first: String = letters.next().into_iter().flat_map(char::to_uppercase).collect();
    format!("{first}{} is parked: {why}{next}", letters.as_str())
}
