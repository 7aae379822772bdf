//! Which project a command uses.

use std::path::Path;
use std::process::Command;

use serde_json::Value;
use tenure_testkit::cli::skip;

use crate::story::steps;
use crate::support::TestEnv;

fn git(env: &TestEnv, at: &Path, words: &[&str]) {
    let output = Command::new("git")
        .args(["-c", "user.name=t", "-c", "user.email=t@example.org", "-c", "protocol.file.allow=always"])
        .args(words)
        .current_dir(at)
        .env("HOME", env.path("home"))
        .env("GIT_CONFIG_NOSYSTEM", "1")
        .output()
        .expect("git is needed for this test");
    assert!(output.status.success(), "git {words:?}: {}", String::from_utf8_lossy(&output.stderr));
}

/// A repository in `work` with a commit and a project.
fn repository() -> TestEnv {
    let env = TestEnv::new();
    let work = env.path("work");
    git(&env, &work, &["init", "-q", "-b", "main"]);
    env.ok(&["init", "--name", "shop"]);
    env.write("work/src/main.rs", "");
    git(&env, &work, &["add", "."]);
    git(&env, &work, &["commit", "-qm", "first"]);
    env
}

fn project_of(env: &TestEnv) -> String {
    env.json(&["status"]).exits(0).data()["project"]["path"].as_str().unwrap().to_owned()
}

#[test]
fn a_subfolder_belongs_to_the_project_above_it() {
    let mut env = TestEnv::project();
    env.cd("work/a/b/c");
    assert_eq!(project_of(&env), "$DIR/work");
    env.cd("work/a");
    env.ok(&["init"]);
    env.cd("work/a/b/c");
    assert_eq!(project_of(&env), "$DIR/work/a", "the nearest one");
}

#[test]
fn a_linked_worktree_shares_the_store_of_the_main_checkout() {
    let mut env = repository();
    let other = env.path("other");
    git(&env, &env.path("work"), &["worktree", "add", "-q", other.to_str().unwrap()]);
    env.cd("other");
    assert!(other.join(".tenure/config.yaml").is_file(), "the tracked configuration is there");
    assert_eq!(project_of(&env), "$DIR/work");
    env.cd("other/src");
    assert_eq!(project_of(&env), "$DIR/work");
    steps(&env, &["tasks add One", "init"]);
    assert!(!other.join(".tenure/tenure.db").exists());
    env.cd("work");
    assert_eq!(env.json(&["tasks"]).data()["total"], 1);
}

#[test]
fn a_worktree_inside_its_main_checkout_and_one_moved_away_resolve_too() {
    let mut env = repository();
    let inside = env.path("work/trees/one");
    git(&env, &env.path("work"), &["worktree", "add", "-q", inside.to_str().unwrap()]);
    env.cd("work/trees/one");
    assert_eq!(project_of(&env), "$DIR/work");
    let moved = env.path("far/away");
    std::fs::create_dir(env.path("far")).unwrap();
    git(&env, &env.path("work"), &["worktree", "move", inside.to_str().unwrap(), moved.to_str().unwrap()]);
    env.cd("far/away");
    assert_eq!(project_of(&env), "$DIR/work");
}

#[test]
fn a_submodule_is_a_checkout_of_its_own() {
    let mut env = repository();
    let library = env.path("library");
    std::fs::create_dir(&library).unwrap();
    git(&env, &library, &["init", "-q", "-b", "main"]);
    git(&env, &library, &["commit", "-q", "--allow-empty", "-m", "first"]);
    git(&env, &env.path("work"), &["submodule", "--quiet", "add", library.to_str().unwrap(), "sub"]);
    env.cd("work/sub");
    assert_eq!(project_of(&env), "$DIR/work", "without its own project it is a subfolder");
    env.ok(&["init"]);
    assert_eq!(project_of(&env), "$DIR/work/sub");
}

#[test]
fn a_fresh_clone_asks_for_init_and_keeps_its_tracked_configuration() {
    let mut env = repository();
    git(&env, &env.path("."), &["clone", "-q", "work", "clone"]);
    env.cd("clone/src");
    let ran = env.json(&["tasks", "list"]).exits(3);
    assert_eq!(ran.error_code(), "NOT_INITIALIZED");
    assert_eq!(ran.envelope()["hints"][0]["command"], "tenure init -C $DIR/clone");
    env.cd("clone");
    let ran = env.json(&["tasks", "list"]).exits(3);
    assert_eq!(ran.envelope()["hints"][0]["command"], "tenure init");
    insta::assert_snapshot!(env.run(&["tasks", "list"]));
    let tracked = std::fs::read(env.path("clone/.tenure/config.yaml")).unwrap();
    assert_eq!(env.json(&["init"]).data()["name"], "shop");
    assert_eq!(std::fs::read(env.path("clone/.tenure/config.yaml")).unwrap(), tracked);
    let status = Command::new("git").args(["status", "--porcelain"]).current_dir(env.path("clone")).output();
    assert_eq!(String::from_utf8(status.unwrap().stdout).unwrap(), "", "git sees nothing new");
}

#[test]
fn a_clone_with_a_wrong_configuration_is_not_half_made() {
    let env = TestEnv::new();
    env.write("work/.tenure/config.yaml", "lockng: {}\n");
    let before = env.snapshot();
    let ran = env.run(&["init"]).exits(3);
    assert!(ran.err.contains("config.yaml:1:1"), "{ran}");
    assert_eq!(env.snapshot(), before);
}

#[test]
fn the_home_is_never_a_project() {
    let mut env = TestEnv::project();
    assert!(env.path("home/.tenure/tenure.db").exists(), "the registry is there");
    env.cd("home/somewhere");
    env.run(&["tasks"]).exits(3);
    env.cd("home");
    env.run(&["tasks"]).exits(3);
    env.run(&["init"]).exits(3);
    let home = env.path("elsewhere");
    env.set("TENURE_HOME", home);
    env.cd("work");
    env.ok(&["init"]);
    env.cd("home/somewhere");
    let ran = env.run(&["tasks"]).exits(1);
    assert!(ran.err.contains("another program"), "the registry of another home is not a store: {ran}");
}

#[test]
fn a_project_in_the_home_folder_works_once_tenure_lives_elsewhere() {
    let mut env = TestEnv::new();
    let home = env.path("state/tenure");
    env.set("TENURE_HOME", home);
    env.cd("home");
    steps(&env, &["init", "tasks add One"]);
    assert_eq!(project_of(&env), "$DIR/home");
    assert!(env.path("state/tenure/tenure.db").exists());
}

#[test]
fn the_flag_and_the_variable_name_the_project_and_the_flag_wins() {
    let mut env = TestEnv::project();
    env.cd("other");
    env.ok(&["init"]);
    env.cd("nowhere");
    let (work, other) = (env.path("work"), env.path("other"));
    assert_eq!(env.json(&["-C", "../work", "status"]).data()["project"]["path"], "$DIR/work");
    env.set("TENURE_PROJECT", other);
    assert_eq!(project_of(&env), "$DIR/other");
    assert_eq!(
        env.json(&["status", "--project", work.to_str().unwrap()]).data()["project"]["path"],
        "$DIR/work"
    );
    env.set("TENURE_PROJECT", "missing");
    let ran = env.run(&["status"]).exits(2);
    assert!(ran.err.contains("$DIR/nowhere/missing"), "{ran}");
}

#[test]
fn init_twice_changes_nothing_but_the_registration() {
    let env = TestEnv::project();
    steps(&env, &["tasks add One"]);
    // A line that the user has removed on purpose stays out.
    std::fs::write(env.path("work/.gitignore"), "target/\n").unwrap();
    std::fs::remove_file(env.path("work/.tenure/config.yaml")).unwrap();
    let of_project = |env: &TestEnv| {
        let mut all = env.snapshot();
        all.retain(|path, _| path.starts_with(env.path("work")));
        all
    };
    let before = of_project(&env);
    env.ok(&["projects", "remove"]);
    env.ok(&["init"]);
    assert_eq!(of_project(&env), before);
    assert_eq!(env.json(&["projects"]).data()["total"], 1);
}

#[test]
fn an_interrupted_init_is_finished_by_the_next_one() {
    let env = TestEnv::new();
    env.write("work/.tenure/tenure.db", "");
    let ran = env.run(&["tasks"]).exits(1);
    assert!(ran.err.contains("empty") && ran.err.contains("tenure init"), "{ran}");
    assert_eq!(env.json(&["init"]).exits(0).data()["created"], true);
    steps(&env, &["tasks add One"]);
    assert!(env.path("work/.tenure/config.yaml").exists());
}

#[test]
fn gitignore_keeps_what_it_has_and_gets_the_runtime_files_once() {
    for (before, after) in [
        (None, "# tenure's runtime files\n.tenure/*\n!.tenure/config.yaml\n"),
        (Some("target/\n"), "target/\n# tenure's runtime files\n.tenure/*\n!.tenure/config.yaml\n"),
        (Some("target/"), "target/\n# tenure's runtime files\n.tenure/*\n!.tenure/config.yaml\n"),
        (Some(".tenure/*\n!.tenure/config.yaml\n"), ".tenure/*\n!.tenure/config.yaml\n"),
    ] {
        let env = TestEnv::new();
        if let Some(text) = before {
            env.write("work/.gitignore", text);
        }
        env.ok(&["init"]);
        env.ok(&["init"]);
        assert_eq!(std::fs::read_to_string(env.path("work/.gitignore")).unwrap(), after);
    }
    let env = TestEnv::new();
    env.write("work/.gitignore", [0xff, 0xfe, b'\n']);
    env.ok(&["init"]);
    assert_eq!(
        std::fs::read(env.path("work/.gitignore")).unwrap(),
        [0xff, 0xfe, b'\n'],
        "not text: left alone"
    );
}

#[test]
fn what_init_makes_is_private() {
    use std::os::unix::fs::PermissionsExt;
    let env = TestEnv::project();
    for (path, _) in env.snapshot() {
        if !path.components().any(|part| part.as_os_str() == ".tenure") {
            continue;
        }
        let mode = path.metadata().unwrap().permissions().mode() & 0o777;
        assert_eq!(mode, if path.is_dir() { 0o700 } else { 0o600 }, "{}", path.display());
    }
}

#[test]
fn where_case_is_ignored_a_project_is_one_project_however_its_path_is_written() {
    if !cfg!(feature = "simulation") {
        skip("this binary was built without the feature `simulation`");
        return;
    }
    let mut env = TestEnv::new();
    env.cd("work/Shop");
    env.write("home/.tenure/config.yaml", "runners: {wakeup: {projectPaths: ['~/../WORK']}}\n");
    let run = |args: &[&str], project: &str| {
        let mut command = env.process(args);
        command.env("TENURE_SIMULATE", "macos").env("TENURE_JSON", "1").env("TENURE_PROJECT", project);
        let output = command.output().unwrap();
        let text = if output.stdout.is_empty() { &output.stderr } else { &output.stdout };
        let answer: Value =
            serde_json::from_slice(text).unwrap_or_else(|e| panic!("{args:?}: {e}: {text:?}"));
        (output.status.code().unwrap(), answer)
    };
    let ok = |args: &[&str], project: &str| {
        let (code, answer) = run(args, project);
        assert_eq!(code, 0, "{args:?}: {answer}");
        answer["data"].clone()
    };
    ok(&["init"], "../SHOP");
    ok(&["tasks", "add", "One", "--id", "T1"], "../shop");
    let path = |project: &str| ok(&["status"], project)["project"]["path"].clone();
    assert_eq!(path("."), env.path("work/Shop").to_str().unwrap());
    for spelling in ["../shop", "../SHOP/", "../../WORK/sHOP"] {
        assert_eq!(path(spelling), path("."), "{spelling}");
    }
    ok(&["tasks", "claim", "T1", "--agent", "ann"], "../shop");
    assert_eq!(run(&["tasks", "claim", "T1", "--agent", "ben"], "../SHOP").0, 6);
    ok(&["projects", "add", "../SHOP"], ".");
    ok(&["projects", "disable", "../shop"], ".");
    // Found by its registration and below the configured folder.
    let listed = ok(&["projects", "list"], ".");
    assert_eq!(
        (&listed["total"], listed["projects"].as_array().map(Vec::len)),
        (&Value::from(1), Some(1)),
        "{listed}"
    );
    assert_eq!(listed["projects"][0]["enabled"], false);
}
