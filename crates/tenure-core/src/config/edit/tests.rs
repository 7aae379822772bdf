use proptest::prelude::*;

use super::*;

fn check(text: &str, key: &str, value: &str, expected: &str) {
    assert_eq!(set(text, key, value).as_deref(), Ok(expected), "{text}");
}

#[test]
fn a_missing_key_is_added() {
    check("", "locking.leaseTtl", "5m", "locking:\n  leaseTtl: 5m\n");
    check("", "runners.wakeup.enabled", "false", "runners:\n  wakeup:\n    enabled: false\n");
    check("# mine", "project.name", "x", "# mine\nproject:\n  name: x");
    check("---\n", "project.name", "x", "---\nproject:\n  name: x\n");
    check("\u{feff}", "project.name", "x", "\u{feff}project:\n  name: x\n");
    check(
        "runners:\n    preset: a # c\n\n# end\n",
        "runners.wakeup.enabled",
        "true",
        "runners:\n    preset: a # c\n    wakeup:\n      enabled: true\n\n# end\n",
    );
    check(
        "locking:\n  leaseTtl: 5m\n\nrunners:\n  preset: a",
        "tasks.maxAttempts",
        "7",
        "locking:\n  leaseTtl: 5m\n\nrunners:\n  preset: a\ntasks:\n  maxAttempts: 7",
    );
    check(
        "runners: # none\n  # x\ntasks:\n",
        "runners.preset",
        "a",
        "runners: # none\n  preset: a\n  # x\ntasks:\n",
    );
}

/// Asserts that the edit is refused with this reason and a hint to `tenure config edit`.
fn refused(text: &str, key: &str, value: &str, reason: &str) {
    match set(text, key, value) {
        Err(error @ ConfigError::CannotEdit { .. }) => {
            let shown = error.to_string();
            assert!(shown.contains(reason) && !error.is_usage(), "{text}: {shown}");
            assert!(shown.starts_with("Cannot set "), "{shown}");
        }
        other => panic!("{text}: {other:?}"),
    }
}

#[test]
fn a_key_inside_a_flow_mapping_is_refused() {
    for (text, key) in [
        ("runners: {preset: mine} # c\n", "runners.preset"),
        ("runners: {preset: mine}", "runners.maxConcurrent"),
        ("runners: {}\n", "runners.wakeup.enabled"),
        ("runners: {preset: , }\n", "runners.preset"),
        ("runners: {preset}\n", "runners.preset"),
        (r#"{"runners":{"preset":"a"}}"#, "runners.preset"),
        ("{}", "runners.preset"),
        ("runners: {\n  preset: a, # x\n}\n", "runners.preset"),
        ("locking: {_description: x, value: {leaseTtl: {_default: 15m}}}", "locking.leaseTtl"),
        ("locking: {_description: x, value: {leaseTtl: {_default: 15m}}}", "locking.pollInterval"),
        ("locking:\n  leaseTtl: {_default: 15m}\n", "locking.leaseTtl"),
        ("locking:\n  leaseTtl: {_default: 15m, value: 5m}\n", "locking.leaseTtl"),
    ] {
        let value = match key {
            "runners.maxConcurrent" => "2",
            "runners.wakeup.enabled" => "true",
            "runners.preset" => "b",
            _ => "4m",
        };
        refused(text, key, value, "inside a flow mapping");
    }
    // Other keys of the file are edited as usual.
    check(
        "runners: {preset: mine}\ntasks:\n  maxAttempts: 3\n",
        "tasks.maxAttempts",
        "4",
        "runners: {preset: mine}\ntasks:\n  maxAttempts: 4\n",
    );
}

#[test]
fn block_scalars_and_unusual_groups_are_refused() {
    for sign in ["|", ">", "|-", ">+"] {
        let text = format!("runners:\n  promptTemplate: {sign}\n    a\n    b\n\n  preset: x\n");
        refused(&text, "runners.promptTemplate", "c d", "block scalar");
        check(&text, "runners.preset", "z", &text.replace(" x\n", " z\n"));
    }
    refused("runners: ~ # none\n", "runners.preset", "a", "unusual form");
    refused("? runners\n", "runners.preset", "a", "unusual form");
}

#[test]
fn quotes_line_ends_and_trailing_comments_are_kept() {
    check(
        "locking:\r\n  leaseTtl: \"5m\"  # c\r\n",
        "locking.leaseTtl",
        "6m",
        "locking:\r\n  leaseTtl: \"6m\"  # c\r\n",
    );
    check(
        "locking:\r\n  leaseTtl: 5m\r\n",
        "locking.waitTimeout",
        "0s",
        "locking:\r\n  leaseTtl: 5m\r\n  waitTimeout: 0s\r\n",
    );
    check("project:\n  name: 'it''s'", "project.name", "isn't", "project:\n  name: 'isn''t'");
    check("project:\n  name: 'x'", "project.name", "a\nb", "project:\n  name: \"a\\nb\"");
    check(
        "project:\n  name: a\n    b\n  # c\n",
        "project.name",
        "true",
        "project:\n  name: \"true\"\n  # c\n",
    );
    check("project:\n  name:\n  # c\n", "project.name", "x", "project:\n  name: x\n  # c\n");
    check("locking:\n  leaseTtl: 15m", "locking.leaseTtl", "1h30m", "locking:\n  leaseTtl: 1h30m");
}

#[test]
fn the_value_of_a_wrapper_is_changed() {
    let text =
        "locking:\n  leaseTtl:\n    _description: \"x\"\n    _default: \"15m\"\n    value: \"15m\"  # c\n";
    check(text, "locking.leaseTtl", "5m", &text.replace("value: \"15m\"", "value: \"5m\""));
    let text = "locking:\n  leaseTtl:\n    _description: x # c\n  pollInterval: 5s\n";
    check(text, "locking.leaseTtl", "5m", &text.replace("x # c\n", "x # c\n    value: 5m\n"));
    let text = "locking:\n  _description: x\n  value:\n    leaseTtl:\n      _default: 15m\n";
    check(text, "locking.leaseTtl", "5m", &format!("{text}      value: 5m\n"));
    check(text, "locking.pollInterval", "1s", &format!("{text}    pollInterval: 1s\n"));
}

#[test]
fn lists_and_maps_are_written_in_flow_style() {
    let seed = "runners:\n  wakeup:\n    projectPaths:             # Directories to scan\n      - ~/Projects\n      - /b\n\n    enabled: true\n";
    check(
        seed,
        "runners.wakeup.projectPaths",
        r#"["~/a", "b, c"]"#,
        "runners:\n  wakeup:\n    projectPaths: [~/a, \"b, c\"]             # Directories to scan\n\n    enabled: true\n",
    );
    check(
        "",
        "presets.mine.command",
        "[./a.sh, --careful]",
        "presets:\n  mine:\n    command: [./a.sh, \"--careful\"]\n",
    );
    check(
        "presets:\n  mine:\n    env:\n      A: b\n    command: [a]\n",
        "presets.mine.env",
        "{MODEL: large}",
        "presets:\n  mine:\n    env: {MODEL: large}\n    command: [a]\n",
    );
    check(
        "",
        "hooks",
        r#"[{"name":"a","event":"task.failed","type":"script","command":"./x","async":true,"retry":2}]"#,
        "hooks: [{name: a, event: task.failed, type: script, command: ./x, async: true, retry: 2}]\n",
    );
    check("hooks: []\n", "hooks", "[]", "hooks: []\n");
}

#[test]
fn a_value_that_others_depend_on_is_refused() {
    let anchored = "locking:\n  taskTimeout: &t 60m\n  leaseTtl: *t\n";
    refused(anchored, "locking.taskTimeout", "50m", "other values depend on it");
    refused(anchored, "locking.leaseTtl", "50m", "alias");
    let group = "presets:\n  a: &p\n    command: [x]\n  b: *p\n";
    refused(group, "presets.b.command", "[y]", "alias");
    refused(group, "presets.a.command", "[y]", "other values depend on it");
    refused(
        "runners:\n  wakeup:\n    projectPaths:\n      - a # mine\n      - b\n",
        "runners.wakeup.projectPaths",
        "[]",
        "a comment would be lost",
    );
    refused("? locking\n: leaseTtl: 5m\n", "runners.preset", "a", "unusual form");
}

#[test]
fn wrong_keys_and_values_are_usage_errors_and_broken_files_are_not() {
    for (key, value) in [
        ("locking.leaseTTL", "5m"),
        ("locking.leaseTtl", "5"),
        ("tasks.maxAttempts", "0"),
        ("hooks", "[{}]"),
        ("runners", "a"),
    ] {
        assert!(set("", key, value).unwrap_err().is_usage(), "{key}");
    }
    let error = set("locking: [", "locking.leaseTtl", "5m").unwrap_err();
    assert!(!error.is_usage() && error.position().is_some());
}

/// One key of a file: style 0 is plain, 1 double-quoted, 2 a wrapper, 3 a wrapper without a value, 4 no value.
fn leaf(name: &str, value: &str, style: u8, indent: &str, comment: &str, eol: &str) -> String {
    let inner = format!("{indent}  ");
    match style {
        0 => format!("{indent}{name}: {value}{comment}{eol}"),
        1 => format!("{indent}{name}: \"{value}\"{comment}{eol}"),
        2 => format!(
            "{indent}{name}:{comment}{eol}{inner}_description: d{eol}{inner}value: {value}{comment}{eol}"
        ),
        3 => format!("{indent}{name}:{eol}{inner}_default: \"x\"{comment}{eol}"),
        _ => format!("{indent}{name}:{comment}{eol}"),
    }
}

const GROUPS: [(&str, &[(&str, &str)]); 4] = [
    ("locking", &[("leaseTtl", "14m"), ("sectionTimeout", "119m"), ("waitTimeout", "1h30m")]),
    ("runners", &[("preset", "mine"), ("agentTimeout", "3h"), ("killGrace", "0s")]),
    ("project", &[("name", "some project")]),
    ("presets.mine", &[("command", "[./a.sh, x y]"), ("env", "{A: b}")]),
];

fn document() -> impl Strategy<Value = String> {
    let entry = (any::<bool>(), 0..5u8, any::<bool>(), any::<bool>());
    let group = (0..4u8, prop::collection::vec(entry, 3), any::<bool>());
    (prop::collection::vec(group, GROUPS.len()), any::<bool>(), any::<bool>(), 1..5usize).prop_map(
        |(groups, crlf, cut, step)| {
            let eol = if crlf { "\r\n" } else { "\n" };
            let mut text = String::new();
            for ((path, keys), (form, entries, spaced)) in GROUPS.iter().zip(groups) {
                let mut indent = String::new();
                if form == 0 {
                    continue;
                }
                if spaced {
                    text.extend([eol, "# about ", path, " ü", eol]);
                }
                for segment in path.split('.') {
                    text.extend([indent.as_str(), segment, ":"]);
                    text += if form == 1 && path.ends_with(segment) { "" } else { eol };
                    indent += &" ".repeat(step);
                }
                let used = keys.iter().zip(entries).filter(|(_, entry)| entry.0);
                if form == 1 {
                    let flow: Vec<String> =
                        used.map(|((name, value), _)| format!("{name}: {value}")).collect();
                    text.extend([" {", &flow.join(", "), "} # flow", eol]);
                    continue;
                }
                for ((name, value), (_, style, commented, blank)) in used {
                    let comment = if commented { format!("  # {name} \"note\"") } else { String::new() };
                    let style = if value.starts_with(['[', '{']) && style == 1 { 0 } else { style };
                    text += &leaf(name, value, style, &indent, &comment, eol);
                    text += if blank { eol } else { "" };
                }
            }
            if cut { text.trim_end().to_owned() } else { text }
        },
    )
}

fn change() -> impl Strategy<Value = (&'static str, String)> {
    prop_oneof![
        (1..3600u32).prop_map(|n| ("locking.leaseTtl", format!("{n}s"))),
        (1..600u32).prop_map(|n| ("locking.pollInterval", format!("{n}ms"))),
        any::<String>().prop_map(|text| ("project.name", text.replace('\0', ""))),
        "[ -~]{0,12}".prop_map(|text| ("runners.preset", text)),
        any::<bool>().prop_map(|flag| ("runners.wakeup.enabled", flag.to_string())),
        (1..9u32).prop_map(|n| ("tasks.maxAttempts", n.to_string())),
        prop::collection::vec("[ -~]{1,6}", 1..4)
            .prop_map(|items| ("presets.mine.command", serde_json::to_string(&items).unwrap())),
        Just(("presets.other.env", r#"{"X": "y: z"}"#.to_owned())),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2_500, ..ProptestConfig::default() })]

    #[test]
    fn only_the_wanted_value_changes_and_flow_mappings_are_refused((text, (key, value)) in (document(), change())) {
        let before = Reading::of(&text).expect("the generator makes valid files");
        let groups: Vec<String> = key.split('.').map(|group| format!("{group}: {{")).collect();
        let in_flow = groups[..groups.len() - 1]
            .iter()
            .any(|group| text.lines().any(|line| line.trim_start().starts_with(group)));
        let Some(KnownName::Key(known)) = keys::find(key) else { panic!("{key}") };
        let wanted = Value::from_text(known.kind, key, &value, &Location::Request).unwrap();
        let is_set = before.document.setting(key).is_some_and(|setting| setting.value == wanted);
        if in_flow && !is_set {
            refused(&text, key, &value, "inside a flow mapping");
            return Ok(());
        }
        let edited = set(&text, key, &value).expect("all other forms can be edited");
        let after = Reading::of(&edited).unwrap();
        prop_assert!(before.document.differs_only_in(key, Some(&wanted), &after.document), "{}\n=>\n{}", text, edited);
        prop_assert_eq!(&before.comments, &after.comments);
        for line in text.lines().filter(|line| line.trim_start().starts_with('#') || line.is_empty()) {
            prop_assert!(edited.lines().any(|kept| kept == line));
        }
        prop_assert!(edited.lines().count() >= text.lines().count());
        prop_assert_eq!(text.contains("\r\n") && !edited.replace("\r\n", "").contains('\n'), text.contains("\r\n"));
        prop_assert_eq!(set(&edited, key, &value), Ok(edited.clone()));
    }
}

#[test]
fn a_value_is_removed_and_everything_else_stays() {
    for (text, key, wanted) in [
        (
            "locking:\n  leaseTtl: 30m\n  waitTimeout: 1m\n",
            "locking.leaseTtl",
            "locking:\n  waitTimeout: 1m\n",
        ),
        ("locking:\n  leaseTtl: 30m # long\n", "locking.leaseTtl", "locking:\n  # long\n"),
        (
            "# a\nlocking:\n  # b\n  leaseTtl: 30m\n  # c\n",
            "locking.leaseTtl",
            "# a\nlocking:\n  # b\n  # c\n",
        ),
        (
            "locking:\n  leaseTtl:\n    _description: text\n    value: 30m\n",
            "locking.leaseTtl",
            "locking:\n  leaseTtl:\n    _description: text\n",
        ),
        (
            "runners:\n  allow:\n    - npm test\n    - make\n  preset: codex\n",
            "runners.allow",
            "runners:\n  preset: codex\n",
        ),
        (
            "locking:\r\n  leaseTtl: 30m\r\n  waitTimeout: 1m\r\n",
            "locking.leaseTtl",
            "locking:\r\n  waitTimeout: 1m\r\n",
        ),
        ("locking:\n  waitTimeout: 1m\n  leaseTtl: 30m", "locking.leaseTtl", "locking:\n  waitTimeout: 1m\n"),
        ("locking:\n  waitTimeout: 1m\n", "locking.leaseTtl", "locking:\n  waitTimeout: 1m\n"),
        ("", "locking.leaseTtl", ""),
    ] {
        assert_eq!(unset(text, key).unwrap(), wanted, "{text:?}");
    }
}

#[test]
fn a_value_that_cannot_be_removed_alone_is_refused() {
    for (text, key) in [
        ("locking: {leaseTtl: 30m}\n", "locking.leaseTtl"),
        ("locking: &same\n  leaseTtl: 30m\n", "locking"),
        ("runners:\n  allow:\n    - npm test # why\n    - make\n", "runners.allow"),
        ("x", "no.such"),
    ] {
        unset(text, key).unwrap_err();
    }
}
