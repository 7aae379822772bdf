//! Processes that a takeover never kills.

use std::process::Command;

use rustix::process::Signal;
use tenure_testkit::cli::{Running, processes, skip};

use crate::project::{Project, end, wait_for};

#[test]
fn a_claim_from_inside_the_old_attempt_spares_itself_and_its_ancestors() {
    let project = Project::new();
    // A grandchild goes on after its supervisor was killed, and claims the task for itself. Its parent is marked, and so
    // is a process beside them.
    let inner = r"
        while [ ! -e go ]; do sleep 0.05; done
        tenure task claim T --agent inside > claimed 2>&1; echo $? > code
        tenure task run T --agent inside -- touch nested >> claimed 2>&1
        echo alive > inner; echo $$ > pid
        while [ ! -e gone ]; do sleep 0.05; done
    ";
    std::fs::write(project.path("inner.sh"), inner).unwrap();
    let script = r"
        (sh -c 'echo $$ > beside; sleep 120' &) &
        (sh -c 'sh inner.sh; echo alive > outer' &) &
        touch started
        sleep 120
    ";
    let first = project.start("first", &[], script);
    project.wait_for_file("started");
    let beside = project.wait_for_pids("beside", 1)[0];
    first.signal(Signal::KILL);
    assert_eq!(end(first).0, 137);
    std::fs::write(project.path("go"), "").unwrap();
    let pid = project.wait_for_pids("pid", 1)[0];
    assert_eq!(project.read("code"), "0\n", "{}", project.read("claimed"));
    assert_eq!(project.read("inner"), "alive\n");
    assert!(
        !processes::is_alive(beside),
        "a process beside the claimer's own line belongs to the old attempt"
    );
    assert!(project.path("nested").exists(), "{}", project.read("claimed"));
    // The old attempt has not ended while the claimer is in it; to the next one it is as any other.
    assert!(processes::is_alive(pid));
    project.ok(&["tasks", "update", "T", "--status", "pending"]);
    project.ok(&["task", "claim", "T", "--agent", "outside"]);
    assert!(!processes::is_alive(pid));
    assert!(!project.path("outer").exists());
}

#[test]
fn another_users_process_is_spared_even_with_the_mark_and_in_the_group() {
    let root = Command::new("id").arg("-u").output().unwrap().stdout == b"0\n";
    if !root {
        skip("only root can start a process of another user");
        return;
    }
    let project = Project::new();
    let script = "setpriv --reuid 65534 --clear-groups sleep 120 & echo $! > other
                  sh -c 'echo $$ > ours; sleep 120' &
                  sleep 120";
    let first = project.start("first", &[], script);
    let other = project.wait_for_pids("other", 1)[0];
    let ours = project.wait_for_pids("ours", 1)[0];
    wait_for("the change of user", || {
        std::fs::read_to_string(format!("/proc/{other}/status")).unwrap().contains("Uid:\t65534\t65534")
            && std::fs::read_to_string(format!("/proc/{other}/comm")).unwrap() == "sleep\n"
    });
    let mark = std::fs::read(format!("/proc/{other}/environ")).unwrap();
    assert!(String::from_utf8_lossy(&mark).contains("TENURE_ATTEMPT="));
    first.signal(Signal::KILL);
    assert_eq!(end(first).0, 137);
    project.ok(&["task", "claim", "T", "--agent", "second"]);
    assert!(!processes::is_alive(ours));
    assert!(processes::is_alive(other));
    processes::signal(other, Signal::KILL);
}

#[test]
fn processes_of_other_attempts_and_of_nobody_are_left_alone() {
    let project = Project::new();
    project.ok(&["task", "add", "another", "--id", "U"]);
    let mut other = project.command(&["tasks", "run", "U", "--agent", "x", "--", "sh", "-c"]);
    other.arg("echo $$ > other; while [ ! -e stop ]; do sleep 0.05; done");
    let other = Running::start(other);
    let pid = project.wait_for_pids("other", 1)[0];
    let first = project.start("first", &[], "echo $$ > old; sleep 120");
    project.wait_for_pids("old", 1);
    first.signal(Signal::KILL);
    assert_eq!(end(first).0, 137);
    project.ok(&["task", "claim", "T", "--agent", "second"]);
    assert!(processes::is_alive(pid));
    std::fs::write(project.path("stop"), "").unwrap();
    assert_eq!(end(other).0, 0);
}
