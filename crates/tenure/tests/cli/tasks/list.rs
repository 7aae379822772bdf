use std::time::Duration;

use crate::story::{Story, steps};
use crate::support::TestEnv;

fn some(env: &mut TestEnv) {
    steps(
        env,
        &[
            "sections add Backend",
            "tasks add Lapsed",
            "tasks claim T1 --agent eve --ttl 1m",
            "tasks add Held --section Backend",
            "tasks add Waits --depends-on T2 --label later",
            "tasks add Ready",
            "tasks add Done",
            "tasks update T5 --status completed",
        ],
    );
    env.later(Duration::from_secs(90));
    steps(env, &["tasks claim T2 --agent bob"]);
}

#[test]
fn list_shows_everything_but_completed_in_working_order() {
    insta::assert_snapshot!(Story::project(some).tell(&["tasks", "list"]).tell(&["tasks"]));
    insta::assert_snapshot!("none", Story::project(|_| {}).tell(&["tasks"]));
}

#[test]
fn list_is_narrowed_by_flags() {
    let mut env = TestEnv::project();
    some(&mut env);
    let keys = |words: &[&str]| {
        let data = env.json(words).exits(0).data();
        let keys: Vec<_> =
            data["tasks"].as_array().unwrap().iter().map(|t| t["key"].as_str().unwrap()).collect();
        format!("{} of {}", keys.join(" "), data["total"])
    };
    assert_eq!(keys(&["tasks", "-s", "all"]), "T1 T3 T4 T5 T2 of 5");
    assert_eq!(keys(&["tasks", "list", "-s", "active"]), "T1 T2 of 2");
    assert_eq!(keys(&["tasks", "list", "-s", "completed,pending"]), "T3 T4 T5 of 3");
    assert_eq!(keys(&["tasks", "list", "--section", "Backend"]), "T2 of 1");
    assert_eq!(keys(&["tasks", "list", "-s", "blocked"]), "T3 of 1");
    assert_eq!(keys(&["tasks", "list", "-s", "ready"]), "T1 T4 of 2");
    assert_eq!(keys(&["tasks", "list", "-s", "lapsed,completed"]), "T1 T5 of 2");
    assert_eq!(keys(&["tasks", "list", "--sort", "key"]), "T1 T2 T3 T4 of 4");
    assert_eq!(keys(&["tasks", "list", "--sort", "-key"]), "T4 T3 T2 T1 of 4");
    assert_eq!(keys(&["tasks", "--sort", "title", "--reverse"]), "T3 T4 T1 T2 of 4");
    assert_eq!(keys(&["tasks", "list", "--reverse"]), "T2 T4 T3 T1 of 4");
    // Tasks that match a text or a label are counted only on request.
    assert_eq!(keys(&["tasks", "list", "--search", "READY"]), "T4 of null");
    assert_eq!(keys(&["tasks", "list", "--search", "READY", "--total"]), "T4 of 1");
    assert_eq!(keys(&["tasks", "list", "--label", "later"]), "T3 of null");
    assert_eq!(keys(&["tasks", "list", "--label", "later", "--total", "--limit", "0"]), " of 1");
    assert_eq!(keys(&["tasks", "list", "--ready"]), "T1 T4 of 2");
    assert_eq!(keys(&["tasks", "list", "--mine", "--agent", "bob"]), "T2 of 1");
    assert_eq!(keys(&["tasks", "list", "--limit", "2", "--offset", "1"]), "T3 T4 of 4");
    assert_eq!(keys(&["tasks", "list", "--global"]), "T1 T3 T4 T2 of 4");
}

#[test]
fn list_says_when_there_is_more_and_when_a_flag_makes_no_sense() {
    let story = Story::project(some)
        .tell(&["tasks", "list", "--limit", "1"])
        .tell(&["tasks", "list", "--limit", "1", "--search", "t"])
        .tell(&["tasks", "list", "--search", "nowhere"])
        .tell(&["tasks", "list", "--offset", "9"])
        .tell(&["tasks", "list", "--ready", "--section", "Backend"])
        .tell(&["tasks", "list", "--section", "Nowhere"])
        .tell(&["tasks", "list", "-s", "finished"])
        .tell(&["tasks", "list", "--sort", "colour"])
        .tell(&["tasks", "list", "--mine"])
        .tell(&["tasks", "list", "--limit", "many"]);
    insta::assert_snapshot!(story);
}

#[test]
fn a_table_fits_the_terminal() {
    let mut env = TestEnv::project();
    env.ok(&["tasks", "add", &"A very long title ".repeat(20)]);
    env.on_terminal = true;
    env.set("NO_COLOR", "1");
    insta::assert_snapshot!(env.run(&["tasks"]));
    env.unset("NO_COLOR");
    insta::assert_snapshot!("in_colour", env.run(&["tasks"]));
}

#[test]
fn all_projects_are_listed_and_a_lost_one_is_only_a_warning() {
    let story = Story::project(|env| {
        some(env);
        env.cd("other");
        steps(env, &["init", "tasks add Elsewhere"]);
        env.cd("gone");
        steps(env, &["init"]);
        std::fs::remove_dir_all(env.path("gone")).unwrap();
        env.cd("work");
    });
    insta::assert_snapshot!(story.tell(&["tasks", "list", "--global", "--ready"]));
}
