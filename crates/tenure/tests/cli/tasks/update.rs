use crate::story::{Story, steps};
use crate::support::TestEnv;

fn some(env: &mut TestEnv) {
    steps(
        env,
        &[
            "sections add Backend",
            "tasks add One --label a",
            "tasks add Two",
            "tasks add Three",
            "tasks claim T2 --agent bob",
        ],
    );
}

#[test]
fn update_changes_what_it_is_told() {
    let story = Story::project(some)
        .tell(&[
            "tasks",
            "update",
            "T1",
            "--title",
            "Uno",
            "-d",
            "More",
            "--section",
            "Backend",
            "--source",
            "SPEC.md",
            "--priority",
            "5",
            "--label",
            "b",
            "--remove-label",
            "a",
        ])
        .tell(&["tasks", "update", "T3", "--after", "T1"])
        .tell(&["tasks", "update", "T1", "--title", "Uno", "--dry-run"])
        .tell(&["tasks", "update", "T1", "--status", "completed", "-m", "By hand"])
        .tell(&["tasks", "update", "T1"])
        .tell(&["tasks", "update", "T1", "-m", "Why"])
        .tell(&["tasks", "update", "T1", "--title", ""])
        .tell(&["tasks", "update", "T1", "--after", "T1"]);
    insta::assert_snapshot!(story);
}

#[test]
fn in_progress_takes_the_lock() {
    let story = Story::project(some)
        .tell(&["tasks", "update", "T1", "--status", "in_progress", "--agent", "eve"])
        .tell(&["tasks", "update", "T1", "--status", "in_progress"])
        .tell(&["tasks", "update", "T1", "--status", "in_progress", "--agent", "eve", "--dry-run"])
        .tell(&["tasks", "update", "T2", "--status", "in_progress", "--agent", "eve", "--no-wait"])
        .tell(&["tasks", "update", "T2", "--status", "in_progress", "--agent", "eve", "--timeout", "0s"])
        .tell(&["tasks", "update", "T2", "--status", "in_progress", "--force"]);
    insta::assert_snapshot!(story);
}

#[test]
fn an_edit_that_is_refused_leaves_the_task_unclaimed() {
    let mut env = TestEnv::project();
    some(&mut env);
    for edit in [["--section", "Nowhere"], ["--title", ""], ["--after", "T99"], ["--section", "Backend"]] {
        let args = ["tasks", "update", "T1", "--status", "in_progress", "--agent", "eve"];
        let refused = env.json(&[&args[..], &edit].concat());
        assert_ne!(refused.data()["task"]["status"], "in_progress", "{edit:?} was accepted");
        let task = env.json(&["tasks", "show", "T1"]).exits(0).data();
        assert_eq!(
            (&task["task"]["status"], &task["task"]["lease"]),
            (&"pending".into(), &serde_json::Value::Null),
            "{edit:?}"
        );
    }
    let taken =
        env.json(&["tasks", "update", "T1", "--status", "in_progress", "--title", "Uno", "--agent", "eve"]);
    let taken = taken.exits(0).data();
    assert_eq!((&taken["task"]["status"], &taken["task"]["title"]), (&"in_progress".into(), &"Uno".into()));
}

#[test]
fn another_status_under_somebody_elses_lock_is_refused_at_once() {
    let story = Story::project(some)
        .tell(&["tasks", "update", "T2", "--status", "completed", "--agent", "eve"])
        .tell(&["tasks", "update", "T2", "--status", "completed", "--agent", "eve", "--force"])
        .tell(&["tasks", "update", "T2", "--section", "Backend"])
        .tell(&["tasks", "update", "T2", "--status", "completed", "--agent", "bob"]);
    insta::assert_snapshot!(story);
}
