//! Running one command under a lease, from its attempt's row to its outcome.
//!
//! Guaranteed: the row is committed before the process exists; when this returns, no process of the attempt is left
//! (survivors of SIGKILL are named); the outcome is written under the fence, so a holder that was overtaken changes
//! nothing (R3). What the command itself said about its task wins over its exit code.

use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::{Child, Command, ExitStatus};
use std::time::Duration;

use rustix::process::{Signal, kill_process_group};
use tenure_core::error::TaskName;
use tenure_core::holder::{Caller, Incarnation};
use tenure_core::kernel::{self, Beat};
use tenure_core::lease::{Attempt, Lease};
use tenure_core::store::{Durability, Store, Tx};
use tenure_core::task::Task;
use tenure_core::{Context, Error, Result};
use tenure_lock::BootTime;

use crate::database::DatabaseFile;
use crate::ending::{self, Scope};
use crate::exec_gate::{cannot_run, exit_code_of};
use crate::heartbeat::{Heartbeat, Loss, OpenStore, RenewTask};
use crate::outcome::{Word, conclude};
use crate::processes::{self, EndMode, ProcessFilter, Survivor};
use crate::terminal::Foreground;
use crate::watch::{Event, HeartbeatThread, pid_of, watch_over};

/// Signals to the supervisor, as something to poll for.
pub trait Signals: AsFd {
    /// The number of the one that came since the last call.
    fn take(&self) -> Option<i32>;
}

/// Everything that a command under a lease needs around it.
pub struct Supervision<'a> {
    pub store: &'a dyn Store,
    /// For the heartbeat, which has a handle of its own.
    pub open: OpenStore<'a>,
    pub ctx: Context<'a>,
    pub task: &'a TaskName,
    pub lease: &'a Lease,
    /// This process, which the lease records.
    pub me: &'a Incarnation,
    pub signals: &'a dyn Signals,
    /// Rung when the lease is taken away.
    pub doorbell: Option<BorrowedFd<'a>>,
    pub database: Option<&'a DatabaseFile>,
    /// `runners.heartbeatInterval`.
    pub interval: Duration,
    /// `runners.killGrace`.
    pub grace: Duration,
    pub log_path: Option<String>,
    /// At least how long each beat keeps the section; the task's ttl without it.
    pub section_ttl: Option<Duration>,
    /// The section is not let go with the task: a runner goes on in it.
    pub keep_section: bool,
    /// What else may end the work.
    pub limits: Option<&'a dyn Limits>,
    /// What is written with each step, in the same transaction.
    pub steps: Option<&'a dyn Steps>,
}

/// Whoever keeps a record of the work's steps: it is written with them or not at all.
pub trait Steps {
    /// The attempt is about to begin. An error here keeps it from it.
    fn begun(&self, tx: &mut dyn Tx, attempt: &Attempt) -> Result<()>;
    /// The task is as it is now.
    fn ended(&self, tx: &mut dyn Tx, task: &Task) -> Result<()>;
}

/// Bounds on the work itself, looked at while it goes on.
pub trait Limits: Sync {
    fn look(&self) -> Look;

    /// Why the work ended as it did, as far as its output says. Asked once it has ended.
    ///
    /// `exit` is None for work that did not end by itself.
    fn explain(&self, exit: Option<i32>) -> Option<Explanation> {
        let _ = exit;
        None
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Explanation {
    /// What the work printed last, which often says why.
    LastLine(String),
    /// Why no task could have been worked on. The task goes back to where it was claimed from, not charged.
    Obstacle(String),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Look {
    /// All is well; look again after this long.
    GoOn(Duration),
    /// It has printed nothing for this long: it is ended, and its task tried again.
    Hung(Duration),
    /// It has taken this long: it is ended, and its task has failed.
    TooLong(Duration),
}

impl std::fmt::Debug for Supervision<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Supervision").field("lease", self.lease).finish_non_exhaustive()
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Exit {
    Code(i32),
    Signal(i32),
}

impl Exit {
    fn of(status: ExitStatus) -> Self {
        status.code().map_or_else(|| Self::Signal(status.signal().unwrap_or(0)), Self::Code)
    }
}

/// What became of the command and of its task.
#[derive(Debug)]
pub enum Ended {
    /// It ran to its end. `spoken` if it has said itself what becomes of the task.
    Exited {
        exit: Exit,
        spoken: bool,
        task: Box<Task>,
    },
    /// There was nothing to run. The exit code is a shell's: 126 or 127.
    NotStarted {
        why: String,
        exit: u8,
        task: Box<Task>,
    },
    /// It hung or took too long, and was ended for it.
    Overdue {
        why: String,
        task: Box<Task>,
    },
    /// A signal to us ended it.
    Interrupted {
        signal: i32,
        task: Box<Task>,
    },
    Lost(Loss),
}

#[derive(Debug)]
pub struct Supervised {
    pub ended: Ended,
    pub attempt: Attempt,
    /// Processes of the attempt that SIGKILL did not end. Nearly always none.
    pub survivors: Vec<Survivor>,
}

/// Runs `command`, which passes the [exec gate](crate::exec_if_running), under the lease.
pub fn supervise(s: &Supervision<'_>, command: &mut Command) -> Result<Supervised> {
    let caller =
        Caller::new(s.lease.holder.clone()).with_process(s.me.clone()).with_fence(Some(s.lease.fence));
    let (stop, stopped) = UnixStream::pair().map_err(|e| broken(&e))?;
    let (ended, ending) = UnixStream::pair().map_err(|e| broken(&e))?;
    let mut renew = RenewTask {
        ctx: s.ctx,
        task: s.task,
        caller: &caller,
        fence: s.lease.fence,
        section_ttl: s.section_ttl,
    };
    let (open, database, interval, ttl, doorbell) = (s.open, s.database, s.interval, s.lease.ttl, s.doorbell);
    let (attempt, asked) = begin(s, &caller)?;
    std::thread::scope(|scope| {
        let beating = move || {
            let stop = Some(stopped.as_fd());
            let end = Heartbeat { open, database, interval, ttl, stop, doorbell }.run(asked, &mut renew);
            // Hangs up, which wakes the supervisor.
            drop(ending);
            end
        };
        let thread = std::thread::Builder::new().name("heartbeat".into()).spawn_scoped(scope, beating);
        let heartbeat = thread.map(|thread| HeartbeatThread { thread: Some(thread), ended });
        let supervised = run(s, &caller, attempt, heartbeat.map_err(|e| broken(&e)), command);
        // Hangs up, which ends the heartbeat.
        drop(stop);
        supervised
    })
}

/// Commits the row and the mark, once no earlier attempt is in the way. Also returns when the renewal that came with them
/// was asked for.
fn begin(s: &Supervision<'_>, caller: &Caller) -> Result<(Attempt, BootTime)> {
    let mut around_us = Vec::new();
    // Each round ends what was in the way; more can only come from a lease that is lost, which the renewal says.
    for _ in 0..100 {
        let asked = BootTime::now();
        let begun = s.store.write(Durability::Power, |tx| {
            let beat = Beat { revive: true, ..Beat::default() };
            let lease = kernel::renew(tx, &s.ctx, caller, s.task, beat)?;
            if ending::is_in_the_way(tx, &s.ctx, &lease.resource, &around_us)? {
                return Ok(None);
            }
            let attempt = kernel::begin_attempt(tx, &s.ctx, &lease, s.me, s.log_path.clone())?;
            if let Some(steps) = s.steps {
                steps.begun(tx, &attempt)?;
            }
            Ok(Some(attempt))
        })?;
        if let Some(attempt) = begun {
            return Ok((attempt, asked));
        }
        let scope = Scope::Of(&s.lease.resource);
        let cleared = ending::finish_ending(s.store, &s.ctx, scope, &caller.holder.id)?.or_survivors()?;
        around_us = cleared.around_us;
    }
    Err(Error::General("earlier attempts at this task do not stop ending".to_owned()))
}

fn run(
    s: &Supervision<'_>,
    caller: &Caller,
    mut attempt: Attempt,
    heartbeat: Result<HeartbeatThread<'_>>,
    command: &mut Command,
) -> Result<Supervised> {
    command.env("TENURE_ATTEMPT", attempt.id.as_str()).process_group(0);
    let started = heartbeat.map_err(|e| (e.to_string(), 126)).and_then(|heartbeat| {
        let child = command.spawn().map_err(|e| (cannot_run(command, &e), exit_code_of(&e)))?;
        Ok((heartbeat, child))
    });
    let (mut heartbeat, mut child) = match started {
        Ok(started) => started,
        Err((why, exit)) => {
            let ended = conclude(s, caller, &attempt, Word::NotStarted { why, exit }, true)?;
            return Ok(Supervised { ended, attempt, survivors: Vec::new() });
        }
    };
    let pid = child.id();
    let foreground = pid_of(pid).and_then(Foreground::hand_to);
    // From here on nothing may return before the child is gone.
    let event = match s.store.write(Durability::Process, |tx| kernel::note_pid(tx, &mut attempt, pid)) {
        Ok(()) => watch_over(s.signals, s.limits, pid, Some(&mut heartbeat), foreground.as_ref()),
        Err(error) => Event::Lost(Loss::Unreachable(Box::new(error))),
    };
    let manner = match &event {
        Event::Lost(_) => EndMode::Kill,
        Event::Signalled(signal_hook::consts::SIGINT) => {
            EndMode::Graceful { signal: Signal::INT, grace: s.grace }
        }
        Event::Signalled(_) | Event::Exited | Event::Overdue(_) => {
            EndMode::Graceful { signal: Signal::TERM, grace: s.grace }
        }
    };
    let (survivors, exit) = end_all(&mut child, &attempt, manner);
    let word = match (event, exit) {
        (Event::Lost(loss), _) => Word::Lost(loss),
        (Event::Signalled(signal), _) => Word::Interrupted(signal),
        (Event::Overdue(look), _) => Word::Overdue(look),
        // Ctrl+C at the terminal that was handed over.
        (Event::Exited, Exit::Signal(signal @ signal_hook::consts::SIGINT)) if foreground.is_some() => {
            Word::Interrupted(signal)
        }
        (Event::Exited, exit) => Word::Exited(exit),
    };
    drop(foreground);
    let ended = conclude(s, caller, &attempt, word, survivors.is_empty())?;
    Ok(Supervised { ended, attempt, survivors })
}

/// Ends the command and everything that it has left behind.
pub(crate) fn end_all(child: &mut Child, attempt: &Attempt, manner: EndMode) -> (Vec<Survivor>, Exit) {
    // The child is not collected yet, so its number is its own, and its group's.
    let filter = ProcessFilter { mark: attempt.id.as_str(), group: Some(child.id()) };
    let (survivors, stuck) = match processes::end(filter, manner) {
        Ok(left) => {
            let stuck = left.survivors.iter().any(|s| s.pid == child.id());
            (left.survivors, stuck)
        }
        // Blind, but not helpless: the group is known. Whether that was all, nobody can say.
        Err(e) => {
            let _ = pid_of(child.id()).map(|group| kill_process_group(group, Signal::KILL));
            let command = format!("what it has started cannot be looked for: {e}");
            (vec![Survivor { pid: child.id(), command }], false)
        }
    };
    let exit = if stuck { child.try_wait().ok().flatten() } else { child.wait().ok() };
    (survivors, exit.map_or(Exit::Signal(0), Exit::of))
}

fn broken(error: &io::Error) -> Error {
    Error::General(format!("the command cannot be supervised: {error}"))
}
