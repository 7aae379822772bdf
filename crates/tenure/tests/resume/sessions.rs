//! Sessions: an interrupted runner continues where it stopped, with the options of its first start.

use rustix::process::Signal;
use serde_json::Value;

use tenure_testkit::cli::until;

use crate::project::Project;

fn sessions(p: &Project) -> Vec<Value> {
    p.ok(&["sessions", "list"])["sessions"].as_array().unwrap().clone()
}

/// The only session.
pub(crate) fn session(p: &Project) -> Value {
    let mut all = sessions(p);
    assert_eq!(all.len(), 1, "{all:?}");
    all.remove(0)
}

pub(crate) fn id(p: &Project) -> String {
    session(p)["id"].as_str().unwrap().to_owned()
}

fn keys(session: &Value) -> Vec<String> {
    let done = session["done"].as_array().unwrap();
    done.iter().map(|task| task["key"].as_str().unwrap().to_owned()).collect()
}

#[test]
fn every_run_of_a_runner_is_a_session_with_a_checkpoint_after_every_step() {
    let p = Project::new();
    p.task("A", &[]);
    p.task("B", &["tenure task fail B -m no"]);
    p.task("C", &["mark begun", "wait go"]);
    let runner = p.runner(&[]);
    p.wait_for("begun");
    let now = session(&p);
    assert_eq!((now["status"].as_str(), keys(&now)), (Some("running"), vec!["A".to_owned(), "B".to_owned()]));
    assert_eq!(
        (now["current"]["key"].as_str(), now["done"][1]["status"].as_str()),
        (Some("C"), Some("failed"))
    );
    assert!(now["current"]["attempt"].is_string());
    assert!(now["current"]["fence"].as_i64() > now["done"][1]["fence"].as_i64());
    let file = p.tenure_home().join("resume_locks").join(format!("{}.lock", id(&p)));
    let text: Value = serde_json::from_str(&std::fs::read_to_string(&file).unwrap()).unwrap();
    assert_eq!(
        (text["process_id"].as_u64(), text["job_id"].as_str()),
        (Some(u64::from(runner.pid())), Some(id(&p).as_str()))
    );
    p.give("go");
    assert_eq!(runner.end().code, Some(0));
    let over = session(&p);
    assert_eq!(
        (over["status"].as_str(), keys(&over).len(), &over["current"]),
        (Some("completed"), 3, &Value::Null)
    );
    assert!(!file.exists());
    assert_eq!(p.run(&["resume", &id(&p)]).code, Some(0), "resuming a finished session succeeds");
    assert_eq!(sessions(&p).len(), 1);
}

#[test]
fn a_killed_runner_is_resumed_at_its_task_with_its_options() {
    let p = Project::new();
    p.ok(&["sections", "add", "Here", "--parallel"]);
    p.task_in("A", &["mark a"], &["--section", "Here"]);
    p.task_in("B", &["mark b", "wait go"], &["--section", "Here"]);
    p.task_in("Z", &["mark z"], &["--section", "Here", "--priority", "1000"]);
    p.task("OTHER", &["mark other"]);
    let runner = p.runner(&["--section", "Here"]);
    p.wait_for("b");
    runner.signal(Signal::KILL);
    runner.end();
    assert_eq!(session(&p)["status"], "interrupted");
    // A more urgent task was added meanwhile. The task that was begun still comes first.
    p.task_in("NEW", &["mark new"], &["--section", "Here", "--priority", "-1000"]);
    p.give("go");
    let answer = p.run(&["--json", "resume", &id(&p)[..8]]);
    assert_eq!(answer.code, Some(0), "{answer:?}");
    assert_eq!(answer.json()["data"]["session"]["id"], id(&p).as_str());
    let over = session(&p);
    assert_eq!(
        (over["status"].as_str(), keys(&over)),
        (Some("completed"), ["A", "B", "NEW", "Z"].map(str::to_owned).to_vec())
    );
    assert_eq!((p.marks("a").len(), p.marks("b").len(), p.marks("other").len()), (1, 2, 0));
    assert_eq!(p.status("OTHER"), "pending", "the session does not include it");
    p.expect_no_agents();
}

#[test]
fn a_stopped_runner_is_interrupted_and_can_be_resumed_detached() {
    let p = Project::new();
    p.task("A", &["mark a", "wait go"]);
    let runner = p.runner(&[]);
    p.wait_for("a");
    runner.signal(Signal::TERM);
    assert_eq!(runner.end().code, Some(0));
    assert_eq!((session(&p)["status"].as_str(), p.status("A").as_str()), (Some("interrupted"), "pending"));
    p.give("go");
    let data = p.ok(&["resume", &id(&p), "--detach"]);
    assert_eq!(data["sessionId"], id(&p).as_str());
    until("it is done", || session(&p)["status"] == "completed");
    assert_eq!((p.status("A").as_str(), p.marks("a").len()), ("completed", 2));
}

#[test]
fn the_status_of_a_task_overrides_the_checkpoint() {
    let p = Project::new();
    p.task("A", &["mark a", "wait never"]);
    p.task("B", &["mark b"]);
    let runner = p.runner(&[]);
    p.wait_for("a");
    runner.signal(Signal::KILL);
    runner.end();
    assert_eq!(session(&p)["current"]["key"], "A");
    p.ok(&["tasks", "update", "A", "--status", "completed"]);
    assert_eq!(p.run(&["resume", &id(&p)]).code, Some(0));
    assert_eq!((p.marks("a").len(), p.marks("b").len()), (1, 1));
}

#[test]
fn resume_needs_a_free_runner_slot() {
    let p = Project::new();
    p.task("A", &["mark a", "wait go"]);
    p.task("B", &["mark b", "wait go"]);
    let runner = p.runner(&["--once"]);
    p.wait_for("a");
    runner.signal(Signal::KILL);
    runner.end();
    let interrupted = id(&p);
    let other = p.runner(&[]);
    let refused = p.run(&["--json", "resume", &interrupted]);
    assert_eq!(refused.code, Some(6), "{refused:?}");
    assert_eq!(refused.json()["error"]["code"], "RUNNER_ACTIVE");
    p.give("go");
    assert_eq!(other.end().code, Some(0));
    assert_eq!(p.run(&["resume", &interrupted]).code, Some(0));
}

#[test]
fn a_preset_that_starts_another_agent_is_a_changed_definition() {
    let p = Project::new();
    p.task("A", &["mark a", "wait go"]);
    let runner = p.runner(&[]);
    p.wait_for("a");
    runner.signal(Signal::KILL);
    runner.end();
    let path = p.root().join(".tenure/config.yaml");
    let text = std::fs::read_to_string(&path).unwrap();
    std::fs::write(&path, text.replace("pretend-agent.sh']", "pretend-agent.sh', '--new']")).unwrap();
    let refused = p.run(&["--json", "resume", &id(&p)]);
    assert_eq!(refused.code, Some(2), "{refused:?}");
    let error = refused.json()["error"].clone();
    assert_eq!(error["code"], "DEFINITION_CHANGED");
    assert!(error["details"]["changes"][0].as_str().unwrap().contains("--new"), "{error}");
    p.give("go");
    assert_eq!(p.run(&["resume", &id(&p), "--accept-changes"]).code, Some(0));
    assert_eq!(p.status("A"), "completed");
}
