//! The output and the files of `tenure setup`, and the errors of `tenure mcp`. tests/mcp covers the server, and
//! `claude_session` the hooks.

use std::os::unix::fs::PermissionsExt;

use insta::assert_snapshot;

use crate::support::TestEnv;

/// A project with `tenure` on `PATH`, as after an installation.
fn installed() -> TestEnv {
    let mut env = TestEnv::project();
    env.write("bin/tenure", "");
    let path = env.path("bin");
    env.set("PATH", path);
    env
}

#[test]
fn setup_writes_what_an_agent_must_know_and_says_how_it_stands() {
    let env = installed();
    assert_snapshot!(env.run(&["setup", "claude", "--check"]).exits(7));
    assert_snapshot!(env.ok(&["setup", "claude", "--dry-run"]));
    assert_snapshot!(env.ok(&["setup", "claude"]));
    assert_snapshot!(std::fs::read_to_string(env.path("work/.claude/settings.json")).unwrap());
    assert_snapshot!(env.json(&["setup", "claude"]));
    assert_snapshot!(env.ok(&["setup", "claude", "--check"]));
    assert_snapshot!(env.json(&["setup", "claude", "--check"]));
    assert_snapshot!(env.ok(&["setup", "claude", "--remove"]));
    assert_snapshot!(env.json(&["setup", "claude", "--remove"]));
    assert_snapshot!(env.run(&["setup", "vscode"]).exits(2));
    assert_snapshot!(env.run(&["setup", "agents-md", "--mcp"]).exits(2));
}

#[test]
fn a_check_tells_missing_old_and_edited_apart_and_what_to_run() {
    let env = installed();
    env.ok(&["setup", "claude"]);
    let path = env.path("work/CLAUDE.md");
    let current = std::fs::read_to_string(&path).unwrap();
    std::fs::write(&path, current.replace("Never use --force", "Always use --force")).unwrap();
    assert_snapshot!(env.run(&["setup", "claude", "--check"]).exits(7));
    assert_snapshot!(env.json(&["setup", "claude", "--check"]).exits(7));
    // Written by another version: the fingerprint matches the text.
    std::fs::write(&path, "<!-- tenure:begin a7a65b54 -->\nold\n<!-- tenure:end -->\n").unwrap();
    let settings = env.path("work/.claude/settings.json");
    let hooks = std::fs::read_to_string(&settings).unwrap();
    std::fs::write(&settings, hooks.replace("SessionEnd", "Stop")).unwrap();
    assert_snapshot!(env.run(&["setup", "claude", "--check"]).exits(7));
    env.ok(&["setup", "claude"]);
    env.ok(&["setup", "claude", "--check"]);
    assert_eq!(std::fs::read_to_string(&path).unwrap(), current);
    std::fs::write(&settings, hooks.replacen('{', "{\"disableAllHooks\": true,", 1)).unwrap();
    assert_snapshot!(env.run(&["setup", "claude", "--check"]).exits(7));
}

#[test]
fn every_file_and_folder_is_afterwards_as_it_was_before() {
    let clients = [
        ("claude", "CLAUDE.md", Some(".claude/settings.json")),
        ("codex", "AGENTS.md", None),
        ("gemini", "GEMINI.md", None),
        ("opencode", "AGENTS.md", None),
        ("copilot", "AGENTS.md", None),
        ("agents-md", "AGENTS.md", None),
    ];
    for (client, file, settings) in clients {
        for (text, hooks) in [
            (None, None),
            (Some("# Mine"), Some("{}\n")),
            (Some("# Mine\r\n\r\ntext\r\n"), Some("{\"permissions\": {\"allow\": [\"Read\"]}}")),
            (Some("\u{feff}# Mine\n"), None),
            (Some(""), Some("{\n\t\"hooks\": {\n\t\t\"Stop\": []\n\t}\n}")),
            (None, Some("// mine\n{\n  \"model\": \"opus\" // the large one\n}\n")),
        ] {
            let env = installed();
            if let Some(text) = text {
                env.write(&format!("work/{file}"), text);
                std::fs::set_permissions(env.path(&format!("work/{file}")), PermissionsExt::from_mode(0o640))
                    .unwrap();
            }
            if let (Some(hooks), Some(settings)) = (hooks, settings) {
                env.write(&format!("work/{settings}"), hooks);
            }
            let before = env.snapshot();
            env.ok(&["setup", client, "--dry-run"]);
            assert_eq!(env.snapshot(), before, "{client}: a dry run");
            env.ok(&["setup", client]);
            let after = env.snapshot();
            assert_ne!(after, before);
            let there = std::fs::read_to_string(env.path(&format!("work/{file}"))).unwrap();
            assert!(there.starts_with(text.unwrap_or_default()), "{there}");
            if text.is_some() {
                let mode = std::fs::metadata(env.path(&format!("work/{file}"))).unwrap().permissions().mode();
                assert_eq!(mode & 0o777, 0o640);
            }
            env.ok(&["setup", client, "--check"]);
            assert_eq!(env.ok(&["--json", "setup", client]).data()["changed"], false);
            assert_eq!(env.snapshot(), after, "{client}: a second time");
            env.ok(&["setup", client, "--remove", "--dry-run"]);
            assert_eq!(env.snapshot(), after, "{client}: a dry run");
            env.ok(&["setup", client, "--remove"]);
            assert_eq!(env.snapshot(), before, "{client}: {text:?} {hooks:?}");
            assert_eq!(env.ok(&["--json", "setup", client, "--remove"]).data()["changed"], false);
        }
    }
}

#[test]
fn what_a_killed_setup_has_left_is_swept_by_the_next() {
    let env = installed();
    let before = env.snapshot();
    let left = "0a1b2c3d-0000-4000-8000-0123456789ab.new";
    for words in [&["setup", "claude", "--remove"][..], &["setup", "claude"]] {
        env.write(&format!("work/.CLAUDE.md.{left}"), "half");
        env.write(&format!("work/.claude/.settings.json.{left}"), "{");
        env.ok(words);
        assert!(!env.path(&format!("work/.CLAUDE.md.{left}")).exists());
        assert!(!env.path(&format!("work/.claude/.settings.json.{left}")).exists());
    }
    env.ok(&["setup", "claude", "--remove"]);
    assert_eq!(env.snapshot(), before);
    // A file of another program with a similar name is kept.
    env.write("work/.CLAUDE.md.notes.new", "mine");
    env.ok(&["setup", "claude"]);
    assert!(env.path("work/.CLAUDE.md.notes.new").exists());
}

#[test]
fn a_link_is_followed_and_stays_one() {
    let env = installed();
    env.write("work/AGENTS.md", "# Ours\n");
    std::os::unix::fs::symlink("AGENTS.md", env.path("work/CLAUDE.md")).unwrap();
    // The target of this link does not exist yet.
    std::os::unix::fs::symlink("docs/GEMINI.md", env.path("work/GEMINI.md")).unwrap();
    std::fs::create_dir(env.path("work/docs")).unwrap();
    env.write("work/docs/other.md", "");
    let before = env.snapshot();
    env.ok(&["setup", "claude"]);
    env.ok(&["setup", "gemini"]);
    assert!(env.path("work/CLAUDE.md").is_symlink() && env.path("work/GEMINI.md").is_symlink());
    env.ok(&["setup", "agents-md", "--check"]);
    assert!(env.path("work/docs/GEMINI.md").is_file());
    env.ok(&["setup", "gemini", "--remove"]);
    env.ok(&["setup", "claude", "--remove"]);
    assert_eq!(env.snapshot(), before);
}

#[test]
fn what_cannot_be_changed_safely_is_refused_and_nothing_is_written() {
    let cut = "# Mine\n<!-- tenure:begin 12345678 -->\nand no end\n";
    for (file, text, exit) in [
        ("CLAUDE.md", cut.as_bytes(), 3),
        ("CLAUDE.md", b"caf\xe9\n", 3),
        (".claude/settings.json", b"{\n  # mine\n}\n", 3),
        (".claude/settings.json", b"{\"hooks\": [}", 3),
        (".claude/settings.json", b"", 3),
        (".claude/settings.json", b"{\"hooks\": []}", 3),
    ] {
        let env = installed();
        env.write(&format!("work/{file}"), text);
        let before = env.snapshot();
        for words in
            [&["setup", "claude"][..], &["setup", "claude", "--check"], &["setup", "claude", "--remove"]]
        {
            let ran = env.run(words).exits(exit);
            assert!(
                ran.err.contains(file) && ran.err.contains("nothing was changed") || text.contains(&0xe9),
                "{ran}"
            );
            assert_eq!(env.snapshot(), before, "{ran}");
        }
    }
    let env = installed();
    env.write("work/CLAUDE.md", cut);
    assert_snapshot!(env.run(&["setup", "claude"]).exits(3));
    env.write("work/CLAUDE.md", "# Mine\n");
    env.write("work/.claude/settings.json", "# mine\n{}\n");
    assert_snapshot!(env.json(&["setup", "claude"]).exits(3));
    assert_eq!(std::fs::read_to_string(env.path("work/CLAUDE.md")).unwrap(), "# Mine\n");
    // A read-only file is not replaced, even though its folder is writable.
    let file = env.write("work/GEMINI.md", "# Mine\n");
    std::fs::set_permissions(&file, PermissionsExt::from_mode(0o444)).unwrap();
    let before = env.snapshot();
    assert_snapshot!(env.run(&["setup", "gemini"]).exits(5));
    assert_eq!(env.snapshot(), before);
}

#[test]
fn the_instructions_hold_nothing_of_this_moment_and_every_command_in_them_is_one() {
    let env = installed();
    env.ok(&["tasks", "add", "Secret plan", "--id", "F777"]);
    env.ok(&["setup", "agents-md"]);
    let text = std::fs::read_to_string(env.path("work/AGENTS.md")).unwrap();
    let here = env.path("").to_string_lossy().into_owned();
    for passing in ["F777", "Secret", "shop", "ann@", "box", here.as_str(), "15m"] {
        assert!(!text.contains(passing), "{passing}: {text}");
    }
    for word in ["tenure prime", "claim", "renew", "done", "msg send", "next --claim"] {
        assert!(text.contains(word), "{word}: {text}");
    }
    let spans = text.split('`').skip(1).step_by(2).filter(|span| span.starts_with("tenure "));
    for span in spans {
        let parsed = tenure::command().try_get_matches_from(span.split(' '));
        assert!(parsed.is_ok() || span == "tenure setup", "{span}");
    }
    // Both print the same steps.
    let page = env.ok(&["prime"]).out;
    let steps =
        |text: &str| text[text.find("1. Claim the next task").unwrap()..].lines().next().map(str::to_owned);
    assert_eq!(steps(&text), steps(&page).map(|line| line.replace("F777", "T")));
}

#[test]
fn setup_says_where_it_wrote_and_how_to_see_it_work() {
    let env = TestEnv::project();
    assert_snapshot!(env.ok(&["setup", "claude", "--mcp", "--dry-run"]));
    assert_snapshot!(env.ok(&["setup", "claude", "--mcp"]));
    assert_snapshot!(env.json(&["setup", "claude", "--mcp"]));
    assert_snapshot!(env.ok(&["setup", "codex", "--mcp", "--remove"]));
    assert_snapshot!(env.ok(&["setup", "claude", "--mcp", "--remove"]));
}

#[test]
fn setup_refuses_what_it_cannot_keep_and_says_what_is_not_set_up() {
    let env = TestEnv::project();
    env.write("work/.vscode/mcp.json", "# mine\n{}\n");
    assert_snapshot!(env.run(&["setup", "vscode", "--mcp"]).exits(3));
    assert_snapshot!(env.json(&["setup", "gemini", "--mcp", "--check"]).exits(7));
    assert_snapshot!(env.run(&["setup", "emacs", "--mcp"]).exits(2));
}

#[test]
fn mcp_refuses_what_it_does_not_do() {
    let env = TestEnv::project();
    assert_snapshot!(env.run(&["mcp", "--dry-run"]).exits(2));
    assert_snapshot!(env.run(&["mcp", "--http", "0.0.0.0:7077"]).exits(2));
    assert_snapshot!(TestEnv::new().json(&["mcp", "--http", "0"]).exits(3));
}
