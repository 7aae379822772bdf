//! Unix.

use std::os::fd::OwnedFd;

use tokio::io::Interest;
use tokio::io::unix::AsyncFd;
use tokio::signal::unix::{SignalKind, signal};

/// A descriptor that the executor polls.
pub(crate) struct Watched(AsyncFd<OwnedFd>);

impl Watched {
    /// `None` if the descriptor cannot be polled; the caller then falls back on its timeout.
    #[expect(
        deprecated,
        reason = "sound for an owned descriptor, which cannot change under it; its successor is unsafe"
    )]
    pub(crate) fn new(fd: OwnedFd) -> Option<Self> {
        AsyncFd::with_interest(fd, Interest::READABLE).ok().map(Self)
    }

    pub(crate) async fn readable(&self) {
        let _ = self.0.readable().await;
    }

    /// Like `readable`, for a descriptor whose notifications the caller reads after each return.
    #[cfg(feature = "web")]
    pub(crate) async fn reported(&self) {
        if let Ok(mut ready) = self.0.readable().await {
            ready.clear_ready();
        }
    }
}

/// Returns on SIGTERM, SIGINT or SIGHUP.
pub(crate) async fn asked_to_stop() {
    let kinds = [SignalKind::terminate(), SignalKind::interrupt(), SignalKind::hangup()];
    let mut streams: Vec<_> = kinds.into_iter().filter_map(|kind| signal(kind).ok()).collect();
    if streams.is_empty() {
        return futures::future::pending().await;
    }
    futures::future::select_all(streams.iter_mut().map(|stream| Box::pin(stream.recv()))).await;
}

/// Whether this process still has this parent. An orphan gets another one.
pub(crate) fn is_parent(pid: u32) -> bool {
    std::os::unix::process::parent_id() == pid
}
