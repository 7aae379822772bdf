//! What ends a supervisor's wait: the command's exit, a signal to the supervisor, an exceeded limit, or the loss of
//! the lease.

use std::thread::ScopedJoinHandle;
use std::time::Duration;

use rustix::fd::AsFd;
use tenure_core::Error;

use crate::heartbeat::{HeartbeatEnd, LeaseLoss};
use crate::processes::Descendants;
use crate::processes::children::reap_orphans;
use crate::supervise::{LimitCheck, Limits, Signals};
use crate::sys::{self, Foreground, LocalStream};
use crate::wait::{Process, limit_for, until_any};

/// The longest poll, which limits how long orphans of the command stay zombies.
const LONG: Duration = Duration::from_secs(10);

/// The thread of the task's heartbeat.
pub(crate) struct HeartbeatThread<'scope> {
    pub(crate) thread: Option<ScopedJoinHandle<'scope, HeartbeatEnd>>,
    /// Closed when the thread has ended.
    pub(crate) ended: LocalStream,
}

/// Why the supervisor stopped waiting.
pub(crate) enum WatchEvent {
    Exited,
    Signalled(i32),
    Overdue(LimitCheck),
    Lost(LeaseLoss),
}

/// Waits until the command exits, a signal arrives, a limit is exceeded, or the lease is lost. Records the command's
/// descendants while it waits.
pub(crate) fn watch_until(
    signals: &dyn Signals,
    limits: Option<&dyn Limits>,
    pid: u32,
    mut heartbeat: Option<&mut HeartbeatThread<'_>>,
    foreground: Option<&Foreground>,
    descendants: &mut Descendants,
) -> WatchEvent {
    let process = Process::open(pid);
    let pace = limit_for(process.as_ref(), sys::record_interval().unwrap_or(LONG));
    loop {
        let limit = match limits.map(Limits::check) {
            Some(LimitCheck::Within(nap)) => pace.min(nap),
            Some(look) => return WatchEvent::Overdue(look),
            None => pace,
        };
        reap_orphans();
        descendants.record(pid);
        if sys::has_exited(pid) {
            return WatchEvent::Exited;
        }
        if let Some(signal) = signals.take() {
            return WatchEvent::Signalled(signal);
        }
        let mut fds = vec![signals.fd()];
        let beats = heartbeat.as_deref().filter(|heartbeat| heartbeat.thread.is_some());
        fds.extend(beats.map(|heartbeat| heartbeat.ended.as_fd()));
        let beating = fds.len() > 1;
        fds.extend(process.as_ref().and_then(Process::fd));
        fds.extend(foreground.map(Foreground::fd));
        let woken = until_any(&fds, limit);
        if beating && woken.get(1) == Some(&true) {
            // The heartbeat has ended: the task is finished, or the lease is lost.
            let thread = heartbeat.as_deref_mut().and_then(|heartbeat| heartbeat.thread.take());
            match thread.map(ScopedJoinHandle::join) {
                Some(Ok(HeartbeatEnd::Lost(loss))) => return WatchEvent::Lost(loss),
                Some(Err(_)) => {
                    return WatchEvent::Lost(LeaseLoss::Unreachable(Box::new(broken_heartbeat())));
                }
                _ => {}
            }
        }
        if let Some(foreground) = foreground {
            foreground.follow();
        }
    }
}

fn broken_heartbeat() -> Error {
    Error::General("the heartbeat thread has failed".to_owned())
}
