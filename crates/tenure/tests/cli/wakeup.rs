use std::time::Duration;

use crate::story::{Story, steps};
use crate::support::TestEnv;

/// Hides the path of the test's binary.
fn settled(story: &Story) -> String {
    let own = std::env::current_exe().unwrap();
    story.to_string().replace(own.to_str().unwrap(), "/usr/local/bin/tenure")
}

#[test]
fn a_wake_up_tells_what_it_decided_for_each_project_and_why() {
    let prepare = |env: &mut TestEnv| {
        let config = "runners: {preset: mine}\npresets: {mine: {command: ['/bin/true']}}\n";
        env.write("home/.tenure/config.yaml", config);
        steps(env, &["tasks add One --id ONE"]);
        for name in ["idle", "gone", "off", "held"] {
            env.cd(name);
            env.ok(&["init"]);
        }
        steps(env, &["tasks add Two", "tasks claim T1 --agent bob"]);
        env.cd("off");
        env.ok(&["projects", "disable"]);
        std::fs::remove_dir_all(env.path("gone")).unwrap();
        env.cd("work");
    };
    insta::assert_snapshot!(Story::project(prepare).tell(&["runners", "wakeup", "--dry-run"]));
    insta::assert_snapshot!("nothing_to_look_after", Story::outside(|_| {}).tell(&["runners", "wakeup"]));
}

#[test]
fn the_timer_is_shown_before_it_is_installed_and_told_when_it_is_not() {
    let story = Story::project(|env| {
        env.set("PATH", "/usr/bin:/bin:/usr/bin:/nowhere/at/all:relative");
        env.write("home/.tenure/config.yaml", "runners: {wakeup: {checkInterval: 5m}}\n");
    })
    .tell(&["runners", "cron", "install", "--with", "cron", "--dry-run"])
    .tell(&["runners", "cron", "install", "--with", "systemd", "--dry-run"])
    .tell(&["runners", "cron", "install", "--with", "launchd", "--dry-run"])
    .tell(&["runners", "cron", "status", "--with", "systemd"])
    .tell(&["runners", "cron", "uninstall", "--with", "systemd"]);
    insta::assert_snapshot!(settled(&story));
}

#[test]
fn what_a_timer_cannot_do_is_refused_before_anything_is_written() {
    let odd = |config: &'static str| {
        move |env: &mut TestEnv| {
            env.write("home/.tenure/config.yaml", config);
        }
    };
    let cron = ["runners", "cron", "install", "--with", "cron"];
    let story = Story::project(odd("runners: {wakeup: {checkInterval: 7m}}\n")).tell(&cron);
    insta::assert_snapshot!(settled(&story));
    insta::assert_snapshot!("no_crontab", settled(&Story::project(|_| {}).tell(&cron)));
}

#[test]
fn a_wake_up_needs_a_home_that_it_can_write_to_and_says_so() {
    let env = TestEnv::project();
    std::fs::remove_dir_all(env.path("home/.tenure")).unwrap();
    env.write("home/.tenure", "not a folder");
    let ran = env.json(&["runners", "wakeup"]);
    assert_ne!(ran.code, 0, "{ran}");
    assert!(ran.message().contains("home/.tenure"), "{ran}");
}

#[test]
fn a_call_by_the_timer_is_noted_and_one_by_hand_or_for_show_is_not() {
    let env = TestEnv::project();
    let fired = || env.json(&["runners", "cron", "status"]).data()["timers"][0]["lastFiredAt"].clone();
    env.ok(&["runners", "wakeup"]);
    env.ok(&["runners", "wakeup", "--timer", "cron", "--dry-run"]);
    assert!(fired().is_null());
    env.ok(&["runners", "wakeup", "--timer", "cron", "--quiet"]);
    assert_eq!(fired(), "2026-01-15T11:30:00.000Z");
    env.later(Duration::from_mins(1));
    env.ok(&["runners", "wakeup"]);
    assert_eq!(fired(), "2026-01-15T11:30:00.000Z");
}
