use std::time::Duration;

use crate::story::{Story, steps};
use crate::support::TestEnv;

#[test]
fn renew_runs_the_lease_from_now() {
    let held = |env: &mut TestEnv| {
        steps(env, &["tasks add One", "tasks claim T1 --agent bob"]);
        env.later(Duration::from_mins(10));
    };
    let story = Story::project(held)
        .tell(&["tasks", "renew", "T1", "--agent", "bob"])
        .tell(&["tasks", "renew", "T1", "--agent", "bob", "--fence", "1", "--ttl", "1h"])
        .tell(&["tasks", "renew", "T1", "--agent", "bob", "--dry-run"])
        .tell(&["tasks", "renew", "T1", "--agent", "eve"])
        .tell(&["tasks", "renew", "T1"])
        .tell(&["tasks", "renew", "T1", "--agent", "bob", "--ttl", "31d"]);
    insta::assert_snapshot!(story);
    let expired = |env: &mut TestEnv| {
        steps(env, &["tasks add One", "tasks claim T1 --agent bob"]);
        env.later(Duration::from_hours(1));
    };
    insta::assert_snapshot!(
        "expired",
        Story::project(expired).tell(&["tasks", "renew", "T1", "--agent", "bob"])
    );
}
