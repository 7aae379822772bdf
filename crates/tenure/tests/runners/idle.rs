//! An idle runner uses almost no processor time, and starts work at once.

use std::time::{Duration, Instant};

use tenure_testkit::cli::processes::{cpu, memory};
use tenure_testkit::cli::{full_or, until};

use crate::project::Project;

#[test]
fn an_idle_runner_is_small_and_quiet_and_starts_far_sooner_than_it_polls() {
    let poll = Duration::from_mins(1);
    let project = Project::with("runners: {preset: pretend}\nlocking: {pollInterval: 60s}");
    let started = project.ok(&["runners", "start", "--idle-timeout", "1h"]);
    let pid = u32::try_from(started["runner"]["pid"].as_u64().unwrap()).unwrap();
    project.wait_for_log(pid, "Going idle");
    let mut before = 0;
    until("it is idle", || {
        std::thread::sleep(Duration::from_millis(300));
        let (then, now) = (before, context_switches(pid));
        before = now;
        then == now
    });
    let (switches, used) = (context_switches(pid), cpu(pid));
    let watched = Duration::from_secs(full_or(60, 3));
    std::thread::sleep(watched);
    let (switches, used) = (context_switches(pid) - switches, cpu(pid).saturating_sub(used));
    let (whole, own) = (memory(pid, "VmRSS"), memory(pid, "RssAnon"));
    eprintln!(
        "idle for {watched:?}: {used:?} of processor time, woken {switches} times, {whole} kB, {own} kB private"
    );
    // A tenth of a percent is 1 ms per second. One heartbeat may fall into the measured time.
    assert!(used < watched / 100, "{used:?}");
    assert!(switches < full_or(200, 20), "{switches}");
    // This does not measure the pages of an unoptimised program file.
    assert!(own < 10 * 1024, "{own} kB");

    for n in 0..3 {
        let key = format!("T{n}");
        let mark = format!("begun{n}");
        project.task(&key, &[&format!("mark {mark}")]);
        let added = Instant::now();
        project.wait_for(&mark);
        let took = added.elapsed();
        eprintln!("the agent had begun {} ms after tasks add", took.as_millis());
        assert!(took < poll / 10, "{took:?}");
        project.wait_until(&key, "completed");
    }
    project.ok(&["runners", "stop"]);
}

#[test]
fn an_idle_runner_is_woken_by_a_task_that_becomes_ready() {
    let project = Project::with("runners: {preset: pretend}\nlocking: {pollInterval: 1h, waitTimeout: 2h}");
    project.task("A", &[]);
    project.task_in("B", &["mark b"], &["--depends-on", "A"]);
    project.ok(&["tasks", "update", "A", "--status", "failed"]);
    let runner = project.runner(&["--idle-timeout", "1h"]);
    project.wait_for_log(runner.pid(), "Nothing is ready: B waits for A");
    project.ok(&["tasks", "skip", "A"]);
    project.wait_for("b");
    project.task("C", &["mark c"]);
    project.wait_for("c");
    project.ok(&["tasks", "retry", "A"]);
    project.wait_until("A", "completed");
    project.ok(&["runners", "stop"]);
    assert_eq!(runner.end().code, Some(0));
}

fn context_switches(pid: u32) -> u64 {
    let mut sum = 0;
    for task in std::fs::read_dir(format!("/proc/{pid}/task")).unwrap().flatten() {
        let status = std::fs::read_to_string(task.path().join("status")).unwrap_or_default();
        let of = |name: &str| {
            let line = status.lines().find_map(|line| line.strip_prefix(name));
            line.and_then(|n| n.trim().parse::<u64>().ok()).unwrap_or(0)
        };
        sum += of("voluntary_ctxt_switches:") + of("nonvoluntary_ctxt_switches:");
    }
    sum
}
