//! The four formats in realistic files, and the limits of each.

use super::*;

macro_rules! fixture {
    ($name:literal) => {
        include_str!(concat!("../../../tests/fixtures/import/", $name))
    };
}

fn keys(import: &Import) -> Vec<&str> {
    import.tasks.iter().filter_map(|task| task.key.as_deref()).collect()
}

#[test]
fn the_format_is_detected_by_name_and_content() {
    for (name, text, tasks) in [
        ("plan.md", fixture!("plan.md"), 11),
        ("PLAN", fixture!("plan.md"), 11),
        ("tasks.json", fixture!("tasks.json"), 3),
        ("list.json", fixture!("list.json"), 2),
        ("-", fixture!("list.json"), 2),
        ("spec.yaml", fixture!("spec.yaml"), 3),
        ("spec", fixture!("spec.yaml"), 3),
        ("issues.jsonl", fixture!("issues.jsonl"), 4),
        ("issues.json", fixture!("issues.jsonl"), 4),
        ("issues", fixture!("issues.jsonl"), 4),
    ] {
        assert_eq!(read(name, text).tasks.len(), tasks, "{name}");
        let windows = format!("\u{feff}{}", text.replace('\n', "\r\n"));
        assert_eq!(read(name, &windows).tasks.len(), tasks, "{name} with a byte order mark and CRLF");
    }
    assert_eq!(parse(None, "notes.txt", "nothing here"), Err(ImportError::UnknownFormat));
    assert_eq!(parse(None, "", ""), Err(ImportError::UnknownFormat));
}

#[test]
fn a_json_list_keeps_keys_sections_and_order() {
    let import = read("tasks.json", fixture!("tasks.json"));
    assert_eq!(keys(&import), ["API-1", "API-2"]);
    let served = task(&import, "Serve the API");
    assert_eq!(served.source_file.as_deref(), Some("docs/api.md#server"));
    assert_eq!((served.line, served.depends_on.as_slice()), (11, &["API-1".to_owned()][..]));
    assert_eq!(task(&import, "Describe the API").status, ImportedStatus::Completed);
    assert_eq!(import.sections, [ImportedSection { name: "API".to_owned(), ..ImportedSection::default() }]);
    assert_eq!((said(&import, "estimate").count, said(&import, "estimate").line), (2, Some(11)));
    assert_eq!(said(&import, "in_progress").count, 1);
}

#[test]
fn what_tasks_list_prints_can_be_read_back() {
    let import = read("list.json", fixture!("list.json"));
    assert_eq!(keys(&import), ["T1", "T2"]);
    let walls = task(&import, "Raise the walls");
    assert_eq!(walls.depends_on, ["T1"], "an id of the same file becomes the key");
    assert_eq!((walls.line, walls.section.as_deref()), (28, Some("House")));
    assert_eq!(task(&import, "Pour the foundation").status, ImportedStatus::Review);
    for field in ["`id`", "`lease`", "`attempts`", "`createdAt`"] {
        said(&import, field);
    }
    assert!(
        !import.unmapped.iter().any(|note| note.what.contains("ready") || note.what.contains("position"))
    );
}

#[test]
fn a_json_task_without_key_is_depended_on_by_position() {
    let id = "01912d68-783e-7a03-8467-5661c1243ad4";
    let import =
        read("a.json", &format!(r#"[{{"title":"b","dependsOn":["{id}"]}},{{"id":"{id}","title":"a"}}]"#));
    assert_eq!((import.tasks[0].depends_on.len(), &import.tasks[0].depends_on_items[..]), (0, &[1][..]));
}

#[test]
fn json_sections_can_set_their_mode() {
    let text = r#"{"sections":["One",{"name":"Two","serial":true,"priority":3},{"name":"Three","parallel":false}],"tasks":[{"title":"t","section":"Two"}]}"#;
    let import = read("a.json", text);
    let two = ImportedSection { name: "Two".to_owned(), serial: true, priority: Some(3) };
    assert_eq!((import.sections.len(), &import.sections[1]), (3, &two));
    let serial: Vec<bool> = import.sections.iter().map(|section| section.serial).collect();
    assert_eq!(serial, [false, true, true]);
}

#[test]
fn broken_json_names_the_line() {
    let text = "[\n  {\"title\": \"a\"},\n  {\"title\": }\n]";
    assert_eq!(refused("a.json", text), "line 3: not a valid json file: expected value (column 13)");
    let text = "{\"id\":\"a-1\",\"title\":\"t\"}\n\n{\"id\":";
    assert!(refused("a.jsonl", text).starts_with("line 3: not a valid beads file: EOF"));
    for text in ["{}", "3", "{\"data\":null}", "{\"data\":{\"task\":{}}}", "\"x\""] {
        assert!(refused("a.json", text).ends_with("expected an array of tasks"), "{text}");
    }
}

#[test]
fn values_of_the_wrong_type_are_named_once() {
    assert_eq!(refused("a.json", "[{\"title\": [1]}]"), "line 1: `title` must be text");
    assert_eq!(refused("a.json", "[{}]"), "line 1: `title` is missing");
    assert_eq!(refused("a.json", "[7]"), "line 1: `task` must be an object");
    assert_eq!(
        refused("a.json", "[{\"title\":\"a\",\"priority\":1.5}]"),
        "line 1: `priority` must be a whole number"
    );
    let error = refused("a.json", "[{\"title\":\"a\",\"dependsOn\":\"F1\"}]");
    assert_eq!(error, "line 1: `dependsOn` must be a list of texts");
    let error = refused("a.json", "[{\"title\":\"a\",\"status\":\"dnoe\\u001b\"}]");
    assert_eq!(error, "line 1: there is no task status `dnoe\\x1b`");
}

#[test]
fn a_duplicate_key_names_both_lines_in_every_format() {
    let twice = "the key F1 is already used on line";
    for (name, text, first, second) in [
        ("a.md", "- [ ] F1: a\n- [ ] F1: b", 1, 2),
        ("a.json", "[\n{\"key\":\"F1\",\"title\":\"a\"},\n{\"id\":\"F1\",\"title\":\"b\"}]", 2, 3),
        ("a.yaml", "tasks:\n  F1: {title: a}\n  F2: {title: b}\n  F1: {title: c}\n", 2, 4),
        ("a.jsonl", "{\"id\":\"F1\",\"title\":\"a\"}\n{\"id\":\"F1\",\"title\":\"b\"}", 1, 2),
    ] {
        assert_eq!(refused(name, text), format!("line {second}: {twice} {first}"));
    }
}

#[test]
fn ten_problems_are_spelled_out_and_the_rest_counted() {
    let text = format!("- [ ] {}\n", "x".repeat(501)).repeat(25);
    let Err(ImportError::Invalid { problems, total }) = parse(None, "a.md", &text) else {
        panic!("accepted")
    };
    assert_eq!((problems.len(), total), (10, 25));
    let text = ImportError::Invalid { problems, total }.to_string();
    assert!(text.starts_with("line 1: the title has 501 characters; the limit is 500\nline 2: "));
    assert!(text.ends_with("and 15 more"));
}

#[test]
fn every_field_is_checked_against_its_limits() {
    for (text, error) in [
        (r#"[{"title":" "}]"#, "line 1: the title is empty"),
        (r#"[{"title":"a\u0000"}]"#, "line 1: the title contains a NUL character"),
        (
            r#"[{"title":"a","key":"../../x"}]"#,
            "line 1: the task key contains '/'; allowed: letters, digits, `.`, `_`, `-`",
        ),
        (r#"[{"title":"a","section":" "}]"#, "line 1: the section name is empty"),
        (r#"[{"title":"a","labels":[""]}]"#, "line 1: the label is empty"),
        (
            r#"[{"title":"a","dependsOn":["--x"]}]"#,
            "line 1: a dependency is not a task key: the task key contains '-'; allowed: a letter or digit at the start",
        ),
    ] {
        assert_eq!(refused("a.json", text), error);
    }
    let long = format!(r#"[{{"title":"a","description":"{}"}}]"#, "x".repeat(1 << 20));
    assert_eq!(refused("a.json", &long), "line 1: the description has 1048576 bytes; the limit is 262144");
}

#[test]
fn a_lodestar_spec_keeps_its_order_and_reports_what_it_loses() {
    let import = read("spec.yaml", fixture!("spec.yaml"));
    assert_eq!(keys(&import), ["F002", "F001", "F003"]);
    let print = task(&import, "Print the timetable");
    assert_eq!(
        print.description,
        "One page per harbour.\nLarge type.\n\n## Acceptance criteria\n\n- Every harbour has a page\n- Prints on A4: \
         portrait\n\n## From the PRD\n\nPassengers want paper."
    );
    assert_eq!(print.source_file.as_deref(), Some("PRD.md#timetable"));
    assert_eq!(
        (print.line, print.priority, print.labels.as_slice()),
        (6, Some(2), &["print".to_owned()][..])
    );
    let statuses: Vec<_> = import.tasks.iter().map(|task| task.status).collect();
    assert_eq!(statuses, [ImportedStatus::Pending, ImportedStatus::Completed, ImportedStatus::Review]);
    assert_eq!(
        task(&import, "Sell tickets").depends_on,
        ["F001"],
        "a dependency on a deleted task is dropped"
    );
    assert_eq!(
        import.sections,
        [ImportedSection { name: "harbour".to_owned(), serial: false, priority: None }]
    );
    for what in
        ["locks", "`todo`", "prd.refs", "prd_hash", "deleted task", "skipped", "`project`", "`verified_at`"]
    {
        said(&import, what);
    }
}

#[test]
fn yaml_that_is_not_a_spec_is_refused_with_its_line() {
    for text in ["", "  \n", "- a\n- b\n", "just text", "a: b\n", "tasks: [1]\n", "tasks:\n  F1: {title: [\n"]
    {
        let error = parse(Some(Format::Lodestar), "spec.yaml", text).unwrap_err();
        assert!(matches!(error, ImportError::Syntax { format: Format::Lodestar, .. }), "{text:?}: {error}");
    }
    assert_eq!(refused("a.yaml", "tasks:\n  F1: later\n"), "line 2: `F1` must be a task with fields");
    assert_eq!(read("a.yaml", "tasks:\n").tasks, []);
}

#[test]
fn no_yaml_key_is_dropped_because_it_occurs_twice() {
    for text in [
        "tasks:\n  1: {title: a}\n  1: {title: b}\n",
        "tasks:\n  F1:\n    title: a\n    title: b\n",
        "tasks:\n  F1: {title: a}\ntasks:\n  F2: {title: b}\n",
    ] {
        assert!(parse(None, "a.yaml", text).is_err(), "{text}");
    }
}

#[test]
fn beads_issues_keep_ids_and_parents_depend_on_children() {
    let import = read("issues.jsonl", fixture!("issues.jsonl"));
    assert_eq!(keys(&import), ["kv-1", "kv-1.1", "kv-1.2", "kv-7"]);
    assert_eq!(
        task(&import, "Storage engine").depends_on,
        ["kv-1.1", "kv-1.2"],
        "the epic depends on its parts"
    );
    assert_eq!(task(&import, "Storage engine").labels, ["epic"]);
    assert_eq!(
        task(&import, "Read the log back").depends_on,
        ["kv-1.1"],
        "a dependency on a deleted issue is dropped"
    );
    let log = task(&import, "Write the log");
    assert_eq!((log.line, log.priority, log.labels.as_slice()), (2, Some(1), &["disk".to_owned()][..]));
    assert!(
        log.description.starts_with("## Design\n\nLength-prefixed records.\n\n## Acceptance criteria\n\n")
    );
    assert_eq!(task(&import, "Benchmark the disk").status, ImportedStatus::Completed);
    assert_eq!(said(&import, "`created_at`").count, 4);
    for what in [
        "discovered-from",
        "parent-child",
        "in_progress",
        "blocked",
        "deleted issue",
        "not an issue",
        "assignee",
    ] {
        said(&import, what);
    }
}

#[test]
fn a_beads_child_that_depends_on_its_parent_makes_no_cycle() {
    let text = r#"{"id":"a","title":"a","issue_type":"epic"}
{"id":"b","title":"b","dependencies":[{"depends_on_id":"a","type":"parent-child"},{"depends_on_id":"a","type":"blocks"}]}
{"id":"c","title":"c","dependencies":[{"depends_on_id":"gone","type":"parent-child"},{"depends_on_id":"external:x:y","type":"blocks"}]}"#;
    let import = read("issues.jsonl", text);
    assert_eq!(
        (import.tasks[0].depends_on.len(), &import.tasks[1].depends_on[..]),
        (0, &["a".to_owned()][..])
    );
    for what in ["parent that the child depends on", "parent that is not in the file", "another project"] {
        said(&import, what);
    }
}

#[test]
fn the_array_that_bd_list_prints_is_read_too() {
    let text = r#"[{"id":"a-1","title":"t","issue_type":"bug","dependencies":[{"id":"a-2","title":"u","dependency_type":"blocks"}]}]"#;
    let import = read("list.json", text);
    assert_eq!((keys(&import), &import.tasks[0].depends_on[..]), (vec!["a-1"], &["a-2".to_owned()][..]));
}
