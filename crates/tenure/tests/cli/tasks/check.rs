use std::time::Duration;

use crate::story::{Story, steps};
use crate::support::TestEnv;

#[test]
fn check_is_for_scripts() {
    let held =
        |env: &mut TestEnv| steps(env, &["tasks add One", "tasks add Two", "tasks claim T1 --agent bob"]);
    let story = Story::project(held)
        .tell(&["tasks", "check", "T1", "--agent", "bob"])
        .tell(&["tasks", "check", "T1", "--agent", "bob", "--fence", "1"])
        .tell(&["tasks", "check", "T1", "--agent", "bob", "--fence", "9"])
        .tell(&["tasks", "check", "T1", "--agent", "eve"])
        .tell(&["tasks", "check", "T2", "--agent", "bob"])
        .tell(&["tasks", "check", "T1"]);
    insta::assert_snapshot!(story);
    let expired = move |env: &mut TestEnv| {
        held(env);
        env.later(Duration::from_hours(1));
    };
    insta::assert_snapshot!(
        "expired",
        Story::project(expired).tell(&["tasks", "check", "T1", "--agent", "bob"])
    );
}
