//! What a supervisor wakes up for: the command's exit, a signal to itself, or the loss of its lease.

use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;
use std::thread::ScopedJoinHandle;
use std::time::Duration;

use rustix::process::{Pid, WaitId, WaitIdOptions, waitid};
use tenure_core::Error;

use crate::heartbeat::{HeartbeatEnd, Loss};
use crate::supervise::{Limits, Look, Signals};
use crate::terminal::Foreground;
use crate::wait::{Process, limit_for, until_any};

/// Nothing happens by itself in this time; a poll needs a limit.
const LONG: Duration = Duration::from_hours(1);

/// The thread of the task's heartbeat.
pub(crate) struct HeartbeatThread<'scope> {
    pub(crate) thread: Option<ScopedJoinHandle<'scope, HeartbeatEnd>>,
    /// Hung up when the thread has ended.
    pub(crate) ended: UnixStream,
}

/// What the supervisor woke up for.
pub(crate) enum Event {
    Exited,
    Signalled(i32),
    Overdue(Look),
    Lost(Loss),
}

/// Until the command exits, somebody signals us, or the lease is lost.
pub(crate) fn watch_over(
    signals: &dyn Signals,
    limits: Option<&dyn Limits>,
    pid: u32,
    mut heartbeat: Option<&mut HeartbeatThread<'_>>,
    foreground: Option<&Foreground>,
) -> Event {
    let process = Process::open(pid);
    let pace = limit_for(process.as_ref(), LONG);
    loop {
        let limit = match limits.map(Limits::look) {
            Some(Look::GoOn(nap)) => pace.min(nap),
            Some(look) => return Event::Overdue(look),
            None => pace,
        };
        if has_exited(pid) {
            return Event::Exited;
        }
        if let Some(signal) = signals.take() {
            return Event::Signalled(signal);
        }
        let mut fds = vec![signals.as_fd()];
        let beats = heartbeat.as_deref().filter(|heartbeat| heartbeat.thread.is_some());
        fds.extend(beats.map(|heartbeat| heartbeat.ended.as_fd()));
        let beating = fds.len() > 1;
        fds.extend(process.as_ref().and_then(Process::fd));
        fds.extend(foreground.map(AsFd::as_fd));
        let woken = until_any(&fds, limit);
        if beating && woken.get(1) == Some(&true) {
            // There is nothing left to renew, and maybe no right left to go on.
            let thread = heartbeat.as_deref_mut().and_then(|heartbeat| heartbeat.thread.take());
            match thread.map(ScopedJoinHandle::join) {
                Some(Ok(HeartbeatEnd::Lost(loss))) => return Event::Lost(loss),
                Some(Err(_)) => return Event::Lost(Loss::Unreachable(Box::new(broken_heartbeat()))),
                _ => {}
            }
        }
        if let Some(foreground) = foreground {
            foreground.follow();
        }
    }
}

/// Without collecting it.
fn has_exited(pid: u32) -> bool {
    let asked = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
    pid_of(pid).is_none_or(|pid| !matches!(waitid(WaitId::Pid(pid), asked), Ok(None)))
}

/// The code with which a child has exited, also without collecting it. None if a signal ended it.
pub(crate) fn exit_of(pid: u32) -> Option<i32> {
    let asked = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
    waitid(WaitId::Pid(pid_of(pid)?), asked).ok().flatten()?.exit_status()
}

pub(crate) fn pid_of(number: u32) -> Option<Pid> {
    Pid::from_raw(i32::try_from(number).ok()?)
}

fn broken_heartbeat() -> Error {
    Error::General("the heartbeat has failed".to_owned())
}
