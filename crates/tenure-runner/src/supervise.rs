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
use std::thread::ScopedJoinHandle;
use std::time::Duration;

use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, waitid};
use tenure_core::error::TaskName;
use tenure_core::holder::{Caller, Incarnation};
use tenure_core::kernel::{self, Beat};
use tenure_core::lease::{Attempt, Lease};
use tenure_core::store::{Durability, Store};
use tenure_core::task::Task;
use tenure_core::{Error, Result, World};

use crate::beat::{Beaten, Loss, OpenStore, Pulse, Tenant, rhythm};
use crate::database::DatabaseFile;
use crate::ending::{self, Scope};
use crate::outcome::{Word, conclude};
use crate::processes::{self, Bond, Manner, Survivor};
use crate::terminal::Foreground;
use crate::threshold::exit_code_of;
use crate::wait::until_any;

/// Where a process's end cannot be polled for, it is looked for this often.
const LOOK: Duration = Duration::from_millis(50);
/// Nothing happens by itself in this time; a poll needs a limit.
const LONG: Duration = Duration::from_hours(1);

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
    pub world: World<'a>,
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
    /// A signal to us ended it.
    Interrupted {
        signal: i32,
        task: Box<Task>,
    },
    Lost(Loss),
}

/// The heartbeat's thread, and how it is heard of.
struct Heart<'scope> {
    thread: Option<ScopedJoinHandle<'scope, Beaten>>,
    news: UnixStream,
}

#[derive(Debug)]
pub struct Supervised {
    pub ended: Ended,
    pub attempt: Attempt,
    /// Processes of the attempt that SIGKILL did not end. Nearly always none.
    pub survivors: Vec<Survivor>,
}

/// What the supervisor woke up for.
enum Event {
    Exited,
    Signalled(i32),
    Lost(Loss),
}

/// Runs `command`, which begins by crossing the [threshold](crate::cross), under the lease.
pub fn supervise(s: &Supervision<'_>, command: &mut Command) -> Result<Supervised> {
    let caller =
        Caller::new(s.lease.holder.clone()).with_process(s.me.clone()).with_fence(Some(s.lease.fence));
    let (stop, stopped) = UnixStream::pair().map_err(|e| broken(&e))?;
    let (news, tell) = UnixStream::pair().map_err(|e| broken(&e))?;
    let pulse = Pulse {
        tenant: Tenant { world: s.world, task: s.task, caller: &caller, fence: s.lease.fence },
        open: s.open,
        every: rhythm(s.interval, s.lease.ttl),
        ttl: s.lease.ttl,
        database: s.database,
        doorbell: s.doorbell,
    };
    let attempt = begin(s, &caller)?;
    std::thread::scope(|scope| {
        let beating = std::thread::Builder::new()
            .name("heartbeat".into())
            .spawn_scoped(scope, move || pulse.run(&stopped, tell))
            .map_err(|e| broken(&e));
        let heart = beating.map(|thread| Heart { thread: Some(thread), news });
        let supervised = run(s, &caller, attempt, heart, command);
        // Hangs up, which is how the heart hears that it may stop.
        drop(stop);
        supervised
    })
}

/// Commits the row and the mark, once no earlier attempt is in the way.
fn begin(s: &Supervision<'_>, caller: &Caller) -> Result<Attempt> {
    let mut around_us = Vec::new();
    // Each round ends what was in the way; more can only come from a lease that is lost, which the renewal says.
    for _ in 0..100 {
        let begun = s.store.write(Durability::Power, |tx| {
            let beat = Beat { revive: true, ..Beat::default() };
            let lease = kernel::renew(tx, &s.world, caller, s.task, beat)?;
            if ending::is_in_the_way(tx, &s.world, &lease.resource, &around_us)? {
                return Ok(None);
            }
            kernel::begin_attempt(tx, &s.world, &lease, s.me, s.log_path.clone()).map(Some)
        })?;
        if let Some(attempt) = begun {
            return Ok(attempt);
        }
        let scope = Scope::Of(&s.lease.resource);
        let cleared = ending::finish_ending(s.store, &s.world, scope, &caller.holder.id)?.or_survivors()?;
        around_us = cleared.around_us;
    }
    Err(Error::General("earlier attempts at this task do not stop ending".to_owned()))
}

fn run(
    s: &Supervision<'_>,
    caller: &Caller,
    mut attempt: Attempt,
    heart: Result<Heart<'_>>,
    command: &mut Command,
) -> Result<Supervised> {
    command.env("TENURE_ATTEMPT", attempt.id.as_str()).process_group(0);
    let started = heart.map_err(|e| (e.to_string(), 126)).and_then(|heart| {
        let child = command.spawn().map_err(|e| (cannot_run(command, &e), exit_code_of(&e)))?;
        Ok((heart, child))
    });
    let (mut heart, mut child) = match started {
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
        Ok(()) => watch_over(s, pid, &mut heart, foreground.as_ref()),
        Err(error) => Event::Lost(Loss::Unreachable(Box::new(error))),
    };
    let manner = match &event {
        Event::Lost(_) => Manner::AtOnce,
        Event::Signalled(signal_hook::consts::SIGINT) => {
            Manner::Orderly { signal: Signal::INT, grace: s.grace }
        }
        Event::Signalled(_) | Event::Exited => Manner::Orderly { signal: Signal::TERM, grace: s.grace },
    };
    let (survivors, exit) = end_all(&mut child, &attempt, manner);
    let word = match (event, exit) {
        (Event::Lost(loss), _) => Word::Lost(loss),
        (Event::Signalled(signal), _) => Word::Interrupted(signal),
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

/// Until the command exits, somebody signals us, or the lease is lost.
fn watch_over(
    s: &Supervision<'_>,
    pid: u32,
    heart: &mut Heart<'_>,
    foreground: Option<&Foreground>,
) -> Event {
    let watched = processes::watch(pid);
    let limit = if watched.is_some() { LONG } else { LOOK };
    loop {
        if has_exited(pid) {
            return Event::Exited;
        }
        if let Some(signal) = s.signals.take() {
            return Event::Signalled(signal);
        }
        let mut fds = vec![s.signals.as_fd()];
        fds.extend(heart.thread.is_some().then(|| heart.news.as_fd()));
        let beating = fds.len() > 1;
        fds.extend(watched.as_ref().map(AsFd::as_fd));
        fds.extend(foreground.map(AsFd::as_fd));
        let woken = until_any(&fds, limit);
        if beating && woken.get(1) == Some(&true) {
            // It has fallen silent: there is nothing left to renew, and maybe nothing left to work for.
            match heart.thread.take().map(ScopedJoinHandle::join) {
                Some(Ok(Beaten::Lost(loss))) => return Event::Lost(loss),
                Some(Err(_)) => return Event::Lost(Loss::Unreachable(Box::new(broken_heart()))),
                _ => {}
            }
        }
        if let Some(foreground) = foreground {
            foreground.follow();
        }
    }
}

/// Ends the command and everything that it has left behind.
fn end_all(child: &mut Child, attempt: &Attempt, manner: Manner) -> (Vec<Survivor>, Exit) {
    // The child is not collected yet, so its number is its own, and its group's.
    let bond = Bond { mark: attempt.id.as_str(), group: Some(child.id()) };
    let survivors = processes::end(bond, manner).map(|left| left.survivors).unwrap_or_else(|e| {
        // Blind, but not helpless: the child itself is ours.
        let _ = child.kill();
        vec![Survivor { pid: child.id(), command: format!("its processes cannot be looked for: {e}") }]
    });
    let exit = if survivors.iter().any(|s| s.pid == child.id()) {
        child.try_wait().ok().flatten()
    } else {
        child.wait().ok()
    };
    (survivors, exit.map_or(Exit::Signal(0), Exit::of))
}

/// Without collecting it.
fn has_exited(pid: u32) -> bool {
    let asked = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
    pid_of(pid).is_none_or(|pid| !matches!(waitid(WaitId::Pid(pid), asked), Ok(None)))
}

fn pid_of(number: u32) -> Option<Pid> {
    Pid::from_raw(i32::try_from(number).ok()?)
}

fn cannot_run(command: &Command, error: &io::Error) -> String {
    format!("cannot run {}: {error}", command.get_program().to_string_lossy())
}

fn broken(error: &io::Error) -> Error {
    Error::General(format!("the command cannot be supervised: {error}"))
}

fn broken_heart() -> Error {
    Error::General("the heartbeat has failed".to_owned())
}
