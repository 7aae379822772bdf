//! Agents that call tenure themselves: what an agent reports about its task takes precedence over its exit code.

use crate::project::Project;

#[test]
fn what_an_agent_reports_itself_overrides_its_exit_code() {
    let project = Project::new();
    project.task("A", &["tenure task done A", "exit 1"]);
    project.task("B", &["tenure task fail B -m 'no chance'"]);
    project.task("C", &["tenure task release C -m 'for another day'", "mark c"]);
    let ran = project.work(&["--section", "none"]);
    assert_eq!(ran.code, Some(4), "there is no such section: {ran:?}");
    for (key, status) in [("A", "completed"), ("B", "failed"), ("C", "pending")] {
        let ran = project.work(&["--task", key]);
        assert!(ran.err.contains("as the agent reported"), "{}", ran.err);
        assert_eq!(project.status(key), status);
    }
    assert_eq!(project.marks("c").len(), 1);
}

#[test]
fn an_agent_with_a_shell_can_claim_and_finish_a_second_task() {
    let project = Project::new();
    let on_own = [
        "tenure task renew A",
        "tenure task check A",
        "tenure msg send --task A -m 'nearly there'",
        "tenure task done A",
        "shell tenure task claim B",
        "shell tenure task done B",
        "shell tenure task done B",
        "shell tenure task done C",
        "shell tenure task claim D",
        "shell tenure task done D --fence $TENURE_FENCE",
        "shell tenure task release D",
    ];
    project.task("A", &on_own);
    project.task("B", &["mark wrong"]);
    project.task("C", &["mark c"]);
    project.task("D", &["mark d"]);
    let ran = project.work(&[]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let fence = first_fence(&project);
    let codes = project.marks(&format!("codes-{fence}"));
    assert_eq!(codes, ["0", "0", "0", "0", "0", "0", "0", "8", "0", "8", "0"], "{ran:?}");
    for key in ["A", "B", "C", "D"] {
        assert_eq!(project.status(key), "completed");
        assert_eq!(project.moves(key, "completed"), 1, "{key}");
    }
    assert!(project.marks("wrong").is_empty(), "no other agent worked on B");
    assert_eq!((project.marks("c").len(), project.marks("d").len()), (1, 1));
    let done = project.ok(&["locks", "show", "B", "--history"]);
    assert!(!done.to_string().contains(&format!("\"fence\":{fence},")), "B has its own fence");
}

#[test]
fn an_agent_uses_only_the_verbs_of_an_agent_under_a_runner() {
    let project = Project::new();
    let steps = [
        "tenure task show A >/dev/null",
        "tenure task add Later --id L",
        "tenure task depend L --on B",
        "tenure msg send --task B -m hello",
        "tenure task claim B",
        "tenure task done B",
        "tenure task update A --status completed",
        "tenure config set runners.preset evil",
        "tenure exclusive run --holder x -- touch $PRETEND/escaped",
        "tenure task run B -- touch $PRETEND/escaped",
        "tenure locks release A --force",
        "tenure runners stop --all",
        "tenure task done A",
    ];
    project.task("A", &[&["mark begun"], &steps[..]].concat());
    project.task("B", &[]);
    let ran = project.work(&["--task", "A"]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let codes = project.marks(&format!("codes-{}", project.marks("begun")[0]));
    assert_eq!(codes, ["0", "0", "0", "0", "5", "5", "5", "5", "5", "5", "5", "5", "0"]);
    assert_eq!((project.status("A").as_str(), project.status("B").as_str()), ("completed", "pending"));
    assert!(project.marks("escaped").is_empty());
}

#[test]
fn what_an_agent_claimed_and_did_not_finish_is_released_with_its_attempt() {
    let project = Project::new();
    project.task(
        "A",
        &["shell tenure task claim B --ttl 1h", "shell tenure task claim C --ttl 1h --while-pid 1"],
    );
    project.task("B", &["mark b"]);
    project.task("C", &["mark c"]);
    let ran = project.work(&[]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert_eq!((project.status("A").as_str(), project.status("B").as_str()), ("completed", "completed"));
    assert_eq!(project.marks("b").len(), 1, "the runner has worked on it");
    assert_eq!(
        (project.status("C").as_str(), project.marks("c").len()),
        ("in_progress", 0),
        "a process keeps it"
    );
    project.ok(&["locks", "release", "C", "--force"]);
}

fn first_fence(project: &Project) -> String {
    let id = project.show("A")["id"].clone();
    let feed = project.feed();
    feed.iter().find(|e| e["taskId"] == id && e["fence"].is_i64()).unwrap()["fence"].to_string()
}

#[test]
fn an_agent_that_is_killed_every_time_is_given_up_after_three_attempts() {
    let project = Project::new();
    project.task("A", &["mark tried", "kill KILL"]);
    let ran = project.work(&[]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert_eq!((project.status("A").as_str(), project.marks("tried").len()), ("failed", 3));
    assert!(ran.err.contains("killed by signal 9"), "{}", ran.err);
}

#[test]
fn the_environment_and_the_prompt_name_the_project_the_task_and_the_lease() {
    let project = Project::new();
    let ask = "tenure events --task $TENURE_TASK_ID --json >/dev/null";
    project.task("A", &[ask, "tenure whoami --json >$PRETEND/whoami", "print $PWD", "mark begun"]);
    assert_eq!(project.work(&[]).code, Some(0));
    let fence = project.marks("begun")[0].clone();
    assert_eq!(project.marks(&format!("codes-{fence}")), ["0", "0"]);
    let prompt = std::fs::read_to_string(project.shared(&format!("prompt-do-{fence}"))).unwrap();
    for part in
        ["# Task A", "tenure task done A", "tenure task fail A", "tenure task release A", "tenure msg send"]
    {
        assert!(prompt.contains(part), "{part}: {prompt}");
    }
    let whoami: serde_json::Value =
        serde_json::from_str(&std::fs::read_to_string(project.shared("whoami")).unwrap()).unwrap();
    assert!(whoami.to_string().contains(&format!("-{fence}")), "{whoami}");
}

#[test]
fn an_agent_gets_the_store_and_the_role_of_its_runner() {
    let project = Project::new();
    project.task("A", &["tenure whoami >/dev/null; printenv TENURE_STORE TENURE_SUPERVISED >$PRETEND/seen"]);
    assert_eq!(project.work(&[]).code, Some(0));
    let expected: Vec<String> =
        project.server().map(str::to_owned).into_iter().chain(["work".to_owned()]).collect();
    assert_eq!(project.marks("seen"), expected);
}
