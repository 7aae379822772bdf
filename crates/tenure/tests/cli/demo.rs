use crate::support::TestEnv;

#[test]
fn the_demo_plays_on_the_real_clock_and_checks_itself() {
    let env = TestEnv::new();
    let ran = env.finish(env.process(&["demo"]));
    insta::assert_snapshot!(ran);
    let ran = env.finish(env.process(&["demo", "--json"]));
    insta::assert_snapshot!("demo_json", ran);
    assert!(!env.path("home/.tenure").exists(), "the demo keeps out of the user's home");
}

#[test]
fn the_demo_cannot_play_without_writing() {
    let env = TestEnv::new();
    insta::assert_snapshot!(env.run(&["demo", "--dry-run"]));
}
