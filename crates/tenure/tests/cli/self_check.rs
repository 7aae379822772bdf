use crate::support::TestEnv;

fn with_tools() -> TestEnv {
    let mut env = TestEnv::new();
    env.set("PATH", std::env::var("PATH").unwrap());
    env
}

#[test]
fn an_installation_that_works_passes_every_check_and_leaves_nothing() {
    let env = with_tools();
    let ran = env.finish(env.process(&["self-check"])).exits(0);
    let passed = ran.out.lines().filter(|line| line.starts_with("ok    ")).count();
    assert_eq!(passed, 5, "{ran}");
    assert!(ran.out.contains("note  its folder is not on PATH"), "{ran}");
    assert!(!env.path("home/.tenure").exists(), "the check keeps out of the user's home");
}

#[test]
fn another_tenure_on_path_is_named() {
    let mut env = with_tools();
    env.write("bin/tenure", "#!/bin/sh\n");
    let path = format!("{}:{}", env.path("bin").display(), std::env::var("PATH").unwrap());
    env.set("PATH", path);
    let ran = env.finish(env.process(&["self-check", "--json"])).exits(0);
    assert_eq!(ran.data()["onPath"], false, "{ran}");
    let ran = env.finish(env.process(&["self-check"])).exits(0);
    assert!(ran.out.contains("note  `tenure` on PATH is another program: "), "{ran}");
}

#[test]
fn a_machine_on_which_a_command_cannot_be_run_fails_the_check_that_needs_it() {
    let mut env = TestEnv::new();
    env.set("PATH", "/nowhere");
    let ran = env.finish(env.process(&["self-check"])).exits(7);
    assert!(ran.out.contains("FAIL  a task whose process was killed is free at once"), "{ran}");
    assert!(ran.out.contains("its command did not start"), "{ran}");
    assert!(ran.err.contains("1 of 5 checks failed"), "{ran}");
}
