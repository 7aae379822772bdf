//! The decision table: from the state of a project to the next step. Pure: it uses no clock, store or process.

use std::fmt;

use tenure_core::Timestamp;
use tenure_core::duration::format_rounded;
use tenure_core::holder::Liveness;
use tenure_core::parking::Parking;
use tenure_core::runner::Runner;

/// What a wake-up decided for a project.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Decision {
    /// There was ready work and no runner.
    Started,
    /// Its runner was dead, or was killed because it hung.
    Restarted,
    Running,
    Idle,
    /// Another tool holds the exclusive lock.
    Locked,
    /// Its preset is parked and tried again later.
    Parked,
    Disabled,
    /// Found below `runners.wakeup.projectPaths`, but not registered: nothing of it is read or run.
    Unregistered,
    /// No person has trusted it, or it has changed since: nothing of it is run.
    Untrusted,
    Missing,
    Error,
}

impl Decision {
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Started => "started",
            Self::Restarted => "restarted",
            Self::Running => "running",
            Self::Idle => "idle",
            Self::Locked => "locked",
            Self::Parked => "parked",
            Self::Disabled => "disabled",
            Self::Unregistered => "unregistered",
            Self::Untrusted => "untrusted",
            Self::Missing => "missing",
            Self::Error => "error",
        }
    }
}

impl fmt::Display for Decision {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// The decision, and why.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Verdict {
    pub decision: Decision,
    pub reason: String,
    pub runner: Option<String>,
}

impl Verdict {
    pub fn new(decision: Decision, reason: impl Into<String>) -> Self {
        Self { decision, reason: reason.into(), runner: None }
    }

    #[must_use]
    pub fn of(mut self, runner: &str) -> Self {
        self.runner = Some(runner.to_owned());
        self
    }
}

/// A runner that has not ended according to its row.
#[derive(Debug, Clone)]
pub struct InspectedRunner {
    pub runner: Runner,
    pub liveness: Liveness,
    /// The last heartbeat on any of its leases.
    pub last_beat: Timestamp,
    /// The last heartbeat is older than `runners.staleTimeout`.
    pub stale: bool,
    pub doorbell: Option<String>,
}

/// Whether a project has ready work.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PendingWork {
    /// The key of the first ready task.
    Ready(String),
    /// No ready work, with the reason.
    None(String),
}

/// The state of a project.
#[derive(Debug, Clone)]
pub struct Inspection {
    pub now: Timestamp,
    /// `runners.wakeup.enabled` of this project.
    pub enabled: bool,
    /// The line to log if the exclusive lock is held.
    pub locked: Option<String>,
    /// `runners.maxConcurrent`.
    pub slots: usize,
    pub runners: Vec<InspectedRunner>,
    /// Leases, attempts or runners of dead processes exist.
    pub leftovers: bool,
    pub work: PendingWork,
    /// The parked account, host or preset that keeps a runner from taking a task.
    pub parked: Option<Parking>,
}

/// What this wake-up has already done in the project.
#[derive(Debug, Clone, Default)]
pub struct Actions {
    pub repaired: bool,
    /// A silent runner answered its doorbell.
    pub answered: bool,
    /// The runners that were found dead or were killed. Each is replaced while there are free slots.
    pub lost: Vec<LostRunner>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LostRunner {
    pub runner: Runner,
    pub how: &'static str,
}

impl LostRunner {
    fn line(&self) -> String {
        format!("runner {} (pid {}) {}", short(&self.runner.id), self.runner.process.process.pid, self.how)
    }
}

/// The next step.
#[derive(Debug, Clone)]
pub enum Step {
    Skip(Verdict),
    /// Alive but silent: ring its doorbell, wait, and kill it if it does not answer.
    Ping(Box<InspectedRunner>),
    /// Repair what dead processes left, then inspect again.
    Repair,
    /// Start this many runners: one for each lost runner, or one because work is ready.
    Start(Verdict, usize),
}

pub fn next_step(seen: &Inspection, done: &Actions) -> Step {
    let skip = |decision, reason: String| Step::Skip(Verdict::new(decision, reason));
    if !seen.enabled {
        return skip(Decision::Disabled, "runners.wakeup.enabled is false".to_owned());
    }
    if let Some(line) = &seen.locked {
        return skip(Decision::Locked, line.clone());
    }
    if let Some(silent) = seen.runners.iter().find(|r| r.stale && r.liveness == Liveness::Alive) {
        return Step::Ping(Box::new(silent.clone()));
    }
    if seen.leftovers && !done.repaired {
        return Step::Repair;
    }
    // A runner on another machine counts as alive while its heartbeat is fresh.
    let running: Vec<_> = seen.runners.iter().filter(|r| !r.stale && r.liveness != Liveness::Dead).collect();
    let replaced = done.lost.len().min(seen.slots.saturating_sub(running.len()));
    if let Some(first) = running.first().filter(|_| replaced == 0) {
        return Step::Skip(
            Verdict::new(Decision::Running, running_line(seen, first, done)).of(&first.runner.id),
        );
    }
    let reason = match &seen.work {
        _ if replaced > 0 => {
            done.lost[..replaced].iter().map(LostRunner::line).collect::<Vec<_>>().join(", ")
        }
        PendingWork::Ready(key) => format!("{key} is ready and no runner is active"),
        PendingWork::None(why) => return skip(Decision::Idle, why.clone()),
    };
    if let Some(parking) = &seen.parked {
        let why = parking.reason.as_deref().unwrap_or("its last attempts failed");
        let label = parking.subject.label();
        let wait = match parking.tries_at().filter(|at| *at > seen.now) {
            Some(until) => format!(" for another {}", format_rounded(until.since(seen.now))),
            None => String::new(),
        };
        return skip(Decision::Parked, format!("{label} is parked{wait}: {why}"));
    }
    let decision = if replaced > 0 { Decision::Restarted } else { Decision::Started };
    Step::Start(Verdict::new(decision, reason), replaced.max(1))
}

fn running_line(seen: &Inspection, running: &InspectedRunner, done: &Actions) -> String {
    let pid = running.runner.process.process.pid;
    let ago = format_rounded(seen.now.since(running.last_beat));
    let answered = if done.answered { "; it answered when it was rung" } else { "" };
    format!("runner {} (pid {pid}), last heartbeat {ago} ago{answered}", short(&running.runner.id))
}

pub(super) fn short(id: &str) -> &str {
    id.get(..8).unwrap_or(id)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use Liveness::{Alive, Dead, Unknown};
    use tenure_core::holder::Incarnation;
    use tenure_core::parking::Subject;
    use tenure_core::runner::RunnerStatus;

    use super::*;

    const NOW: Timestamp = Timestamp::from_millis(1_000_000_000);

    fn nothing() -> Inspection {
        Inspection {
            now: NOW,
            enabled: true,
            locked: None,
            slots: 1,
            runners: Vec::new(),
            leftovers: false,
            work: PendingWork::None("there is nothing to do".to_owned()),
            parked: None,
        }
    }

    fn ready() -> Inspection {
        Inspection { work: PendingWork::Ready("T1".to_owned()), ..nothing() }
    }

    fn runner() -> Runner {
        Runner {
            id: "0123456789".to_owned(),
            status: RunnerStatus::Running,
            process: Incarnation::current(),
            project_path: String::new(),
            section: None,
            preset: "claude".to_owned(),
            current_task: None,
            log_path: None,
            started_at: NOW,
            heartbeat_at: NOW,
            completed_at: None,
            error: None,
        }
    }

    fn with(liveness: Liveness, stale: bool) -> Inspection {
        let seen = InspectedRunner { runner: runner(), liveness, last_beat: NOW, stale, doorbell: None };
        Inspection { runners: vec![seen], leftovers: liveness == Dead, ..ready() }
    }

    fn parked_until(until: Timestamp) -> Inspection {
        let parking = Parking {
            parked_at: Some(NOW),
            next_try_at: Some(until),
            times_parked: 1,
            reason: Some("please log in".to_owned()),
            ..Parking::new(Subject::Account("claude".to_owned()))
        };
        Inspection { parked: Some(parking), ..ready() }
    }

    fn lost() -> Actions {
        Actions {
            repaired: true,
            lost: vec![LostRunner { runner: runner(), how: "was dead" }],
            ..Actions::default()
        }
    }

    /// `skip:idle`, `start:restarted`, `ping`, `repair`.
    fn shown(step: &Step) -> String {
        match step {
            Step::Skip(verdict) => format!("skip:{}", verdict.decision),
            Step::Start(verdict, _) => format!("start:{}", verdict.decision),
            Step::Ping(_) => "ping".to_owned(),
            Step::Repair => "repair".to_owned(),
        }
    }

    #[test]
    fn every_path_of_the_decision_table() {
        let locked =
            |seen: Inspection| Inspection { locked: Some("Skipping database (locked by x)".into()), ..seen };
        let disabled = |seen: Inspection| Inspection { enabled: false, ..seen };
        let later = NOW.after(Duration::from_secs(1));
        let fresh = Actions::default();
        let two = |a: Inspection, b: Inspection| Inspection {
            runners: a.runners.iter().chain(&b.runners).cloned().collect(),
            leftovers: a.leftovers || b.leftovers,
            ..a
        };
        let table: Vec<(&str, Inspection, Actions, &str)> = vec![
            ("nothing to do", nothing(), fresh.clone(), "skip:idle"),
            ("ready work and no runner", ready(), fresh.clone(), "start:started"),
            ("a runner with a fresh heartbeat", with(Alive, false), fresh.clone(), "skip:running"),
            ("alive but stale", with(Alive, true), fresh.clone(), "ping"),
            ("dead", with(Dead, false), fresh.clone(), "repair"),
            ("dead and stale", with(Dead, true), fresh.clone(), "repair"),
            ("elsewhere and fresh", with(Unknown, false), fresh.clone(), "skip:running"),
            ("elsewhere and silent for too long", with(Unknown, true), fresh.clone(), "start:started"),
            (
                "one hangs beside one that works",
                two(with(Alive, false), with(Alive, true)),
                fresh.clone(),
                "ping",
            ),
            (
                "one is dead beside one that works",
                two(with(Alive, false), with(Dead, true)),
                fresh.clone(),
                "repair",
            ),
            ("the dead one was closed", two(with(Alive, false), ready()), lost(), "skip:running"),
            ("dead, and repaired", ready(), lost(), "start:restarted"),
            ("dead while it was idle", nothing(), lost(), "start:restarted"),
            (
                "leftovers of others, repaired",
                ready(),
                Actions { repaired: true, ..Actions::default() },
                "start:started",
            ),
            (
                "leftovers that remain are not repaired forever",
                Inspection { leftovers: true, ..nothing() },
                Actions { repaired: true, ..Actions::default() },
                "skip:idle",
            ),
            ("locked", locked(ready()), fresh.clone(), "skip:locked"),
            ("locked, with a dead runner", locked(with(Dead, true)), fresh.clone(), "skip:locked"),
            ("locked, with one that hangs", locked(with(Alive, true)), fresh.clone(), "skip:locked"),
            ("switched off", disabled(ready()), fresh.clone(), "skip:disabled"),
            ("switched off and locked", disabled(locked(ready())), fresh.clone(), "skip:disabled"),
            ("parked", parked_until(later), fresh.clone(), "skip:parked"),
            ("parked, and its runner died", parked_until(later), lost(), "skip:parked"),
            (
                "parked, and nothing to do",
                Inspection { work: PendingWork::None(String::new()), ..parked_until(later) },
                fresh,
                "skip:idle",
            ),
        ];
        for (case, seen, done, expected) in table {
            assert_eq!(shown(&next_step(&seen, &done)), expected, "{case}");
        }
    }

    #[test]
    fn every_verdict_has_a_reason() {
        let Step::Skip(parked) =
            next_step(&parked_until(NOW.after(Duration::from_secs(90))), &Actions::default())
        else {
            panic!("parked");
        };
        assert_eq!(parked.reason, "account claude is parked for another 1m30s: please log in");
        let Step::Start(again, 1) = next_step(&ready(), &lost()) else { panic!("started") };
        assert!(again.reason.starts_with("runner 01234567 (pid ") && again.reason.ends_with(") was dead"));
    }

    #[test]
    fn as_many_runners_are_started_as_died_while_there_are_free_slots() {
        let lose = |count: usize| Actions {
            repaired: true,
            lost: vec![LostRunner { runner: runner(), how: "was dead" }; count],
            ..Actions::default()
        };
        let count = |slots: usize, seen: Inspection, dead: usize| match next_step(
            &Inspection { slots, ..seen },
            &lose(dead),
        ) {
            Step::Start(verdict, count) => {
                assert_eq!(verdict.reason.matches("was dead").count(), count);
                count
            }
            _ => 0,
        };
        assert_eq!(count(3, ready(), 2), 2);
        assert_eq!(count(3, nothing(), 2), 2, "they may have been idle");
        assert_eq!(count(2, ready(), 3), 2, "no more than there are slots");
        assert_eq!(count(3, with(Alive, false), 1), 1, "another one is at work");
        assert_eq!(count(3, with(Unknown, false), 3), 2, "one on another machine has a slot, too");
        assert_eq!(count(1, with(Alive, false), 1), 0);
    }
}
