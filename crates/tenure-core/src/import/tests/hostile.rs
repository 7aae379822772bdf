//! Malicious and malformed input.

use std::fmt::Write as _;
use std::time::{Duration, Instant};

use proptest::prelude::*;

use super::*;

/// Random concatenations of tokens that the formats give a meaning to.
fn soup() -> impl Strategy<Value = String> {
    let piece = prop_oneof![
        4 => any::<char>().prop_map(String::from),
        12 => proptest::sample::select(vec![
            "- [ ] ", "* [x] ", "1. [-] ", "[", "]", "(", ")", "](", "`", "```", "~~~", "**", "# ", "## ", "---",
            "===", "\n", "\n", "\n", "\r\n", "\t", "  ", "    ", "<!--", "-->", "> ", "F001: ", "depends on ",
            "depends: ", "F002", "é", "👩\u{200d}👧", "{", "}", "\"", ":", ",", "null", "1e999", "tasks:", "title: x",
            "&a ", "*a", "<<: ", "- ", "\"tasks\"", "\"title\"", "\"id\"", "\\", "\0",
        ]).prop_map(str::to_owned),
    ];
    proptest::collection::vec(piece, 0..80).prop_map(|pieces| pieces.concat())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(600))]

    #[test]
    fn no_text_makes_any_format_panic(text in soup(), name in "[a-z]{0,3}\\.(md|json|yaml|jsonl|txt)") {
        let _ = parse(None, &name, &text);
        for format in Format::ALL {
            let _ = parse(Some(format), &name, &text);
        }
    }

    #[test]
    fn every_imported_text_is_within_the_limits(text in soup()) {
        if let Ok(import) = parse(Some(Format::Markdown), "plan.md", &text) {
            for task in &import.tasks {
                prop_assert!(crate::text::check_title(&task.title).is_ok());
                prop_assert!(task.depends_on.iter().all(|key| crate::text::check_task_key(key).is_ok()));
                prop_assert!(task.depends_on_items.iter().all(|&at| at < import.tasks.len()));
                let name = task.section.as_ref();
                prop_assert!(name.is_none_or(|name| import.sections.iter().any(|section| section.name == *name)));
            }
        }
    }

    #[test]
    fn almost_valid_json_never_panics(cut in 0usize..3000, flip in 0usize..3000) {
        let whole = include_str!("../../../tests/fixtures/import/list.json");
        let mut bytes: Vec<u8> = whole.bytes().take(cut).collect();
        if let Some(byte) = bytes.get_mut(flip) {
            *byte = b'[';
        }
        let text = String::from_utf8_lossy(&bytes);
        for format in Format::ALL {
            let _ = parse(Some(format), "x", &text);
        }
    }
}

/// Asserts a bound far above what is needed and far below what a quadratic scan would take.
fn finishes_soon(what: &str, file_name: &str, text: &str) {
    let started = Instant::now();
    let outcome = parse(None, file_name, text);
    let taken = started.elapsed();
    println!("{what}: {taken:?}");
    assert!(taken < Duration::from_secs(10), "{what}: {taken:?}, ok: {}", outcome.is_ok());
}

#[test]
fn a_hundred_thousand_lines_are_read_in_linear_time() {
    let (mut markdown, mut json, mut yaml, mut beads) =
        (String::new(), String::from("["), String::from("tasks:\n"), String::new());
    for n in 0..25_000 {
        writeln!(markdown, "## Part {}\n- [ ] F{n}: Do it (depends on F{})\n\n  Because.", n % 50, n / 2)
            .unwrap();
        writeln!(
            json,
            "{}{{\"key\": \"F{n}\",\n\"title\": \"Do it\",\n\"dependsOn\": [\"F{}\"]\n}}",
            if n > 0 { "," } else { "" },
            n / 2
        )
        .unwrap();
        writeln!(yaml, "  F{n}:\n    title: Do it\n    depends_on: [F{}]\n    status: ready", n / 2).unwrap();
    }
    json.push(']');
    for n in 0..100_000 {
        writeln!(beads, "{{\"id\":\"b-{n}\",\"title\":\"t\",\"status\":\"open\",\"issue_type\":\"task\"}}")
            .unwrap();
    }
    for (name, text, tasks) in [
        ("a.md", markdown, 25_000),
        ("a.json", json, 25_000),
        ("a.yaml", yaml, 25_000),
        ("a.jsonl", beads, 100_000),
    ] {
        finishes_soon(name, name, &text);
        assert_eq!(read(name, &text).tasks.len(), tasks, "{name}");
    }
}

#[test]
fn inputs_designed_to_be_slow_are_read_quickly() {
    let n = 100_000;
    let nested = |step: usize, line: &str| {
        (0..2000).fold(String::new(), |text, depth| text + &" ".repeat(depth * step) + line)
    };
    let deep = nested(2, "- [ ] x\n");
    for (what, text) in [
        ("deep nesting", deep.clone()),
        ("deep nesting, then lazy lines", deep + &"text\n".repeat(n)),
        ("comments without end", format!("- [ ] a `{}", "<!--".repeat(n))),
        ("links without end", format!("## {}\n- [ ] a", "[a](".repeat(n))),
        ("brackets", format!("- [ ] {}\n", "(".repeat(n) + &")".repeat(n))),
        ("equal headings", "## a\n- [ ] x\n".repeat(n)),
        ("far to the right", format!("- [ ] x\n{0}text\n{0}<!-- a --> b\n{0}- [ ] y", " ".repeat(n))),
        ("code spans", format!("- [ ] {}\n", "`".repeat(n))),
        ("blank lines", format!("- [ ] x\n{}\n  end", "\n".repeat(n))),
    ] {
        finishes_soon(what, "a.md", &text);
    }
    for (what, name, text) in [
        ("deep JSON", "a.json", "[".repeat(n)),
        ("deep objects", "a.json", "{\"data\":".repeat(n)),
        ("deep closed JSON", "a.json", format!("[{{\"title\":{}1{}}}]", "[".repeat(n), "]".repeat(n))),
        ("deep beads", "a.jsonl", format!("{{\"id\":{}", "[".repeat(n))),
        ("deep flow YAML", "a.yaml", format!("tasks: {}", "[".repeat(n))),
        ("deep block YAML", "a.yaml", nested(1, "a:\n")),
    ] {
        finishes_soon(what, name, &text);
        assert!(parse(None, name, &text).is_err(), "{what}");
    }
}

#[test]
fn a_yaml_bomb_is_refused() {
    let mut text = String::from("tasks:\n  a: &a [x, x, x, x, x, x, x, x, x, x]\n");
    for (before, name) in ('a'..='i').zip('b'..='j') {
        let aliases = vec![format!("*{before}"); 10].join(", ");
        writeln!(text, "  {name}: &{name} [{aliases}]").unwrap();
    }
    assert!(parse(Some(Format::Lodestar), "bomb.yaml", &text).is_err());
}
