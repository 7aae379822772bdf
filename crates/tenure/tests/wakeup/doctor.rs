//! `doctor` after a crash: it finds what dead processes have left, and `--fix` repairs it.

use rustix::process::Signal;

use tenure_testkit::cli::{Running, processes, until};

use crate::machine::Machine;

#[test]
fn doctor_finds_and_fixes_what_a_killed_runner_left_and_touches_no_live_runner() {
    let machine = Machine::new();
    let project = machine.project("p");
    project.task("A", &["deaf", "fork", "away", "mark begun", "wait go"]);
    let pid = project.detached_runner(&[]);
    machine.wait_for("begun");
    assert_eq!(project.run(&["doctor"]).code, Some(0), "a runner at work is no problem");
    processes::signal(pid, Signal::KILL);
    until("it is dead", || !processes::is_alive(pid));
    let orphans = machine.agents();
    assert!(!orphans.is_empty());
    let other = machine.project("q");
    other.task("B", &["mark begun-B", "wait go"]);
    let living = other.detached_runner(&[]);
    machine.wait_for("begun-B");

    let found = project.run(&["--json", "doctor"]);
    assert_eq!(found.code, Some(7), "{found:?}");
    let error = found.json()["error"].clone();
    assert_eq!(error["code"], "CHECK_FAILED");
    let findings = error["details"]["findings"].as_array().unwrap().clone();
    let sentences = |check: &str| {
        let of: Vec<_> = findings.iter().filter(|f| f["check"] == check).collect();
        of.iter().map(|f| f["sentence"].as_str().unwrap()).collect::<Vec<_>>().join("; ")
    };
    assert!(
        sentences("runners").contains(&format!("(pid {pid}) is dead but still registered")),
        "{findings:?}"
    );
    assert!(sentences("leases").contains("A was held by runner"), "{findings:?}");
    // The slot and the session of the runner are no problems of their own.
    assert!(
        !sentences("leases").contains("session:") && !sentences("leases").contains("runner:"),
        "{findings:?}"
    );
    assert!(sentences("processes").contains("its processes are still running: "), "{findings:?}");
    assert!(!machine.agents().is_empty(), "doctor without --fix ends no process");

    let fixed = project.run(&["--json", "doctor", "--fix"]);
    assert_eq!(fixed.code, Some(0), "{fixed:?}");
    assert!(fixed.json()["data"]["fixed"].as_array().unwrap().len() >= 3, "{fixed:?}");
    let left: Vec<_> = orphans.iter().filter(|pid| processes::is_alive(**pid)).collect();
    assert!(left.is_empty(), "{left:?}");
    assert_eq!(project.status("A"), "pending");
    assert!(processes::is_alive(living));
    assert_eq!(other.status("B"), "in_progress");
    let sound = project.run(&["doctor"]);
    assert_eq!(sound.code, Some(0));
    // A store that is not the project's own file is named.
    let is_on_server = machine.server().is_some();
    assert_eq!(sound.out.contains("are consistent at postgres://"), is_on_server, "{sound:?}");
    let status = project.run(&["status"]).out;
    assert_eq!(status.contains("\nStore: postgres://"), is_on_server, "{status}");
    machine.give("go");
    other.wait_until("B", "completed");
}

#[test]
fn doctor_reports_and_removes_only_the_sockets_of_its_own_home() {
    let machine = Machine::new();
    let project = machine.project("p");
    project.task("A", &["wait go"]);
    project.ok(&["tasks", "claim", "A", "--agent", "ann"]);
    let waiter = project.spawn(&["tasks", "claim", "A", "--agent", "bob", "--wait"]);
    until("bob waits", || project.run(&["why", "A"]).out.contains("1 waiting"));
    waiter.signal(Signal::KILL);
    waiter.end();
    let sockets = |home: &str, args: &[&str]| {
        let mut command = project.command(args);
        command.env("TENURE_HOME", machine.path(home));
        let answer = Running::start(command).end().json();
        let findings = answer["data"]["findings"]
            .as_array()
            .or_else(|| answer["error"]["details"]["findings"].as_array());
        let of = findings.unwrap().iter().filter(|finding| finding["check"] == "sockets");
        of.map(|finding| finding["sentence"].as_str().unwrap().to_owned()).collect::<Vec<_>>()
    };
    let own = machine.tenure_home();
    let own = own.to_str().unwrap();
    // With a server, processes are woken through their connections.
    let left: &[&str] =
        if machine.server().is_some() { &[] } else { &["1 socket of a killed process is left over"] };
    assert_eq!(sockets(own, &["--json", "doctor"]), left);
    assert!(sockets("another-home", &["--json", "doctor", "--fix"]).is_empty());
    assert_eq!(sockets(own, &["--json", "doctor"]), left, "another home's --fix must not remove it");
    assert!(sockets(own, &["--json", "doctor", "--fix"]).is_empty());
    assert!(sockets(own, &["--json", "doctor"]).is_empty());
}
