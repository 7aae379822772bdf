//! Realistic Markdown.

use super::*;

#[test]
fn a_plan_becomes_tasks_sections_and_anchors() {
    let import = read("docs/plan.md", include_str!("../../../tests/fixtures/import/plan.md"));
    let titles: Vec<&str> = import.tasks.iter().map(|task| task.title.as_str()).collect();
    assert_eq!(
        titles,
        [
            "Choose the database",
            "Write the schema",
            "Import the old parcels",
            "Support the fax gateway",
            "Talk to every carrier",
            "Ask for sandbox keys",
            "Read the rate limits",
            "Search box",
            "Logo",
            "Note: keep it fast",
            "Load test",
        ]
    );
    let names: Vec<&str> = import.sections.iter().map(|section| section.name.as_str()).collect();
    assert_eq!(names, ["Backend", "Front end"]);
    let schema = task(&import, "Write the schema");
    assert_eq!(
        (schema.key.as_deref(), schema.depends_on.as_slice()),
        (Some("F002"), &["F001".to_owned()][..])
    );
    assert_eq!(
        schema.description,
        "One table per aggregate; money in cents.\n\n```sql\n-- - [ ] not a task\nCREATE TABLE parcel (id INTEGER \
         PRIMARY KEY);\n```"
    );
    let carriers = task(&import, "Talk to every carrier");
    assert_eq!((carriers.section.as_deref(), carriers.line), (Some("Backend"), 29));
    assert_eq!(carriers.source_file.as_deref(), Some("docs/plan.md#carriers"));
    assert_eq!(
        (carriers.depends_on.as_slice(), carriers.depends_on_items.as_slice()),
        (&["F010".to_owned()][..], &[6][..])
    );
    assert_eq!(task(&import, "Read the rate limits").description, "that changed in March");
    assert_eq!(task(&import, "Import the old parcels").depends_on, ["F002"]);
    let load = task(&import, "Load test");
    assert_eq!(load.depends_on, ["F002", "F003"]);
    assert_eq!(load.source_file.as_deref(), Some("docs/plan.md#backend-1"));
    for what in ["text outside", "begun", "without a check box", "second heading"] {
        assert_eq!(said(&import, what).count, 1, "{what}");
    }
}

#[test]
fn a_section_is_parallel_unless_its_heading_says_serial() {
    let import = read(
        "p.md",
        "# Build\n- [ ] a\n## Release (serial)\n- [ ] b\n## Docs (Serial)\n- [ ] c\n## (serial)\n- [ ] d\n",
    );
    let found: Vec<(&str, bool)> = import.sections.iter().map(|s| (s.name.as_str(), s.serial)).collect();
    assert_eq!(found, [("Build", false), ("Release", true), ("Docs", true)]);
    assert_eq!(
        task(&import, "b").source_file.as_deref(),
        Some("p.md#release-serial"),
        "the anchor is the heading's"
    );
    assert_eq!(task(&import, "d").section, None);
}

#[test]
fn every_marker_and_check_mark_is_accepted() {
    use ImportedStatus::{Completed, Pending, Skipped};
    let import = read("a.md", "- [ ] a\n* [x] b\n+ [X] c\n1. [-] d\n2) [~] e\n-\t[/] f\n- [!] g\n- [] h\n");
    let statuses: Vec<_> = import.tasks.iter().map(|task| task.status).collect();
    assert_eq!(statuses, [Pending, Completed, Completed, Skipped, Pending, Pending, Pending, Pending]);
    assert_eq!((said(&import, "begun").count, said(&import, "`[!]`").line), (2, Some(7)));
}

#[test]
fn links_and_footnotes_are_not_check_boxes() {
    let import = read("a.md", "- [x](http://example.org)\n- [a] b\n- [1] c\n- [^1] d\n-[ ] e\n[ ] f\n");
    assert_eq!(import.tasks, []);
}

#[test]
fn ordinary_words_are_not_keys() {
    for (item, key, title) in [
        ("F001: Do", Some("F001"), "Do"),
        ("**F001** Do", Some("F001"), "Do"),
        ("**F001:** Do", Some("F001"), "Do"),
        ("**F001**: Do", Some("F001"), "Do"),
        ("[F001] Do", Some("F001"), "Do"),
        ("`F001` Do", Some("F001"), "Do"),
        ("`F001` — Do", Some("F001"), "Do"),
        ("T001 [P] Do", Some("T001"), "[P] Do"),
        ("AUTH-12: Do", Some("AUTH-12"), "Do"),
        ("[bd-a3f8.1] Do", Some("bd-a3f8.1"), "Do"),
        ("Note: do", None, "Note: do"),
        ("fix: the bug", None, "fix: the bug"),
        ("`main2.rs` panics", None, "`main2.rs` panics"),
        ("`sha256` the file", None, "`sha256` the file"),
        ("**Backend** first", None, "**Backend** first"),
        ("[F001](http://example.org) Do", None, "[F001](http://example.org) Do"),
        ("10:30 meeting", None, "10:30 meeting"),
        ("F001:", None, "F001:"),
        ("F001", None, "F001"),
    ] {
        let import = read("a.md", &format!("- [ ] {item}"));
        let task = &import.tasks[0];
        assert_eq!((task.key.as_deref(), task.title.as_str()), (key, title), "{item}");
    }
}

#[test]
fn dependencies_are_taken_from_the_end_of_a_title_only_if_they_are_keys() {
    for (item, title, keys) in [
        ("Do (depends on F001, F002)", "Do", &["F001", "F002"][..]),
        ("Do (Depends on: F001 and `F002`)", "Do", &["F001", "F002"]),
        ("Do — depends: F001", "Do", &["F001"]),
        ("Do. Blocked by: F001.", "Do", &["F001"]),
        ("Do (depends on the weather)", "Do (depends on the weather)", &[]),
        ("Port what depends on V8", "Port what depends on V8", &[]),
        ("Do (later)", "Do (later)", &[]),
        ("It depends: maybe", "It depends: maybe", &[]),
        ("ÄÖÜ İ (depends on F001)", "ÄÖÜ İ", &["F001"]),
    ] {
        let import = read("a.md", &format!("- [ ] {item}"));
        assert_eq!(
            (import.tasks[0].title.as_str(), import.tasks[0].depends_on.as_slice()),
            (title, &keys.iter().map(|&key| key.to_owned()).collect::<Vec<_>>()[..]),
            "{item}"
        );
    }
}

#[test]
fn an_outer_item_depends_on_its_children_unless_they_depend_on_it() {
    let import =
        read("a.md", "- [ ] F1: a\n  - [ ] F2: b\n    - [ ] F3: c (depends on F1)\n  - plain\n    - [ ] d\n");
    assert_eq!(import.tasks[0].depends_on, ["F2"]);
    assert_eq!(import.tasks[0].depends_on_items, [3], "a plain item between them changes nothing");
    assert_eq!(import.tasks[1].depends_on.len(), 0);
    assert_eq!(said(&import, "depends on an outer one").line, Some(3));
    assert_eq!(import.tasks[0].description, "- plain");
}

#[test]
fn tabs_and_two_spaces_nest_alike() {
    for inner in ["  ", "    ", "\t"] {
        let import = read("a.md", &format!("1. [ ] a\n{inner}- [ ] b\n{inner}- [ ] c\n- [ ] d"));
        assert_eq!(import.tasks[0].depends_on_items, [1, 2], "{inner:?}");
    }
}

#[test]
fn code_comments_and_quotations_contain_no_tasks() {
    let text = "~~~\n- [ ] a\n~~~\n<!--\n- [ ] b\n-->\n- [ ] c <!-- - [ ] d --> e\n\n> - [ ] f\n\ntext\n\n    - [ ] g\n";
    let import = read("a.md", text);
    assert_eq!(import.tasks.len(), 1);
    assert_eq!(import.tasks[0].title, "c  e");
    said(&import, "quotation");
    said(&import, "indented code");
}

#[test]
fn an_unclosed_block_is_reported_and_ends_with_its_item() {
    let import = read("a.md", "- [ ] a\n  ```\n  code\n- [ ] b\n```\n- [ ] c\n");
    assert_eq!(import.tasks.len(), 2);
    assert_eq!(import.tasks[0].description, "```\ncode");
    assert_eq!(said(&import, "code block without an end").line, Some(5));
    assert_eq!(said(&read("a.md", "- [ ] a\n<!-- b\n- [ ] c"), "comment without an end").line, Some(2));
}

#[test]
fn anchors_follow_githubs_rules() {
    let text = "# Hello, World!\n- [ ] a\n## `code` & *more* [link](x)\n- [ ] b\n## Größe 2.0\n- [ ] c\n### hello world\n- [ ] d\n\n\
                Under_line\n===\n- [ ] e\n## Closed ##\n- [ ] f\n##\n- [ ] g\n";
    let import = read("a.md", text);
    let of = |title: &str| task(&import, title).source_file.clone().unwrap();
    assert_eq!(of("a"), "a.md#hello-world");
    assert_eq!(of("b"), "a.md#code--more-link");
    assert_eq!(of("c"), "a.md#größe-20");
    assert_eq!(of("d"), "a.md#hello-world-1");
    assert_eq!(of("e"), "a.md#under_line");
    assert_eq!(of("f"), "a.md#closed");
    assert_eq!(of("g"), "a.md");
    assert_eq!(task(&import, "b").section.as_deref(), Some("code & more link"));
    assert_eq!(task(&import, "d").section.as_deref(), Some("Größe 2.0"), "deeper headings are not sections");
    assert_eq!(task(&import, "g").section, None);
    assert_eq!(task(&read("a.md", "### Only\n- [ ] a"), "a").section.as_deref(), Some("Only"));
}

#[test]
fn an_empty_item_is_refused_and_an_empty_file_is_empty() {
    assert_eq!(refused("a.md", "- [ ] a\n- [ ]\n"), "line 2: the title is empty");
    assert_eq!(read("a.md", "").tasks, []);
}
