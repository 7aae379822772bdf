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
fn the_last_allowed_rejection_fails_the_task() {
    let story = Story::project(|env| {
        of_every_status(env);
        steps(env, &["config set tasks.maxRejections 1"]);
    });
    insta::assert_snapshot!(story.tell(&["tasks", "reject", "REVIEW", "-m", "Again"]));
}
