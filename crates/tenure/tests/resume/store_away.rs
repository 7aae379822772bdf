//! A store that does not answer: the items end before their leases do, and the job continues afterwards.

use serde_json::Value;
use tenure_core::{Clock, SystemClock, Timestamp};

use tenure_testkit::cli::until;

use crate::project::Project;

const CONFIG: &str = "runners: {preset: pretend, killGrace: 1m, heartbeatInterval: 500ms, staleTimeout: 18s}";

/// The item's lease.
fn lock(p: &Project) -> Value {
    let locks = p.ok(&["locks", "list"])["locks"].as_array().unwrap().clone();
    locks.into_iter().find(|lock| lock["resource"].as_str().unwrap().starts_with("item:")).unwrap()
}

fn time(lock: &Value, field: &str) -> Timestamp {
    Timestamp::parse(lock[field].as_str().unwrap()).unwrap()
}

#[test]
fn an_item_whose_lease_cannot_be_renewed_is_killed_before_the_lease_ends_and_run_again() {
    let p = Project::with(CONFIG);
    p.numbers("items.txt", 1);
    // It ignores SIGTERM, and the grace period is longer than the lease. Its second run succeeds.
    p.script("item.sh", "[ -e \"$PRETEND/begun\" ] && exit 0; trap '' TERM; echo $$ >>\"$PRETEND/begun\"; while :; do sleep 0.1; done");
    let running = p.spawn(&["--json", "jobs", "start", "a", "--items", "items.txt", "--", "./item.sh"]);
    p.wait_for("begun");
    let pid: u32 = p.marks("begun")[0].parse().unwrap();
    // After a renewal its process has been recorded, so the worker only waits for its exit.
    until("it is renewed", || {
        let lock = lock(&p);
        time(&lock, "heartbeatAt").since(time(&lock, "acquiredAt")).as_secs() >= 1
    });
    let writers = p.hold_writers();
    let expires_at = time(&lock(&p), "expiresAt");
    until("its process is gone", || !tenure_lock::is_process_running(pid));
    let ended_at = SystemClock.now();
    assert!(ended_at < expires_at, "ended at {ended_at:?}, the lease at {expires_at:?}");
    drop(writers);
    let answer = running.end();
    assert_eq!(answer.code, Some(0), "{answer:?}");
    let job = answer.json()["data"]["job"].clone();
    assert_eq!((job["succeeded"].as_u64(), job["failed"].as_u64()), (Some(1), Some(0)), "{job}");
}
