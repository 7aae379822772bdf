use crate::pager::at_a_terminal;
use crate::story::{Story, steps};
use crate::support::TestEnv;

fn two_messages(env: &mut TestEnv) {
    steps(
        env,
        &[
            "tasks add One",
            "msg send --task T1 --from bob -m Careful",
            "msg send --to eve --from bob -m Hello",
        ],
    );
}

#[test]
fn a_message_goes_to_a_task_or_to_an_agent() {
    let story = Story::project(|env| steps(env, &["tasks add One"]))
        .tell(&["msg", "send", "--task", "T1", "-m", "Blocked on the\nAPI key"])
        .tell(&["messages", "send", "--to", "bob", "--from", "eve", "--text", "Look at T1"])
        .tell(&["msg", "send", "--task", "T1", "--to", "bob", "--notes", "Both"])
        .tell(&["msg", "send", "T1", "Like this"])
        .tell(&["msg", "send", "T1", "-m", "Or like this"])
        .tell(&["msg", "send", "T1"])
        .tell(&["msg", "send", "T1", "Twice", "-m", "Twice"])
        .tell(&["msg", "send", "-m", "To nobody"])
        .tell(&["msg", "send", "--task", "T1", "-m", ""])
        .tell(&["msg", "send", "--task", "T9", "-m", "Hello"])
        .tell(&["msg", "send", "--to", "two words", "-m", "Hello"])
        .tell(&["msg", "send", "--task", "T1", "-m", "Hello", "--dry-run"]);
    insta::assert_snapshot!(story);
}

#[test]
fn the_list_shows_what_nobody_has_acknowledged() {
    let story = Story::project(|env| {
        two_messages(env);
        steps(env, &["msg send --task T1 -m Third", "msg ack 3 --agent eve"]);
    })
    .tell(&["msg", "list"])
    .tell(&["msg"])
    .tell(&["msg", "list", "--all", "--task", "T1"])
    .tell(&["msg", "list", "--to", "eve"])
    .tell(&["msg", "list", "--mine"])
    .tell(&["msg", "list", "--mine", "--agent", "nobody"]);
    insta::assert_snapshot!(story);
}

#[test]
fn acknowledging_says_which_ones_it_reached() {
    let story = Story::project(two_messages)
        .tell(&["msg", "ack", "1", "2", "--agent", "eve"])
        .tell(&["msg", "ack", "7"])
        .tell(&["msg", "ack", "1", "--dry-run"])
        .tell(&["msg", "ack", "one"]);
    insta::assert_snapshot!(story);
}

#[test]
fn waiting_ends_with_a_message_or_with_the_time() {
    let story = Story::project(two_messages)
        .tell(&["msg", "wait", "--to", "eve"])
        .tell(&["msg", "wait", "--to", "carl", "--for", "0s"])
        .tell(&["msg", "wait", "--to", "carl", "--no-wait"]);
    insta::assert_snapshot!(story);
}

#[test]
fn a_person_who_waits_for_a_message_is_told_so() {
    let env = TestEnv::project();
    let shown = at_a_terminal(&env, "tenure msg wait --for 2s || true");
    assert!(shown.contains("Waiting for a message... (Ctrl+C to cancel)"), "{shown}");
    let shown = at_a_terminal(&env, "tenure msg wait --for 2s --quiet || true");
    assert!(!shown.contains("Waiting"), "{shown}");
}
