use crate::story::{Story, steps};

#[test]
fn depend_adds_takes_away_and_refuses_circles() {
    let story = Story::project(|env| {
        steps(env, &["tasks add One", "tasks add Two --depends-on T1", "tasks add Three --depends-on T2"]);
    })
    .tell(&["tasks", "depend", "T3", "--on", "T1"])
    .tell(&["tasks", "depend", "T3", "--not-on", "T2"])
    .tell(&["tasks", "depend", "T3", "--on", "T1", "--dry-run"])
    .tell(&["tasks", "depend", "T1", "--on", "T3"])
    .tell(&["tasks", "depend", "T1", "--on", "T1"])
    .tell(&["tasks", "depend", "T1", "--on", "T9"])
    .tell(&["tasks", "depend", "T1"]);
    insta::assert_snapshot!(story);
}
