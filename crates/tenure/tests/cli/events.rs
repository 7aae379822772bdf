use crate::story::{Story, steps};
use crate::support::TestEnv;

fn some_history(env: &mut TestEnv) {
    steps(
        env,
        &[
            "sections add Backend",
            "tasks add One --section Backend",
            "tasks add Two",
            "tasks claim T1 --agent bob",
            "tasks done T1 --agent bob",
            "tasks skip T2 -m unneeded",
            "msg send --task T2 -m hello",
        ],
    );
}

#[test]
fn the_feed_shows_what_happened_in_order() {
    let story = Story::project(some_history)
        .tell(&["events"])
        .tell(&["events", "--since", "6"])
        .tell(&["events", "--task", "T2", "--limit", "1"])
        .tell(&["events", "--task", "T9"]);
    insta::assert_snapshot!(story);
    insta::assert_snapshot!("nothing_yet", Story::project(|_| {}).tell(&["events"]));
}

#[test]
fn following_prints_one_object_a_line_until_the_timeout() {
    let mut env = TestEnv::project();
    some_history(&mut env);
    let ran = env.run(&["events", "--follow", "--json", "--since", "6", "--timeout", "1ms"]);
    for line in ran.out.lines() {
        let event: serde_json::Value = serde_json::from_str(line).unwrap();
        assert!(event["seq"].as_i64().unwrap() > 6);
    }
    insta::assert_snapshot!(ran);
    insta::assert_snapshot!("as_text", env.run(&["events", "-f", "--since", "6", "--timeout", "1ms"]));
}

#[test]
fn the_feed_is_filtered_by_kind_agent_and_time() {
    let story = Story::project(|env| {
        some_history(env);
        env.later(std::time::Duration::from_hours(1));
        steps(env, &["tasks add Three"]);
    })
    .tell(&["events", "--kind", "task.status"])
    .tell(&["events", "--kind", "section,message", "--limit", "2"])
    .tell(&["events", "--agent", "bob", "--kind", "lease.acquired"])
    .tell(&["events", "--since", "10m"])
    .tell(&["events", "--since", "2026-01-15T12:00:00Z"])
    .tell(&["events", "--kind", "task.done"])
    .tell(&["events", "--since", "yesterday"]);
    insta::assert_snapshot!(story);
}

#[test]
fn following_begins_without_old_events() {
    let mut env = TestEnv::project();
    some_history(&mut env);
    assert_eq!(env.run(&["events", "--follow", "--timeout", "1ms"]).out, "");
    let since =
        env.run(&["events", "--follow", "--since", "10m", "--kind", "task.created", "--timeout", "1ms"]);
    assert_eq!(since.out.lines().count(), 2, "{since}");
}
