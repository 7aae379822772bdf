//! Projects that are not registered: wake-up reports them, and neither reads nor runs anything of them.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

use tenure_testkit::cli::{Answer, Running, write_program};

use crate::machine::{Machine, USUAL, decisions};

/// A user whose wake-up searches `~/src`.
fn searching() -> Machine {
    let machine = Machine::with(&USUAL.replace(
        "runners: {preset: pretend,",
        "runners: {preset: pretend, wakeup: {projectPaths: ['~/src', '~', /nowhere/at/all]},",
    ));
    std::fs::create_dir(machine.path("home/src")).unwrap();
    machine
}

fn git(folder: &Path, args: &[&str]) {
    let identity = ["-c", "user.name=t", "-c", "user.email=t@example.com"];
    let ran = Command::new("git").args(identity).args(args).current_dir(folder).output().unwrap();
    assert!(ran.status.success(), "git {args:?}: {}", String::from_utf8_lossy(&ran.stderr));
}

/// A clone of a repository that tracks a store with a ready task, a preset and a hook. Each leaves a file when it runs.
fn hostile_clone(machine: &Machine, name: &str) -> PathBuf {
    let origin = machine.project("origin");
    origin.task("A", &[]);
    for what in ["preset", "hook"] {
        let mark = machine.path("agent").join(what);
        write_program(
            &origin.root().join(format!("{what}.sh")),
            &format!("#!/bin/sh\necho ran >> '{}'\n", mark.display()),
        );
    }
    let config = origin.root().join(".tenure/config.yaml");
    let before = std::fs::read_to_string(&config).unwrap();
    let more = "runners: {preset: theirs}\npresets: {theirs: {command: [./preset.sh]}}\n\
                hooks: [{name: h, event: runner.started, type: script, command: ./hook.sh}]\n";
    std::fs::write(config, before + more).unwrap();
    origin.sql("PRAGMA wal_checkpoint(TRUNCATE)");
    git(origin.root(), &["init", "-q"]);
    git(origin.root(), &["add", "-f", ".tenure/tenure.db", ".tenure/config.yaml", "preset.sh", "hook.sh"]);
    git(origin.root(), &["commit", "-qm", "all of it"]);
    let clone = machine.path("home/src").join(name);
    git(&machine.path("home"), &["clone", "-q", origin.root().to_str().unwrap(), clone.to_str().unwrap()]);
    origin.ok(&["projects", "remove"]);
    std::fs::remove_dir_all(origin.root()).unwrap();
    clone
}

fn files(folder: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let found = std::fs::read_dir(folder.join(".tenure")).unwrap().map(|entry| entry.unwrap().path());
    found.map(|path| (path.clone(), std::fs::read(&path).unwrap_or_default())).collect()
}

fn commands(answer: &Answer) -> Vec<String> {
    let text = |hint: &Value| hint["command"].as_str().unwrap().to_owned();
    answer.json()["hints"].as_array().map(|hints| hints.iter().map(text).collect()).unwrap_or_default()
}

/// Runs a command line as if it had been pasted into a shell.
fn run_as_pasted(machine: &Machine, line: &str) -> Answer {
    let binary = Path::new(env!("CARGO_BIN_EXE_tenure")).parent().unwrap();
    let mut shell = Command::new("sh");
    for (name, value) in machine.command(&[]).get_envs() {
        shell.env(name, value.unwrap_or_default());
    }
    let path = format!("{}:{}", binary.display(), machine.search_path().display());
    shell.args(["-c", line]).env("PATH", path).current_dir(machine.path("home"));
    Running::start(shell).end()
}

#[test]
fn nothing_of_a_clone_is_run_or_opened_before_it_is_registered() {
    let machine = searching();
    let clone = hostile_clone(&machine, "it's a shop");
    let before = files(&clone);
    let ran = |what: &str| machine.path("agent").join(what).exists();

    let woken = machine.run(&["--json", "runners", "wakeup"]);
    assert_eq!(woken.code, Some(0), "a candidate is no error: {woken:?}");
    let reason = "it is not registered, so none of its files is read or run".to_owned();
    let expected = [("it's a shop".to_owned(), ("unregistered".to_owned(), reason))];
    assert_eq!(decisions(&woken.json()["data"]), BTreeMap::from(expected));
    let quiet = machine.run(&["runners", "wakeup", "--quiet"]);
    assert_eq!((quiet.code, quiet.out.as_str(), quiet.err.as_str()), (Some(0), "", ""));

    let hints = commands(&woken);
    let quoted = clone.to_str().unwrap().replace('\'', r"'\''");
    assert_eq!(hints, [format!("tenure projects add '{quoted}'")]);
    let listed = machine.run(&["--json", "projects", "list"]);
    assert_eq!(commands(&listed), hints);
    let row = listed.json()["data"]["projects"][0].clone();
    assert_eq!((&row["path"], &row["state"]), (&clone.to_str().unwrap().into(), &"unregistered".into()));
    assert_eq!((&row["enabled"], &row["registeredAt"]), (&false.into(), &Value::Null));
    let findings = machine.ok(&["doctor"])["findings"].as_array().unwrap().clone();
    let finding = findings.iter().find(|finding| finding["check"] == "registry").unwrap();
    assert_eq!(finding["command"], hints[0], "{finding}");
    assert_eq!(finding["severity"], "warning");

    assert_eq!(files(&clone), before, "no store was opened");
    assert!(!ran("preset") && !ran("hook") && machine.tenures().is_empty());

    let pasted = run_as_pasted(&machine, &hints[0]);
    assert_eq!(pasted.code, Some(0), "{pasted:?}");
    // A clone has a copy of the database, which must be made its own before it is changed.
    let adopted = machine.run(&["-C", clone.to_str().unwrap(), "store", "adopt"]);
    assert_eq!(adopted.code, Some(0), "{adopted:?}");
    let decided = |machine: &Machine| machine.wake_up(&[])["it's a shop"].clone();
    let (decision, reason) = decided(&machine);
    assert!(decision == "untrusted" && reason.contains("tracked by git"), "{decision}: {reason}");
    git(&clone, &["rm", "-q", "--cached", ".tenure/tenure.db"]);
    let (decision, reason) = decided(&machine);
    assert!(decision == "untrusted" && reason.contains("tenure trust"), "{decision}: {reason}");
    assert!(!ran("preset") && !ran("hook") && machine.tenures().is_empty());
    machine.trust(&clone);
    assert_eq!(decided(&machine).0, "started", "registered and trusted, it is served");
    machine.wait_for("preset");
    machine.wait_for("hook");
}

#[test]
fn a_candidate_with_a_wrong_configuration_or_no_store_is_reported_and_no_error() {
    let machine = searching();
    for (name, config) in
        [("wrong", "lockng: {}\n"), ("server", "store: {url: 'postgres://127.0.0.1:1/x'}\n")]
    {
        std::fs::create_dir_all(machine.path(&format!("home/src/{name}/.tenure"))).unwrap();
        std::fs::write(machine.path(&format!("home/src/{name}/.tenure/config.yaml")), config).unwrap();
    }
    std::fs::create_dir_all(machine.path("home/src/empty/.tenure")).unwrap();
    let woken = machine.run(&["--json", "runners", "wakeup"]);
    assert_eq!(woken.code, Some(0), "{woken:?}");
    let decided = decisions(&woken.json()["data"]);
    let found: Vec<_> =
        decided.iter().map(|(name, (decision, _))| (name.as_str(), decision.as_str())).collect();
    assert_eq!(found, [("server", "unregistered"), ("wrong", "unregistered")]);
}

#[test]
fn a_clone_without_a_store_is_registered_by_the_command_that_wake_up_suggests() {
    let machine = searching();
    let clone = machine.path("home/src/fresh");
    std::fs::create_dir_all(clone.join(".tenure")).unwrap();
    std::fs::write(clone.join(".tenure/config.yaml"), "project: {name: fresh}\n").unwrap();
    let hints = commands(&machine.run(&["--json", "runners", "wakeup"]));
    assert_eq!(hints, [format!("tenure init -C {}", clone.display())]);
    let pasted = run_as_pasted(&machine, &hints[0]);
    assert_eq!(pasted.code, Some(0), "{pasted:?}");
    assert_eq!(machine.wake_up(&[])["fresh"].0, "untrusted");
    machine.trust(&clone);
    assert_eq!(machine.wake_up(&[])["fresh"].0, "idle");
}

#[test]
fn a_linked_worktree_is_no_candidate_because_its_project_is_that_of_the_main_checkout() {
    let machine = searching();
    let main = machine.project("main");
    git(main.root(), &["init", "-q"]);
    git(main.root(), &["add", ".tenure/config.yaml"]);
    git(main.root(), &["commit", "-qm", "configuration"]);
    let linked = machine.path("home/src/linked");
    git(main.root(), &["worktree", "add", "-q", linked.to_str().unwrap()]);
    assert!(linked.join(".tenure/config.yaml").exists());
    let decided = machine.wake_up(&[]);
    assert_eq!(decided.keys().collect::<Vec<_>>(), ["main"], "{decided:?}");
}

#[test]
fn a_project_that_was_removed_from_the_registry_is_left_alone_until_it_is_added_again() {
    let machine = searching();
    let project = machine.project("far");
    project.task("A", &["mark begun-A"]);
    project.ok(&["projects", "remove"]);
    let moved = machine.path("home/src/deep/far");
    std::fs::create_dir(machine.path("home/src/deep")).unwrap();
    std::fs::rename(project.root(), &moved).unwrap();
    let decided = machine.wake_up(&[]);
    assert_eq!(decided.len(), 1, "the home itself is no project: {decided:?}");
    assert_eq!(decided["far"].0, "unregistered", "{decided:?}");
    machine.ok(&["projects", "add", moved.to_str().unwrap()]);
    let decided = machine.wake_up(&[]);
    assert_eq!(decided["far"].0, "untrusted", "trust belongs to a path: {decided:?}");
    machine.trust(&moved);
    let decided = machine.wake_up(&[]);
    assert_eq!((decided.len(), decided["far"].0.as_str()), (1, "started"), "{decided:?}");
    machine.wait_for("begun-A");
}
