use crate::story::Story;
use crate::support::TestEnv;

#[test]
fn init_makes_a_project_once() {
    insta::assert_snapshot!(
        Story::outside(|_| {}).tell(&["init"]).tell(&["init", "--name", "shop"]).tell(&["init", "--dry-run"])
    );
    insta::assert_snapshot!(
        "a_second_time",
        Story::project(|_| {})
            .tell(&["init"])
            .tell(&["init", "--name", "other"])
            .tell(&["init", "--dry-run"])
    );
}

#[test]
fn init_refuses_a_name_or_a_place_that_cannot_be() {
    insta::assert_snapshot!(
        Story::outside(|_| {}).tell(&["init", "--name", ""]).tell(&["init", "-C", "nowhere"])
    );
    let in_home = |env: &mut TestEnv| {
        env.cd("home");
    };
    insta::assert_snapshot!("in_home", Story::outside(in_home).tell(&["init"]));
    let over_a_file = |env: &mut TestEnv| {
        env.write("work/.tenure", "");
    };
    insta::assert_snapshot!("over_a_file", Story::outside(over_a_file).tell(&["init"]));
}
