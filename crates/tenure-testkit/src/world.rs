//! Processes that the test may kill, a machine that it may restart, and ids that count.

use std::collections::BTreeSet;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

use tenure_core::holder::{Incarnation, Judge, Liveness, ProcessIdentity};
use tenure_core::id::Ids;

const HERE: &str = "this-machine";
const ELSEWHERE: &str = "another-machine";

/// One machine whose processes live until the test says otherwise, and others about which nothing is known.
#[derive(Debug, Default)]
pub struct FakeWorld(Mutex<Facts>);

#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
struct Facts {
    boots: u64,
    dead: BTreeSet<u32>,
}

impl FakeWorld {
    /// A world in which these processes of the first boot have died.
    pub fn without(dead: impl IntoIterator<Item = u32>) -> Self {
        Self(Mutex::new(Facts { boots: 0, dead: dead.into_iter().collect() }))
    }

    /// A process of this machine, started in its present boot.
    pub fn process(&self, pid: u32) -> Incarnation {
        incarnation(HERE, &boot(self.0.lock().unwrap().boots), pid)
    }

    /// A process of a machine that this one cannot see.
    pub fn remote_process(&self, pid: u32) -> Incarnation {
        incarnation(ELSEWHERE, "some-boot", pid)
    }

    pub fn kill(&self, pid: u32) {
        self.0.lock().unwrap().dead.insert(pid);
    }

    /// Power off, power on: every process of this machine is gone, and the pids start anew.
    pub fn reboot(&self) {
        let mut facts = self.0.lock().unwrap();
        facts.boots += 1;
        facts.dead.clear();
    }
}

impl Judge for FakeWorld {
    fn liveness(&self, who: &Incarnation) -> Liveness {
        let facts = self.0.lock().unwrap();
        if who.process.host_id != HERE {
            Liveness::Unknown
        } else if who.process.boot_id != boot(facts.boots) || facts.dead.contains(&who.process.pid) {
            Liveness::Dead
        } else {
            Liveness::Alive
        }
    }

    fn is_this_boot(&self, who: &Incarnation) -> bool {
        who.process.boot_id == boot(self.0.lock().unwrap().boots)
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

/// Ids in the order in which they were asked for.
#[derive(Debug, Default)]
pub struct CountingIds(AtomicU64);

impl CountingIds {
    pub fn after(last: u64) -> Self {
        Self(AtomicU64::new(last))
    }

    /// How many ids were given.
    pub fn given(&self) -> u64 {
        self.0.load(Ordering::SeqCst)
    }

    fn next(&self) -> u64 {
        self.0.fetch_add(1, Ordering::SeqCst) + 1
    }
}

impl Ids for CountingIds {
    fn uuid(&self) -> String {
        // The varying part comes first, so that short prefixes can be told apart.
        format!("{:08x}-0000-4000-8000-000000000000", self.next())
    }

    fn hex8(&self) -> String {
        format!("{:08X}", self.next())
    }
}
