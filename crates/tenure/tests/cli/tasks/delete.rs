use crate::story::{Story, steps};

#[test]
fn delete_keeps_away_from_what_others_need() {
    let story = Story::project(|env| {
        steps(
            env,
            &[
                "tasks add One",
                "tasks add Two --depends-on T1",
                "tasks add Three",
                "tasks claim T3 --agent bob",
            ],
        );
    })
    .tell(&["tasks", "delete", "T2"])
    .tell(&["tasks", "delete", "T2", "--dry-run"])
    .tell(&["tasks", "delete", "T1"])
    .tell(&["tasks", "delete", "T3"])
    .tell(&["tasks", "delete", "T3", "--force"])
    .tell(&["tasks", "delete", "T9"]);
    insta::assert_snapshot!(story);
}
