use tenure_core::holder::{Incarnation, ProcessIdentity};

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

/// A person at the terminal `pts/4`, whose session is led by a new process.
fn at_a_terminal(env: &mut TestEnv) -> std::process::Child {
    let leader = std::process::Command::new("sleep").arg("600").spawn().unwrap();
    env.env.terminal = Some("pts/4".to_owned());
    let process = ProcessIdentity::of(leader.id()).unwrap();
    env.env.terminal_leader = Some(Incarnation { process, hostname: "box".to_owned() });
    leader
}

fn close(mut leader: std::process::Child) {
    leader.kill().unwrap();
    leader.wait().unwrap();
}

#[test]
fn a_persons_claim_ends_with_its_terminal_and_the_next_window_is_another_holder() {
    let mut env = TestEnv::project();
    env.ok(&["tasks", "add", "One"]);
    let first = at_a_terminal(&mut env);
    env.ok(&["tasks", "claim", "T1"]);
    let again = env.ok(&["tasks", "claim", "T1"]);
    assert!(again.out.contains("You already hold T1"), "{again}");
    env.ok(&["tasks", "check", "T1"]);
    assert!(env.ok(&["whoami"]).out.contains("T1"));
    close(first);
    let second = at_a_terminal(&mut env);
    let ran = env.ok(&["whoami"]);
    assert!(ran.out.contains("ann@box:pts/4") && !ran.out.contains("T1"), "{ran}");
    assert_eq!(env.run(&["tasks", "done", "T1"]).code, 8);
    let taken = env.ok(&["tasks", "claim", "T1"]);
    assert!(taken.out.contains("taken over from person ann@box:pts/4"), "{taken}");
    env.ok(&["tasks", "done", "T1"]);
    close(second);
}
