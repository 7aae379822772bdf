//! Holders of leases, and the processes behind them.

use std::fmt;
use std::sync::{Arc, OnceLock};

use serde::{Deserialize, Serialize};
use tenure_lock::Host;
pub use tenure_lock::{Liveness, ProcessIdentity};

use crate::id::{AttemptId, Fence, LeaseId, LeaseKey, LeaseProof};
use crate::lease::Lease;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum HolderKind {
    /// A tenure runner, named by a UUID.
    Runner,
    /// A coding agent or a script, named by itself or by `agents join`.
    Agent,
    /// A person at a terminal: `ann@host:pts/3`.
    Person,
}

impl HolderKind {
    pub const ALL: [Self; 3] = [Self::Runner, Self::Agent, Self::Person];

    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Runner => "runner",
            Self::Agent => "agent",
            Self::Person => "person",
        }
    }

    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.as_str() == text)
    }
}

/// The name under which leases are held.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Holder {
    pub kind: HolderKind,
    pub id: String,
}

impl Holder {
    pub fn agent(id: impl Into<String>) -> Self {
        Self { kind: HolderKind::Agent, id: id.into() }
    }

    pub fn runner(id: impl Into<String>) -> Self {
        Self { kind: HolderKind::Runner, id: id.into() }
    }

    pub fn person(id: impl Into<String>) -> Self {
        Self { kind: HolderKind::Person, id: id.into() }
    }
}

impl fmt::Display for Holder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.kind.as_str(), self.id)
    }
}

/// The process behind a holder, as recorded in a lease or a ticket.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Incarnation {
    #[serde(flatten)]
    pub process: ProcessIdentity,
    /// The machine's name, for people; never compared.
    pub hostname: String,
}

impl Incarnation {
    pub fn current() -> Self {
        Self { process: ProcessIdentity::current(), hostname: tenure_lock::hostname() }
    }
}

/// Decides whether a recorded process is alive. The kernel never queries the operating system itself.
pub trait Judge: Send + Sync + fmt::Debug {
    fn liveness(&self, process: &Incarnation) -> Liveness;

    /// Whether the process started after this machine's last boot. An attempt interrupted by a power cut is not
    /// charged.
    fn is_this_boot(&self, process: &Incarnation) -> bool;
}

/// Queries this machine.
#[derive(Debug, Clone, Copy, Default)]
pub struct ThisMachine;

impl Judge for ThisMachine {
    fn liveness(&self, process: &Incarnation) -> Liveness {
        // The host identity is constant for the lifetime of a process, and reading it is half of the cost of a query.
        static HERE: OnceLock<Host> = OnceLock::new();
        process.process.liveness_seen_from(HERE.get_or_init(Host::here))
    }

    fn is_this_boot(&self, process: &Incarnation) -> bool {
        process.process.boot_id == tenure_lock::boot_id()
    }
}

/// For stores shared by several machines. Two machines with the same machine id (a cloned disk) make a live process
/// on one look like a process of an earlier boot on the other, so an earlier boot is not taken as proof of death.
#[derive(Debug, Clone)]
pub struct AcrossMachines(pub Arc<dyn Judge>);

impl Judge for AcrossMachines {
    fn liveness(&self, process: &Incarnation) -> Liveness {
        match self.0.liveness(process) {
            Liveness::Dead if !self.0.is_this_boot(process) => Liveness::Unknown,
            found => found,
        }
    }

    fn is_this_boot(&self, process: &Incarnation) -> bool {
        self.0.is_this_boot(process)
    }
}

/// For a copy of a store. The processes recorded in it belong to the original, so those of this boot are unknown: never
/// dead, and never killed from here.
#[derive(Debug, Clone)]
pub struct InACopy(pub Arc<dyn Judge>);

impl Judge for InACopy {
    fn liveness(&self, process: &Incarnation) -> Liveness {
        if self.0.is_this_boot(process) { Liveness::Unknown } else { self.0.liveness(process) }
    }

    fn is_this_boot(&self, process: &Incarnation) -> bool {
        self.0.is_this_boot(process)
    }
}

/// The holder that makes a request: its name, its process if it has one, what it presents of the lease that it acts under,
/// and the attempt whose mark is in its environment. A key proves the holder by itself. A fence and an id are public, so
/// they count only under the holder's name.
#[derive(Debug, Clone)]
pub struct Caller {
    pub holder: Holder,
    pub process: Option<Incarnation>,
    pub fence: Option<Fence>,
    pub lease: Option<LeaseId>,
    pub key: Option<LeaseKey>,
    pub attempt: Option<AttemptId>,
}

impl Caller {
    pub fn new(holder: Holder) -> Self {
        Self { holder, process: None, fence: None, lease: None, key: None, attempt: None }
    }

    /// The holder of `lease`, for a process that was granted it or supervises it.
    pub fn holding(lease: &Lease) -> Self {
        Self {
            lease: Some(lease.id.clone()),
            ..Self::new(lease.holder.clone()).with_fence(Some(lease.fence))
        }
    }

    #[must_use]
    pub fn with_process(mut self, process: Incarnation) -> Self {
        self.process = Some(process);
        self
    }

    #[must_use]
    pub fn with_fence(mut self, fence: Option<Fence>) -> Self {
        self.fence = fence;
        self
    }

    #[must_use]
    pub fn with_attempt(mut self, attempt: Option<AttemptId>) -> Self {
        self.attempt = attempt;
        self
    }

    #[must_use]
    pub fn with_proof(mut self, proof: Option<LeaseProof>) -> Self {
        (self.lease, self.key) = proof.map(|proof| (proof.lease, proof.key)).unzip();
        self
    }

    /// Whether the caller presents anything of a lease.
    pub fn presents_a_lease(&self) -> bool {
        self.fence.is_some() || self.lease.is_some()
    }

    /// Whether what the caller presents is of `lease`, and makes it the holder.
    pub fn presents(&self, lease: &Lease) -> bool {
        self.presents_a_lease()
            && self.fence.is_none_or(|fence| fence == lease.fence)
            && self.lease.as_ref().is_none_or(|id| *id == lease.id)
            && match &self.key {
                Some(key) => lease.has_key(key),
                None => lease.holder.id == self.holder.id,
            }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Reports every process as dead; the field answers `is_this_boot`.
    #[derive(Debug)]
    struct Dead(bool);

    impl Judge for Dead {
        fn liveness(&self, _who: &Incarnation) -> Liveness {
            Liveness::Dead
        }

        fn is_this_boot(&self, _who: &Incarnation) -> bool {
            self.0
        }
    }

    #[test]
    fn across_machines_an_earlier_boot_proves_nothing_and_a_dead_process_does() {
        let process = Incarnation::current();
        assert_eq!(AcrossMachines(Arc::new(Dead(false))).liveness(&process), Liveness::Unknown);
        assert_eq!(AcrossMachines(Arc::new(Dead(true))).liveness(&process), Liveness::Dead);
    }

    #[test]
    fn in_a_copy_the_processes_of_this_boot_are_unknown() {
        let process = Incarnation::current();
        assert_eq!(InACopy(Arc::new(Dead(true))).liveness(&process), Liveness::Unknown);
        assert_eq!(InACopy(Arc::new(Dead(false))).liveness(&process), Liveness::Dead);
    }
}
