use std::os::unix::fs::PermissionsExt;
use std::process::Stdio;

use crate::story::{Story, steps};
use crate::support::TestEnv;

fn configured(env: &mut TestEnv) {
    env.write("home/.tenure/config.yaml", "locking:\n  leaseTtl: 20m  # mine\n  waitTimeout: 1m\n");
    steps(env, &["config set locking.leaseTtl 30m"]);
}

#[test]
fn show_lists_every_key_with_its_value_and_origin() {
    let story = Story::project(|env| {
        configured(env);
        env.set("TENURE_STORE", "postgres://ann:secret@db/shop");
    });
    insta::assert_snapshot!(story.tell(&["config", "show"]));
    let env = TestEnv::new();
    assert_eq!(env.ok(&["config"]).out, env.ok(&["config", "show"]).out);
}

#[test]
fn get_prints_a_value_or_a_group() {
    let story = Story::project(configured)
        .tell(&["config", "get", "locking.leaseTtl"])
        .tell(&["config", "get", "locking"])
        .tell(&["config", "get", "store.url"])
        .tell(&["config", "get", "locking.leaseTTL"])
        .tell(&["config", "get", "zzz"]);
    insta::assert_snapshot!(story);
}

#[test]
fn set_changes_one_value_of_the_nearest_file() {
    let story = Story::project(configured)
        .tell(&["config", "set", "runners.preset", "codex"])
        .tell(&["config", "set", "locking.leaseTtl", "45m", "--user"])
        .tell(&["config", "set", "locking.leaseTtl", "30m"])
        .tell(&["config", "set", "runners.wakeup.projectPaths", "[~/src, ~/work]"])
        .tell(&["config", "set", "runners.preset", "codex", "--dry-run"]);
    insta::assert_snapshot!(story);
    insta::assert_snapshot!(
        "outside_a_project",
        Story::outside(|_| {}).tell(&["config", "set", "locking.leaseTtl", "45m"])
    );
}

#[test]
fn set_refuses_what_does_not_fit_and_writes_nothing() {
    let lines: [&[&str]; 7] = [
        &["config", "set", "lockng.leaseTtl", "5m"],
        &["config", "set", "locking", "5m"],
        &["config", "set", "locking.leaseTtl", "soon"],
        &["config", "set", "locking.leaseTtl", "-5m"],
        &["config", "set", "tasks.maxAttempts", "0"],
        &["config", "set", "runners.heartbeatInterval", "10m"],
        &["config", "set", "locking.leaseTtl"],
    ];
    let mut story = Story::project(configured);
    for line in lines {
        story = story.tell(line);
    }
    insta::assert_snapshot!(story);
    let mut env = TestEnv::project();
    configured(&mut env);
    let before = env.snapshot();
    for line in lines {
        assert_ne!(env.run(line).code, 0);
    }
    assert_eq!(env.snapshot(), before);
}

#[test]
fn set_refuses_yaml_it_cannot_edit_and_leaves_the_file_unchanged() {
    for (text, key) in [
        ("runners: {preset: codex} # mine\n", "runners.preset"),
        ("{}\n", "runners.preset"),
        ("runners:\n  preset: &p codex\nreview:\n  preset: *p\n", "review.preset"),
        ("runners:\n  promptTemplate: |\n    one\n    two\n", "runners.promptTemplate"),
    ] {
        let env = TestEnv::project();
        env.write("work/.tenure/config.yaml", text);
        let before = env.snapshot();
        let ran = env.run(&["config", "set", key, "claude"]).exits(3);
        assert!(ran.err.contains("  edit the file by hand: tenure config edit"), "{ran}");
        assert_eq!(env.snapshot(), before, "{ran}");
    }
}

#[test]
fn set_keeps_comments_the_mode_and_a_symbolic_link() {
    let env = TestEnv::new();
    let real = env.write("dotfiles/tenure.yaml", "# mine\nlocking:\n  leaseTtl: 20m  # long\n");
    std::fs::set_permissions(&real, std::fs::Permissions::from_mode(0o640)).unwrap();
    std::fs::create_dir(env.path("home/.tenure")).unwrap();
    let link = env.path("home/.tenure/config.yaml");
    std::os::unix::fs::symlink("../../dotfiles/tenure.yaml", &link).unwrap();
    env.ok(&["config", "set", "locking.leaseTtl", "25m"]);
    assert_eq!(std::fs::read_to_string(&real).unwrap(), "# mine\nlocking:\n  leaseTtl: 25m  # long\n");
    assert_eq!(real.metadata().unwrap().permissions().mode() & 0o777, 0o640);
    assert!(link.symlink_metadata().unwrap().file_type().is_symlink());
    let beside: Vec<_> = std::fs::read_dir(env.path("dotfiles")).unwrap().collect();
    assert_eq!(beside.len(), 1, "no temporary file is left: {beside:?}");
}

#[test]
fn set_makes_a_private_file_also_behind_a_link_to_nothing() {
    let env = TestEnv::new();
    std::fs::create_dir(env.path("home/.tenure")).unwrap();
    std::os::unix::fs::symlink("../../dotfiles/tenure.yaml", env.path("home/.tenure/config.yaml")).unwrap();
    env.ok(&["config", "set", "locking.leaseTtl", "25m"]);
    let made = env.path("dotfiles/tenure.yaml").metadata().unwrap();
    assert_eq!(made.permissions().mode() & 0o777, 0o600);
}

#[test]
fn sixteen_sets_at_once_are_all_kept() {
    let env = TestEnv::project();
    let names: Vec<String> = (0..16).map(|n| format!("presets.p{n}.command")).collect();
    let children: Vec<_> = names
        .iter()
        .map(|name| {
            env.process(&["--json", "config", "set", name, "[agent]"]).stdout(Stdio::null()).spawn().unwrap()
        })
        .collect();
    for mut child in children {
        assert!(child.wait().unwrap().success());
    }
    let presets = env.json(&["config", "get", "presets"]).data();
    assert_eq!(presets["value"].as_object().unwrap().len(), 16, "{presets}");
}

#[test]
fn a_fresh_clone_has_its_configuration_although_it_has_no_database() {
    let env = TestEnv::new();
    env.write("work/.tenure/config.yaml", "runners:\n  preset: codex\n");
    assert_eq!(env.ok(&["config", "get", "runners.preset"]).out, "codex\n");
    env.ok(&["config", "set", "runners.preset", "gemini"]);
    let text = std::fs::read_to_string(env.path("work/.tenure/config.yaml")).unwrap();
    assert_eq!(text, "runners:\n  preset: gemini\n");
}

#[test]
fn path_says_which_files_count_and_which_exist() {
    insta::assert_snapshot!(Story::project(|_| {}).tell(&["config", "path"]));
    let homeless = |env: &mut TestEnv| {
        env.unset("HOME");
    };
    insta::assert_snapshot!("nowhere", Story::outside(homeless).tell(&["config", "path"]));
}

#[test]
fn validate_names_file_line_and_column() {
    let story = Story::project(|env| {
        env.write("work/good.yaml", "locking: {leaseTtl: 5m}\n");
        env.write("work/empty.yaml", "");
        env.write("work/unknown.yaml", "locking:\n  leseTtl: 5m\n");
        env.write("work/value.yaml", "locking:\n  leaseTtl: soon\n");
        env.write("work/broken.yaml", "locking: [1\n");
        env.write("work/list.yaml", "- one\n- two\n");
        env.write("work/twice.yaml", "tasks: {}\nlocking: {}\ntasks: {}\n");
        env.write("work/conflict.yaml", "runners: {heartbeatInterval: 10m}\n");
        env.write("work/binary.yaml", [0xff, 0xfe, 0x00]);
    });
    let mut story = story.tell(&["config", "validate"]);
    for name in
        ["good", "empty", "unknown", "value", "broken", "list", "twice", "conflict", "binary", "nowhere"]
    {
        story = story.tell(&["config", "validate", &format!("{name}.yaml")]);
    }
    insta::assert_snapshot!(story);
    insta::assert_snapshot!("no_file", Story::outside(|_| {}).tell(&["config", "validate"]));
}

#[test]
fn a_mistake_in_a_file_is_in_the_way_of_every_command_that_needs_it() {
    let broken = |env: &mut TestEnv| {
        env.write("work/.tenure/config.yaml", "locking:\n  leseTtl: 5m\n");
    };
    let story = Story::project(broken).tell(&["tasks", "list"]).tell(&["config", "validate"]);
    insta::assert_snapshot!(story.tell(&["config", "set", "locking.leaseTtl", "5m"]));
}

fn with_editor(env: &mut TestEnv, script: &str) {
    let path = env.write("editor.sh", format!("#!/bin/sh\n{script}\n"));
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
    env.set("EDITOR", path).set("PATH", std::env::var("PATH").unwrap());
}

#[test]
fn edit_opens_a_commented_file_and_checks_it_afterwards() {
    let story = |script: &'static str| Story::project(move |env| with_editor(env, script));
    insta::assert_snapshot!(story("exit 0").tell(&["config", "edit"]).tell(&["config", "edit", "--dry-run"]));
    let good = story(r#"echo "locking: {leaseTtl: 5m}" >> "$1""#);
    insta::assert_snapshot!("created_and_saved", good.tell(&["config", "edit", "--user"]));
    let bad = story(r#"echo "lockng: {}" > "$1""#);
    insta::assert_snapshot!("wrong_afterwards", bad.tell(&["config", "edit", "--user"]));
    insta::assert_snapshot!("editor_failed", story("exit 3").tell(&["config", "edit"]));
    insta::assert_snapshot!("no_editor", Story::project(|_| {}).tell(&["config", "edit"]));
}

#[test]
fn edit_leaves_a_wrong_file_as_it_was_saved() {
    let mut env = TestEnv::project();
    with_editor(&mut env, r#"echo "lockng: {}" > "$1""#);
    env.run(&["config", "edit", "--user"]).exits(3);
    assert_eq!(std::fs::read_to_string(env.path("home/.tenure/config.yaml")).unwrap(), "lockng: {}\n");
}

#[test]
fn an_editor_may_have_arguments_and_visual_beats_editor() {
    let mut env = TestEnv::project();
    with_editor(&mut env, r#"echo "$1" > "$0.said""#);
    let editor = format!("{} --wait", env.path("editor.sh").display());
    env.set("EDITOR", "false").set("VISUAL", editor);
    env.ok(&["config", "edit"]);
    assert_eq!(std::fs::read_to_string(env.path("editor.sh.said")).unwrap(), "--wait\n");
}

#[test]
fn a_setting_is_removed_and_the_rest_of_the_file_stays() {
    let env = TestEnv::project();
    let before = std::fs::read_to_string(env.path("work/.tenure/config.yaml")).unwrap();
    env.write(
        "work/.tenure/config.yaml",
        format!("{before}locking:\n  # Tests are slow.\n  leaseTtl: 30m\n"),
    );
    insta::assert_snapshot!(env.ok(&["config", "unset", "locking.leaseTtl"]));
    let after = std::fs::read_to_string(env.path("work/.tenure/config.yaml")).unwrap();
    assert_eq!(after, format!("{before}locking:\n  # Tests are slow.\n"));
    assert_eq!(env.ok(&["config", "get", "locking.leaseTtl"]).out, "15m\n");
    assert_eq!(env.json(&["config", "unset", "locking.leaseTtl"]).data()["changed"], false);
    assert_eq!(env.json(&["config", "unset", "--user", "runners.preset"]).data()["changed"], false);
    assert!(!env.path("home/.tenure/config.yaml").exists());
    env.run(&["config", "unset", "locking"]).exits(2);
}

#[test]
fn the_command_of_a_built_in_preset_is_shown() {
    let env = TestEnv::project();
    let shown = env.json(&["config", "get", "presets.codex.command"]).exits(0).data();
    assert_eq!(shown["value"][0], "codex", "{shown}");
    assert_eq!(shown["setting"]["origin"], "default", "{shown}");
    env.run(&["config", "get", "presets.nobody.command"]).exits(2);
    env.ok(&["config", "set", "presets.codex.command", "[./mine]"]);
    assert_eq!(env.json(&["config", "get", "presets.codex.command"]).data()["value"][0], "./mine");
}

#[test]
fn an_editor_that_is_installed_is_used_if_none_is_chosen() {
    let mut env = TestEnv::project();
    env.write("bin/nano", "#!/bin/sh\n");
    std::fs::set_permissions(env.path("bin/nano"), PermissionsExt::from_mode(0o755)).unwrap();
    env.set("PATH", env.path("bin"));
    env.run(&["config", "edit", "--dry-run"]).exits(2);
    env.env.terminal = Some("pts/1".to_owned());
    assert!(env.ok(&["config", "edit", "--dry-run"]).out.contains("with nano"));
}
