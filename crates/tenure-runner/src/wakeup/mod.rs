//! Wake-up: inspects a project and restarts its work if it has stalled.
//!
//! Guaranteed: nothing is done while the exclusive lock is held; a runner is killed only after it was silent for
//! `runners.staleTimeout` and did not answer its doorbell for [`GRACE`], and then only that process, never a later one
//! with the same pid; leftovers of dead processes are repaired before anything starts; a dry run changes nothing. Only
//! the store is consulted, not the directory of runners.

mod candidates;
mod decide;
mod fingerprint;
mod inspect;
mod round;

use std::path::Path;
use std::time::{Duration, Instant};

use tenure_core::holder::Liveness;
use tenure_core::parking::ParkingScope;
use tenure_core::runner::Runner;
use tenure_core::store::{Durability, Store};
use tenure_core::{Context, Error, ErrorCode, Result, kernel};

use crate::reap::{Scope, reap_attempts};
use crate::sys::Signal;
use crate::{exclusion, processes};

pub use candidates::{below, expand};
pub use decide::{
    Actions, Decision, InspectedRunner, Inspection, LostRunner, PendingWork, Step, Verdict, next_step,
};
pub use fingerprint::fingerprint;
pub use inspect::Recheck;
pub use round::for_each;

/// How long a runner may take to answer its doorbell: a laptop that has just resumed does not hang.
pub const GRACE: Duration = Duration::from_secs(10);

/// The time between two checks for an answer.
const CHECK_EVERY: Duration = Duration::from_millis(100);
/// How long a process may take to end after SIGKILL.
const KILL_PATIENCE: Duration = Duration::from_secs(5);
/// Each round makes progress, so more rounds would mean that other processes undo it.
const ROUNDS: usize = 8;

/// A project and what wake-up needs to serve it.
pub struct Target<'a> {
    pub root: &'a Path,
    pub store: &'a dyn Store,
    pub ctx: Context<'a>,
    pub actor: &'a str,
    /// `runners.wakeup.enabled`.
    pub enabled: bool,
    /// `runners.maxConcurrent`.
    pub slots: usize,
    /// `runners.staleTimeout`.
    pub stale_after: Duration,
    /// What is parked if the presets with which a runner would work and review cannot be used.
    pub scopes: Vec<ParkingScope>,
    /// Whether an agent reviews tasks.
    pub reviewing: bool,
    pub dry_run: bool,
    /// The pid of the process that holds the store's write lock, if known.
    pub writer: &'a dyn Fn() -> Option<u32>,
    /// Writes a line to the log.
    pub log: &'a dyn Fn(&str),
    /// Starts a runner, in place of the lost one if there was one. Returns its id. In a dry run it only finds out whether a
    /// runner could be started.
    pub start: &'a dyn Fn(Option<&Runner>) -> std::result::Result<String, NotStarted>,
}

impl std::fmt::Debug for Target<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Target").field("root", &self.root).finish_non_exhaustive()
    }
}

/// Why a runner was not started.
#[derive(Debug, Clone)]
pub struct NotStarted {
    pub code: ErrorCode,
    pub message: String,
    /// Whether the preset was parked because it cannot be started as configured.
    pub parked: bool,
}

/// Serves one project. An error becomes the verdict of this project and does not affect others.
pub fn wake(target: &Target<'_>) -> (Verdict, Recheck) {
    let _span = tracing::debug_span!("wakeup", project = %target.root.display()).entered();
    let (verdict, recheck) = try_wake(target)
        .unwrap_or_else(|error| (Verdict::new(Decision::Error, error.to_string()), Recheck::Unknown));
    tracing::debug!(decision = verdict.decision.as_str(), reason = verdict.reason, "decided");
    (verdict, recheck)
}

fn try_wake(target: &Target<'_>) -> Result<(Verdict, Recheck)> {
    let mut done = Actions::default();
    for _ in 0..ROUNDS {
        let locked = if target.enabled { is_locked_out(target) } else { None };
        let (seen, recheck) = target.store.read(|view| inspect::inspect(view, target, locked.clone()))?;
        match next_step(&seen, &done) {
            Step::Skip(verdict) => {
                let recheck = if verdict.decision == Decision::Idle { recheck } else { Recheck::Unknown };
                return Ok((verdict, recheck));
            }
            Step::Start(verdict, count) => {
                return Ok((start(target, verdict, count, &done), Recheck::Unknown));
            }
            Step::Ping(silent) => {
                if target.dry_run {
                    let why = format!(
                        "runner {} is silent; it would be rung, and ended if it does not answer",
                        decide::short(&silent.runner.id)
                    );
                    return Ok((
                        Verdict::new(Decision::Restarted, why).of(&silent.runner.id),
                        Recheck::Unknown,
                    ));
                }
                match ping(target, &silent)? {
                    PingResult::Alive => done.answered = true,
                    PingResult::Ended(how) => done.lost.push(LostRunner { runner: silent.runner, how }),
                }
            }
            Step::Repair => {
                for dead in seen.runners.into_iter().filter(|r| r.liveness == Liveness::Dead) {
                    if done.lost.iter().all(|known| known.runner.id != dead.runner.id) {
                        done.lost.push(LostRunner { runner: dead.runner, how: "was dead" });
                    }
                }
                if !target.dry_run {
                    repair(target)?;
                }
                done.repaired = true;
            }
        }
    }
    Err(Error::General("the project's state kept changing".to_owned()))
}

/// The message of an exclusive lock that is held.
fn is_locked_out(target: &Target<'_>) -> Option<String> {
    let decisions = if target.dry_run { exclusion::peek(target.root) } else { exclusion::check(target.root) };
    for decision in &decisions {
        if !target.dry_run
            && let Some(line) = decision.log_line()
        {
            (target.log)(&line);
        }
    }
    decisions.into_iter().find(|decision| decision.skip).map(|decision| decision.to_string())
}

fn start(target: &Target<'_>, mut verdict: Verdict, count: usize, done: &Actions) -> Verdict {
    for number in 0..count {
        match (target.start)(done.lost.get(number).map(|loss| &loss.runner)) {
            Ok(_) if target.dry_run => {}
            Ok(runner) => {
                (target.log)(&format!("{} runner {runner}: {}", verdict.decision, verdict.reason));
                if number == 0 {
                    verdict = verdict.of(&runner);
                }
            }
            Err(refusal) if number > 0 => {
                let what = "another runner could not be started";
                verdict.reason = format!("{}; {what}: {}", verdict.reason, refusal.message);
                return verdict;
            }
            Err(refusal) if refusal.parked => return Verdict::new(Decision::Parked, refusal.message),
            // Another process started a runner first.
            Err(refusal) if refusal.code == ErrorCode::RunnerActive => {
                return Verdict::new(Decision::Running, refusal.message);
            }
            Err(refusal) if refusal.code == ErrorCode::ExclusiveLocked => {
                return Verdict::new(Decision::Locked, refusal.message);
            }
            Err(refusal) => return Verdict::new(Decision::Error, refusal.message),
        }
    }
    verdict
}

enum PingResult {
    Alive,
    /// The runner is gone, for this reason.
    Ended(&'static str),
}

/// Rings the doorbell of a silent runner and waits for a heartbeat; kills the runner if none comes.
fn ping(target: &Target<'_>, silent: &InspectedRunner) -> Result<PingResult> {
    let (short, pid) = (decide::short(&silent.runner.id), silent.runner.process.process.pid);
    (target.log)(&format!("Runner {short} (pid {pid}) is silent; ringing it"));
    let rung = target.store.write(Durability::Process, |tx| {
        if let Some(doorbell) = &silent.doorbell {
            tx.ring(doorbell);
        }
        Ok(())
    });
    match rung {
        // While another process holds the write lock, no runner can renew its lease, so a missing heartbeat
        // does not show that this runner hangs.
        Err(error) if (target.writer)() != Some(pid) => return Err(error),
        _ => {}
    }
    let end = Instant::now() + GRACE;
    while Instant::now() < end {
        let now = target.store.read(|view| match view.runner(&silent.runner.id)? {
            Some(runner) if !runner.status.is_over() => {
                inspect::inspect_runner(view, target, runner).map(Some)
            }
            _ => Ok(None),
        })?;
        match now {
            Some(now) if now.liveness == Liveness::Dead => {
                return Ok(PingResult::Ended("had hung and is dead now"));
            }
            Some(now) if now.stale => std::thread::sleep(CHECK_EVERY),
            // It renewed, or it has ended by itself.
            _ => return Ok(PingResult::Alive),
        }
    }
    (target.log)(&format!("Runner {short} (pid {pid}) does not answer; killing it"));
    let gone = processes::signal_one(&silent.runner.process, target.ctx.judge, Signal::KILL, KILL_PATIENCE)
        .map_err(|e| {
        Error::General(format!("runner {short} (pid {pid}) hangs and cannot be killed: {e}"))
    })?;
    if !gone {
        return Err(Error::General(format!("runner {short} (pid {pid}) hangs and does not die")));
    }
    Ok(PingResult::Ended("did not respond and was killed"))
}

/// Repairs leases and rows after a crash, and reaps leftover processes.
fn repair(target: &Target<'_>) -> Result<()> {
    let repairs =
        target.store.write(Durability::Power, |tx| kernel::reconcile(tx, &target.ctx, target.actor))?;
    for (lease, _) in &repairs.leases {
        (target.log)(&format!("Closed the lapsed lease {} of {}", lease.id, lease.holder));
    }
    let cleared = reap_attempts(target.store, &target.ctx, Scope::Abandoned, target.actor)?.or_survivors()?;
    for attempt in &cleared.ended {
        tracing::debug!(attempt = %attempt.id, "reaped");
        (target.log)(&format!("Reaped the processes left by attempt {}", attempt.id));
    }
    Ok(())
}
