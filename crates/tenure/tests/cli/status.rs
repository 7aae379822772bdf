use std::time::Duration;

use crate::story::{Story, steps};
use crate::support::TestEnv;

#[test]
fn status_is_the_project_on_one_screen() {
    let busy = |env: &mut TestEnv| {
        steps(
            env,
            &[
                "tasks add One",
                "tasks add Two",
                "tasks add Three",
                "tasks claim T2 --agent eve --ttl 1m",
                "tasks skip T3",
            ],
        );
        env.later(Duration::from_secs(90));
        steps(env, &["tasks claim T1 --agent bob"]);
        env.write(
            "work/.tenure/.exclusive-lock",
            r#"{"holder":"backup","pid":1,"hostname":"box","started_at":"2026-01-02T03:04:05Z"}"#,
        );
    };
    insta::assert_snapshot!(Story::project(busy).tell(&["status"]).tell(&[]));
    insta::assert_snapshot!("empty_project", Story::project(|_| {}).tell(&["status"]));
}

#[test]
fn outside_a_project_tenure_alone_welcomes_and_status_refuses() {
    insta::assert_snapshot!(Story::outside(|_| {}).tell(&[]).tell(&["status"]));
}
