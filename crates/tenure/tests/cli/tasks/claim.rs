use std::time::Duration;

use crate::story::{Story, steps};
use crate::support::TestEnv;

fn held(env: &mut TestEnv) {
    steps(
        env,
        &[
            "sections add Backend",
            "tasks add One --section Backend",
            "tasks add Two --section Backend",
            "tasks add Three --depends-on T1",
            "tasks add Four",
            "tasks claim T1 --agent bob",
        ],
    );
    env.later(Duration::from_mins(1));
}

#[test]
fn a_claim_is_granted_with_what_to_remember() {
    let story = Story::project(held)
        .tell(&["tasks", "claim", "T4", "--agent", "eve"])
        .tell(&["task", "claim", "T4", "--ttl", "30m"])
        .tell(&["tasks", "claim", "T1", "--agent", "bob"])
        .tell(&["tasks", "claim", "T4", "--agent", "eve", "--dry-run"])
        .tell(&["tasks", "claim", "T4", "--dry-run"]);
    insta::assert_snapshot!(story);
    let at_a_terminal = |env: &mut TestEnv| {
        held(env);
        env.env.terminal = Some("pts/3".to_owned());
    };
    insta::assert_snapshot!("at_a_terminal", Story::project(at_a_terminal).tell(&["tasks", "claim", "T4"]));
    let expired = |env: &mut TestEnv| {
        held(env);
        env.later(Duration::from_hours(1));
    };
    insta::assert_snapshot!(
        "taken_over",
        Story::project(expired).tell(&["tasks", "claim", "T1", "--agent", "eve"])
    );
}

#[test]
fn a_refusal_names_the_holder_and_when_to_come_back() {
    let story = Story::project(held)
        .tell(&["tasks", "claim", "T1", "--agent", "eve"])
        .tell(&["tasks", "claim", "T2", "--agent", "eve"])
        .tell(&["tasks", "claim", "T3", "--agent", "eve"])
        .tell(&["tasks", "claim", "T1", "--agent", "eve", "--wait", "0s"])
        .tell(&["tasks", "claim", "T1", "--agent", "eve", "--wait", "--no-wait"])
        .tell(&["tasks", "claim", "T9", "--agent", "eve"])
        .tell(&["tasks", "claim", "T4", "--agent", "not an id"])
        .tell(&["tasks", "claim", "T4", "--ttl", "0s"]);
    insta::assert_snapshot!(story);
}

#[test]
fn a_fence_that_opens_nothing_makes_nobody_the_same() {
    let env = TestEnv::project();
    steps(&env, &["tasks add One"]);
    let first = env.json(&["tasks", "claim", "T1", "--fence", "99"]).exits(0);
    assert_eq!(first.data()["lease"]["holder"]["kind"], "agent");
    env.json(&["tasks", "claim", "T1", "--fence", "99"]).exits(6);
    env.json(&["tasks", "claim", "T1", "--fence", "1"]).exits(6);
    // Only the key gives access to the lease that it belongs to.
    let lease = &first.data()["lease"];
    let proof = format!("{}-{}", lease["leaseId"].as_str().unwrap(), lease["leaseKey"].as_str().unwrap());
    let again = env.json(&["tasks", "claim", "T1", "--lease", &proof]).exits(0);
    assert_eq!(again.data()["lease"]["reacquired"], true);
    assert_eq!(again.data()["lease"]["holder"], lease["holder"]);
}

#[test]
fn the_printed_commands_work_for_the_holder_that_pastes_them() {
    for terminal in [None, Some("pts/3".to_owned())] {
        let mut env = TestEnv::project();
        env.env.terminal = terminal.clone();
        steps(&env, &["tasks add One"]);
        let answer = env.json(&["tasks", "claim", "T1"]).exits(0).envelope();
        for hint in answer["hints"].as_array().unwrap() {
            let words: Vec<&str> = hint["command"].as_str().unwrap().split(' ').skip(1).collect();
            env.run(&[&["--dry-run"], words.as_slice()].concat()).exits(0);
        }
        assert_eq!(answer["hints"].as_array().unwrap().len(), 3, "{terminal:?}");
    }
}

#[test]
fn a_finished_task_is_not_claimed() {
    let finished = |env: &mut TestEnv| {
        steps(env, &["tasks add One", "tasks add Two", "tasks update T1 --status completed"]);
        steps(env, &["tasks update T2 --status failed"]);
    };
    let story = Story::project(finished)
        .tell(&["tasks", "claim", "T1", "--agent", "eve"])
        .tell(&["tasks", "claim", "T2", "--agent", "eve"]);
    insta::assert_snapshot!(story);
}
