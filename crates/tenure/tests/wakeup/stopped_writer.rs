//! A runner that was stopped inside the queue of SQLite's writers.

use rustix::process::Signal;
use tenure_testkit::cli::{processes, until};

use crate::machine::{Machine, make_silent};

#[test]
fn a_runner_that_hangs_on_its_way_to_the_store_is_killed_although_nobody_can_write() {
    let machine = Machine::new();
    let project = machine.project("p");
    project.task("A", &["mark begun", "wait go"]);
    let pid = project.detached_runner(&[]);
    machine.wait_for("begun");
    // It is stopped at the head of the writers' queue, where it keeps all other writers waiting.
    let gate = project.hold_writers();
    let writer = || {
        let table = std::fs::read_to_string("/proc/locks").unwrap();
        let queue = project.database().with_extension("queue.lock");
        let inode = std::os::unix::fs::MetadataExt::ino(&std::fs::metadata(queue).unwrap());
        table.lines().any(|line| line.contains(&format!(" {pid} ")) && line.contains(&format!(":{inode} ")))
    };
    until("it is at the head of the queue", writer);
    processes::signal(pid, Signal::STOP);
    until("it has stopped", || processes::state(pid) == Some('T'));
    drop(gate);
    make_silent(&project);
    let decided = machine.wake_up(&[]);
    assert_eq!(decided["p"].0, "restarted", "{decided:?}");
    assert!(!processes::is_alive(pid));
    machine.give("go");
    project.wait_until("A", "completed");
}
