//! A hundred thousand items: storing and resuming them takes linear time and flat memory. Compares processor time and memory
//! within one run, never wall time.

use std::time::Duration;

use rustix::process::Signal;

use tenure_testkit::cli::{processes, until};

use crate::project::Project;

const MANY: u64 = 100_000;

/// Starts a job of `items` items and measures the processor time and memory until the first of them runs; then the same for
/// its resume after a kill.
fn weigh(p: &Project, name: &str, items: u64) -> [(Duration, u64); 2] {
    let list = format!("{name}.jsonl");
    p.items(&list, (1..=items).map(|n| format!("{{\"id\":{n},\"text\":\"item number {n}\"}}")));
    let mut runs =
        [p.spawn(&["jobs", "start", name, "--items", &list, "--", "./wait.sh", name]), p.spawn(&["whoami"])];
    let mut weights = Vec::new();
    for step in 0..2_usize {
        if step == 1 {
            let waiting = std::mem::replace(&mut runs[1], p.spawn(&["resume", name]));
            waiting.end();
        }
        until("the first item runs", || p.marks(name).len() == step + 1);
        let pid = runs[step].pid();
        weights.push((processes::cpu(pid), processes::memory(pid, "VmHWM")));
        runs[step].signal(Signal::KILL);
        until("it is gone", || !runs[step].is_running());
    }
    [weights[0], weights[1]]
}

#[test]
fn a_hundred_thousand_items_are_stored_and_resumed_in_linear_time_and_flat_memory() {
    let p = Project::new();
    p.script("wait.sh", "echo x >>\"$PRETEND/$1\"; sleep 1000");
    let few = weigh(&p, "few", MANY / 10);
    let many = weigh(&p, "many", MANY);
    for (what, few, many) in [("start", few[0], many[0]), ("resume", few[1], many[1])] {
        eprintln!(
            "{what}: {} items {:?} and {} kB, {MANY} items {:?} and {} kB",
            MANY / 10,
            few.0,
            few.1,
            many.0,
            many.1
        );
        // Ten times as many cost at most ten times as much, with room for a page more in the tree.
        assert!(many.0 < few.0 * 10 * 2, "{what}");
        assert!(many.1 < few.1 * 2 && many.1 < few.1 + 16 * 1024, "{what}: memory grows with the items");
    }
    let job = p.job("many");
    assert_eq!((job["total"].as_u64(), job["succeeded"].as_u64()), (Some(MANY), Some(0)));
}
