//! Processes that the test can kill, a machine that it can restart, and sequential ids.

use std::collections::BTreeSet;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

use tenure_core::holder::{Incarnation, Judge, Liveness, ProcessIdentity};
use tenure_core::id::{Fence, Ids, LeaseKey};
use tenure_core::outcome::{KeptOutcome, Outcomes};

const HERE: &str = "this-machine";
const ELSEWHERE: &str = "another-machine";

/// One machine whose processes live until the test kills them, and other machines whose processes are unknown.
#[derive(Debug, Default)]
pub struct FakeProcesses(Mutex<Facts>);

#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
struct Facts {
    boots: u64,
    dead: BTreeSet<u32>,
}

impl FakeProcesses {
    /// A machine on which these processes of the first boot have died.
    pub fn without(dead: impl IntoIterator<Item = u32>) -> Self {
        Self(Mutex::new(Facts { boots: 0, dead: dead.into_iter().collect() }))
    }

    /// A process of this machine, started in its present boot.
    pub fn process(&self, pid: u32) -> Incarnation {
        incarnation(HERE, &boot(self.0.lock().unwrap().boots), pid)
    }

    /// A process of a machine that cannot be inspected from this one.
    pub fn remote_process(&self, pid: u32) -> Incarnation {
        incarnation(ELSEWHERE, "some-boot", pid)
    }

    pub fn kill(&self, pid: u32) {
        self.0.lock().unwrap().dead.insert(pid);
    }

    /// Restarts the machine: all its processes are gone, and pids start again.
    pub fn reboot(&self) {
        let mut facts = self.0.lock().unwrap();
        facts.boots += 1;
        facts.dead.clear();
    }
}

impl Judge for FakeProcesses {
    fn liveness(&self, process: &Incarnation) -> Liveness {
        let facts = self.0.lock().unwrap();
        if process.process.host_id != HERE {
            Liveness::Unknown
        } else if process.process.boot_id != boot(facts.boots) || facts.dead.contains(&process.process.pid) {
            Liveness::Dead
        } else {
            Liveness::Alive
        }
    }

    fn is_this_boot(&self, process: &Incarnation) -> bool {
        process.process.boot_id == boot(self.0.lock().unwrap().boots)
    }
}

fn boot(number: u64) -> String {
    format!("boot-{number}")
}

fn incarnation(host: &str, boot: &str, pid: u32) -> Incarnation {
    Incarnation {
        process: ProcessIdentity {
            host_id: host.to_owned(),
            boot_id: boot.to_owned(),
            pid,
            start_time: u64::from(pid) * 100,
            pid_ns: 1,
        },
        hostname: host.to_owned(),
    }
}

/// Sequential ids.
#[derive(Debug, Default)]
pub struct CountingIds(AtomicU64);

impl CountingIds {
    pub fn after(last: u64) -> Self {
        Self(AtomicU64::new(last))
    }

    /// How many ids were generated.
    pub fn given(&self) -> u64 {
        self.0.load(Ordering::SeqCst)
    }

    fn next(&self) -> u64 {
        self.0.fetch_add(1, Ordering::SeqCst) + 1
    }
}

impl Ids for CountingIds {
    fn uuid(&self) -> String {
        // The varying part comes first, so that short prefixes are distinct.
        format!("{:08x}-0000-4000-8000-000000000000", self.next())
    }

    fn hex8(&self) -> String {
        format!("{:08X}", self.next())
    }

    /// Derived from the last id, so that keys use no number of the sequence.
    fn lease_key(&self) -> LeaseKey {
        LeaseKey::parse(&format!("C0FFEE00{:08X}", self.given())).unwrap()
    }
}

/// One outcome that was kept outside the store.
#[derive(Debug)]
pub struct FakeOutcomes(Mutex<Option<KeptOutcome>>);

impl FakeOutcomes {
    pub fn of(outcome: KeptOutcome) -> Self {
        Self(Mutex::new(Some(outcome)))
    }
}

impl Outcomes for FakeOutcomes {
    fn kept(&self, fence: Fence) -> Option<KeptOutcome> {
        self.0.lock().unwrap().clone().filter(|kept| kept.fence == fence)
    }

    fn keep(&self, outcome: &KeptOutcome) -> std::io::Result<()> {
        *self.0.lock().unwrap() = Some(outcome.clone());
        Ok(())
    }

    fn forget(&self, _fence: Fence) {
        *self.0.lock().unwrap() = None;
    }
}
