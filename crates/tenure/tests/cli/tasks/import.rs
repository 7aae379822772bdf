use crate::story::Story;
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
