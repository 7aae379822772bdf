use crate::story::{Story, steps};
use crate::support::TestEnv;

fn two(env: &mut TestEnv) {
    steps(
        env,
        &[
            "sections add Backend",
            "sections add Docs --parallel --priority 10",
            "sections depend Docs --on Backend",
            "tasks add One --section Backend",
            "tasks add Two --section Docs",
        ],
    );
}

fn held(env: &mut TestEnv) {
    two(env);
    steps(env, &["tasks claim T1 --agent bob"]);
}

#[test]
fn a_refusal_names_the_serial_section_and_its_holder() {
    let story = Story::project(|env| {
        held(env);
        steps(env, &["tasks add Three --section Backend"]);
    })
    .tell(&["tasks", "next"])
    .tell(&["tasks", "next", "--claim", "--agent", "cid"])
    .tell(&["why"]);
    insta::assert_snapshot!(story);
}

#[test]
fn a_serial_section_is_no_reason_if_none_of_its_tasks_is_pending() {
    let story = Story::project(held)
        .tell(&["tasks", "next", "--claim", "--agent", "bob"])
        .tell(&["tasks", "next", "--claim", "--agent", "cid"]);
    insta::assert_snapshot!(story);
}

#[test]
fn add_takes_a_free_name() {
    let story = Story::project(two)
        .tell(&["sections", "add", "Front end"])
        .tell(&["section", "add", "Fast", "--parallel", "--priority", "-5", "--dry-run"])
        .tell(&["sections", "add", "Backend"])
        .tell(&["sections", "add", " "])
        .tell(&["sections", "add", "X", "--priority", "9999999999999"]);
    insta::assert_snapshot!(story);
}

#[test]
fn list_shows_sections_in_working_order() {
    insta::assert_snapshot!(Story::project(held).tell(&["sections", "list"]).tell(&["sections"]));
    insta::assert_snapshot!("none", Story::project(|_| {}).tell(&["sections"]));
}

#[test]
fn show_tells_of_a_section_and_its_tasks() {
    let story = Story::project(held)
        .tell(&["sections", "show", "Backend"])
        .tell(&["sections", "show", "docs"])
        .tell(&["sections", "show", "Bakend"])
        .tell(&["sections", "show", ""]);
    insta::assert_snapshot!(story);
}

#[test]
fn update_changes_a_section_and_opens_one_in_use_to_others() {
    let story = Story::project(held)
        .tell(&["sections", "update", "Docs", "--rename", "Manual", "--serial", "--priority", "3"])
        .tell(&["sections", "update", "Docs", "--after", "Backend", "--dry-run"])
        .tell(&["sections", "update", "Docs"])
        .tell(&["sections", "update", "Docs", "--after", "Docs"])
        .tell(&["sections", "update", "Docs", "--serial", "--parallel"])
        .tell(&["sections", "update", "Backend", "--parallel"]);
    insta::assert_snapshot!(story);
}

#[test]
fn depend_refuses_a_circle() {
    let story = Story::project(two)
        .tell(&["sections", "depend", "Docs", "--not-on", "Backend"])
        .tell(&["sections", "depend", "Backend", "--on", "Docs"])
        .tell(&["sections", "depend", "Backend"])
        .tell(&["sections", "depend", "Backend", "--on", "Nowhere"]);
    insta::assert_snapshot!(story);
}

#[test]
fn delete_takes_only_an_empty_section() {
    let story = Story::project(|env| {
        held(env);
        steps(env, &["sections add Empty"]);
    })
    .tell(&["sections", "delete", "Empty"])
    .tell(&["sections", "delete", "Empty", "--dry-run"])
    .tell(&["sections", "delete", "Docs"])
    .tell(&["sections", "delete", "Backend"])
    .tell(&["sections", "delete", "Nowhere"]);
    insta::assert_snapshot!(story);
}
