use crate::story::{Story, steps};
use crate::support::TestEnv;

fn backlog(env: &mut TestEnv) {
    steps(
        env,
        &[
            "sections add Backend",
            "sections add Docs --parallel --priority 50",
            "tasks add Schema --id F001 --section Backend --source SPEC.md#schema",
            "tasks add Importer --id F002 --section Backend --depends-on F001 --label data --priority 5",
            "tasks add =SUM(A1) --id odd -d One,two",
            "tasks add Guide --section Docs --depends-on F002 --depends-on odd",
            "tasks update F001 --status completed",
            "tasks update odd --status failed",
            "tasks claim F002 --agent ann",
        ],
    );
}

#[test]
fn export_writes_markdown_json_and_csv() {
    let story = Story::project(backlog)
        .tell(&["tasks", "export"])
        .tell(&["tasks", "export", "--format", "json"])
        .tell(&["tasks", "export", "--format", "csv", "--status", "failed,completed"])
        .tell(&["tasks", "export", "--status", "finished"]);
    insta::assert_snapshot!(story);
}

#[test]
fn an_export_is_imported_as_the_same_tasks_and_updates_nothing() {
    let mut env = TestEnv::project();
    backlog(&mut env);
    for format in ["md", "json"] {
        let exported = env.ok(&["tasks", "export", "--format", format]).out;
        let name = format!("plan.{format}");
        let other = TestEnv::project();
        other.write(&format!("work/{name}"), &exported);
        other.ok(&["tasks", "import", &name]);
        // A task in progress is pending elsewhere, because an import grants no lease.
        let again = other.ok(&["tasks", "export", "--format", format]).out;
        assert_eq!(again, exported.replace("- [~]", "- [ ]").replace("in_progress", "pending"));
        env.write(&format!("work/{name}"), &exported);
        let data = env.json(&["tasks", "import", &name, "--update"]).exits(0).data();
        for task in data["tasks"].as_array().unwrap() {
            assert_eq!(
                (&task["change"], task["kept"].as_array().unwrap().len()),
                (&"unchanged".into(), 0),
                "{data}"
            );
        }
        assert_eq!(data["absent"].as_array().unwrap().len(), 0);
    }
}

#[test]
fn the_tree_shows_sections_tasks_and_what_they_depend_on() {
    let story = Story::project(backlog)
        .tell(&["tasks", "tree"])
        .tell(&["tasks", "tree", "--status", "all", "--section", "backend"])
        .tell(&["tasks", "tree", "--label", "none"]);
    insta::assert_snapshot!(story);
    let mut env = TestEnv::project();
    for n in 1..=30 {
        let title = format!(
            "A rather long title that does not fit into the width of the terminal, number {n} of thirty"
        );
        env.ok(&["tasks", "add", &title]);
    }
    for n in 1..30 {
        env.ok(&["tasks", "depend", &format!("T{n}"), "--on", &format!("T{}", n + 1)]);
    }
    env.on_terminal = true;
    let tree = env.ok(&["tasks", "tree", "--no-color"]).out;
    assert!(tree.lines().all(|line| line.chars().count() <= 100), "{tree}");
    for n in 1..=30 {
        assert!(tree.contains(&format!("T{n} ")), "T{n} is missing: {tree}");
    }
}
