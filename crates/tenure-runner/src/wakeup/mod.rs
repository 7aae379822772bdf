//! Wake-up: one look at a project, and whatever brings its work going again.
//!
//! Guaranteed: nothing is done while the exclusive lock is there; a runner is killed only after it was silent for
//! `runners.staleTimeout`, was rung and did not answer for [`GRACE`], and then only that very process, never a later one
//! with its number; what the dead have left is put right before anything starts; a dry run changes nothing.
//! The store is the truth: the directory of runners is not asked.

mod candidates;
mod chart;
mod look;
mod memory;
mod round;

use std::path::Path;
use std::time::{Duration, Instant};

use rustix::process::Signal;
use tenure_core::holder::Liveness;
use tenure_core::runner::Runner;
use tenure_core::store::{Durability, Store};
use tenure_core::{Context, Error, ErrorCode, Result, kernel};

use crate::ending::{Scope, finish_ending};
use crate::{exclusion, processes};

pub use candidates::{below, expand};
pub use chart::{Decision, Done, Loss, Seen, SeenRunner, Step, Verdict, Work, next_step};
pub use look::Rest;
pub use memory::mark;
pub use round::each;

/// How long a runner that was rung may take to show a sign of life: a laptop that just woke is not a zombie.
pub const GRACE: Duration = Duration::from_secs(10);

/// Between two looks for that sign.
const LOOK_AGAIN: Duration = Duration::from_millis(100);
/// How long a process may take to die of SIGKILL.
const DYING: Duration = Duration::from_secs(5);
/// Each turn does something that the next does not need to; more would mean that others undo it.
const TURNS: usize = 8;

/// A project, and what wake-up may do about it.
pub struct Ward<'a> {
    pub root: &'a Path,
    pub store: &'a dyn Store,
    pub ctx: Context<'a>,
    pub actor: &'a str,
    /// `runners.wakeup.enabled`.
    pub enabled: bool,
    /// `runners.staleTimeout`.
    pub stale_after: Duration,
    /// What a runner would work and review with.
    pub presets: Vec<String>,
    /// There is an agent for what is in review.
    pub reviewing: bool,
    pub dry_run: bool,
    /// Who keeps others from writing to the store now, if that is known.
    pub writer: &'a dyn Fn() -> Option<u32>,
    /// Lines for the log.
    pub say: &'a dyn Fn(&str),
    /// Starts a runner, as the one that was lost if there was one. Its id.
    pub start: &'a dyn Fn(Option<&Runner>) -> std::result::Result<String, NotStarted>,
}

impl std::fmt::Debug for Ward<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Ward").field("root", &self.root).finish_non_exhaustive()
    }
}

/// Why a runner was not started.
#[derive(Debug, Clone)]
pub struct NotStarted {
    pub code: ErrorCode,
    pub message: String,
}

/// Does for one project what the chart says. Whatever goes wrong is this project's verdict and nobody else's.
pub fn serve(ward: &Ward<'_>) -> (Verdict, Rest) {
    match through_the_chart(ward) {
        Ok(answer) => answer,
        Err(error) => (Verdict::new(Decision::Error, error.to_string()), Rest::Unknown),
    }
}

fn through_the_chart(ward: &Ward<'_>) -> Result<(Verdict, Rest)> {
    let mut done = Done::default();
    for _ in 0..TURNS {
        let locked = if ward.enabled { is_locked_out(ward) } else { None };
        let (seen, rest) = ward.store.read(|view| look::look(view, ward, locked.clone()))?;
        match next_step(&seen, &done) {
            Step::Rest(verdict) => {
                let rest = if verdict.decision == Decision::Idle { rest } else { Rest::Unknown };
                return Ok((verdict, rest));
            }
            Step::Start(verdict) => return Ok((start(ward, verdict, &done), Rest::Unknown)),
            Step::Rouse(silent) => {
                if ward.dry_run {
                    let why = format!(
                        "runner {} is silent; it would be rung, and ended if it does not answer",
                        chart::short(&silent.runner.id)
                    );
                    return Ok((Verdict::new(Decision::Restarted, why).of(&silent.runner.id), Rest::Unknown));
                }
                match rouse(ward, &silent)? {
                    Answer::Alive => done.answered = true,
                    Answer::Ended(how) => done.lost = Some(Loss { runner: silent.runner, how }),
                }
            }
            Step::Repair => {
                let dead = seen.runners.into_iter().find(|r| r.liveness == Liveness::Dead);
                if let Some(dead) = dead {
                    done.lost.get_or_insert(Loss { runner: dead.runner, how: "was dead" });
                }
                if !ward.dry_run {
                    repair(ward)?;
                }
                done.repaired = true;
            }
        }
    }
    Err(Error::General("its state kept changing".to_owned()))
}

/// The line of a lock that keeps us away.
fn is_locked_out(ward: &Ward<'_>) -> Option<String> {
    let said = if ward.dry_run { exclusion::peek(ward.root) } else { exclusion::check(ward.root) };
    for decision in &said {
        if !ward.dry_run
            && let Some(line) = decision.log_line()
        {
            (ward.say)(&line);
        }
    }
    said.into_iter().find(|decision| decision.skip).map(|decision| decision.to_string())
}

fn start(ward: &Ward<'_>, verdict: Verdict, done: &Done) -> Verdict {
    if ward.dry_run {
        return verdict;
    }
    match (ward.start)(done.lost.as_ref().map(|loss| &loss.runner)) {
        Ok(runner) => {
            (ward.say)(&format!("{} runner {runner}: {}", verdict.decision, verdict.reason));
            verdict.of(&runner)
        }
        // Somebody was faster.
        Err(refusal) if refusal.code == ErrorCode::RunnerActive => {
            Verdict::new(Decision::Running, refusal.message)
        }
        Err(refusal) if refusal.code == ErrorCode::ExclusiveLocked => {
            Verdict::new(Decision::Locked, refusal.message)
        }
        Err(refusal) => Verdict::new(Decision::Error, refusal.message),
    }
}

enum Answer {
    Alive,
    /// It is gone, and how that came.
    Ended(&'static str),
}

/// Rings a silent runner and waits for a sign of life; ends it if none comes.
fn rouse(ward: &Ward<'_>, silent: &SeenRunner) -> Result<Answer> {
    let (short, pid) = (chart::short(&silent.runner.id), silent.runner.process.process.pid);
    (ward.say)(&format!("Runner {short} (pid {pid}) is silent; ringing it"));
    let rung = ward.store.write(Durability::Process, |tx| {
        if let Some(doorbell) = &silent.doorbell {
            tx.ring(doorbell);
        }
        Ok(())
    });
    match rung {
        // A store that somebody else keeps locked lets no runner beat: it is not the runner that hangs.
        Err(error) if (ward.writer)() != Some(pid) => return Err(error),
        _ => {}
    }
    let end = Instant::now() + GRACE;
    while Instant::now() < end {
        let now = ward.store.read(|view| match view.runner(&silent.runner.id)? {
            Some(runner) if !runner.status.is_over() => look::seen_runner(view, ward, runner).map(Some),
            _ => Ok(None),
        })?;
        match now {
            Some(now) if now.liveness == Liveness::Dead => {
                return Ok(Answer::Ended("had hung and is dead now"));
            }
            Some(now) if now.stale => std::thread::sleep(LOOK_AGAIN),
            // A sign of life; or it has said goodbye, which is one.
            _ => return Ok(Answer::Alive),
        }
    }
    (ward.say)(&format!("Runner {short} (pid {pid}) does not answer; killing it"));
    let gone = processes::signal_one(&silent.runner.process, ward.ctx.judge, Signal::KILL, DYING)
        .map_err(|e| Error::General(format!("runner {short} (pid {pid}) hangs and cannot be killed: {e}")))?;
    if !gone {
        return Err(Error::General(format!("runner {short} (pid {pid}) hangs and does not die")));
    }
    Ok(Answer::Ended("did not answer its doorbell and was killed"))
}

/// After a crash anywhere: leases, rows, and what is left of processes.
fn repair(ward: &Ward<'_>) -> Result<()> {
    let repairs = ward.store.write(Durability::Power, |tx| kernel::reconcile(tx, &ward.ctx, ward.actor))?;
    for (lease, _) in &repairs.leases {
        (ward.say)(&format!("Closed the lapsed lease {} of {}", lease.id, lease.holder));
    }
    let cleared = finish_ending(ward.store, &ward.ctx, Scope::Abandoned, ward.actor)?.or_survivors()?;
    for attempt in &cleared.ended {
        (ward.say)(&format!("Ended what was left of attempt {}", attempt.id));
    }
    Ok(())
}
