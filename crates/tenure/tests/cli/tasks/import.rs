use crate::story::{Story, steps};
use crate::support::TestEnv;

const PLAN: &str =
    "# Plan\n\n## Backend\n- [ ] Write the API\n- [x] Choose a database\n\n## Docs\n- [ ] Write it down\n";

fn files(env: &mut TestEnv) {
    env.write("work/PLAN.md", PLAN);
    env.write(
        "work/tasks.json",
        r#"[{"id":"F001","title":"One"},{"id":"F002","title":"Two","dependsOn":["F001"]}]"#,
    );
    env.write(
        "work/circle.json",
        r#"[{"id":"A","title":"A","dependsOn":["B"]},{"id":"B","title":"B","dependsOn":["A"]}]"#,
    );
    env.write("work/broken.json", "[{\"title\": \"One\"},\n {\"title\": ");
    env.write("work/untitled.json", "[{\"title\": \"One\"},\n {\"titel\": \"Two\"}]");
    env.write("work/binary.md", [0xff, 0xfe, 0x00]);
    env.write("work/empty.md", "");
}

#[test]
fn import_reads_check_lists_and_json() {
    let story = Story::project(files)
        .tell(&["tasks", "import", "PLAN.md"])
        .tell(&["tasks", "import", "tasks.json"])
        .tell(&["tasks", "import", "tasks.json", "--dry-run"]);
    insta::assert_snapshot!(story);
}

#[test]
fn import_is_all_or_nothing() {
    let story = Story::project(files)
        .tell(&["tasks", "import", "circle.json"])
        .tell(&["tasks", "import", "broken.json"])
        .tell(&["tasks", "import", "untitled.json"])
        .tell(&["tasks", "import", "binary.md"])
        .tell(&["tasks", "import", "empty.md"])
        .tell(&["tasks", "import", "nowhere.md"])
        .tell(&["tasks", "import", "PLAN.md", "--format", "word"]);
    insta::assert_snapshot!(story);
    let mut env = TestEnv::project();
    files(&mut env);
    for name in ["circle.json", "broken.json", "untitled.json", "binary.md"] {
        env.run(&["tasks", "import", name]).exits(2);
    }
    assert_eq!(env.json(&["tasks", "list", "-s", "all"]).data()["total"], 0);
}

#[test]
fn a_second_import_is_refused_with_a_hint_to_update() {
    let story = Story::project(|env| {
        files(env);
        steps(env, &["tasks import PLAN.md", "tasks import tasks.json"]);
    });
    insta::assert_snapshot!(story.tell(&["tasks", "import", "PLAN.md"]).tell(&[
        "tasks",
        "import",
        "tasks.json"
    ]));
}

#[test]
fn an_imported_task_is_found_among_many_of_another_title() {
    let env = TestEnv::project();
    let many = "- [ ] Again\n".repeat(30);
    env.write("work/many.md", format!("# Plan\n\n{many}"));
    env.write("work/PLAN.md", "# Plan\n\n- [ ] Once\n");
    env.ok(&["tasks", "import", "many.md"]);
    env.ok(&["tasks", "import", "PLAN.md"]);
    // A task with the other title, which is new in this file.
    env.write("work/PLAN.md", "# Plan\n\n- [ ] Again\n- [ ] Once\n");
    let refused = env.json(&["tasks", "import", "PLAN.md"]);
    assert!(refused.message().contains("\"Once\" was already imported"), "{refused}");
}

#[test]
fn an_update_shows_the_difference_and_changes_only_that() {
    let prepare = |env: &mut TestEnv| {
        files(env);
        env.write(
            "work/PLAN.md",
            "## Backend\n- [ ] B1: API\n- [ ] B2: Store\n- [ ] B3: Old\n- [ ] Write it down\n\n## Docs\n- [ ] D1: Guide\n",
        );
        steps(env, &["tasks import PLAN.md", "tasks claim B1 --agent ann", "tasks update B3 --label mine"]);
        env.write(
            "work/PLAN.md",
            "## Docs\n- [x] B1: The API #new\n- [ ] D1: Guide (depends on B2)\n- [ ] D2: Index\n\n## Backend\n\
             - [ ] B2: Store\n  In SQLite.\n- [ ] Write it down\n",
        );
    };
    let story = Story::project(prepare)
        .tell(&["tasks", "import", "PLAN.md", "--update", "--dry-run"])
        .tell(&["tasks", "import", "PLAN.md", "--update"]);
    insta::assert_snapshot!(story);
    let env = TestEnv::project();
    let mut env = env;
    prepare(&mut env);
    let before = env.snapshot();
    env.ok(&["tasks", "import", "PLAN.md", "--update", "--dry-run"]);
    assert!(env.snapshot() == before, "a dry run writes nothing");
    env.ok(&["tasks", "import", "PLAN.md", "--update"]);
    let show = |key: &str| env.json(&["tasks", "show", key]).exits(0).data()["task"].clone();
    let (b1, b3, d1) = (show("B1"), show("B3"), show("D1"));
    assert_eq!(
        (&b1["title"], &b1["status"], &b1["section"]),
        (&"The API".into(), &"in_progress".into(), &"Backend".into())
    );
    assert_eq!((&b3["labels"][0], &d1["dependsOn"][0]), (&"mine".into(), &"B2".into()));
    let events = env.ok(&["events", "--limit", "1000"]).out;
    let again = env.json(&["tasks", "import", "PLAN.md", "--update"]).exits(0).data();
    let changes: Vec<_> =
        again["tasks"].as_array().unwrap().iter().map(|task| task["change"].clone()).collect();
    assert_eq!(changes, ["unchanged"; 5], "{again}");
    assert_eq!(
        env.ok(&["events", "--limit", "1000"]).out,
        events,
        "an update without a difference leaves no event"
    );
    assert_eq!(again["absent"][0]["key"], "B3");
}

#[test]
fn an_update_that_would_close_a_cycle_names_file_and_lines() {
    let env = TestEnv::project();
    env.write("work/p.md", "- [ ] A1: a\n- [ ] A2: b (depends on A1)\n");
    env.ok(&["tasks", "import", "p.md"]);
    env.write("work/p.md", "# P\n\n- [ ] A1: a (depends on A2)\n- [ ] A2: b\n");
    let refused = env.json(&["tasks", "import", "p.md", "--update"]).exits(2);
    assert_eq!(refused.error_code(), "DEPENDENCY_CYCLE");
    let message = refused.message();
    assert!(
        message.starts_with("p.md: ") && message.contains("A1 (line 3)") && message.contains("A2 (line 4)"),
        "{message}"
    );
    let titles = env.ok(&["tasks", "list"]).out;
    assert!(!titles.contains(" P "), "nothing of it was kept: {titles}");
}

#[test]
fn folders_and_files_of_other_tools_are_recognised() {
    let env = TestEnv::project();
    env.write(
        "work/backlog/tasks/task-1 - One.md",
        "---\nid: TASK-1\ntitle: One\nstatus: To Do\n---\n\nText\n",
    );
    env.write("work/backlog/completed/task-2 - Two.md", "---\nid: TASK-2\ntitle: Two\nstatus: Done\n---\n");
    env.write("work/issues.json", r#"[{"number": 3, "title": "Three", "state": "OPEN", "labels": []}]"#);
    env.write("work/odd.txt", r#"{"master": {"tasks": [{"id": 4, "title": "Four", "status": "pending"}]}}"#);
    env.ok(&["tasks", "import", "backlog"]);
    env.ok(&["tasks", "import", "issues.json"]);
    env.ok(&["tasks", "import", "odd.txt", "--from", "task-master"]);
    let data = env.json(&["tasks", "list", "-s", "all", "--sort", "title"]).data();
    let keys: Vec<_> =
        data["tasks"].as_array().unwrap().iter().map(|task| task["key"].as_str().unwrap()).collect();
    assert_eq!(keys, ["4", "TASK-1", "GH-3", "TASK-2"]);
    env.run(&["tasks", "import", "home"]).exits(2);
}
