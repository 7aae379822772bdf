//! What `runners start` reports when there is no agent to run.

use std::os::unix::fs::PermissionsExt;

use insta::assert_snapshot;

use crate::support::TestEnv;

#[test]
fn an_agent_that_is_not_there_comes_with_a_hint_that_works() {
    let mut env = TestEnv::project();
    let bin = env.path("bin");
    std::fs::create_dir(&bin).unwrap();
    std::os::unix::fs::symlink("/bin/sh", bin.join("sh")).unwrap();
    env.set("PATH", bin).set("EDITOR", "/bin/true");
    assert_snapshot!(env.run(&["runners", "start", "--dry-run"]).exits(3));
    env.ok(&["config", "edit"]);
    let agent = env.write("bin/codex", "#!/bin/sh\n");
    std::fs::set_permissions(&agent, PermissionsExt::from_mode(0o755)).unwrap();
    assert_snapshot!(env.run(&["runners", "start", "--dry-run", "--preset", "gemini"]).exits(3));
    assert_snapshot!(env.json(&["runners", "start", "--dry-run"]).exits(3));
    env.ok(&["config", "set", "runners.preset", "codex"]);
    env.ok(&["runners", "start", "--dry-run"]);
    env.write(
        "work/.tenure/config.yaml",
        "runners:\n  preset: codex\nreview:\n  enabled: true\n  preset: claude\n",
    );
    assert_snapshot!(env.run(&["runners", "start", "--dry-run"]).exits(3));
    env.ok(&["config", "set", "review.preset", "codex"]);
    env.ok(&["runners", "start", "--dry-run"]);
}

#[test]
fn an_agent_without_a_sandbox_is_refused_with_a_hint_that_works_or_said_to_have_none() {
    let mut env = TestEnv::project();
    for name in ["claude", "gemini"] {
        let agent = env.write(&format!("bin/{name}"), "#!/bin/sh\n");
        std::fs::set_permissions(&agent, PermissionsExt::from_mode(0o755)).unwrap();
    }
    env.set("PATH", env.path("bin"));
    let start = ["runners", "start", "--dry-run"];
    let refused = env.json(&start).exits(3).envelope();
    let message = refused["error"]["message"].as_str().unwrap();
    assert!(message.contains("its sandbox needs bwrap and socat"), "{refused}");
    let hint = refused["hints"][0]["command"].as_str().unwrap();
    assert_eq!(hint, "tenure config set runners.allow '[make, git add, git commit]'");
    env.ok(&["config", "set", "runners.allow", "[make, git add, git commit]"]);
    let started = env.ok(&start);
    assert!(!started.err.contains("sandbox"), "{started:?}");
    let started = env.ok(&["runners", "start", "--dry-run", "--preset", "gemini"]);
    assert!(started.err.contains("gemini has no sandbox: it may do everything that you may"), "{started:?}");
}
