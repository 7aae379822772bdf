//! Arbitrary text from users: stored as given, shown escaped, byte for byte in JSON, and refused with the limit if too long.

use crate::story::steps;
use crate::support::TestEnv;

const NASTY: &[(&str, &str)] = &[
    ("quotes", r#"It's "quoted" \ and `ticked` $HOME"#),
    ("newlines", "one\ntwo\r\nthree"),
    ("emoji", "👩‍👩‍👧 Grüße 日本語"),
    ("ansi", "\u{1b}[31mred\u{1b}[0m \u{1b}]0;title\u{7} \u{9b}2J"),
    ("bidi", "abc\u{202e}fed\u{2066}x\u{2069}\u{200f}"),
    ("controls", "a\u{1}b\u{8}c\u{7f}d\u{85}e\tf"),
    ("invisible", "a\u{200b}b\u{ad}c\u{feff}d\u{e0041}"),
    ("markup", "<script>alert('x')</script> {{task.title}} %s %n ${TOKEN} [link](x) **b** -- --force"),
    ("sql", "'; DROP TABLE tasks; --"),
    ("yaml", "- [ ] {a: *b} !!str # not a comment"),
    ("spaces", "  padded  "),
];

/// Whether no character moves the cursor, colours, reorders or hides text.
fn is_harmless(shown: &str) -> bool {
    !shown.chars().any(|c| {
        (c.is_control() && c != '\n')
            || matches!(c, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' | '\u{200b}' | '\u{200e}' | '\u{200f}')
            || matches!(c, '\u{ad}' | '\u{feff}' | '\u{e0000}'..='\u{e007f}')
    })
}

#[test]
fn any_text_is_stored_as_given_and_shown_escaped() {
    for (what, text) in NASTY {
        let mut env = TestEnv::project();
        let label = format!("--label={text}");
        let added = env.json(&["tasks", "add", "-d", text, "--id", "ODD", &label, "--", text]).exits(0);
        assert_eq!(added.data()["task"]["title"], *text, "{what}");
        steps(&env, &["tasks claim ODD --agent bob"]);
        env.ok(&["sections", "add", "--", text]);
        env.ok(&["msg", "send", "--task", "ODD", "-m", text]);
        env.ok(&["tasks", "release", "ODD", "--agent", "bob", "-m", text]);
        let shown = env.json(&["tasks", "show", "--", text]).exits(0).data();
        for field in ["title", "description"] {
            assert_eq!(shown["task"][field], *text, "{what}");
        }
        assert_eq!(shown["task"]["labels"][0], *text, "{what}");
        assert_eq!(shown["messages"][0]["text"], *text, "{what}");
        assert_eq!(env.json(&["sections", "show", "--", text]).exits(0).data()["section"]["name"], *text);
        env.on_terminal = true;
        env.set("NO_COLOR", "1");
        for words in [
            &["tasks"][..],
            &["tasks", "show", "ODD", "--history"],
            &["tasks", "audit", "ODD"],
            &["tasks", "next"],
            &["sections"],
            &["sections", "show", "--", text],
            &["msg"],
            &["events"],
            &["status"],
            &["why", "ODD"],
            &["why"],
            &["tasks", "claim", "ODD", "--agent", "bob", "--dry-run"],
            &["tasks", "delete", "ODD", "--dry-run"],
        ] {
            let ran = env.run(words);
            assert_eq!(ran.code, 0, "{what}: {ran}");
            assert!(is_harmless(&ran.out) && is_harmless(&ran.err), "{what}: {ran}");
        }
    }
}

#[test]
fn text_that_an_error_quotes_is_escaped() {
    let env = TestEnv::project();
    for (what, text) in NASTY {
        for words in [
            &["tasks", "show", "--", text][..],
            &["tasks", "claim", "T1", "--agent", text],
            &["tasks", "add", "x", "--id", text],
            &["tasks", "add", "x", "--section", text],
            &["locks", "show", "--", text],
            &["agents", "leave", "--", text],
            &["config", "get", "--", text],
            &["config", "set", "locking.leaseTtl", text],
            &["config", "set", text, "x"],
            &["tasks", "list", "-s", text],
            &["tasks", "claim", "T1", "--ttl", text],
            &["man", "--", text],
            &["--", text],
            &["tasks", "import", "--", text],
            &["-C", text, "status"],
        ] {
            let ran = env.run(words);
            assert_ne!(ran.code, 0, "{what}: {ran}");
            assert!(is_harmless(&ran.err) && ran.out.is_empty(), "{what}: {:?}", ran.err);
            assert_ne!(env.json(words).envelope()["error"]["message"], "");
        }
    }
}

#[test]
fn a_hint_with_text_of_the_user_works_when_pasted() {
    let env = TestEnv::project();
    for name in ["two words", "it's", "$HOME", "a;b", "--flag"] {
        env.ok(&["sections", "add", "--", name]);
        env.ok(&["tasks", "add", "x", &format!("--section={name}")]);
        let ran = env.json(&["sections", "delete", "--", name]).exits(2);
        let hint = ran.envelope()["hints"][0]["command"].as_str().unwrap().to_owned();
        let mut line = std::process::Command::new("sh");
        let pasted = hint.replacen("tenure", env!("CARGO_BIN_EXE_tenure"), 1);
        line.args(["-c", &pasted]).env_clear().envs(&env.env.vars).current_dir(&env.env.cwd);
        let output = line.output().unwrap();
        assert!(output.status.success(), "{hint}: {}", String::from_utf8_lossy(&output.stderr));
    }
}

#[test]
fn text_that_is_too_long_is_refused_with_the_limit_and_not_stored() {
    let env = TestEnv::project();
    steps(&env, &["tasks add One", "tasks claim T1 --agent bob"]);
    let files = env.snapshot();
    // A megabyte does not fit into one argument.
    let long = "x".repeat(100_000);
    let word = "é".repeat(501);
    for (words, limit) in [
        (vec!["tasks", "add", &long], "500"),
        (vec!["tasks", "add", &word], "500"),
        (vec!["tasks", "add", "x", "--id", &long], "64"),
        (vec!["tasks", "add", "x", "--label", &long], "500"),
        (vec!["tasks", "add", "x", "--source", &long], "4096"),
        (vec!["tasks", "update", "T1", "--title", &long], "500"),
        (vec!["sections", "add", &long], "500"),
        (vec!["agents", "join", "--name", &long], "500"),
        (vec!["agents", "join", "--capability", &long], "500"),
        (vec!["tasks", "claim", "T1", "--agent", &long], "64"),
        (vec!["msg", "send", "--to", &long, "-m", "x"], "64"),
        (vec!["init", "--name", &long], "500"),
    ] {
        let ran = env.run(&words);
        assert_eq!(ran.code, 2, "{}", ran.err);
        assert!(ran.err.contains(limit) && ran.err.len() < 500, "{}: {}", words[1], ran.err);
    }
    assert_eq!(env.snapshot(), files);
}

/// Runs the real binary with `text` on its standard input.
fn with_input(env: &TestEnv, words: &[&str], text: &str) -> crate::support::Ran {
    let input = env.write("input.txt", text);
    let mut command = env.process(words);
    command.stdin(std::fs::File::open(input).unwrap());
    env.finish(command)
}

#[test]
fn standard_input_is_accepted_up_to_the_limit_and_refused_beyond_it() {
    let env = TestEnv::project();
    steps(&env, &["tasks add One", "tasks claim T1 --agent bob"]);
    let megabyte = "x".repeat(1024 * 1024);
    for words in [
        &["tasks", "add", "x", "-d", "-"][..],
        &["tasks", "update", "T1", "-d", "-"],
        &["tasks", "fail", "T1", "--agent", "bob", "-m", "-"],
        &["tasks", "release", "T1", "--agent", "bob", "-m", "-"],
        &["tasks", "skip", "T1", "--agent", "bob", "-m", "-"],
        &["msg", "send", "--task", "T1", "-m", "-"],
    ] {
        let ran = with_input(&env, words, &megabyte);
        assert_eq!(ran.code, 2, "{ran}");
        assert!(ran.err.contains("1048576 bytes; the limit is 262144"), "{ran}");
    }
    assert_eq!(env.json(&["tasks", "show", "T1"]).data()["task"]["status"], "in_progress");
    let most = "y".repeat(256 * 1024);
    with_input(&env, &["tasks", "update", "T1", "-d", "-"], &most).exits(0);
    assert_eq!(env.json(&["tasks", "show", "T1"]).data()["task"]["description"], most.as_str());
    let ran =
        with_input(&env, &["tasks", "import", "-", "--format", "markdown"], &format!("- [ ] {megabyte}\n"));
    assert_eq!(ran.code, 2, "{ran}");
    assert!(ran.err.contains("500") && ran.err.len() < 500, "{ran}");
}

#[test]
fn nul_and_empty_texts_are_refused() {
    let env = TestEnv::project();
    steps(&env, &["tasks add One", "tasks claim T1 --agent bob"]);
    let ran = with_input(&env, &["tasks", "update", "T1", "-d", "-"], "a\0b");
    assert_eq!(ran.code, 2, "{ran}");
    assert!(ran.err.contains("NUL"), "{ran}");
    for words in [
        &["tasks", "add", ""][..],
        &["tasks", "add", " \t\n"],
        &["tasks", "add", "x", "--id", ""],
        &["tasks", "add", "x", "--label", ""],
        &["tasks", "update", "T1", "--title", ""],
        &["sections", "add", ""],
        &["sections", "update", "X", "--rename", ""],
        &["msg", "send", "--task", "T1", "-m", ""],
        &["msg", "send", "--to", "", "-m", "x"],
        &["agents", "join", "--name", ""],
        &["tasks", "claim", "T1", "--agent", ""],
        &["config", "set", "", "x"],
        &["config", "get", ""],
    ] {
        let ran = env.run(words);
        assert!(matches!(ran.code, 2 | 4), "{ran}");
    }
    for words in [
        &["tasks", "show", ""][..],
        &["locks", "show", ""],
        &["why", ""],
        &["tasks", "add", "x", "--section", ""],
    ] {
        env.run(words).exits(4);
    }
    assert_eq!(env.json(&["tasks", "-s", "all"]).data()["total"], 1);
}

#[test]
fn unusual_ids_match_nothing_and_touch_no_file() {
    let env = TestEnv::project();
    steps(&env, &["tasks add One"]);
    let files = env.snapshot();
    let long = "F".repeat(5000);
    for id in
        ["../../x", "/etc/passwd", "T1/../T1", "%2e%2e", "T1\n", "*", "%", "_", "--weird", "-", long.as_str()]
    {
        for words in [["tasks", "show", "--", id], ["locks", "show", "--", id], ["tasks", "audit", "--", id]]
        {
            let ran = env.run(&words);
            assert_eq!(ran.code, 4, "{}", ran.err);
            assert!(ran.err.len() < 400, "{}", ran.err);
        }
        let ran = env.run(&["tasks", "add", "x", &format!("--id={id}")]);
        assert_eq!(ran.code, 2, "{ran}");
    }
    let ran = env.run(&["tasks", "show", "--weird"]).exits(2);
    assert!(ran.err.contains("-- --weird"), "the error says how to pass it: {ran}");
    assert_eq!(env.snapshot(), files);
}

#[test]
fn numbers_out_of_range_are_refused_with_a_readable_error() {
    let env = TestEnv::project();
    steps(&env, &["tasks add One"]);
    for words in [
        &["tasks", "list", "--limit", "-1"][..],
        &["tasks", "list", "--limit", "99999999999999999999"],
        &["tasks", "list", "--offset", "1e3"],
        &["tasks", "add", "x", "--priority", "99999999999999999999"],
        &["tasks", "add", "x", "--priority", "9223372036854775807"],
        &["tasks", "add", "x", "--priority", "-9223372036854775808"],
        &["tasks", "check", "T1", "--fence", "one"],
        &["events", "--since", "x"],
        &["tasks", "claim", "T1", "--ttl", "99999999999999999999d"],
        &["tasks", "claim", "T1", "--wait", "-5m"],
        &["tasks", "--timeout", "5"],
    ] {
        let ran = env.run(words).exits(2);
        assert!(!ran.err.contains("digit") && !ran.err.contains("target type"), "{ran}");
    }
    for words in [
        &["tasks", "list", "--limit", "18446744073709551615"][..],
        &["tasks", "list", "--offset", "18446744073709551615"],
        &["tasks", "list", "--limit", "0"],
        &["events", "--since", "9223372036854775807"],
        &["events", "--limit", "18446744073709551615"],
        &["msg", "list", "--limit", "18446744073709551615"],
    ] {
        env.run(words).exits(0);
    }
}

#[test]
fn invalid_yaml_is_one_error_with_its_line_and_column() {
    for (text, place) in [
        ("locking: [1\n", ":1:"),
        ("a: b: c\n", ":1:"),
        ("locking:\n\tleaseTtl: 5m\n", ":2:"),
        ("- one\n- two\n", ":1:1:"),
        ("just words\n", ":1:1:"),
        ("locking:\n  leaseTtl: [1]\n", ":2:"),
        ("locking: {}\n---\nlocking: {}\n", ":2:"),
        ("&a [*a]\n", ":1:"),
    ] {
        let env = TestEnv::project();
        steps(&env, &["tasks add One"]);
        env.write("work/.tenure/config.yaml", text);
        let ran = env.run(&["tasks"]);
        assert_eq!(ran.code, 3, "{text:?}: {ran}");
        assert!(ran.err.contains(&format!("config.yaml{place}")), "{text:?}: {ran}");
        assert_eq!(env.json(&["tasks"]).error_code(), "CONFIG_ERROR");
        let files = env.snapshot();
        env.run(&["config", "set", "locking.leaseTtl", "5m"]).exits(3);
        assert_eq!(env.snapshot(), files, "an invalid file is not overwritten");
    }
    for text in ["", "\n", "# nothing\n", "---\n", "{}\n", "locking:\n", "null\n", "\u{feff}locking: {}\n"] {
        let env = TestEnv::project();
        env.write("work/.tenure/config.yaml", text);
        let ran = env.run(&["tasks"]);
        assert_eq!(ran.code, 0, "{text:?}: {ran}");
    }
    let env = TestEnv::project();
    env.write("work/.tenure/config.yaml", [0xff, 0xfe]);
    let ran = env.run(&["tasks"]).exits(3);
    assert!(ran.err.contains("UTF-8"), "{ran}");
    env.write("work/.tenure/config.yaml", "x".repeat(3 * 1024 * 1024));
    let ran = env.run(&["tasks"]).exits(3);
    assert!(ran.err.len() < 400, "{}", ran.err.len());
    std::fs::remove_file(env.path("work/.tenure/config.yaml")).unwrap();
    std::fs::create_dir(env.path("work/.tenure/config.yaml")).unwrap();
    let ran = env.run(&["tasks"]).exits(3);
    assert!(ran.err.contains("it is a folder"), "{ran}");
}
