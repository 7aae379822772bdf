//! Who holds, and which life of it.

use std::fmt;
use std::sync::{Arc, OnceLock};

use serde::{Deserialize, Serialize};
use tenure_lock::Host;
pub use tenure_lock::{Liveness, ProcessIdentity};

use crate::id::Fence;

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

/// Who: the name under which leases are held.
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

/// Says whether a recorded process still lives. The kernel never asks the operating system itself.
pub trait Judge: Send + Sync + fmt::Debug {
    fn liveness(&self, who: &Incarnation) -> Liveness;

    /// Did it live since this machine last started? A power cut is nobody's fault.
    fn is_this_boot(&self, who: &Incarnation) -> bool;
}

/// Asks this machine.
#[derive(Debug, Clone, Copy, Default)]
pub struct ThisMachine;

impl Judge for ThisMachine {
    fn liveness(&self, who: &Incarnation) -> Liveness {
        // A process stays on its machine, in its boot and in its namespaces; asking again is half of a question's cost.
        static HERE: OnceLock<Host> = OnceLock::new();
        who.process.liveness_seen_from(HERE.get_or_init(Host::here))
    }

    fn is_this_boot(&self, who: &Incarnation) -> bool {
        who.process.boot_id == tenure_lock::boot_id()
    }
}

/// For rows that several machines share. A machine id that came with a cloned disk makes another machine's processes look
/// like this one's of an earlier boot, so an earlier boot proves nothing.
#[derive(Debug, Clone)]
pub struct AcrossMachines(pub Arc<dyn Judge>);

impl Judge for AcrossMachines {
    fn liveness(&self, who: &Incarnation) -> Liveness {
        match self.0.liveness(who) {
            Liveness::Dead if !self.0.is_this_boot(who) => Liveness::Unknown,
            found => found,
        }
    }

    fn is_this_boot(&self, who: &Incarnation) -> bool {
        self.0.is_this_boot(who)
    }
}

/// Somebody who wants something: a name, the process if one stands behind it, and the credential if it has one.
#[derive(Debug, Clone)]
pub struct Caller {
    pub holder: Holder,
    pub process: Option<Incarnation>,
    pub fence: Option<Fence>,
}

impl Caller {
    pub fn new(holder: Holder) -> Self {
        Self { holder, process: None, fence: None }
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
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Everything is dead, and of this boot or not.
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
        let who = Incarnation::current();
        assert_eq!(AcrossMachines(Arc::new(Dead(false))).liveness(&who), Liveness::Unknown);
        assert_eq!(AcrossMachines(Arc::new(Dead(true))).liveness(&who), Liveness::Dead);
    }
}
