//! `trust`, `trust list`, `untrust`: what is shown, who may decide, and what a decision covers.

use std::path::Path;
use std::process::Command;

use serde_json::Value;

use crate::story::Story;
use crate::support::{Ran, TestEnv};

const CONFIG: &str = "project: {name: shop}
store: {retention: 7d}
runners: {preset: mine}
presets: {mine: {command: [./agent.sh, --careful], env: {MODEL: large}}}
hooks:
  - {name: tell, event: task.created, type: script, command: ./tell.sh, args: ['${TOKEN}']}
  - {name: call, event: task.failed, type: webhook, url: 'https://hooks.example/x'}
";

/// A clone: its configuration was not written here. `tell.sh` leaves a mark when it runs.
fn clone(env: &mut TestEnv) {
    env.unset("TENURE_TRUST");
    env.set("PATH", std::env::var_os("PATH").unwrap()).set("TOKEN", "t");
    env.write("work/.tenure/config.yaml", CONFIG);
    script(env, "work/tell.sh", "touch ran");
    script(env, "work/agent.sh", "true");
}

fn script(env: &TestEnv, below: &str, line: &str) {
    let path = env.write(below, format!("#!/bin/sh\n{line}\n"));
    std::fs::set_permissions(&path, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
}

/// A clone in which `init` has run.
fn project() -> TestEnv {
    let mut env = TestEnv::new();
    clone(&mut env);
    env.ok(&["init"]);
    env
}

/// What a person at a terminal runs.
fn person(env: &mut TestEnv, words: &[&str]) -> Ran {
    env.env.input_is_terminal = true;
    let ran = env.run(words);
    env.env.input_is_terminal = false;
    ran
}

fn trust(env: &mut TestEnv) {
    let ran = person(env, &["trust", "--yes"]);
    assert_eq!(ran.code, 0, "{ran}");
}

fn state(env: &TestEnv) -> String {
    shown(env)["state"].as_str().unwrap().to_owned()
}

fn shown(env: &TestEnv) -> Value {
    env.json(&["trust", "--show"]).envelope()["data"]["trust"].clone()
}

fn hook_ran(env: &TestEnv) -> bool {
    let mark = env.path("work/ran");
    let there = mark.exists();
    let _ = std::fs::remove_file(mark);
    there
}

#[test]
fn trust_shows_what_would_run_and_be_reached() {
    let story =
        Story::outside(clone).tell(&["trust", "--show"]).tell(&["trust", "--yes"]).tell(&["trust", "list"]);
    insta::assert_snapshot!(story);
    let at_a_terminal = |env: &mut TestEnv| {
        clone(env);
        env.env.input_is_terminal = true;
    };
    let story = Story::outside(at_a_terminal)
        .tell(&["trust", "--yes"])
        .tell(&["trust", "--yes", "--dry-run"])
        .tell(&["untrust"]);
    insta::assert_snapshot!("by_a_person", story);
    let changed = move |env: &mut TestEnv| {
        at_a_terminal(env);
        env.ok(&["trust", "--yes"]);
        env.write(
            "work/.tenure/config.yaml",
            CONFIG.replace("--careful", "--bold").replace("MODEL: large", "A: b"),
        );
        script(env, "work/tell.sh", "touch other");
    };
    let story = Story::outside(changed)
        .tell(&["trust", "--show"])
        .tell(&["trust", "list"])
        .tell(&["untrust"])
        .tell(&["config", "show"])
        .tell(&["init"]);
    insta::assert_snapshot!("after_a_change", story);
}

#[test]
fn only_a_person_can_trust() {
    let mut env = project();
    for words in [&["trust"] as &[&str], &["trust", "--yes"]] {
        let ran = env.run(words);
        assert_eq!(ran.code, 5, "no terminal: {ran}");
    }
    for variable in [
        "TENURE_AGENT",
        "TENURE_SUPERVISED",
        "CLAUDECODE",
        "CLAUDE_EFFORT",
        "CODEX_CI",
        "CODEX_TOOL_CALL_ID",
        "GEMINI_CLI_NO_RELAUNCH",
    ] {
        env.set(variable, "x");
        let ran = person(&mut env, &["trust", "--yes"]);
        assert_eq!(ran.code, 5, "{variable}: {ran}");
        assert!(ran.err.contains(variable) || variable == "TENURE_SUPERVISED", "{ran}");
        env.unset(variable);
        assert_eq!(state(&env), "untrusted");
    }
    trust(&mut env);
    assert_eq!(state(&env), "trusted");
    env.ok(&["untrust"]);
    assert_eq!(state(&env), "untrusted");
}

#[test]
fn the_record_is_private_and_one_damaged_record_is_no_trust() {
    use std::os::unix::fs::PermissionsExt;
    let mut env = project();
    trust(&mut env);
    let folder = env.path("home/.tenure/trust");
    let record = std::fs::read_dir(&folder).unwrap().next().unwrap().unwrap().path();
    assert_eq!(record.metadata().unwrap().permissions().mode() & 0o777, 0o600);
    assert_eq!(folder.metadata().unwrap().permissions().mode() & 0o777, 0o700);
    for text in ["", "{}", "{\"path\":\"/\"", "[]"] {
        std::fs::write(&record, text).unwrap();
        assert_eq!(state(&env), "untrusted", "{text:?}");
    }
    // A record applies only to the path in it, regardless of the name of its file.
    trust(&mut env);
    let text = std::fs::read_to_string(&record).unwrap();
    std::fs::write(&record, text.replace("/work\"", "/elsewhere\"")).unwrap();
    assert_eq!(state(&env), "untrusted");
    env.ok(&["untrust"]);
    assert!(!record.exists());
}

#[test]
fn in_a_clone_task_verbs_work_and_hooks_run_only_after_trust() {
    let mut env = project();
    let ran = env.ok(&["tasks", "add", "One"]);
    assert!(ran.err.contains("did not run") && ran.err.contains("tenure trust -C"), "{ran}");
    assert_eq!(ran.err.lines().count(), 1, "{ran}");
    assert!(!hook_ran(&env));
    let quiet = env.ok(&["tasks", "update", "T1", "--title", "Uno"]);
    assert_eq!(quiet.err, "", "no hook listens to it");
    assert_eq!(env.run(&["hooks", "test", "tell"]).code, 5);
    env.ok(&["hooks", "list"]);
    assert_eq!(env.run(&["hooks", "run", "task.created", "--task", "T1"]).code, 0);
    assert!(!hook_ran(&env));

    trust(&mut env);
    let ran = env.ok(&["tasks", "add", "Two"]);
    assert_eq!(ran.err, "", "{ran}");
    assert!(hook_ran(&env), "{ran}");
}

#[test]
fn a_comment_changes_nothing_and_a_hook_or_its_script_asks_again() {
    let mut env = project();
    trust(&mut env);
    let commented = format!("# More.\n{}", CONFIG.replace("name: shop", "name: store"));
    env.write("work/.tenure/config.yaml", &commented);
    assert_eq!(state(&env), "trusted");
    env.ok(&["tasks", "add", "One"]);
    assert!(hook_ran(&env));

    script(&env, "work/tell.sh", "touch ran other");
    assert_eq!(state(&env), "changed");
    env.ok(&["tasks", "add", "Two"]);
    assert!(!hook_ran(&env), "the script is another one");
    let changes = shown(&env)["changes"].clone();
    assert_eq!(changes[0]["name"], "file ./tell.sh", "{changes}");
    trust(&mut env);
    env.ok(&["tasks", "add", "Three"]);
    assert!(hook_ran(&env));

    env.write("work/.tenure/config.yaml", commented.replace("task.created", "task.updated"));
    assert_eq!(state(&env), "changed");
    env.ok(&["tasks", "update", "T1", "--title", "Uno"]);
    assert!(!hook_ran(&env), "the hook is another one");
}

#[test]
fn a_script_that_is_replaced_by_a_link_asks_again() {
    let mut env = project();
    trust(&mut env);
    script(&env, "other.sh", "touch ran");
    std::fs::remove_file(env.path("work/tell.sh")).unwrap();
    assert_eq!(state(&env), "changed", "it is gone");
    std::os::unix::fs::symlink("../other.sh", env.path("work/tell.sh")).unwrap();
    assert_eq!(state(&env), "changed");
    trust(&mut env);
    std::fs::remove_file(env.path("work/tell.sh")).unwrap();
    script(&env, "third.sh", "touch ran");
    std::os::unix::fs::symlink("../third.sh", env.path("work/tell.sh")).unwrap();
    assert_eq!(state(&env), "changed", "it leads elsewhere");
}

#[test]
fn a_clone_with_a_store_is_refused_before_any_connection() {
    let server = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    server.set_nonblocking(true).unwrap();
    let port = server.local_addr().unwrap().port();
    let mut env = TestEnv::new();
    env.unset("TENURE_TRUST").set("PGPASSWORD", "secret");
    let id = "00000000-0000-4000-8000-000000000001";
    let config = format!(
        "project: {{id: {id}}}\nstore: {{url: 'postgres://ann@127.0.0.1:{port}/x?sslmode=disable'}}\n"
    );
    env.write("work/.tenure/config.yaml", &config);
    for words in [
        &["init"] as &[&str],
        &["tasks", "list"],
        &["status"],
        &["tasks", "add", "One"],
        &["runners", "start"],
        &["runners", "list"],
        &["resume", "x"],
        &["store", "backup", "saved"],
        &["whoami"],
        &["mcp"],
        &["web"],
    ] {
        let ran = env.json(words);
        assert_eq!(ran.code, 5, "{ran}");
        assert_eq!(ran.envelope()["error"]["code"], "UNTRUSTED", "{ran}");
        assert!(server.accept().is_err(), "{ran}");
    }
    // These show it without connecting.
    for words in [&["config", "show"] as &[&str], &["trust", "--show"], &["projects", "list"], &["doctor"]] {
        env.run(words);
        assert!(server.accept().is_err(), "{words:?}");
    }
    // The environment is the user's own: here it means the project's file.
    env.set("TENURE_STORE", "sqlite:");
    env.ok(&["init"]);
    env.ok(&["tasks", "add", "One"]);
    env.unset("TENURE_STORE");
    assert_eq!(env.run(&["tasks", "list"]).code, 5);

    trust(&mut env);
    env.set("TENURE_NO_WAIT", "1");
    let ran = env.run(&["tasks", "list", "--timeout", "1s"]);
    assert_ne!(ran.code, 5, "{ran}");
    assert!(server.accept().is_ok(), "it is connected to now: {ran}");
}

#[test]
fn starting_an_agent_needs_a_record_even_if_no_setting_does() {
    let mut env = TestEnv::new();
    env.unset("TENURE_TRUST");
    env.write("home/.tenure/config.yaml", "presets: {mine: {command: ['/bin/true']}}\n");
    env.write("work/.tenure/config.yaml", "project: {name: shop}\n");
    env.ok(&["init"]);
    assert_eq!(state(&env), "nothing");
    env.ok(&["tasks", "add", "One"]);
    let start = ["runners", "start", "--preset", "mine", "--dry-run"];
    let ran = env.json(&start);
    assert_eq!((ran.code, &ran.envelope()["error"]["code"]), (5, &Value::from("UNTRUSTED")), "{ran}");
    trust(&mut env);
    env.ok(&start);
    env.ok(&["untrust"]);
    assert_eq!(env.run(&start).code, 5);
}

#[test]
fn a_preset_of_the_project_is_not_used_before_trust() {
    let mut env = project();
    let presets = |env: &TestEnv| env.ok(&["config", "get", "presets"]).out;
    assert_eq!(presets(&env).trim(), "");
    assert_eq!(env.ok(&["config", "get", "runners.preset"]).out.trim(), "claude");
    assert_eq!(env.run(&["runners", "start", "--preset", "mine", "--dry-run"]).code, 5);
    trust(&mut env);
    assert!(presets(&env).contains("./agent.sh"));
    env.ok(&["runners", "start", "--dry-run"]);
}

#[test]
fn a_variable_trusts_everything_or_one_hash() {
    let mut env = project();
    let hash = shown(&env)["hash"].as_str().unwrap().to_owned();
    let adds = |env: &TestEnv| {
        env.ok(&["tasks", "add", "One"]);
        hook_ran(env)
    };
    assert!(!adds(&env));
    for (value, trusted) in
        [("1", true), (hash.as_str(), true), ("0", false), ("yes", false), (&hash[1..], false)]
    {
        env.set("TENURE_TRUST", value);
        assert_eq!(adds(&env), trusted, "{value}");
        let start = env.run(&["runners", "start", "--dry-run"]);
        assert_eq!(start.code, if trusted { 0 } else { 5 }, "{value}: {start}");
    }
    env.set("TENURE_TRUST", hash);
    script(&env, "work/tell.sh", "touch ran other");
    assert!(!adds(&env), "the hash is that of another content");
    env.set("TENURE_TRUST", "1");
    script(&env, "work/tell.sh", "echo \"[$TENURE_TRUST]\" > ran-with");
    env.ok(&["tasks", "add", "Two"]);
    assert_eq!(std::fs::read_to_string(env.path("work/ran-with")).unwrap(), "[]\n", "a hook does not get it");
}

#[test]
fn init_trusts_the_file_that_it_makes_and_no_other() {
    let mut env = TestEnv::new();
    env.unset("TENURE_TRUST");
    env.ok(&["init"]);
    assert_eq!(state(&env), "trusted");
    let other = project();
    assert_eq!(state(&other), "untrusted");
    assert!(other.ok(&["init"]).out.contains("tenure trust"));
}

#[test]
fn config_set_renews_trust_only_if_the_file_was_trusted_before() {
    let mut env = TestEnv::new();
    env.unset("TENURE_TRUST");
    env.ok(&["init"]);
    let set = |env: &TestEnv, preset: &str| env.ok(&["config", "set", "runners.preset", preset]);
    set(&env, "codex");
    assert_eq!(state(&env), "trusted");
    assert_eq!(env.ok(&["config", "get", "runners.preset"]).out.trim(), "codex");

    // Somebody else edits the file; a later `config set` must not trust that edit.
    let path = env.path("work/.tenure/config.yaml");
    let evil = "hooks: [{name: evil, event: task.created, type: script, command: ./evil.sh}]\n";
    let text = std::fs::read_to_string(&path).unwrap();
    std::fs::write(&path, format!("{text}{evil}")).unwrap();
    assert_eq!(state(&env), "changed");
    let ran = set(&env, "gemini");
    assert!(ran.out.contains("not trusted") && ran.out.contains("tenure trust"), "{ran}");
    assert_eq!(state(&env), "changed");
    let ran = env.json(&["config", "set", "runners.preset", "opencode"]);
    assert_eq!(ran.envelope()["data"]["inEffect"], false, "{ran}");
    // A harmless key is written and counts.
    let ran = env.json(&["config", "set", "locking.leaseTtl", "9m"]);
    assert_eq!(ran.envelope()["data"]["inEffect"], true, "{ran}");
    assert_eq!(state(&env), "changed");
    trust(&mut env);

    // An agent does not renew what it changes.
    env.set("CLAUDECODE", "1");
    set(&env, "claude");
    env.unset("CLAUDECODE");
    assert_eq!(state(&env), "changed");
}

#[test]
fn config_edit_renews_trust_only_if_the_file_was_trusted_before() {
    let mut env = TestEnv::new();
    env.unset("TENURE_TRUST").set("PATH", std::env::var_os("PATH").unwrap());
    env.ok(&["init"]);
    env.set("EDITOR", "sh -c 'echo \"runners: {preset: codex}\" >> \"$0\"'");
    env.ok(&["config", "edit"]);
    assert_eq!(state(&env), "trusted");
    let path = env.path("work/.tenure/config.yaml");
    let text = std::fs::read_to_string(&path).unwrap();
    std::fs::write(&path, text.replace("codex", "gemini")).unwrap();
    assert_eq!(state(&env), "changed");
    env.set("EDITOR", "sh -c 'echo \"# seen\" >> \"$0\"'");
    let ran = env.ok(&["config", "edit"]);
    assert!(ran.out.contains("not trusted"), "{ran}");
    assert_eq!(state(&env), "changed");
}

#[test]
fn wake_up_settings_count_only_in_the_users_file() {
    let env = TestEnv::project();
    let ran = env.json(&["config", "set", "runners.wakeup.enabled", "false"]);
    assert_eq!(ran.code, 2, "{ran}");
    let hint = ran.envelope()["hints"][0]["command"].as_str().unwrap().to_owned();
    assert_eq!(hint, "tenure config set --user runners.wakeup.enabled false");
    env.ok(&hint.split(' ').skip(1).collect::<Vec<_>>());
    assert_eq!(env.ok(&["config", "get", "runners.wakeup.enabled"]).out.trim(), "false");
    let env = TestEnv::project();
    let path = env.path("work/.tenure/config.yaml");
    let text = std::fs::read_to_string(&path).unwrap();
    std::fs::write(&path, format!("{text}runners: {{wakeup: {{enabled: false}}}}\n")).unwrap();
    assert_eq!(env.ok(&["config", "get", "runners.wakeup.enabled"]).out.trim(), "true");
    assert!(env.ok(&["config", "show"]).out.contains("have no effect: runners.wakeup.enabled"));
}

#[test]
fn a_moved_or_copied_folder_is_untrusted_and_trust_says_where_it_was_trusted() {
    let mut env = TestEnv::new();
    clone(&mut env);
    trust(&mut env);
    std::fs::create_dir_all(env.path("copy")).unwrap();
    for name in [".tenure/config.yaml", "tell.sh", "agent.sh"] {
        let to = env.path("copy").join(name);
        std::fs::create_dir_all(to.parent().unwrap()).unwrap();
        std::fs::copy(env.path("work").join(name), to).unwrap();
    }
    let original = env.path("work");
    env.cd("copy");
    assert_eq!(state(&env), "untrusted");
    assert_eq!(shown(&env)["trustedElsewhere"][0], "$DIR/work");
    assert!(env.ok(&["trust", "--show"]).out.contains("You have trusted the same settings in"));
    std::fs::rename(&original, env.path("moved")).unwrap();
    env.cd("moved");
    assert_eq!(state(&env), "untrusted");
    let list = env.json(&["trust", "list"]).envelope()["data"]["trusted"].clone();
    assert_eq!(list[0]["state"], "missing", "{list}");
    env.ok(&["untrust", original.to_str().unwrap()]);
    assert!(env.ok(&["trust", "list"]).out.contains("No project is trusted"));
}

fn git(folder: &Path, args: &[&str]) {
    let mut git = Command::new("git");
    git.arg("-C").arg(folder).args(["-c", "user.name=a", "-c", "user.email=a@b"]).args(args);
    let done = git.output().unwrap();
    assert!(done.status.success(), "{args:?}: {}", String::from_utf8_lossy(&done.stderr));
}

#[test]
fn a_linked_worktree_has_the_file_and_the_record_of_the_main_checkout() {
    let mut env = TestEnv::new();
    clone(&mut env);
    git(&env.path("work"), &["init", "-q"]);
    git(&env.path("work"), &["add", "."]);
    git(&env.path("work"), &["commit", "-qm", "all"]);
    env.ok(&["init"]);
    let linked = env.path("linked");
    git(&env.path("work"), &["worktree", "add", "-q", linked.to_str().unwrap()]);
    trust(&mut env);
    // The copy in the worktree is not the project's file.
    let evil = CONFIG.replace("./tell.sh", "./evil.sh");
    std::fs::write(linked.join(".tenure/config.yaml"), evil).unwrap();
    env.cd("linked");
    assert_eq!((state(&env).as_str(), shown(&env)["path"].as_str()), ("trusted", Some("$DIR/work")));
    env.ok(&["tasks", "add", "One"]);
    assert!(hook_ran(&env), "the hook of the main checkout");
    env.cd("work");
    env.ok(&["untrust"]);
    env.cd("linked");
    assert_eq!(state(&env), "untrusted");
}

/// Opening the record would block.
#[test]
fn no_record_is_read_if_no_setting_needs_trust() {
    let mut env = TestEnv::new();
    env.unset("TENURE_TRUST");
    env.write("work/.tenure/config.yaml", "locking: {leaseTtl: 5m}\n");
    env.ok(&["init"]);
    let folder = env.path("home/.tenure/trust");
    std::fs::create_dir_all(&folder).unwrap();
    let name = tenure_core::config::TrustRecord::file_name(env.path("work").to_str().unwrap());
    assert!(Command::new("mkfifo").arg(folder.join(name)).status().unwrap().success());
    for words in [&["tasks", "add", "One"] as &[&str], &["tasks", "claim", "T1", "--agent", "a"], &["status"]]
    {
        let mut child = env.process(words).stdout(std::process::Stdio::null()).spawn().unwrap();
        tenure_testkit::cli::until(&format!("{words:?} has ended"), || child.try_wait().unwrap().is_some());
        assert!(child.wait().unwrap().success(), "{words:?}");
    }
}

#[test]
fn a_database_that_came_with_the_repository_is_refused() {
    let mut env = TestEnv::project();
    env.unset("TENURE_TRUST").set("PATH", std::env::var_os("PATH").unwrap());
    let refused = |env: &mut TestEnv, what: &str| {
        for words in
            [&["init"] as &[&str], &["trust", "--yes"], &["runners", "start"], &["jobs", "work", "x"]]
        {
            let ran = person(env, &[words, &["--json"]].concat());
            let error = ran.envelope()["error"].clone();
            // There is no job `x`, but the database is refused before a job is looked up.
            let codes = ["UNTRUSTED", "PERMISSION_DENIED"].map(Value::from);
            let right = codes.contains(&error["code"]) || words[0] == "jobs";
            assert!(right && ran.code != 0, "{what}: {ran}");
        }
        let ran = env.json(&["doctor"]);
        let findings = ran.envelope()["error"]["details"]["findings"].clone();
        let found =
            findings.as_array().unwrap().iter().any(|f| f["check"] == "trust" && f["severity"] == "problem");
        assert!(found, "{what}: {ran}");
    };
    git(&env.path("work"), &["init", "-q"]);
    env.ok(&["init"]);
    git(&env.path("work"), &["add", "-f", ".tenure/tenure.db"]);
    refused(&mut env, "tracked");
    let hint = env.json(&["init"]).envelope()["hints"][0]["command"].as_str().unwrap().to_owned();
    let hint = hint.replace("$DIR", env.path("").to_str().unwrap().trim_end_matches('/'));
    let pasted = Command::new("sh").args(["-c", &hint]).current_dir(env.path("work")).status().unwrap();
    assert!(pasted.success(), "{hint}");
    env.ok(&["init"]);

    let (database, other) = (env.path("work/.tenure/tenure.db"), env.path("other.db"));
    std::fs::rename(&database, &other).unwrap();
    std::os::unix::fs::symlink(&other, &database).unwrap();
    refused(&mut env, "a link");
}
