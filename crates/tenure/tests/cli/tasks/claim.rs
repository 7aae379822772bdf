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

/// A task with everything that a new holder has to know.
fn with_notes(env: &mut TestEnv) {
    steps(
        env,
        &[
            "tasks add Design --id F001",
            "tasks add Importer --id F002 --depends-on F001 --source docs/SPEC.md#import -d Read.the.plan",
            "tasks update F001 --status completed",
            "tasks claim F002 --agent ann",
            "tasks release F002 --agent ann -m blocked-on-credentials",
            "msg send --task F002 --from ann -m mind-the-gap",
            "msg send --task F002 --from ann --to cid -m for-cid",
        ],
    );
}

#[test]
fn a_claim_shows_the_task_its_messages_and_the_last_remark() {
    insta::assert_snapshot!(
        Story::project(with_notes).tell(&["tasks", "claim", "F002", "--agent", "bob"]).tell(&[
            "tasks",
            "update",
            "F002",
            "--status",
            "in_progress",
            "--agent",
            "bob"
        ])
    );
}

#[test]
fn a_message_that_was_sent_after_the_claim_is_left_for_the_next_holder() {
    let mut env = TestEnv::project();
    with_notes(&mut env);
    env.ok(&["tasks", "next", "--claim", "--agent", "bob"]);
    env.ok(&["msg", "send", "--task", "F002", "--from", "ann", "-m", "one-more-thing"]);
    env.ok(&["tasks", "done", "F002", "--agent", "bob"]);
    let left = env.ok(&["msg", "list", "--task", "F002"]);
    assert!(left.out.contains("one-more-thing") && left.out.contains("for-cid"), "{left}");
    assert!(!left.out.contains("mind-the-gap"), "{left}");
}

#[test]
fn a_claim_of_ones_own_lease_says_that_its_time_is_kept() {
    let env = TestEnv::project();
    env.ok(&["tasks", "add", "One"]);
    env.ok(&["tasks", "claim", "T1", "--agent", "ann", "--ttl", "5m"]);
    let again = env.ok(&["tasks", "claim", "T1", "--agent", "ann", "--ttl", "1h"]);
    assert!(again.out.contains("The lease keeps its 5m"), "{again}");
}
