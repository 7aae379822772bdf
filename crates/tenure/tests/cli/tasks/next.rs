use crate::story::{Story, steps};
use crate::support::TestEnv;

#[test]
fn next_shows_or_takes_the_first_ready_task() {
    let two = |env: &mut TestEnv| {
        steps(env, &["sections add Backend", "tasks add One", "tasks add Two --section Backend"]);
    };
    let story = Story::project(two)
        .tell(&["tasks", "next"])
        .tell(&["tasks", "next", "--claim", "--agent", "bob"])
        .tell(&["tasks", "next", "--claim", "--section", "Backend", "--agent", "bob", "--ttl", "1h"])
        .tell(&["tasks", "next", "--claim", "--agent", "bob", "--dry-run"])
        .tell(&["tasks", "next", "--section", "Nowhere"])
        .tell(&["tasks", "next", "--wait"])
        .tell(&["tasks", "next", "--ttl", "1h"]);
    insta::assert_snapshot!(story);
}

#[test]
fn next_says_when_nothing_is_ready() {
    let busy = |env: &mut TestEnv| {
        steps(env, &["tasks add One", "tasks claim T1 --agent bob", "tasks add Two --depends-on T1"]);
    };
    let story = Story::project(busy)
        .tell(&["tasks", "next"])
        .tell(&["tasks", "next", "--claim", "--agent", "eve"])
        .tell(&["tasks", "next", "--claim", "--agent", "eve", "--wait", "0s"]);
    insta::assert_snapshot!(story);
}
