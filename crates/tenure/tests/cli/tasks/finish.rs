use std::time::Duration;

use crate::story::{Story, steps};
use crate::support::TestEnv;

/// The lease that [`held`] grants, with its key.
const PROOF: &str = "L00000005-C0FFEE0000000005";

fn held(env: &mut TestEnv) {
    steps(env, &["tasks add One", "tasks add Two", "tasks claim T1 --agent bob"]);
}

#[test]
fn the_holder_has_the_last_word() {
    let story = Story::project(held)
        .tell(&["tasks", "done", "T1", "--agent", "bob"])
        .tell(&["tasks", "done", "T1", "--agent", "bob", "--fence", "1"])
        .tell(&["tasks", "done", "T1", "--lease", PROOF])
        .tell(&["tasks", "done", "T1", "--agent", "bob", "--dry-run"])
        .tell(&["tasks", "fail", "T1", "--agent", "bob", "-m", "The API does not exist"])
        .tell(&["tasks", "release", "T1", "--agent", "bob", "--notes", "Blocked"]);
    insta::assert_snapshot!(story);
    let twice = |env: &mut TestEnv| {
        held(env);
        steps(env, &["tasks done T1 --agent bob"]);
    };
    insta::assert_snapshot!(
        "said_twice",
        Story::project(twice).tell(&["tasks", "done", "T1", "--lease", PROOF])
    );
    let reviewed = |env: &mut TestEnv| {
        held(env);
        steps(env, &["config set review.enabled true"]);
    };
    insta::assert_snapshot!(
        "with_review",
        Story::project(reviewed).tell(&["tasks", "done", "T1", "--agent", "bob"])
    );
}

#[test]
fn a_task_that_has_ended_is_named_with_its_status() {
    let env = TestEnv::project();
    steps(&env, &["tasks add One", "tasks claim T1 --agent ann", "tasks done T1 --agent ann"]);
    let ran = env.run(&["tasks", "done", "T1", "--agent", "bob"]).exits(8);
    assert!(ran.err.contains("you do not hold T1: nobody does, and its status is completed"), "{ran}");
}

#[test]
fn nobody_else_has() {
    let story = Story::project(held)
        .tell(&["tasks", "done", "T1", "--agent", "eve"])
        .tell(&["tasks", "done", "T1"])
        .tell(&["tasks", "done", "T1", "--fence", "1"])
        .tell(&["tasks", "done", "T1", "--agent", "eve", "--fence", "1"])
        .tell(&["tasks", "done", "T1", "--agent", "bob", "--fence", "9"])
        .tell(&["tasks", "done", "T1", "--agent", "bob", "--lease", "L00000005-0000000000000000"])
        .tell(&["tasks", "done", "T1", "--agent", "bob", "--lease", "L00000005"])
        .tell(&["tasks", "fail", "T1", "--agent", "eve", "-m", "No"])
        .tell(&["tasks", "fail", "T1", "--agent", "bob"])
        .tell(&["tasks", "release", "T1", "--agent", "eve"])
        .tell(&["tasks", "release", "T2", "--agent", "bob"])
        .tell(&["tasks", "release", "T9", "--agent", "bob"]);
    insta::assert_snapshot!(story);
}

#[test]
fn a_late_word_bounces_once_another_has_taken_over() {
    let taken_over = |env: &mut TestEnv| {
        held(env);
        env.later(Duration::from_hours(1));
        steps(env, &["tasks claim T1 --agent eve"]);
    };
    let story = Story::project(taken_over)
        .tell(&["tasks", "done", "T1", "--lease", PROOF])
        .tell(&["tasks", "done", "T1", "--agent", "bob"])
        .tell(&["tasks", "release", "T1", "--agent", "bob", "--fence", "1"]);
    insta::assert_snapshot!(story);
}
