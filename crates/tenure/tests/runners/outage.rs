//! A store that does not answer: no outcome is lost, and no runner, command or job ends because of it (F6).

use rustix::process::Signal;
use serde_json::json;

use tenure_testkit::cli::{Running, until, write_program};

use crate::project::Project;

/// How long the runner's main thread waits for the store before it notices the outage.
const PATIENCE: &str = "2s";

/// The number of outcomes that are kept outside the store. A file that is being written has another name.
fn kept(project: &Project) -> usize {
    let stores = std::fs::read_dir(project.tenure_home().join("outcomes"));
    let folders = stores.into_iter().flatten().flatten();
    let files = folders.flat_map(|folder| std::fs::read_dir(folder.path()).into_iter().flatten()).flatten();
    files.filter(|file| file.file_name().to_string_lossy().parse::<u64>().is_ok()).count()
}

/// A script that marks that it has begun, waits for `go`, and ends with these lines.
fn script(project: &Project, name: &str, end: &str) -> String {
    let path = project.root().join(name);
    let shared = project.path("agent");
    let text = format!(
        "#!/bin/sh\necho 1 >>'{0}/begun'\nwhile [ ! -e '{0}/go' ]; do sleep 0.02; done\n{end}\n",
        shared.display()
    );
    write_program(&path, &text);
    path.to_str().unwrap().to_owned()
}

fn task_run(project: &Project, task: &str, script: &str) -> Running {
    project.spawn(&["--timeout", PATIENCE, "tasks", "run", task, "--", script])
}

fn runner(project: &Project) -> Running {
    project.runner(&["--timeout", PATIENCE])
}

#[test]
fn every_outcome_is_written_when_the_store_answers_again() {
    let project = Project::new();
    project.put_tenure_on_path();
    for task in ["B", "C", "D"] {
        project.ok(&["tasks", "add", task, "--id", task]);
    }
    let succeeds = task_run(&project, "B", &script(&project, "b.sh", "exit 0"));
    let fails = task_run(&project, "C", &script(&project, "c.sh", "exit 3"));
    let reported = script(&project, "d.sh", "exit 1");
    write_program(
        &project.root().join("reports.sh"),
        &format!("#!/bin/sh\ntenure task done D || exit 9\nexec '{reported}'\n"),
    );
    let reports = task_run(&project, "D", project.root().join("reports.sh").to_str().unwrap());
    script(&project, "item.sh", "exit 0");
    std::fs::write(project.root().join("items.txt"), "1\n").unwrap();
    let job = project.spawn(&[
        "--timeout",
        PATIENCE,
        "--json",
        "jobs",
        "start",
        "j",
        "--items",
        "items.txt",
        "--",
        "./item.sh",
    ]);
    until("four have begun", || project.marks("begun").len() == 4);
    project.task("A", &["mark at-work", "wait go"]);
    project.task("F", &["mark next"]);
    let runner = runner(&project);
    project.wait_for("at-work");

    let held = project.hold_writers();
    project.give("go");
    until("all outcomes are kept", || kept(&project) == 5);
    project.wait_for_log(runner.pid(), "The store does not answer");
    for running in [&succeeds, &fails, &reports] {
        until("it says so", || running.so_far().contains("The store does not answer"));
    }
    drop(held);

    for (running, code) in [(succeeds, 0), (fails, 3), (reports, 1)] {
        let answer = running.end();
        assert_eq!(answer.code, Some(code), "{answer:?}");
        assert_eq!(answer.err.matches("The store does not answer").count(), 1, "{answer:?}");
        assert_eq!(answer.err.matches("The store answers again").count(), 1, "{answer:?}");
    }
    let job = job.end();
    assert_eq!((job.code, job.json()["data"]["job"]["succeeded"].as_u64()), (Some(0), Some(1)), "{job:?}");
    let pid = runner.pid();
    assert_eq!(runner.end().code, Some(0));
    let log = project.log(pid);
    assert_eq!(log.matches("The store does not answer").count(), 1, "{log}");
    assert_eq!(log.matches("The store answers again").count(), 1, "{log}");
    let ended =
        [("A", "completed"), ("B", "completed"), ("C", "failed"), ("D", "completed"), ("F", "completed")];
    for (task, status) in ended {
        assert_eq!(project.status(task), status, "{task}");
        assert_eq!(project.moves(task, "pending"), project.moves("F", "pending"), "{task} was given back");
    }
    assert_eq!(kept(&project), 0);
}

#[test]
fn a_kept_outcome_is_applied_after_its_supervisor_was_stopped_or_killed() {
    let project = Project::new();
    for task in ["B", "C"] {
        project.ok(&["tasks", "add", task, "--id", task]);
    }
    let end = script(&project, "end.sh", "exit 0");
    let (stopped, killed) = (task_run(&project, "B", &end), task_run(&project, "C", &end));
    until("both have begun", || project.marks("begun").len() == 2);
    project.task("A", &["mark at-work", "wait go", "print no", "exit 4"]);
    let runner = runner(&project);
    project.wait_for("at-work");
    let held = project.hold_writers();
    project.give("go");
    until("all outcomes are kept", || kept(&project) == 3);
    killed.signal(Signal::KILL);
    stopped.signal(Signal::TERM);
    runner.signal(Signal::TERM);
    let stopped = stopped.end();
    assert_eq!(stopped.code, Some(0), "the exit code of the command: {stopped:?}");
    assert!(stopped.err.contains("kept"), "{stopped:?}");
    assert_eq!(runner.end().code, Some(0));
    killed.end();
    assert_eq!(kept(&project), 3);
    drop(held);
    project.ok(&["locks", "cleanup"]);
    for (task, status, attempts) in [("A", "pending", 1), ("B", "completed", 0), ("C", "completed", 0)] {
        assert_eq!(project.status(task), status, "{task}");
        assert_eq!(project.show(task)["attempts"], attempts);
    }
    assert_eq!(kept(&project), 0, "applied and removed");
    assert_eq!(project.select("SELECT count(*) FROM attempts WHERE exit_code = 4"), ["1"]);
}

#[test]
fn an_outcome_that_an_agent_has_written_itself_is_ignored() {
    let project = Project::new();
    project.ok(&["tasks", "add", "B", "--id", "B"]);
    let running = task_run(&project, "B", &script(&project, "end.sh", "exit 0"));
    project.wait_for("begun");
    let fence: i64 = project.select("SELECT fence FROM attempts")[0].parse().unwrap();
    let folder = project.tenure_home().join("outcomes").join(project.store().id().unwrap().as_str());
    std::fs::create_dir_all(&folder).unwrap();
    let forged = json!({
        "attempt": project.select("SELECT id FROM attempts")[0], "fence": fence, "exitCode": 0,
        "nonce": project.select("SELECT outcome_hash FROM attempts")[0], "result": {"kind": "done"},
    });
    write_program(&folder.join(fence.to_string()), &forged.to_string());
    std::fs::set_permissions(
        folder.join(fence.to_string()),
        std::os::unix::fs::PermissionsExt::from_mode(0o600),
    )
    .unwrap();
    running.signal(Signal::KILL);
    running.end();
    project.ok(&["locks", "cleanup"]);
    assert_eq!(project.status("B"), "pending");
}

#[test]
fn a_configuration_that_cannot_be_read_fails_no_task() {
    let project = Project::new();
    project.task("A", &["mark at-work", "wait go"]);
    project.task("B", &["mark second"]);
    let runner = runner(&project);
    project.wait_for("at-work");
    let config = project.root().join(".tenure/config.yaml");
    let before = std::fs::read_to_string(&config).unwrap();
    std::fs::write(&config, "runners: [this is: no configuration\n").unwrap();
    project.give("go");
    project.wait_for("second");
    std::fs::write(&config, before).unwrap();
    assert_eq!(runner.end().code, Some(0));
    assert_eq!((project.status("A"), project.status("B")), ("completed".into(), "completed".into()));
}
