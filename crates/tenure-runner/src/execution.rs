//! What is needed to execute work: one command, a runner, a job or a keeper.

use rustix::fd::BorrowedFd;
use tenure_core::holder::Incarnation;
use tenure_core::{Clock, Context};

use crate::database::DatabaseFile;
use crate::heartbeat::OpenStore;

/// The surroundings of work in this process. Can be shared between threads; store handles and signals cannot, so they are
/// passed separately.
#[derive(Clone, Copy)]
pub struct Execution<'a> {
    /// Opens a handle for a heartbeat, with a timeout that suits the lease.
    pub open_store: OpenStore<'a>,
    pub ctx: Context<'a>,
    pub clock: &'a dyn Clock,
    /// This process, which leases and attempts record.
    pub me: &'a Incarnation,
    /// Rings when a lease of this process is taken away, or when something that it waits for may be free.
    pub doorbell: Option<DoorbellRef<'a>>,
    /// The database file, if the store is one.
    pub database: Option<&'a DatabaseFile>,
}

impl std::fmt::Debug for Execution<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Execution")
            .field("me", self.me)
            .field("database", &self.database)
            .finish_non_exhaustive()
    }
}

/// A doorbell of this process: the address that other processes ring, and the descriptor to poll.
#[derive(Debug, Clone, Copy)]
pub struct DoorbellRef<'a> {
    pub address: &'a str,
    pub fd: BorrowedFd<'a>,
}
