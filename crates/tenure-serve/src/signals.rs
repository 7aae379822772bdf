//! When to stop: a signal, or the death of the parent.

use std::os::fd::OwnedFd;
use std::time::Duration;

use rustix::process::getppid;
use tenure_runner::Process;
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;
use tokio::signal::unix::{SignalKind, signal};

/// Where a process's end cannot be waited for, it is looked for this often.
const LOOK: Duration = Duration::from_secs(1);

/// Where that is not possible, whoever waits looks from time to time.
#[expect(
    deprecated,
    reason = "sound for an owned descriptor, which stays what it is; its successor is unsafe"
)]
pub(crate) fn watchable(fd: OwnedFd) -> Option<AsyncFd<OwnedFd>> {
    AsyncFd::with_interest(fd, Interest::READABLE).ok()
}

/// SIGTERM, SIGINT or SIGHUP.
pub(crate) async fn asked_to_stop() {
    let kinds = [SignalKind::terminate(), SignalKind::interrupt(), SignalKind::hangup()];
    let mut streams: Vec<_> = kinds.into_iter().filter_map(|kind| signal(kind).ok()).collect();
    if streams.is_empty() {
        return futures::future::pending().await;
    }
    futures::future::select_all(streams.iter_mut().map(|stream| Box::pin(stream.recv()))).await;
}

/// The process that started us is gone. One outside of our pid namespace cannot be seen; then the pipes have to tell.
pub(crate) async fn parent_died() {
    let Some(parent) = getppid() else { return futures::future::pending().await };
    let process = u32::try_from(parent.as_raw_nonzero().get()).ok().and_then(Process::open);
    let watched = process.and_then(Process::into_fd).and_then(watchable);
    // Asked after the descriptor was opened, so that it is not that of a later process with the same pid.
    while getppid() == Some(parent) {
        match &watched {
            Some(fd) => {
                let _ = fd.readable().await;
                return;
            }
            None => tokio::time::sleep(LOOK).await,
        }
    }
}
