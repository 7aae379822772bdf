use proptest::prelude::*;

use super::*;

fn error(text: &str) -> ConfigError {
    Document::parse(text).expect_err(text)
}

fn at(line: usize, column: usize) -> Position {
    Position { line, column }
}

fn shown(text: &str) -> Vec<(String, String)> {
    let document = Document::parse(text).expect(text);
    document.settings.iter().map(|setting| (setting.key.clone(), setting.value.to_string())).collect()
}

#[test]
fn an_empty_file_is_valid() {
    for text in [
        "",
        "\n",
        "# only a comment\n",
        "---\n",
        "~",
        "{}",
        "locking:\nrunners:\n  # nothing yet\n",
        "\u{feff}",
    ] {
        assert_eq!(Document::parse(text), Ok(Document::default()), "{text:?}");
    }
}

#[test]
fn annotated_and_plain_values_read_the_same() {
    let wrapped = r#"
locking:
  _description: "Task locking settings"

  taskTimeout:
    _description: "Default task lock expiry"
    _default: "60m"
    value: "60m"

  pollInterval:
    _description: "How often to check for lock release"
    _default: "5s"
"#;
    assert_eq!(shown(wrapped), shown("locking: {taskTimeout: 60m}"));
    let plain = "
runners:
  heartbeatInterval: 30s      # How often to update heartbeat
  maxConcurrent: 1            # Max concurrent runners (currently always 1)
  wakeup:
    enabled: true             # Enable cron wake-up
    projectPaths:             # Directories to scan for pending tasks
      - ~/Projects
";
    let same = r#"{"runners":{"_description":"x","value":{"heartbeatInterval":"30s","maxConcurrent":{"value":1},
        "wakeup":{"enabled":true,"projectPaths":{"_default":[],"value":["~/Projects"]}}}}}"#;
    assert_eq!(shown(plain), shown(same));
    assert_eq!(shown(plain).last().unwrap().1, "[~/Projects]");
}

#[test]
fn the_documented_example_is_read() {
    let text = r#"
runners: {preset: mine}
presets:
  mine:
    command: ["./agent.sh", "--careful"]   # argv, never a shell
    env: {MODEL: large, LEVEL: 3, value: x}
hooks:
  - {name: notify, event: task.completed, type: script, command: ./notify.sh, args: ["{{task.title}}"], timeout: 60s, async: true}
  - {name: slack, event: task.failed, type: webhook, url: "https://…", method: POST, headers: {Authorization: "Bearer ${TOKEN}"}, retry: 3}
"#;
    let shown = shown(text);
    assert_eq!(shown[1], ("presets.mine.command".into(), "[./agent.sh, \"--careful\"]".into()));
    assert_eq!(shown[2], ("presets.mine.env".into(), "{LEVEL: \"3\", MODEL: large, value: x}".into()));
    assert!(shown[3].1.contains("Authorization: \"Bearer ${TOKEN}\""), "{}", shown[3].1);
}

#[test]
fn unknown_keys_are_reported_with_their_position_and_the_nearest_known_key() {
    let error = error("locking:\n  taskTimeout: 60m\n  leaseTTL: 5m\n");
    assert_eq!(
        error.to_string(),
        r#"Unknown key "locking.leaseTTL" at line 3, column 3. Did you mean "locking.leaseTtl"?"#
    );
    assert_eq!(error.position(), Some(at(3, 3)));
    assert!(!error.is_usage());
    for (text, key, nearest) in [
        ("runner: {preset: x}", "runner", "runners"),
        ("leaseTtl: 5m", "leaseTtl", "locking.leaseTtl"),
        ("hooks: [{name: a, evnt: b}]", "hooks[0].evnt", "hooks[0].event"),
        ("presets: {mine: {comand: [a]}}", "presets.mine.comand", "presets.mine.command"),
    ] {
        match self::error(text) {
            ConfigError::UnknownKey { key: named, nearest: Some(near), .. } => {
                assert_eq!((named.as_str(), near.as_str()), (key, nearest));
            }
            other => panic!("{other}"),
        }
    }
}

#[test]
fn values_of_the_wrong_type_are_reported_with_their_position() {
    for (text, position, words) in [
        (
            "locking:\n  leaseTtl: 5\n",
            at(2, 13),
            "locking.leaseTtl at line 2, column 13 must be a duration from 1s",
        ),
        ("locking: {leaseTtl: 31d}", at(1, 21), "31d"),
        ("locking: {leaseTtl: -5m}", at(1, 21), "-5m"),
        ("locking: {pollInterval: 0s}", at(1, 25), "longer than 0s"),
        ("locking: [a]", at(1, 10), "a group of settings, but is a list"),
        ("locking: 5m", at(1, 10), "a group of settings"),
        ("tasks: {maxAttempts: 0}", at(1, 22), "a whole number of at least 1"),
        ("tasks: {maxAttempts: \"3\"}", at(1, 22), "the text \"3\""),
        ("tasks: {maxAttempts: 99999999999}", at(1, 22), "a whole number"),
        ("tasks: {maxAttempts: +3}", at(1, 22), "a whole number"),
        ("review: {enabled: yes}", at(1, 19), "true or false"),
        ("review: {preset: [a]}", at(1, 18), "text, but is a list"),
        ("project: {id: nope}", at(1, 15), "a UUID"),
        ("runners: {wakeup: {projectPaths: a}}", at(1, 34), "a list"),
        ("runners: {wakeup: {projectPaths: [[a]]}}", at(1, 35), "text, but is a list"),
        ("presets: {mine: {command: []}}", at(1, 27), "a program"),
        ("presets: {mine: {command: sh -c x}}", at(1, 27), "a program"),
        ("presets: {mine: {env: {A=B: c}}}", at(1, 23), "variables"),
        ("presets: {my mine: {}}", at(1, 11), "must be named with at most 64"),
        ("hooks: {a: b}", at(1, 8), "a list of hooks"),
        ("hooks: [a]", at(1, 9), "a hook such as"),
        ("hooks: [{name: a, event: b, type: c}]", at(1, 35), "script or webhook"),
        ("hooks: [{name: a, type: script, command: c}]", at(1, 9), "hooks[0].event"),
        ("hooks: [{name: a, event: b, type: script, url: c}]", at(1, 48), "only for webhooks"),
        (
            "hooks: [{name: a, event: lease.lost, type: script, command: c, retry: -1}]",
            at(1, 71),
            "a whole number",
        ),
        (
            "hooks: [{name: a, event: task.complete, type: script, command: c}]",
            at(1, 26),
            "did you mean task.completed?",
        ),
    ] {
        let error = error(text);
        assert_eq!(error.position(), Some(position), "{text}: {error}");
        assert!(error.to_string().contains(words), "{text}: {error}");
    }
}

#[test]
fn a_file_without_settings_is_refused_with_a_position() {
    for (text, position) in [
        ("- a\n- b\n", at(1, 1)),
        ("just text", at(1, 1)),
        ("locking: {", at(1, 10)),
        ("locking:\n\ttaskTimeout: 5m\n", at(2, 2)),
        ("locking: {}\n---\nlocking: {}\n", at(2, 1)),
        ("tasks: {maxAttempts: !!int 3}", at(1, 28)),
        ("? [a]\n: b\n", at(1, 3)),
        ("runners.preset: x", at(1, 1)),
    ] {
        let error = error(text);
        assert_eq!(error.position(), Some(position), "{text}: {error}");
    }
}

#[test]
fn a_duplicate_key_is_refused_with_both_positions() {
    let error = error("locking:\n  leaseTtl: 5m\nlocking:\n  leaseTtl: 6m\n");
    assert_eq!(error, ConfigError::DuplicateKey { key: "locking".into(), at: at(3, 1), first: at(1, 1) });
}

#[test]
fn aliases_are_followed_within_limits() {
    assert_eq!(
        shown("locking: {taskTimeout: &t 60m, leaseTtl: *t}"),
        [("locking.taskTimeout".into(), "60m".into()), ("locking.leaseTtl".into(), "60m".into())]
    );
    let mut bomb = "a: &a0 [x, x, x, x, x, x, x, x, x]\n".to_owned();
    for level in 1..12 {
        let before = level - 1;
        let nine = vec![format!("*a{before}"); 9].join(", ");
        bomb = format!("{bomb}a{level}: &a{level} [{nine}]\n");
    }
    let big = format!("a: &a {}\nb: [{}]\n", "x".repeat(10_000), "*a, ".repeat(5_000));
    let deep = format!("{}1", "[".repeat(100_000));
    let deeper = (0..100).fold("a: &a0 [x]\n".to_owned(), |text, level| {
        text + &format!("b{level}: &a{} [[[[[*a{level}]]]]]\n", level + 1)
    });
    let wide = (0..100_000).map(|n| format!("k{n}: 1")).collect::<Vec<_>>().join("\n");
    for text in [bomb, big, deep, deeper, wide, "a: &a [*a]".to_owned(), "x".repeat(2 << 20)] {
        let error = error(&text);
        assert!(matches!(error, ConfigError::Syntax { .. } | ConfigError::TooLarge { .. }), "{error}");
    }
}

proptest! {
    #[test]
    fn no_text_makes_the_parser_panic(text in any::<String>()) {
        let _ = Document::parse(&text);
    }

    #[test]
    fn no_almost_yaml_makes_the_parser_panic(
        pieces in prop::collection::vec(prop::sample::select(vec![
            "locking", "hooks", "presets", "mine", ": ", ":", "\n", "\r\n", "  ", "- ", "[", "]", "{", "}", ",", "\"",
            "'", "#", " # x", "&a ", "*a", "!!str ", "|\n", ">-\n", "? ", "---\n", "...\n", "~", "_description", "value",
            "60m", "leaseTtl", "\t", "\u{feff}", "é", "%YAML 1.2\n", "<<", "command", "\\", "\0",
        ]), 0..40),
    ) {
        let text = pieces.concat();
        if let Err(error) = Document::parse(&text) {
            prop_assert!(!error.to_string().is_empty());
        }
        for (key, value) in [("locking.leaseTtl", "5m"), ("presets.mine.command", "[a]"), ("project.name", "a: b")] {
            if let Ok(edited) = crate::config::set(&text, key, value) {
                prop_assert!(Document::parse(&edited).is_ok());
            }
        }
    }
}
