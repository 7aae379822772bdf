//! The chart: from what was seen of a project to the next step. No clock, no store, no process is asked here.

use std::fmt;

use tenure_core::Timestamp;
use tenure_core::duration::format_rounded;
use tenure_core::holder::Liveness;
use tenure_core::runner::{PresetHealth, Runner};

/// What a wake-up decided for a project.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Decision {
    /// There was work and nobody at it.
    Started,
    /// Its runner was dead, or was ended because it hung.
    Restarted,
    Running,
    Idle,
    /// Another tool has the project to itself.
    Locked,
    /// Its agent fails at once; tried again later.
    Parked,
    Disabled,
    /// Found below `runners.wakeup.projectPaths` and not registered: nothing of it is read or run.
    Unregistered,
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

/// A runner that has not said goodbye.
#[derive(Debug, Clone)]
pub struct SeenRunner {
    pub runner: Runner,
    pub liveness: Liveness,
    /// The last sign of life on any of its leases.
    pub last_beat: Timestamp,
    /// That is longer ago than `runners.staleTimeout`.
    pub stale: bool,
    pub doorbell: Option<String>,
}

/// What there is to do in a project.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Work {
    /// The key of the first ready task.
    Ready(String),
    /// Nothing, and why.
    None(String),
}

/// What was seen of a project.
#[derive(Debug, Clone)]
pub struct Seen {
    pub now: Timestamp,
    /// `runners.wakeup.enabled`, as this project has it.
    pub enabled: bool,
    /// The line to log if the exclusive lock keeps everybody away.
    pub locked: Option<String>,
    pub runners: Vec<SeenRunner>,
    /// Leases, attempts or runners of processes that are proven dead.
    pub litter: bool,
    pub work: Work,
    /// The presets that a runner would use and that are parked.
    pub parked: Vec<PresetHealth>,
}

/// What this wake-up has done about the project before it looked again.
#[derive(Debug, Clone, Default)]
pub struct Done {
    pub repaired: bool,
    /// It was rung, and it answered.
    pub answered: bool,
    /// The runner that was found dead, or was killed.
    pub lost: Option<Loss>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Loss {
    pub runner: Runner,
    pub how: &'static str,
}

/// What to do next.
#[derive(Debug, Clone)]
pub enum Step {
    Rest(Verdict),
    /// Alive but silent: ring, wait, and end it if it does not answer.
    Rouse(Box<SeenRunner>),
    /// Put right what the dead have left, then look again.
    Repair,
    Start(Verdict),
}

pub fn next_step(seen: &Seen, done: &Done) -> Step {
    let rest = |decision, reason: String| Step::Rest(Verdict::new(decision, reason));
    if !seen.enabled {
        return rest(Decision::Disabled, "runners.wakeup.enabled is false".to_owned());
    }
    if let Some(line) = &seen.locked {
        return rest(Decision::Locked, line.clone());
    }
    if let Some(silent) = seen.runners.iter().find(|r| r.stale && r.liveness == Liveness::Alive) {
        return Step::Rouse(Box::new(silent.clone()));
    }
    if seen.litter && !done.repaired {
        return Step::Repair;
    }
    // One that cannot be judged from here counts as alive for as long as its heartbeat is fresh.
    if let Some(at_work) = seen.runners.iter().find(|r| !r.stale && r.liveness != Liveness::Dead) {
        return Step::Rest(
            Verdict::new(Decision::Running, at_work_line(seen, at_work, done)).of(&at_work.runner.id),
        );
    }
    let reason = match (&done.lost, &seen.work) {
        (Some(loss), _) => {
            let (pid, short) = (loss.runner.process.process.pid, short(&loss.runner.id));
            format!("runner {short} (pid {pid}) {}", loss.how)
        }
        (None, Work::Ready(key)) => format!("{key} is ready and nobody is at work"),
        (None, Work::None(why)) => return rest(Decision::Idle, why.clone()),
    };
    if let Some((health, until)) = parked(seen) {
        let why = health.reason.as_deref().unwrap_or("it failed at once, three times in a row");
        let wait = format_rounded(until.since(seen.now));
        return rest(Decision::Parked, format!("{} is parked for another {wait}: {why}", health.preset));
    }
    let decision = if done.lost.is_some() { Decision::Restarted } else { Decision::Started };
    Step::Start(Verdict::new(decision, reason))
}

/// The preset that may not be tried for longest.
fn parked(seen: &Seen) -> Option<(&PresetHealth, Timestamp)> {
    let waiting = seen.parked.iter().filter_map(|health| Some((health, health.next_try_at?)));
    waiting.filter(|(_, until)| *until > seen.now).max_by_key(|(_, until)| *until)
}

fn at_work_line(seen: &Seen, at_work: &SeenRunner, done: &Done) -> String {
    let pid = at_work.runner.process.process.pid;
    let ago = format_rounded(seen.now.since(at_work.last_beat));
    let answered = if done.answered { "; it answered when it was rung" } else { "" };
    format!("runner {} (pid {pid}), last heartbeat {ago} ago{answered}", short(&at_work.runner.id))
}

pub(super) fn short(id: &str) -> &str {
    id.get(..8).unwrap_or(id)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use Liveness::{Alive, Dead, Unknown};
    use tenure_core::holder::Incarnation;
    use tenure_core::runner::RunnerStatus;

    use super::*;

    const NOW: Timestamp = Timestamp::from_millis(1_000_000_000);

    fn nothing() -> Seen {
        Seen {
            now: NOW,
            enabled: true,
            locked: None,
            runners: Vec::new(),
            litter: false,
            work: Work::None("there is nothing to do".to_owned()),
            parked: Vec::new(),
        }
    }

    fn ready() -> Seen {
        Seen { work: Work::Ready("T1".to_owned()), ..nothing() }
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

    fn with(liveness: Liveness, stale: bool) -> Seen {
        let seen = SeenRunner { runner: runner(), liveness, last_beat: NOW, stale, doorbell: None };
        Seen { runners: vec![seen], litter: liveness == Dead, ..ready() }
    }

    fn parked_until(until: Timestamp) -> Seen {
        let health = PresetHealth {
            preset: "claude".to_owned(),
            quick_failures: 0,
            tasks: Vec::new(),
            parked_at: Some(NOW),
            next_try_at: Some(until),
            times_parked: 1,
            reason: Some("please log in".to_owned()),
        };
        Seen { parked: vec![health], ..ready() }
    }

    fn lost() -> Done {
        Done { repaired: true, lost: Some(Loss { runner: runner(), how: "was dead" }), ..Done::default() }
    }

    /// `rest:idle`, `start:restarted`, `rouse`, `repair`.
    fn told(step: &Step) -> String {
        match step {
            Step::Rest(verdict) => format!("rest:{}", verdict.decision),
            Step::Start(verdict) => format!("start:{}", verdict.decision),
            Step::Rouse(_) => "rouse".to_owned(),
            Step::Repair => "repair".to_owned(),
        }
    }

    #[test]
    fn every_path_of_the_chart() {
        let locked = |seen: Seen| Seen { locked: Some("Skipping database (locked by x)".into()), ..seen };
        let disabled = |seen: Seen| Seen { enabled: false, ..seen };
        let later = NOW.after(Duration::from_secs(1));
        let fresh = Done::default();
        let two = |a: Seen, b: Seen| Seen {
            runners: a.runners.iter().chain(&b.runners).cloned().collect(),
            litter: a.litter || b.litter,
            ..a
        };
        let table: Vec<(&str, Seen, Done, &str)> = vec![
            ("nothing to do", nothing(), fresh.clone(), "rest:idle"),
            ("ready work and no runner", ready(), fresh.clone(), "start:started"),
            ("a runner with a fresh heartbeat", with(Alive, false), fresh.clone(), "rest:running"),
            ("alive but stale", with(Alive, true), fresh.clone(), "rouse"),
            ("dead", with(Dead, false), fresh.clone(), "repair"),
            ("dead and stale", with(Dead, true), fresh.clone(), "repair"),
            ("elsewhere and fresh", with(Unknown, false), fresh.clone(), "rest:running"),
            ("elsewhere and silent for too long", with(Unknown, true), fresh.clone(), "start:started"),
            (
                "one hangs beside one that works",
                two(with(Alive, false), with(Alive, true)),
                fresh.clone(),
                "rouse",
            ),
            (
                "one is dead beside one that works",
                two(with(Alive, false), with(Dead, true)),
                fresh.clone(),
                "repair",
            ),
            ("that one was buried", two(with(Alive, false), ready()), lost(), "rest:running"),
            ("dead, and put right", ready(), lost(), "start:restarted"),
            ("dead while it was idle", nothing(), lost(), "start:restarted"),
            (
                "what others left, put right",
                ready(),
                Done { repaired: true, ..Done::default() },
                "start:started",
            ),
            (
                "litter that stays is not looked at for ever",
                Seen { litter: true, ..nothing() },
                Done { repaired: true, ..Done::default() },
                "rest:idle",
            ),
            ("locked", locked(ready()), fresh.clone(), "rest:locked"),
            ("locked, with a dead runner", locked(with(Dead, true)), fresh.clone(), "rest:locked"),
            ("locked, with one that hangs", locked(with(Alive, true)), fresh.clone(), "rest:locked"),
            ("switched off", disabled(ready()), fresh.clone(), "rest:disabled"),
            ("switched off and locked", disabled(locked(ready())), fresh.clone(), "rest:disabled"),
            ("parked", parked_until(later), fresh.clone(), "rest:parked"),
            ("parked until just now", parked_until(NOW), fresh.clone(), "start:started"),
            ("parked, and its runner died", parked_until(later), lost(), "rest:parked"),
            (
                "parked, and nothing to do",
                Seen { work: Work::None(String::new()), ..parked_until(later) },
                fresh,
                "rest:idle",
            ),
        ];
        for (case, seen, done, expected) in table {
            assert_eq!(told(&next_step(&seen, &done)), expected, "{case}");
        }
    }

    #[test]
    fn every_verdict_gives_its_reason() {
        let Step::Rest(parked) =
            next_step(&parked_until(NOW.after(Duration::from_secs(90))), &Done::default())
        else {
            panic!("parked");
        };
        assert_eq!(parked.reason, "claude is parked for another 1m30s: please log in");
        let Step::Start(again) = next_step(&ready(), &lost()) else { panic!("started") };
        assert!(again.reason.starts_with("runner 01234567 (pid ") && again.reason.ends_with(") was dead"));
    }
}
