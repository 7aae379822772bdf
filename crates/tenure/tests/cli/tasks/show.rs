use std::time::Duration;

use crate::story::{Story, steps};
use crate::support::TestEnv;

fn some(env: &mut TestEnv) {
    steps(env, &["sections add Backend", "tasks add One --id F001"]);
    env.ok(&[
        "tasks",
        "add",
        "Write it down",
        "--section",
        "Backend",
        "--source",
        "SPEC.md#login",
        "-d",
        "First line\nsecond line",
        "--depends-on",
        "F001",
        "--label",
        "docs",
    ]);
    steps(
        env,
        &["tasks add Three --id F003", "tasks claim F003 --agent bob", "msg send --task F003 -m Careful"],
    );
    env.later(Duration::from_mins(5));
}

#[test]
fn show_tells_status_holder_and_what_else_is_known() {
    let story = Story::project(some)
        .tell(&["tasks", "show", "F001"])
        .tell(&["tasks", "show", "T1"])
        .tell(&["tasks", "show", "F003", "--history"])
        .tell(&["task", "show", "write it"])
        .tell(&["tasks", "show", "F009"]);
    insta::assert_snapshot!(story);
    let lapsed = |env: &mut TestEnv| {
        some(env);
        env.later(Duration::from_hours(1));
    };
    insta::assert_snapshot!("lapsed", Story::project(lapsed).tell(&["tasks", "show", "F003"]));
}

#[test]
fn what_could_be_several_tasks_is_asked_back() {
    let alike = |env: &mut TestEnv| {
        for n in 1..=12 {
            env.ok(&["tasks", "add", &format!("Fix page {n}")]);
        }
    };
    insta::assert_snapshot!(
        Story::project(alike).tell(&["tasks", "show", "Fix"]).tell(&["tasks", "show", "page 12"])
    );
}
