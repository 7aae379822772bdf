//! Detects the end of the parent process, which stops the server.

use std::time::Duration;

use tenure_lock::ProcessInfo;
use tenure_runner::Process;

use crate::sys::{Watched, is_parent};

/// How often the parent is checked if its end cannot be waited for.
const POLL: Duration = Duration::from_secs(1);

/// Returns when the parent process has exited. A parent in another pid namespace cannot be watched; then only the end
/// of the input ends the server.
pub(crate) async fn parent_died() {
    let Some(parent) = ProcessInfo::own_parent() else { return futures::future::pending().await };
    let watched = Process::open(parent).and_then(Process::into_fd).and_then(Watched::new);
    // Checked after the descriptor was opened, so that it cannot belong to a later process with the same pid.
    while is_parent(parent) {
        match &watched {
            Some(fd) => return fd.readable().await,
            None => tokio::time::sleep(POLL).await,
        }
    }
}
