use crate::story::{Story, steps};

#[test]
fn add_makes_a_task_with_all_it_was_told() {
    let story = Story::project(|env| steps(env, &["sections add Backend", "tasks add First --id F001"]))
        .tell(&["tasks", "add", "Fix the login page"])
        .tell(&[
            "task",
            "add",
            "Write it down",
            "--id",
            "F002",
            "--section",
            "Backend",
            "--source",
            "docs/SPEC.md#login",
            "-d",
            "In two lines:\nthis is the second",
            "--priority",
            "10",
            "--depends-on",
            "F001",
            "--label",
            "docs",
            "--label",
            "docs",
            "--agent",
            "bob",
        ])
        .tell(&["tasks", "add", "Second", "--after", "F001", "--key", "F003"])
        .tell(&["tasks", "add", "Second", "--dry-run"]);
    insta::assert_snapshot!(story);
}

#[test]
fn add_refuses_what_does_not_fit() {
    let story = Story::project(|env| steps(env, &["sections add Backend", "tasks add First --id F001"]))
        .tell(&["tasks", "add", ""])
        .tell(&["tasks", "add", "Again", "--id", "F001"])
        .tell(&["tasks", "add", "Odd", "--id", "../../x"])
        .tell(&["tasks", "add", "Odd", "--id", "--weird"])
        .tell(&["tasks", "add", "Lost", "--section", "Bakend"])
        .tell(&["tasks", "add", "Lost", "--depends-on", "F009"])
        .tell(&["tasks", "add", "Lost", "--section", "Backend", "--after", "F001"])
        .tell(&["tasks", "add", "Urgent", "--priority", "soon"]);
    insta::assert_snapshot!(story);
}
