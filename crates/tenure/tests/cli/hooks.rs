use std::fmt::Write as _;
use std::os::unix::fs::PermissionsExt;

use crate::support::TestEnv;

/// A project with these hooks, and a script `note.sh` that records each call.
fn project(hooks: &str) -> TestEnv {
    let mut env = TestEnv::project();
    env.set("PATH", std::env::var_os("PATH").unwrap());
    let script = env.write("work/note.sh", "#!/bin/sh\necho \"$TENURE_EVENT $*\" >> heard\n");
    std::fs::set_permissions(script, std::fs::Permissions::from_mode(0o755)).unwrap();
    let path = env.path("work/.tenure/config.yaml");
    let before = std::fs::read_to_string(&path).unwrap();
    env.write("work/.tenure/config.yaml", format!("{before}\nhooks:\n{hooks}"));
    env
}

#[test]
fn hooks_can_be_listed_tried_and_run() {
    let hooks = String::from(
        r#"  - {name: task.created, event: task.created, type: script, command: ./note.sh, args: ["{{task.key}}", "it's {{task.title}}", "${TOKEN}"]}
"#,
    ) + "  - {name: slack, event: task.failed, type: webhook, url: 'http://127.0.0.1:1/${TOKEN}?k={{task.key}}', headers: {A: 'Bearer ${TOKEN}'}, async: true}\n";
    let mut env = project(&hooks);
    env.set("TOKEN", "s3cret-value");
    env.ok(&["tasks", "add", "One", "--id", "F001", "--no-hooks"]);
    let mut story = String::new();
    for words in [
        &["hooks"][..],
        &["hooks", "test", "task.created", "--dry-run"],
        &["hooks", "test", "slack", "--dry-run"],
        &["hooks", "test", "slack"],
        &["hooks", "test", "nobody"],
        &["hooks", "test", "slack", "--event", "project.completed"],
        &["hooks", "test", "slack", "--event", "task.fail"],
        &["hooks", "run", "task.failed"],
        &["hooks", "run", "task.failed", "--task", "F001", "--dry-run"],
        &["hooks", "run", "task.failed", "--task", "F001"],
        &["hooks", "run", "runner.started"],
        &["hooks", "run", "lease.lost", "--task", "F001"],
        &["hooks", "run", "section.completed", "--task", "F001"],
    ] {
        writeln!(story, "{}", env.run(words)).unwrap();
    }
    insta::assert_snapshot!(story);
    assert!(env.ok(&["hooks", "test", "task.created"]).out.starts_with("Succeeded: task.created ("));
    assert!(
        env.ok(&["hooks", "run", "task.created", "--task", "F001"])
            .out
            .starts_with("Succeeded: task.created (")
    );
    let heard = std::fs::read_to_string(env.path("work/heard")).unwrap();
    assert_eq!(
        heard.lines().collect::<Vec<_>>(),
        ["task.created T1 it's A sample task s3cret-value", "task.created F001 it's One s3cret-value"]
    );
    let failed = env.json(&["hooks", "test", "slack"]).exits(1);
    assert_eq!(failed.error_code(), "HOOK_FAILED");
    assert_eq!(failed.envelope()["error"]["details"]["result"]["outcome"], "failed");
    assert!(!format!("{story}{failed}{}", env.json(&["hooks"])).contains("s3cret"));
}

#[test]
fn a_tried_hook_shows_the_last_line_of_its_output() {
    let env = project(
        "  - {name: tell, event: task.created, type: script, command: sh, args: [-c, 'echo working; echo all told']}\n",
    );
    let shown = env.ok(&["hooks", "test", "tell"]).out;
    assert!(shown.starts_with("Succeeded: tell (") && shown.ends_with("\n  it said: all told\n"), "{shown}");
    assert_eq!(env.json(&["hooks", "test", "tell"]).data()["result"]["said"], "all told");
}
