use crate::story::{Story, steps};
use crate::support::TestEnv;

#[test]
fn whoami_says_who_and_from_where_and_what_is_held() {
    let holding = |env: &mut TestEnv| {
        steps(
            env,
            &["sections add Backend", "tasks add One --section Backend", "tasks claim T1 --agent bob"],
        );
    };
    let story = Story::project(holding).tell(&["whoami"]).tell(&["whoami", "--agent", "bob"]);
    insta::assert_snapshot!(
        story.tell(&["whoami", "--agent", "two words"]).tell(&["whoami", "--fence", "x"])
    );
    let by_environment = move |env: &mut TestEnv| {
        holding(env);
        env.set("TENURE_AGENT", "bob");
    };
    insta::assert_snapshot!("by_the_environment", Story::project(by_environment).tell(&["whoami"]));
    let at_a_terminal = |env: &mut TestEnv| {
        env.env.terminal = Some("pts/3".to_owned());
    };
    insta::assert_snapshot!("at_a_terminal", Story::outside(at_a_terminal).tell(&["whoami"]));
    let with_a_bad_fence = |env: &mut TestEnv| {
        env.set("TENURE_FENCE", "seven");
    };
    insta::assert_snapshot!("with_a_bad_fence", Story::outside(with_a_bad_fence).tell(&["whoami"]));
    let with_a_lease = |env: &mut TestEnv| {
        env.set("TENURE_LEASE", "L1234ABCD-0123456789ABCDEF");
    };
    insta::assert_snapshot!("with_a_lease", Story::outside(with_a_lease).tell(&["whoami"]));
    let with_a_bad_lease = |env: &mut TestEnv| {
        env.set("TENURE_LEASE", "L1234ABCD-secret");
    };
    insta::assert_snapshot!("with_a_bad_lease", Story::outside(with_a_bad_lease).tell(&["whoami"]));
}
