//! Spans and events of the libraries, with which a hang can be followed.

use crate::project::Project;

#[test]
fn a_log_level_shows_what_the_store_and_the_runner_do() {
    let project = Project::new();
    project.task("A", &[]);
    let silent = project.work(&["--dry-run"]);
    assert!(!silent.err.contains("DEBUG"), "{}", silent.err);
    let file = project.shared("trace.log");
    let mut command = project.command(&["runners", "start", "--foreground"]);
    command.env("TENURE_LOG", "debug").env("TENURE_LOG_FILE", &file);
    let ran = tenure_testkit::cli::Running::start(command).end();
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let log = std::fs::read_to_string(&file).unwrap();
    for span in ["command{name=\"runners\"", "write{durability=Power", "attempt{"] {
        assert!(log.contains(span), "no {span} in {log}");
    }
    // Each span ends with the time that it took.
    assert!(log.contains("close time.busy="), "{log}");
}

#[test]
fn verbose_commands_show_spans_on_standard_error() {
    let project = Project::new();
    let loud = project.run(&["-vv", "tasks", "add", "Fix the login page"]);
    assert!(loud.err.contains("write{durability=Power"), "{}", loud.err);
    let quiet = project.run(&["-v", "tasks", "add", "Another one"]);
    assert!(!quiet.err.contains("write{"), "{}", quiet.err);
}
