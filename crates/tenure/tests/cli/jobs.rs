use tenure_core::kernel::ItemOutcome;

use crate::story::Story;
use crate::support::TestEnv;
use crate::work_rows;

const FAILED: ItemOutcome<'static> =
    ItemOutcome::Failed { why: "exited with 3: no such page", for_good: false };

/// One job that was interrupted after its first item, and one that finished with a dead letter.
fn two(env: &mut TestEnv) {
    work_rows::job(env, "crawl", None, &[ItemOutcome::Succeeded]);
    env.later(std::time::Duration::from_mins(1));
    work_rows::job(env, "index", None, &[ItemOutcome::Succeeded, FAILED, ItemOutcome::Succeeded]);
}

#[test]
fn the_list_has_the_newest_first() {
    insta::assert_snapshot!(Story::project(two).tell(&["jobs"]).tell(&["job", "list", "--limit", "1"]));
    insta::assert_snapshot!("no_jobs", Story::project(|_| {}).tell(&["jobs", "list"]));
}

#[test]
fn show_has_the_dead_letters_and_one_item_has_its_history() {
    let story = Story::project(two)
        .tell(&["jobs", "show", "index"])
        .tell(&["jobs", "show", "crawl"])
        .tell(&["jobs", "show", "index", "--item", "2"])
        .tell(&["jobs", "show", "index", "--item", "9"])
        .tell(&["jobs", "show", "nowhere"]);
    insta::assert_snapshot!(story);
}

#[test]
fn cancel_gives_up_what_is_left() {
    let story = Story::project(two)
        .tell(&["jobs", "cancel", "crawl"])
        .tell(&["jobs", "cancel", "index"])
        .tell(&["jobs", "cancel", "crawl", "--dry-run"]);
    insta::assert_snapshot!(story);
}

#[test]
fn finished_work_is_told_and_not_done_again() {
    let story = Story::project(two).tell(&["resume", "index"]).tell(&["jobs", "work", "index"]);
    insta::assert_snapshot!(story);
}

#[test]
fn a_start_that_cannot_be_says_why() {
    let story = Story::project(|env| {
        two(env);
        env.write("work/items.jsonl", "{\"n\":1}\n{\"n\":\n");
        env.write("work/list.txt", "one\ntwo\n");
    })
    .tell(&["jobs", "start", "new", "--items", "items.jsonl", "--", "true"])
    .tell(&["jobs", "start", "new", "--items", "nowhere", "--", "true"])
    .tell(&["jobs", "start", "not a name", "--items", "list.txt", "--", "true"])
    .tell(&["jobs", "start", "new", "--items", "list.txt", "--path", "items", "--", "true"])
    .tell(&["jobs", "start", "crawl", "--items", "list.txt", "--", "true"])
    .tell(&["jobs", "start", "new", "--items", "list.txt", "--dry-run", "--", "true"]);
    insta::assert_snapshot!(story);
}

#[test]
fn a_dry_start_writes_nothing() {
    let env = TestEnv::project();
    env.write("work/list.txt", "one\ntwo\n");
    let before = env.snapshot();
    env.ok(&["jobs", "start", "new", "--items", "list.txt", "--dry-run", "--", "true"]);
    assert_eq!(env.snapshot(), before);
}

#[test]
fn a_changed_list_is_refused_with_what_changed() {
    let story = Story::project(|env| {
        env.write("work/list.txt", "one\ntwo\n");
        work_rows::job(env, "crawl", Some("work/list.txt"), &[]);
    })
    .tell(&["resume", "crawl"])
    .tell(&["jobs", "retry", "crawl"])
    .tell(&["resume", "crawl", "--dry-run"]);
    insta::assert_snapshot!(story);
}
