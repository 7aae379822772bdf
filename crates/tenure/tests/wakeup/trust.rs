//! Wake-up never trusts, and starts nothing that no person has trusted. Its environment has `TENURE_TRUST=1` throughout.

use tenure_testkit::cli::write_program;

use crate::machine::Machine;

#[test]
fn wake_up_starts_nothing_in_a_project_that_is_not_trusted() {
    let machine = Machine::new();
    let project = machine.project("shop");
    project.task("A", &["mark begun", "wait go"]);
    project.ok(&["untrust"]);
    for more in [&[] as &[&str], &["--dry-run"]] {
        let (decision, reason) = machine.wake_up(more)["shop"].clone();
        assert_eq!(decision, "untrusted", "{reason}");
        assert!(reason.contains("tenure trust"), "{reason}");
    }
    assert!(project.runners().is_empty() && machine.tenures().is_empty());
    assert_eq!(machine.run(&["runners", "wakeup"]).code, Some(0), "it is no error");
    let list = |machine: &Machine| {
        let mut command = machine.command(&["--json", "projects", "list"]);
        command.env_remove("TENURE_TRUST");
        let answer = tenure_testkit::cli::Running::start(command).end();
        answer.data()["projects"][0]["state"].as_str().unwrap().to_owned()
    };
    assert_eq!(list(&machine), "untrusted");

    let trusted = project.run_at_a_terminal(&["trust", "--yes"], "");
    assert_eq!(trusted.code, Some(0), "{trusted:?}");
    assert_eq!(list(&machine), "enabled");
    assert_eq!(machine.wake_up(&[])["shop"].0, "started");
    machine.wait_for("begun");
    // A runner with the variable would not notice that a script changes.
    let pid = project.runners()[0]["pid"].clone();
    let environment = std::fs::read(format!("/proc/{pid}/environ")).unwrap();
    let environment = String::from_utf8_lossy(&environment);
    assert!(environment.contains("TENURE_HOME=") && !environment.contains("TENURE_TRUST="), "{environment}");
    machine.give("go");
    project.wait_until("A", "completed");
}

#[test]
fn a_setting_or_a_script_that_changed_after_trust_stops_wake_up() {
    let machine = Machine::new();
    let project = machine.project("shop");
    project.task("A", &["journal trust=[$TENURE_TRUST]", "mark begun"]);
    let script = project.root().join("note.sh");
    write_program(&script, "#!/bin/sh\nexit 0\n");
    project.configure("hooks: [{name: n, event: runner.started, type: script, command: ./note.sh}]");
    let evil = format!("#!/bin/sh\ntouch '{}'\n", machine.shared("evil").display());
    write_program(&script, &evil);
    let (decision, reason) = machine.wake_up(&[])["shop"].clone();
    assert_eq!(decision, "untrusted");
    assert!(reason.contains("has changed since it was trusted"), "{reason}");
    write_program(&script, "#!/bin/sh\nexit 0\n");
    assert_eq!(machine.wake_up(&["--dry-run"])["shop"].0, "started", "it is as it was");

    project.ok(&["config", "set", "runners.maxConcurrent", "2"]);
    assert_eq!(machine.wake_up(&["--dry-run"])["shop"].0, "started", "its user has changed it");
    let config = project.root().join(".tenure/config.yaml");
    let text = std::fs::read_to_string(&config).unwrap();
    std::fs::write(&config, text.replace("./note.sh", "./other.sh")).unwrap();
    assert_eq!(machine.wake_up(&[])["shop"].0, "untrusted");
    assert!(project.runners().is_empty() && !machine.shared("evil").exists());
    std::fs::write(&config, text).unwrap();
    assert_eq!(machine.wake_up(&[])["shop"].0, "started");
    machine.wait_for("begun");
    let journal = machine.marks("journal");
    assert!(journal.iter().any(|line| line.ends_with("trust=[]")), "{journal:?}");
}

#[test]
fn wake_up_connects_to_no_store_that_is_not_trusted() {
    let machine = Machine::new();
    let project = machine.project("shop");
    project.ok(&["untrust"]);
    let server = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    server.set_nonblocking(true).unwrap();
    let port = server.local_addr().unwrap().port();
    let config = project.root().join(".tenure/config.yaml");
    let text = "project: {id: 00000000-0000-4000-8000-000000000001}\n";
    std::fs::write(&config, format!("{text}store: {{url: 'postgres://ann@127.0.0.1:{port}/x'}}\n")).unwrap();
    let decided = machine.wake_up(&[]);
    assert_eq!(decided["shop"].0, "untrusted", "{decided:?}");
    assert!(server.accept().is_err(), "nothing is connected to");
}
