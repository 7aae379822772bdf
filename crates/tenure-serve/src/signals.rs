//! Reasons to stop: a signal, or the end of the parent process.

use std::os::fd::OwnedFd;
use std::time::Duration;

use rustix::process::getppid;
use tenure_runner::Process;
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;
use tokio::signal::unix::{SignalKind, signal};

/// How often the parent is checked if its end cannot be waited for.
const POLL: Duration = Duration::from_secs(1);

/// `None` if the descriptor cannot be polled; the caller then falls back on its timeout.
#[expect(
    deprecated,
    reason = "sound for an owned descriptor, which cannot change under it; its successor is unsafe"
)]
pub(crate) fn watchable(fd: OwnedFd) -> Option<AsyncFd<OwnedFd>> {
    AsyncFd::with_interest(fd, Interest::READABLE).ok()
}

/// Returns at SIGTERM, SIGINT or SIGHUP.
pub(crate) async fn asked_to_stop() {
    let kinds = [SignalKind::terminate(), SignalKind::interrupt(), SignalKind::hangup()];
    let mut streams: Vec<_> = kinds.into_iter().filter_map(|kind| signal(kind).ok()).collect();
    if streams.is_empty() {
        return futures::future::pending().await;
    }
    futures::future::select_all(streams.iter_mut().map(|stream| Box::pin(stream.recv()))).await;
}

/// Returns when the parent process has exited. A parent in another pid namespace cannot be watched; then only the end
/// of the input ends the server.
pub(crate) async fn parent_died() {
    let Some(parent) = getppid() else { return futures::future::pending().await };
    let process = u32::try_from(parent.as_raw_nonzero().get()).ok().and_then(Process::open);
    let watched = process.and_then(Process::into_fd).and_then(watchable);
    // Checked after the descriptor was opened, so that it cannot belong to a later process with the same pid.
    while getppid() == Some(parent) {
        match &watched {
            Some(fd) => {
                let _ = fd.readable().await;
                return;
            }
            None => tokio::time::sleep(POLL).await,
        }
    }
}
