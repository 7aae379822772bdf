//! Windows.

use rustix::fd::OwnedFd;
use tenure_lock::ProcessInfo;

/// Never constructed: the executor can poll only sockets that it has opened itself.
pub(crate) struct Watched(std::convert::Infallible);

impl Watched {
    /// The caller falls back on its timeout.
    pub(crate) fn new(_fd: OwnedFd) -> Option<Self> {
        None
    }

    #[expect(clippy::unused_async, reason = "the same signature as on Unix")]
    pub(crate) async fn readable(&self) {
        match self.0 {}
    }

    #[cfg(feature = "web")]
    #[expect(clippy::unused_async, reason = "the same signature as on Unix")]
    pub(crate) async fn reported(&self) {
        match self.0 {}
    }
}

/// Returns on Ctrl+C.
pub(crate) async fn asked_to_stop() {
    if tokio::signal::ctrl_c().await.is_err() {
        futures::future::pending().await
    }
}

/// Whether this process still has this parent.
pub(crate) fn is_parent(pid: u32) -> bool {
    ProcessInfo::own_parent() == Some(pid)
}
