use crate::story::{Story, steps};

#[test]
fn audit_tells_who_changed_what_and_why() {
    let story = Story::project(|env| {
        steps(
            env,
            &[
                "tasks add One",
                "tasks claim T1 --agent bob",
                "tasks release T1 --agent bob -m later",
                "tasks update T1 --title Uno",
                "tasks skip T1 -m unneeded",
            ],
        );
    })
    .tell(&["tasks", "audit", "T1"])
    .tell(&["tasks", "audit", "T9"]);
    insta::assert_snapshot!(story);
}
