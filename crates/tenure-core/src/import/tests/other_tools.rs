//! Files of Backlog.md, Task Master, vibe-kanban and GitHub.

use super::*;

fn keys(import: &Import) -> Vec<&str> {
    import.tasks.iter().filter_map(|task| task.key.as_deref()).collect()
}

#[test]
fn backlog_md_files_become_tasks() {
    let first = "---\nid: TASK-1\ntitle: Set up the store\nstatus: Done\nassignee: [@ann]\ncreated_date: '2026-01-02'\n\
                 labels:\n  - backend\ndependencies: []\npriority: high\nmilestone: Beta\n---\n\n## Description\n\n\
                 <!-- SECTION:DESCRIPTION:BEGIN -->\nUse SQLite.\n<!-- SECTION:DESCRIPTION:END -->\n\n\
                 ## Acceptance Criteria\n- [ ] #1 It opens\n";
    let second = "---\nid: task-2\ntitle: 'Import: files'\nstatus: In Progress\nassignee:\n  - @bob\ndependencies:\n  - task-1\n\
                  parent_task_id: TASK-3\nordinal: 1000\n---\nText\n";
    let third = "---\nid: TASK-3\ntitle: All of it\nstatus: Waiting for legal\n---\n";
    let files = [
        ("backlog/tasks/task-1 - Set-up.md", first),
        ("backlog/tasks/task-2 - Import.md", second),
        ("backlog/tasks/task-3 - All.md", third),
        ("backlog/tasks/readme.md", "# Notes\n"),
    ];
    let import = parse_files(None, &files).unwrap();
    assert_eq!(keys(&import), ["TASK-1", "task-2", "TASK-3"]);
    let store = task(&import, "Set up the store");
    assert_eq!(
        (store.status, store.priority, store.section.as_deref()),
        (ImportedStatus::Completed, Some(50), Some("Beta"))
    );
    assert_eq!(
        store.description,
        "## Description\n\nUse SQLite.\n\n## Acceptance Criteria\n- [ ] #1 It opens"
    );
    assert_eq!(store.source_file.as_deref(), Some("backlog/tasks/task-1 - Set-up.md"));
    assert_eq!(
        task(&import, "Import: files").depends_on,
        ["TASK-1"],
        "ids are compared without regard to case"
    );
    assert_eq!(task(&import, "All of it").depends_on, ["task-2"], "a parent depends on its children");
    said(&import, "Waiting for legal");
    said(&import, "readme.md");
    assert_eq!(
        parse(None, "task-1.md", first).unwrap().tasks.len(),
        1,
        "one file is recognised by its front matter"
    );
    assert!(
        parse_files(None, &[files[0], ("x.md", "---\nid: [\n---\n")])
            .unwrap_err()
            .to_string()
            .contains("x.md")
    );
}

#[test]
fn task_master_lists_become_tasks_with_their_subtasks() {
    let text = r#"{
  "master": {"tasks": [
    {"id": 1, "title": "Repo", "description": "Make it", "status": "done", "priority": "high", "dependencies": []},
    {"id": 2, "title": "Core", "status": "in-progress", "dependencies": [1], "details": "Carefully", "testStrategy": "Run it",
     "subtasks": [
       {"id": 1, "title": "Parser", "status": "pending", "dependencies": []},
       {"id": 2, "title": "Writer", "status": "deferred", "dependencies": [1, "1"]}
     ]}
  ], "metadata": {"created": "2026-01-02"}},
  "feature": {"tasks": [{"id": 1, "title": "Colours", "status": "cancelled", "dependencies": []}]}
}"#;
    let import = read("tasks.json", text);
    assert_eq!(keys(&import), ["1", "2", "2.1", "2.2", "feature-1"]);
    let core = task(&import, "Core");
    assert_eq!(core.depends_on, ["1", "2.1", "2.2"]);
    assert_eq!(
        (core.description.as_str(), core.line),
        ("## Details\n\nCarefully\n\n## Test strategy\n\nRun it", 4)
    );
    assert_eq!(task(&import, "Writer").depends_on, ["2.1"]);
    let colours = task(&import, "Colours");
    assert_eq!((colours.section.as_deref(), colours.status), (Some("feature"), ImportedStatus::Skipped));
    said(&import, "deferred");
    let plain =
        r#"{"tasks": [{"id": 1, "title": "Only", "status": "review", "subtasks": []}], "metadata": {}}"#;
    assert_eq!(read("tasks.json", plain).tasks[0].status, ImportedStatus::Review);
}

#[test]
fn github_issues_become_tasks() {
    let text = r#"[{"number": 12, "title": "Crash", "body": "On start\r\n", "state": "OPEN", "stateReason": "",
      "labels": [{"id": "x", "name": "bug", "color": "f00"}], "milestone": {"number": 1, "title": "1.0"}, "url": "https://example.org/12",
      "assignees": [{"login": "ann"}]},
     {"number": 7, "title": "Old", "body": "", "state": "CLOSED", "stateReason": "NOT_PLANNED", "labels": []},
     {"number": 8, "title": "Fixed", "state": "closed", "labels": ["done"]}]"#;
    let import = read("issues.json", text);
    assert_eq!(keys(&import), ["GH-12", "GH-7", "GH-8"]);
    let crash = task(&import, "Crash");
    assert_eq!((crash.description.as_str(), crash.section.as_deref()), ("On start\n", Some("1.0")));
    assert_eq!(crash.labels, ["bug"]);
    assert_eq!(task(&import, "Old").status, ImportedStatus::Skipped);
    assert_eq!(task(&import, "Fixed").status, ImportedStatus::Completed);
    said(&import, "assignees");
    said(&import, "url");
}

#[test]
fn the_export_of_vibe_kanban_becomes_tasks() {
    let issues = "Issue ID,Title,Description,Status,Priority,Project,Assignee(s),Labels,Creator,Created,Updated,Start Date,Due Date,\
                  Completed,Parent Issue\r\n\
                  DOM-1,Design,\"Two\r\nlines\",Done,High,Shop,Ann,\"ui, ux\",Ann,2026-01-02T03:04:05+00:00,,,,,\r\n\
                  DOM-2,\"Build, then \"\"ship\"\"\",,In progress,,Shop,,,,,,,,,\r\n\
                  DOM-3,Part,,To do,Urgent,Shop,,,,,,,,,DOM-2\r\n";
    let relationships =
        "Issue ID,Related Issue ID,Type,Created\r\nDOM-1,DOM-2,Blocking,x\r\nDOM-1,DOM-3,Related,x\r\n";
    let files = [
        ("x/issues.csv", issues),
        ("x/projects.csv", "Name,Created,Updated\r\n"),
        ("x/relationships.csv", relationships),
    ];
    let import = parse_files(None, &files).unwrap();
    assert_eq!(keys(&import), ["DOM-1", "DOM-2", "DOM-3"]);
    assert_eq!(task(&import, "Build, then \"ship\"").depends_on, ["DOM-1", "DOM-3"]);
    let design = task(&import, "Design");
    assert_eq!(
        (design.description.as_str(), design.priority, design.labels.len()),
        ("Two\r\nlines", Some(50), 2)
    );
    assert_eq!(task(&import, "Part").line, 5);
    said(&import, "Related");
    assert_eq!(read("issues.csv", issues).tasks.len(), 3);
    let api = r#"{"success": true, "data": [{"id": "0b5f7f6e-0000-4000-8000-000000000000", "project_id": "x", "title": "One",
      "description": null, "status": "inreview", "created_at": "x"}]}"#;
    let one = read("tasks.json", api);
    assert_eq!((one.tasks[0].key.clone(), one.tasks[0].status), (None, ImportedStatus::Review));
}

#[test]
fn a_folder_is_only_for_formats_that_have_one() {
    let files = [("a.md", "- [ ] a"), ("b.md", "- [ ] b")];
    assert_eq!(parse_files(Some(Format::Markdown), &files).unwrap_err(), ImportError::OneFile);
    assert_eq!(parse_files(None, &files).unwrap_err(), ImportError::UnknownFormat);
}

#[test]
fn tags_at_the_end_are_labels_and_the_rest_is_told() {
    let text = "# Plan\n- [ ] Pay #payments #12 @ann !high\n- [ ] Fix #ui in #css (depends on F1) #later\n- [ ] C # 5\n### Deep\n- [ ] ~~x~~ y\n";
    let import = read("a.md", text);
    let found: Vec<_> =
        import.tasks.iter().map(|task| (task.title.as_str(), task.labels.join(" "))).collect();
    assert_eq!(
        found,
        [
            ("Pay #payments #12 @ann !high", String::new()),
            ("Fix #ui in", "css later".to_owned()),
            ("C # 5", String::new()),
            ("~~x~~ y", String::new()),
        ]
    );
    for what in ["`@name`", "`!word`", "struck-through", "level 3"] {
        said(&import, what);
    }
    let import = read("a.md", "- [ ] Pay (depends on F1) #data !high\n- [ ] #only\n");
    let (pay, only) = (&import.tasks[0], &import.tasks[1]);
    assert_eq!(
        (pay.title.as_str(), pay.depends_on.join(" "), pay.labels.join(" ")),
        ("Pay !high", "F1".into(), "data".into())
    );
    assert_eq!((only.title.as_str(), only.labels.len()), ("#only", 0));
    let import = read("a.md", "- [ ] Pay #payments @ann #now !high\n");
    assert_eq!(
        (import.tasks[0].title.as_str(), import.tasks[0].labels.join(" ")),
        ("Pay @ann !high", "payments now".to_owned())
    );
}
