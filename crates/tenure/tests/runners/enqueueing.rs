//! A runner that finds a section held takes a ticket in the same transaction (Q1): whenever the section is released, the runner
//! is rung. Only on SQLite, where a test can stop a process before each of its transactions.

use std::os::unix::fs::MetadataExt;
use std::time::Duration;

use rustix::process::Signal;
use tenure_core::lease::ResourceKind;
use tenure_core::store::LeaseFilter;
use tenure_testkit::cli::{Running, processes, until};

use crate::project::Project;

/// Whether the process is blocked on the lock file that every writer takes first.
fn waits_to_write(project: &Project, pid: u32) -> bool {
    let queue = project.database().with_extension("queue.lock");
    let inode = format!(":{} ", std::fs::metadata(queue).unwrap().ino());
    let locks = std::fs::read_to_string("/proc/locks").unwrap();
    let pid = format!(" {pid} ");
    locks.lines().any(|line| line.contains("->") && line.contains(&pid) && line.contains(&inode))
}

/// Whether all threads of the process are stopped.
fn is_stopped(pid: u32) -> bool {
    let threads = std::fs::read_dir(format!("/proc/{pid}/task")).unwrap().flatten();
    threads.map(|thread| thread.file_name().to_string_lossy().parse().unwrap()).all(|thread| {
        // Threads have their own entries, which the list of processes leaves out.
        processes::state(thread).is_none_or(|state| state == 'T')
    })
}

fn has_ticket(project: &Project) -> bool {
    project.select("SELECT count(*) FROM tickets") == ["1"]
}

/// Starts a runner, releases the section before the runner's transaction with this number, and waits until the runner has
/// worked in it. False if the runner had taken its ticket before that.
fn release_before(transaction: usize) -> bool {
    // The runner looks again after ten minutes, so only a ring wakes it in time.
    let project = Project::with(
        "runners: {preset: pretend, heartbeatInterval: 300ms, staleTimeout: 1s}\n\
         locking: {pollInterval: 10m, waitTimeout: 1h}",
    );
    project.ok(&["sections", "add", "S"]);
    for task in ["A", "B"] {
        project.task_in(task, &[], &["--section", "S"]);
    }
    project.ok(&["tasks", "claim", "A", "--agent", "bob"]);
    let mut queue = Some(project.hold_queue());
    let runner: Running = project.spawn(&["runners", "start", "--foreground", "--once"]);
    let mut number = 0;
    let was_early = loop {
        until("the runner is about to write, or waits for the section", || {
            waits_to_write(&project, runner.pid()) || has_ticket(&project)
        });
        if has_ticket(&project) {
            break false;
        }
        number += 1;
        if number == transaction {
            break true;
        }
        drop(queue.take());
        until("the runner writes", || !waits_to_write(&project, runner.pid()));
        queue = Some(project.hold_queue());
    };
    // None of its threads is in a transaction.
    let gate = project.hold_writers();
    runner.signal(Signal::STOP);
    until("the runner has stopped", || is_stopped(runner.pid()));
    drop((gate, queue));
    // A runner with a slot is rung without a ticket, too.
    until("the runner has no live slot", || {
        let slots = LeaseFilter { kinds: Some(vec![ResourceKind::Runner]), ..LeaseFilter::default() };
        let store = project.store();
        store.read(|view| Ok(view.leases(&slots)?.iter().all(|slot| slot.expires_at <= view.now()))).unwrap()
    });
    project.ok(&["tasks", "done", "A", "--agent", "bob"]);
    runner.signal(Signal::CONT);
    assert!(
        runner.ends_within(Duration::from_mins(1)),
        "released before transaction {transaction}: {}",
        runner.so_far()
    );
    assert_eq!(runner.end().code, Some(0));
    assert_eq!(project.status("B"), "completed");
    was_early
}

#[test]
fn no_release_falls_between_the_refusal_of_a_section_and_the_ticket_for_it() {
    let early = (1..100).take_while(|transaction| release_before(*transaction)).count();
    assert!((1..99).contains(&early), "no release came before the ticket, or none after it");
}
