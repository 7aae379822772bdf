use std::time::Duration;

use crate::story::{Story, steps};
use crate::support::TestEnv;

/// One task for each possible answer.
fn everything(env: &mut TestEnv) {
    steps(
        env,
        &["sections add Backend", "tasks add Lapsed --id LAPSED", "tasks claim LAPSED --agent eve --ttl 1m"],
    );
    env.later(Duration::from_secs(90));
    steps(
        env,
        &[
            "tasks add Held --id HELD --section Backend",
            "tasks add Behind --id BEHIND --section Backend",
            "tasks add Waits --id WAITS --depends-on HELD",
            "tasks add Ready --id READY",
            "tasks add Failed --id FAILED",
            "tasks add Done --id DONE",
            "tasks add Review --id REVIEW",
            "tasks add Skipped --id SKIPPED",
            "tasks claim HELD --agent bob",
            "tasks update FAILED --status failed",
            "tasks update DONE --status completed",
            "tasks update REVIEW --status review",
            "tasks skip SKIPPED",
        ],
    );
}

#[test]
fn why_names_what_is_in_the_way_of_a_task() {
    let mut story = Story::project(everything);
    for key in
        ["LAPSED", "HELD", "BEHIND", "WAITS", "READY", "FAILED", "DONE", "REVIEW", "SKIPPED", "NOWHERE"]
    {
        story = story.tell(&["why", key]);
    }
    insta::assert_snapshot!(story);
}

#[test]
fn why_names_what_is_in_the_way_of_the_project() {
    insta::assert_snapshot!(Story::project(everything).tell(&["why"]));
    insta::assert_snapshot!("no_tasks", Story::project(|_| {}).tell(&["why"]));
    let finished = |env: &mut TestEnv| steps(env, &["tasks add One", "tasks update T1 --status completed"]);
    insta::assert_snapshot!("all_finished", Story::project(finished).tell(&["why"]));
    let exclusive = |env: &mut TestEnv| {
        env.write(
            "work/.tenure/.exclusive-lock",
            r#"{"holder":"backup","pid":1,"hostname":"box","started_at":"2026-01-02T03:04:05Z"}"#,
        );
    };
    insta::assert_snapshot!("exclusively_locked", Story::project(exclusive).tell(&["why"]));
}

#[test]
fn why_tells_a_project_that_is_held_from_one_that_waits_and_from_one_that_nobody_wakes() {
    let held = |env: &mut TestEnv| {
        steps(
            env,
            &[
                "tasks add One --id ONE",
                "tasks add Two --id TWO --depends-on ONE",
                "tasks claim ONE --agent bob",
            ],
        );
    };
    insta::assert_snapshot!("everything_held_or_waiting", Story::project(held).tell(&["why"]));
    let blocked = |env: &mut TestEnv| {
        let lines = [
            "tasks add One --id ONE",
            "tasks add Two --id TWO --depends-on ONE",
            "tasks add Three --id THREE --depends-on ONE",
            "tasks update ONE --status failed",
        ];
        steps(env, &lines);
    };
    insta::assert_snapshot!("everything_blocked", Story::project(blocked).tell(&["why"]));
    let kinds = |env: &TestEnv| {
        let reasons = env.json(&["why"]).data()["reasons"].as_array().unwrap().clone();
        reasons.iter().map(|r| r["kind"].as_str().unwrap().to_owned()).collect::<Vec<_>>()
    };
    let env = TestEnv::project();
    steps(&env, &["tasks add One --id ONE"]);
    assert_eq!(kinds(&env), ["ready", "no_runner", "no_timer"]);
    // There is no agent here, so a wake-up would park the preset. It only matters that the timer has called.
    env.ok(&["projects", "disable"]);
    env.run(&["runners", "wakeup", "--timer", "cron", "--quiet"]);
    env.ok(&["projects", "enable"]);
    assert_eq!(kinds(&env), ["ready", "no_runner", "timer"]);
    env.later(Duration::from_mins(10));
    assert_eq!(kinds(&env), ["ready", "no_runner", "no_timer"]);
    env.ok(&["projects", "disable"]);
    assert_eq!(kinds(&env), ["ready", "no_runner", "disabled"]);
    env.ok(&["projects", "remove"]);
    assert_eq!(kinds(&env), ["ready", "no_runner", "not_registered"]);
    env.ok(&["config", "set", "--user", "runners.wakeup.enabled", "false"]);
    assert_eq!(kinds(&env), ["ready", "no_runner", "wakeup_off"]);
    let beads = |env: &mut TestEnv| {
        env.write(
            "work/.beads/.exclusive-lock",
            r#"{"holder":"vc","pid":1,"hostname":"elsewhere","started_at":"2026-01-02T03:04:05Z"}"#,
        );
    };
    let mut env = TestEnv::project();
    beads(&mut env);
    assert_eq!(kinds(&env)[0], "exclusive");
}
