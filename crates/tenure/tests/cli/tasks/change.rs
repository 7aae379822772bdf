use std::time::Duration;

use crate::story::{Story, steps};
use crate::support::TestEnv;

fn of_every_status(env: &mut TestEnv) {
    steps(
        env,
        &[
            "tasks add One --id OPEN",
            "tasks add Two --id REVIEW",
            "tasks add Three --id FAILED",
            "tasks add Four --id HELD",
            "tasks add Five --id DONE",
            "tasks update REVIEW --status review",
            "tasks update FAILED --status failed -m broken",
            "tasks update DONE --status completed",
            "tasks claim HELD --agent bob",
        ],
    );
}

#[test]
fn approve_and_reject_are_for_what_is_in_review() {
    let story = Story::project(of_every_status)
        .tell(&["tasks", "approve", "REVIEW"])
        .tell(&["tasks", "verify", "REVIEW", "--dry-run"])
        .tell(&["tasks", "approve", "OPEN"])
        .tell(&["tasks", "approve", "HELD"])
        .tell(&["tasks", "reject", "REVIEW", "-m", "The tests are missing", "--agent", "eve"])
        .tell(&["tasks", "reject", "REVIEW"])
        .tell(&["tasks", "reject", "OPEN", "--reason", "No"]);
    insta::assert_snapshot!(story);
}

#[test]
fn skip_and_retry_change_what_nobody_else_holds() {
    let story = Story::project(of_every_status)
        .tell(&["tasks", "skip", "OPEN", "-m", "No longer needed"])
        .tell(&["tasks", "skip", "HELD"])
        .tell(&["tasks", "skip", "HELD", "--force"])
        .tell(&["tasks", "skip", "HELD", "--agent", "bob"])
        .tell(&["tasks", "skip", "DONE"])
        .tell(&["tasks", "retry", "FAILED"])
        .tell(&["tasks", "retry", "OPEN"])
        .tell(&["tasks", "retry", "NOWHERE"]);
    insta::assert_snapshot!(story);
}

#[test]
fn reopen_makes_a_finished_or_failed_task_pending() {
    let story = Story::project(of_every_status)
        .tell(&["tasks", "reopen", "DONE", "-m", "The bug is back"])
        .tell(&["tasks", "reopen", "DONE", "--dry-run"])
        .tell(&["tasks", "reopen", "FAILED"])
        .tell(&["tasks", "reopen", "OPEN"])
        .tell(&["tasks", "reopen", "HELD"])
        .tell(&["tasks", "retry", "DONE"]);
    insta::assert_snapshot!(story);
}

#[test]
fn several_tasks_are_changed_one_by_one() {
    let story = Story::project(of_every_status)
        .tell(&["tasks", "skip", "OPEN", "REVIEW", "-m", "Later"])
        .tell(&["tasks", "reopen", "OPEN", "DONE", "NOWHERE", "FAILED", "--dry-run"])
        .tell(&["tasks", "approve", "OPEN", "HELD"]);
    insta::assert_snapshot!(story);
    let env = TestEnv::project();
    steps(
        &env,
        &[
            "tasks add A",
            "tasks add B",
            "tasks add C",
            "tasks claim T1 --agent ann",
            "tasks claim T2 --agent ann",
        ],
    );
    let renewed = env.json(&["tasks", "renew", "T1", "T2", "--agent", "ann"]).exits(0).data();
    assert_eq!((renewed["total"].as_u64(), renewed["leases"][1]["fence"].as_i64()), (Some(2), Some(2)));
    let done = env.json(&["tasks", "done", "T1", "T3", "T2", "--agent", "ann"]).exits(8);
    let events = |kind: &str| env.ok(&["tasks", "audit", kind]).out.matches("completed").count();
    assert!(events("T1") > 0 && events("T2") > 0 && events("T3") == 0, "{done}");
    let deleted = env.json(&["tasks", "delete", "T1", "T2"]).exits(0).data();
    assert_eq!(deleted["tasks"][1]["key"], "T2");
}

#[test]
fn the_last_allowed_rejection_fails_the_task() {
    let story = Story::project(|env| {
        of_every_status(env);
        steps(env, &["config set tasks.maxRejections 1"]);
    });
    insta::assert_snapshot!(story.tell(&["tasks", "reject", "REVIEW", "-m", "Again"]));
}

#[test]
fn a_change_of_a_task_that_is_no_longer_as_it_was_shown_is_refused() {
    let mut env = TestEnv::project();
    of_every_status(&mut env);
    let shown = |key: &str| {
        let task = env.json(&["tasks", "show", key]).data()["task"].clone();
        format!("--if-updated-at={}", task["updatedAt"].as_str().unwrap())
    };
    let [review, failed, open, held] = ["REVIEW", "FAILED", "OPEN", "HELD"].map(shown);
    env.later(Duration::from_secs(1));
    for key in ["REVIEW", "FAILED", "OPEN"] {
        env.ok(&["tasks", "update", key, "--title", "Changed"]);
    }
    for words in [
        vec!["approve", "REVIEW", &review],
        vec!["reject", "REVIEW", "-m", "No", &review],
        vec!["retry", "FAILED", &failed],
        vec!["reopen", "FAILED", &failed],
        vec!["skip", "OPEN", &open],
        vec!["claim", "OPEN", "--agent", "ann", &open],
        vec!["update", "OPEN", "--title", "Mine", &open],
        vec!["update", "OPEN", "--status", "completed", &open],
        // The options do not name the open lease, so it was not shown to the caller.
        vec!["skip", "HELD", "--agent", "bob", &held],
        vec!["skip", "HELD", "--agent", "bob", &held, "--if-fence=99"],
    ] {
        let ran = env.json(&[&["tasks"], words.as_slice()].concat()).exits(8);
        assert_eq!(ran.error_code(), "CHANGED", "{words:?}");
    }
    let fence = env.json(&["tasks", "show", "HELD"]).data()["task"]["lease"]["fence"].to_string();
    env.ok(&["tasks", "skip", "HELD", "--agent", "bob", &held, &format!("--if-fence={fence}")]);
    env.ok(&["tasks", "approve", "REVIEW", &shown("REVIEW")]);
    env.json(&["tasks", "skip", "OPEN", "--if-fence=1"]).exits(2);
    env.json(&["tasks", "skip", "OPEN", "--if-updated-at=yesterday"]).exits(2);
}
