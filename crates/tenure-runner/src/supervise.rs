//! Runs one command under a lease, from its attempt's row to its outcome.
//!
//! Guaranteed: the row is committed before the process exists; when this returns, no process of the attempt is left
//! (survivors of SIGKILL are named); the outcome is written under the fence, so a holder that was overtaken changes
//! nothing (R3). If the command finished its task itself, that counts instead of its exit code. A store that does not
//! answer loses no outcome (F6): the write is retried until it does.

use std::io;
use std::path::Path;
use std::process::{Child, Command, ExitStatus};
use std::time::Duration;

use rustix::fd::{AsFd, BorrowedFd};
use tenure_core::error::TaskName;
use tenure_core::holder::Caller;
use tenure_core::kernel::{self, Beat, Grant};
use tenure_core::lease::{AgentRun, Attempt, Leader, Lease};
use tenure_core::outcome::{AttemptResult, Nonce};
use tenure_core::parking::Cost;
use tenure_core::store::{Durability, Store, Tx};
use tenure_core::task::{Task, TaskStatus};
use tenure_core::{Error, Result};
use tenure_lock::BootTime;

use crate::agents::ProcessEnd;
use crate::daemon::report;
use crate::database::DatabaseFile;
use crate::exec_gate::{cannot_run, exit_code_of, remove_traces};
use crate::execution::Execution;
use crate::heartbeat::{Heartbeat, LeaseLoss, RenewTask};
use crate::outage::{Outage, RETRY, is_outage};
use crate::outcome::{AttemptEnd, conclude};
use crate::processes::children::{self, Supervising, reap_orphans};
use crate::processes::{self, Descendants, EndMode, ProcessFilter, Survivor};
use crate::reap::{self, Scope};
use crate::sys::{self, Foreground, Signal, local_pair};
use crate::wait::until_any;
use crate::watch::{HeartbeatThread, WatchEvent, watch_until};

/// Signals to the supervisor, with a descriptor to poll.
pub trait Signals {
    /// Readable when a signal has arrived.
    fn fd(&self) -> BorrowedFd<'_>;
    /// The number of a signal that has arrived since the last call.
    fn take(&self) -> Option<i32>;
}

/// What the supervisor of a command under a lease needs.
pub struct Supervision<'a> {
    pub store: &'a dyn Store,
    pub exec: Execution<'a>,
    pub task: &'a TaskName,
    pub lease: &'a Lease,
    pub signals: &'a dyn Signals,
    /// `runners.heartbeatInterval`.
    pub interval: Duration,
    /// `runners.killGrace`.
    pub grace: Duration,
    pub log_path: Option<String>,
    /// The name of the agent, for the attempt's row.
    pub agent: Option<&'a str>,
    /// The folder in which the attempt gets a folder for its report.
    pub report_folder: Option<&'a Path>,
    /// The minimum time for which each heartbeat extends the section lease; the task's ttl if None.
    pub section_ttl: Option<Duration>,
    /// Keep the section lease when the task ends: a runner continues in the section.
    pub keep_section: bool,
    /// Limits that end the work.
    pub limits: Option<&'a dyn Limits>,
    /// Records that are written in the same transactions as the attempt's.
    pub recorder: Option<&'a dyn AttemptRecorder>,
    /// Reports the beginning and the end of an outage of the store.
    pub outage: &'a Outage<'a>,
}

/// Writes additional records in the transactions that begin and end an attempt.
pub trait AttemptRecorder {
    /// The attempt is about to begin. An error prevents it.
    fn begun(&self, tx: &mut dyn Tx, attempt: &Attempt) -> Result<()>;
    /// May change the result of the attempt, based on the rows of the store. `not_started` is the reason why the
    /// command was not started.
    fn judge(&self, tx: &dyn Tx, result: AttemptResult, not_started: Option<&str>) -> Result<AttemptResult>;
    /// The agent's run, for the attempt's row. `reported`: the task's status, if the agent has finished it itself.
    fn run(&self, reported: Option<TaskStatus>) -> Option<AgentRun>;
    /// The attempt has ended and left the task in this state. `reported`: the agent has finished it itself.
    fn ended(&self, tx: &mut dyn Tx, task: &Task, cost: Cost, reported: bool) -> Result<()>;
}

/// Limits of the work, checked while it runs.
pub trait Limits: Sync {
    fn check(&self) -> LimitCheck;

    /// What the work led to, as far as its output tells. Called once, after it has ended. `why`: how it ended.
    fn verdict(&self, end: ProcessEnd, why: &str) -> Option<OutputVerdict> {
        let _ = (end, why);
        None
    }
}

/// What the output of the work tells about its end.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OutputVerdict {
    pub result: AttemptResult,
    /// Why the work ended, as a sentence for people.
    pub reason: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LimitCheck {
    /// Within the limits; check again after this time.
    Within(Duration),
    /// No output for this long: the work is ended and its task retried.
    Hung(Duration),
    /// Still running after this long: the work is ended and its task has failed.
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
        status.code().map_or_else(|| Self::Signal(sys::signal_of(status).unwrap_or(0)), Self::Code)
    }
}

/// How the command and its task ended.
#[derive(Debug)]
pub enum CommandEnd {
    /// The command exited. `reported` if it finished the task itself.
    Exited {
        exit: Exit,
        reported: bool,
        task: Box<Task>,
    },
    /// The command could not be started. The exit code is the one a shell uses: 126 or 127.
    NotStarted {
        why: String,
        exit: u8,
        task: Box<Task>,
    },
    /// The command exceeded a limit and was ended.
    Overdue {
        why: String,
        task: Box<Task>,
    },
    /// The command was ended because of a signal to this process.
    Interrupted {
        signal: i32,
        task: Box<Task>,
    },
    Lost(LeaseLoss),
    /// The command has ended, and the outcome could not be written before this process had to stop. The outcome is
    /// kept outside the store and applied when the lease is closed.
    Kept {
        /// None if the command was ended by this process.
        exit: Option<Exit>,
        /// The signal to this process, if that is why it stopped waiting.
        signal: Option<i32>,
        why: Box<Error>,
    },
    /// The store did not answer before the attempt began, until this signal arrived.
    NotBegun {
        signal: i32,
    },
}

#[derive(Debug)]
pub struct Supervised {
    pub ended: CommandEnd,
    /// None if it was not begun.
    pub attempt: Option<Attempt>,
    /// Processes of the attempt that survived SIGKILL, nearly always none.
    pub survivors: Vec<Survivor>,
}

/// Puts the holder's credential into the environment of `command`. If the key is not known, the credential of the calling
/// process is removed, because the command must not use it.
pub fn pass_proof(command: &mut Command, grant: &Grant) {
    match grant.proof() {
        Some(proof) => command.env("TENURE_LEASE", proof.reveal()),
        None => command.env_remove("TENURE_LEASE"),
    };
}

/// Runs `command`, which passes the [exec gate](crate::exec_if_running), under the lease. An error means that the attempt was
/// not begun.
pub fn supervise(s: &Supervision<'_>, command: &mut Command) -> Result<Supervised> {
    let caller = Caller::holding(s.lease).with_process(s.exec.me.clone());
    let span = tracing::debug_span!(
        "attempt",
        task = s.task.key,
        fence = %s.lease.fence,
        attempt = tracing::field::Empty
    )
    .entered();
    let (stop, stopped) = local_pair().map_err(|e| broken(&e))?;
    let (ended, ending) = local_pair().map_err(|e| broken(&e))?;
    let mut renew = RenewTask {
        ctx: s.exec.ctx,
        task: s.task,
        caller: &caller,
        lease: s.lease,
        section_ttl: s.section_ttl,
    };
    let (open, database, interval, ttl, doorbell) =
        (s.exec.open_store, s.exec.database, s.interval, s.lease.ttl, s.exec.doorbell.map(|bell| bell.fd));
    let nonce = Nonce::new(s.exec.ctx.ids);
    let (attempt, asked) = match begin(s, &caller, &nonce)? {
        Begun::Attempt(attempt, asked) => (*attempt, asked),
        Begun::Stopped(signal) => {
            let ended = CommandEnd::NotBegun { signal };
            return Ok(Supervised { ended, attempt: None, survivors: Vec::new() });
        }
    };
    span.record("attempt", attempt.id.as_str());
    let heartbeat_span = span.clone();
    std::thread::scope(|scope| {
        let beating = move || {
            let _span = heartbeat_span.entered();
            let stop = Some(stopped.as_fd());
            let end = Heartbeat { open, database, interval, ttl, stop, doorbell }.run(asked, &mut renew);
            // Closes the stream, which wakes the supervisor.
            drop(ending);
            end
        };
        let thread = std::thread::Builder::new().name("heartbeat".into()).spawn_scoped(scope, beating);
        let heartbeat = thread.map(|thread| HeartbeatThread { thread: Some(thread), ended });
        let supervised = run(s, &caller, (attempt, &nonce), heartbeat.map_err(|e| broken(&e)), command);
        // Closes the stream, which ends the heartbeat.
        drop(stop);
        Ok(supervised)
    })
}

enum Begun {
    /// With the time at which the renewal in that transaction was requested.
    Attempt(Box<Attempt>, BootTime),
    /// A signal arrived while the store did not answer.
    Stopped(i32),
}

/// Waits for a store that does not answer. The first transaction after that renews the lease, or finds that it was lost.
fn begin(s: &Supervision<'_>, caller: &Caller, nonce: &Nonce) -> Result<Begun> {
    loop {
        match try_begin(s, caller, nonce) {
            Err(error) if is_outage(&error) => s.outage.began(&error),
            begun => {
                s.outage.over();
                return begun;
            }
        }
        if let Some(loss) = s.exec.database.and_then(DatabaseFile::loss) {
            return Err(Error::General(loss.to_string()));
        }
        until_any(&[s.signals.fd()], RETRY);
        if let Some(signal) = s.signals.take() {
            return Ok(Begun::Stopped(signal));
        }
    }
}

/// Commits the row and the mark once no earlier attempt has processes left.
fn try_begin(s: &Supervision<'_>, caller: &Caller, nonce: &Nonce) -> Result<Begun> {
    let mut around_us = Vec::new();
    // Each round ends the earlier attempts. New ones can only appear if the lease is lost, which the renewal reports.
    for _ in 0..100 {
        let asked = BootTime::now();
        let begun = s.store.write(Durability::Power, |tx| {
            let beat = Beat { revive: true, ..Beat::default() };
            let lease = kernel::renew(tx, &s.exec.ctx, caller, s.task, beat)?;
            if reap::is_in_the_way(tx, &s.exec.ctx, &lease.resource, &around_us)? {
                return Ok(None);
            }
            let (log, me) = (s.log_path.clone(), s.exec.me);
            let attempt = kernel::begin_attempt(tx, &s.exec.ctx, &lease, me, log, s.agent, Some(nonce))?;
            if let Some(recorder) = s.recorder {
                recorder.begun(tx, &attempt)?;
            }
            Ok(Some(attempt))
        });
        if let Some(attempt) = kernel::recording_rejection(s.store, begun)? {
            return Ok(Begun::Attempt(Box::new(attempt), asked));
        }
        let scope = Scope::Of(&s.lease.resource);
        let cleared = reap::reap_attempts(s.store, &s.exec.ctx, scope, &caller.holder.id)?.or_survivors()?;
        tracing::debug!(attempts = cleared.ended.len(), "reaped");
        around_us = cleared.around_us;
    }
    Err(Error::General("processes of an earlier attempt keep reappearing; giving up".to_owned()))
}

fn run(
    s: &Supervision<'_>,
    caller: &Caller,
    (mut attempt, nonce): (Attempt, &Nonce),
    heartbeat: Result<HeartbeatThread<'_>>,
    command: &mut Command,
) -> Supervised {
    command.env("TENURE_ATTEMPT", attempt.id.as_str());
    sys::in_own_group(command);
    // If the folder cannot be created, the agent can still report in other ways.
    if let Some(Ok(path)) = s.report_folder.map(|folder| report::prepare(folder, attempt.id.as_str())) {
        command.env("TENURE_REPORT", path);
    }
    let _supervising = Supervising::begin();
    let started = heartbeat.map_err(|e| (e.to_string(), 126)).and_then(|heartbeat| {
        let child = children::spawn(command).map_err(|e| (cannot_run(command, &e), exit_code_of(&e)))?;
        Ok((heartbeat, child))
    });
    let (mut heartbeat, mut child) = match started {
        Ok(started) => started,
        Err((why, exit)) => {
            let end = AttemptEnd::NotStarted { why, exit };
            let ended = conclude(s, caller, (&attempt, nonce), end, true);
            return Supervised { ended, attempt: Some(attempt), survivors: Vec::new() };
        }
    };
    let pid = child.id();
    tracing::debug!(pid, "started");
    let foreground = Foreground::hand_to(pid);
    // Nothing may return from here on until the child is gone.
    let mut seen = Descendants::of(attempt.id.as_str());
    let event = watch_until(s.signals, s.limits, pid, Some(&mut heartbeat), foreground.as_ref(), &mut seen);
    let mode = match &event {
        WatchEvent::Lost(_) => EndMode::Kill,
        WatchEvent::Signalled(signal_hook::consts::SIGINT) => {
            EndMode::Graceful { signal: Signal::INT, grace: s.grace }
        }
        WatchEvent::Signalled(_) | WatchEvent::Exited | WatchEvent::Overdue(_) => {
            EndMode::Graceful { signal: Signal::TERM, grace: s.grace }
        }
    };
    let (survivors, exit) = end_all(s.store, &mut child, &mut attempt, &seen, mode);
    tracing::debug!(pid, ?exit, survivors = survivors.len(), "ended");
    let end = match (event, exit) {
        (WatchEvent::Lost(loss), _) => AttemptEnd::Lost(loss),
        (WatchEvent::Signalled(signal), _) => AttemptEnd::Interrupted(signal),
        (WatchEvent::Overdue(look), _) => AttemptEnd::Overdue(look),
        // Ctrl+C at the terminal that was handed to the command.
        (WatchEvent::Exited, Exit::Signal(signal @ signal_hook::consts::SIGINT)) if foreground.is_some() => {
            AttemptEnd::Interrupted(signal)
        }
        (WatchEvent::Exited, exit) => AttemptEnd::Exited(exit),
    };
    drop(foreground);
    let ended = conclude(s, caller, (&attempt, nonce), end, survivors.is_empty());
    Supervised { ended, attempt: Some(attempt), survivors }
}

/// The leader that the [exec gate](crate::exec_if_running) has recorded. Without it, only the attempt's control group is
/// unknown.
fn recorded_leader(store: &dyn Store, attempt: &Attempt) -> Option<Leader> {
    store.read(|view| kernel::leader_of(view, attempt)).ok().flatten()
}

/// Ends the command and every process that it has left behind. A store that does not answer must not keep them alive, so
/// the leader is read from the store afterwards; processes that can be found only in the leader's control group are ended
/// last.
pub(crate) fn end_all(
    store: &dyn Store,
    child: &mut Child,
    attempt: &mut Attempt,
    seen: &Descendants,
    mode: EndMode,
) -> (Vec<Survivor>, Exit) {
    let (mut survivors, exit) = end_command(child, attempt, seen, mode);
    if survivors.is_empty() {
        Descendants::forget(attempt.id.as_str());
    }
    attempt.leader = recorded_leader(store, attempt);
    let Some(leader) = &attempt.leader else { return (survivors, exit) };
    if leader.cgroup.is_some() && survivors.is_empty() {
        survivors = processes::end(ProcessFilter::of(attempt), EndMode::Kill)
            .map_or_else(|_| Vec::new(), |left| left.survivors);
        reap_orphans();
    }
    if survivors.is_empty() {
        remove_traces(attempt.id.as_str(), leader);
    }
    (survivors, exit)
}

fn end_command(
    child: &mut Child,
    attempt: &Attempt,
    seen: &Descendants,
    mode: EndMode,
) -> (Vec<Survivor>, Exit) {
    // The child is not reaped yet, so its pid and process group cannot have been reused.
    let filter =
        ProcessFilter { child: Some(child.id()), recorded: Some(seen), ..ProcessFilter::of(attempt) };
    let (survivors, stuck) = match processes::end(filter, mode) {
        Ok(left) => {
            let stuck = left.survivors.iter().any(|s| s.pid == child.id());
            (left.survivors, stuck)
        }
        // The processes cannot be listed, but the process group is known. Whether others remain is unknown.
        Err(e) => {
            sys::signal_group(child.id(), Signal::KILL);
            let command = format!("its other processes cannot be listed: {e}");
            (vec![Survivor { pid: child.id(), command }], false)
        }
    };
    reap_orphans();
    let exit = if stuck { child.try_wait().ok().flatten() } else { child.wait().ok() };
    (survivors, exit.map_or(Exit::Signal(0), Exit::of))
}

fn broken(error: &io::Error) -> Error {
    Error::General(format!("the command cannot be supervised: {error}"))
}
