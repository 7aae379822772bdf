use std::time::Duration;

use crate::story::{Story, steps};
use crate::support::TestEnv;

/// T1 in a serial section held by bob; T2 expired under eve; T3 free.
fn held(env: &mut TestEnv) {
    steps(
        env,
        &[
            "sections add Backend",
            "tasks add One --section Backend",
            "tasks add Two",
            "tasks add Three",
            "tasks claim T2 --agent eve --ttl 1m",
        ],
    );
    env.later(Duration::from_mins(2));
    steps(env, &["tasks claim T1 --agent bob"]);
    env.later(Duration::from_secs(30));
}

#[test]
fn the_list_shows_open_locks_and_marks_expired_ones() {
    let story = Story::project(held)
        .tell(&["locks", "list"])
        .tell(&["locks", "list", "--type", "task"])
        .tell(&["lock", "list", "--type", "section"])
        .tell(&["locks", "list", "--type", "runner"]);
    insta::assert_snapshot!(story);
    insta::assert_snapshot!("nothing_held", Story::project(|_| {}).tell(&["locks"]));
}

#[test]
fn show_says_who_holds_it_or_that_it_is_free() {
    let story = Story::project(held)
        .tell(&["locks", "show", "T1"])
        .tell(&["locks", "show", "section:Backend"])
        .tell(&["locks", "show", "T2", "--history"])
        .tell(&["locks", "show", "T3"])
        .tell(&["locks", "show", "T9"]);
    insta::assert_snapshot!(story);
}

#[test]
fn release_is_for_ones_own_and_for_what_nobody_lives_under() {
    let story = Story::project(held)
        .tell(&["locks", "release", "T1", "--agent", "bob"])
        .tell(&["locks", "release", "T2"])
        .tell(&["locks", "release", "T1", "--agent", "eve"])
        .tell(&["locks", "release", "T1", "--agent", "eve", "--force"])
        .tell(&["locks", "release", "section:Backend", "--force"])
        .tell(&["locks", "release", "T3"])
        .tell(&["locks", "release", "T2", "--dry-run"]);
    insta::assert_snapshot!(story);
}

#[test]
fn cleanup_closes_what_has_lapsed_and_nothing_else() {
    insta::assert_snapshot!(Story::project(held).tell(&["locks", "cleanup"]).tell(&[
        "locks",
        "cleanup",
        "--dry-run"
    ]));
    insta::assert_snapshot!("nothing_lapsed", Story::project(|_| {}).tell(&["locks", "cleanup"]));
}
