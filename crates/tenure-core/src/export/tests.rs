//! Exported tasks are read back as they were.

use proptest::prelude::*;

use super::*;
use crate::clock::Timestamp;
use crate::id::{SectionId, TaskId};
use crate::import::{self, Format, Import, ImportedSection, ImportedStatus};
use crate::section::{Section, SectionMode};
use crate::store::NewTask;
use crate::task::{SectionRef, Task, TaskStatus};

fn section(name: &str, mode: SectionMode, priority: i64) -> Section {
    Section {
        id: SectionId::new(name),
        name: name.to_owned(),
        mode,
        priority,
        position: 0,
        depends_on: Vec::new(),
        tasks: 0,
        open_tasks: 0,
        blocked_by: Vec::new(),
        lease: None,
        created_at: Timestamp::from_millis(0),
        updated_at: Timestamp::from_millis(0),
    }
}

fn task(key: &str, title: &str) -> Task {
    NewTask::new(TaskId::new(key), key, title).stored(None, Timestamp::from_millis(0))
}

fn status(status: TaskStatus) -> ImportedStatus {
    match status {
        TaskStatus::Pending | TaskStatus::InProgress => ImportedStatus::Pending,
        TaskStatus::Review => ImportedStatus::Review,
        TaskStatus::Completed => ImportedStatus::Completed,
        TaskStatus::Failed => ImportedStatus::Failed,
        TaskStatus::Skipped => ImportedStatus::Skipped,
    }
}

/// Compares what was read with the tasks, which are given in the order of their sections.
fn assert_same(read: &Import, sections: &[Section], tasks: &[Task], text: &str) {
    let wanted: Vec<ImportedSection> = sections
        .iter()
        .map(|section| ImportedSection {
            name: section.name.clone(),
            serial: section.mode == SectionMode::Serial,
            priority: Some(section.priority).filter(|priority| *priority != 100),
        })
        .collect();
    let found: Vec<ImportedSection> = read
        .sections
        .iter()
        .map(|section| ImportedSection {
            priority: section.priority.filter(|p| *p != 100),
            ..section.clone()
        })
        .collect();
    assert_eq!(found, wanted, "{text}");
    assert_eq!(read.tasks.len(), tasks.len(), "{text}");
    for (found, task) in read.tasks.iter().zip(tasks) {
        let mut depends_on = found.depends_on.clone();
        depends_on.sort();
        assert_eq!(found.key.as_ref(), Some(&task.key), "{text}");
        assert_eq!(found.title, task.title, "{text}");
        assert_eq!(found.description, task.description, "{text}");
        assert_eq!(found.status, status(task.status), "{text}");
        assert_eq!(found.section.as_ref(), task.section.as_ref().map(|section| &section.name), "{text}");
        assert_eq!(found.source_file, task.source_file, "{text}");
        assert_eq!(found.priority.unwrap_or(100), task.priority, "{text}");
        assert_eq!(depends_on, task.depends_on, "{text}");
        assert_eq!(found.depends_on_items.len(), 0, "{text}");
        assert_eq!(found.labels, task.labels, "{text}");
    }
}

fn round_trip(sections: &[Section], tasks: &[Task]) {
    let text = markdown(sections, tasks);
    let read =
        import::parse(Some(Format::Markdown), "plan.md", &text).unwrap_or_else(|e| panic!("{e}\n{text}"));
    assert_same(&read, sections, tasks, &text);
    let text = serde_json::to_string_pretty(&document(sections, tasks)).unwrap();
    let read =
        import::parse(Some(Format::Json), "plan.json", &text).unwrap_or_else(|e| panic!("{e}\n{text}"));
    assert_same(&read, sections, tasks, &text);
}

#[test]
fn an_ordinary_plan_needs_few_comments() {
    let backend = section("Backend", SectionMode::Serial, 100);
    let reference = SectionRef { id: backend.id.clone(), name: backend.name.clone(), serial: true };
    let inside = |key, title| Task {
        section: Some(reference.clone()),
        source_file: Some("PLAN.md#backend".to_owned()),
        ..task(key, title)
    };
    let tasks = [
        Task { status: TaskStatus::Completed, ..task("F001", "Choose a name") },
        Task {
            description: "One table.\n\n```sql\nSELECT 1;\n```".to_owned(),
            ..inside("F002", "Write the schema")
        },
        Task {
            depends_on: vec!["F001".to_owned(), "F002".to_owned()],
            labels: vec!["data".to_owned()],
            priority: 5,
            ..inside("F003", "Import it")
        },
    ];
    let expected = "\
<!-- Written by `tenure tasks export`. `tenure tasks import --update` reads it, with the comments. -->
<!-- tenure {\"sourceFile\":null} -->

- [x] F001: Choose a name

## Backend (serial)

<!-- tenure {\"sourceFile\":\"PLAN.md#backend\"} -->

- [ ] F002: Write the schema
  One table.

  ```sql
  SELECT 1;
  ```
- [ ] F003: Import it (depends on F001, F002) #data
  <!-- tenure {\"priority\":5} -->
";
    assert_eq!(markdown(std::slice::from_ref(&backend), &tasks), expected);
    round_trip(&[backend], &tasks);
}

#[test]
fn text_that_looks_like_markup_is_read_back() {
    let mut tasks = Vec::new();
    for (index, (title, description)) in [
        ("F9: not a key", "- [ ] not a task\n- [x] nor this"),
        ("ends (depends on F1)", "depends on: F7"),
        ("tagged #ui @ann !high", "```\nnever closed"),
        (" spaces ", "<!-- a comment\nthat goes on"),
        ("two\nlines", "## A heading\n\n\n\ntext  "),
        ("<!-- hidden -->", "  indented first\n\tand a tab"),
        ("--> {\"key\":1}", "<!-- tenure {\"key\":\"X\"} -->"),
        ("# heading", "\r\nwindows\r\n"),
        ("~~gone~~", "\n\nleading lines"),
    ]
    .into_iter()
    .enumerate()
    {
        tasks.push(Task { description: description.to_owned(), ..task(&format!("KEY{index}"), title) });
    }
    tasks.push(task("nodigits", "A key without digits"));
    tasks.push(Task { depends_on: vec!["nodigits".to_owned()], ..task("a.b", "Depends on it") });
    round_trip(
        &[
            section("*odd* `name`", SectionMode::Parallel, 7),
            section("x (serial)", SectionMode::Parallel, 100),
        ],
        &tasks,
    );
}

fn any_text() -> impl Strategy<Value = String> {
    let piece = prop_oneof![
        Just("- [ ] "),
        Just("- "),
        Just("\n"),
        Just("\n\n"),
        Just("  "),
        Just("\t"),
        Just("```"),
        Just("<!--"),
        Just("-->"),
        Just("tenure {"),
        Just("#tag"),
        Just("@ann"),
        Just("## "),
        Just("---"),
        Just("depends on: F1"),
        Just("(depends on F1)"),
        Just("F001: "),
        Just("~~"),
        Just("> "),
        Just("\\"),
        Just("\""),
        Just("\u{2028}"),
        Just("word"),
        Just("ü"),
        Just("\r"),
        Just("===\n"),
        Just("`"),
        Just("[x]"),
        Just("1. "),
    ];
    proptest::collection::vec(piece, 0..8).prop_map(|pieces| pieces.concat())
}

fn any_task() -> impl Strategy<Value = (Option<usize>, Task)> {
    (
        (any_text(), any_text(), proptest::option::of(0..3_usize), 0..6_usize),
        (prop_oneof![Just(100), -5..200_i64], proptest::option::of("[a-z./#-]{1,12}")),
        (
            proptest::collection::vec("[A-Za-z][a-z0-9 #]{0,6}[a-z]", 0..3),
            proptest::collection::vec("[A-Z]{1,2}[0-9]{0,2}", 0..3),
        ),
    )
        .prop_map(
            |((title, description, home, state), (priority, source_file), (mut labels, mut depends_on))| {
                labels.sort();
                labels.dedup();
                depends_on.sort();
                depends_on.dedup();
                let title = if title.trim().is_empty() { "title".to_owned() } else { title };
                let status = TaskStatus::ALL[state];
                (
                    home,
                    Task {
                        description,
                        status,
                        source_file,
                        priority,
                        depends_on,
                        labels,
                        ..task("", &title)
                    },
                )
            },
        )
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn any_tasks_are_read_back_as_they_were(
        mut drawn in proptest::collection::vec(any_task(), 0..6),
        names in proptest::collection::btree_set(any_text().prop_filter("blank", |name| !name.trim().is_empty()), 3),
        serial in proptest::collection::vec(any::<bool>(), 3),
    ) {
        let sections: Vec<Section> = names
            .iter()
            .zip(serial)
            .map(|(name, serial)| {
                section(name, if serial { SectionMode::Serial } else { SectionMode::Parallel }, 100)
            })
            .collect();
        drawn.sort_by_key(|(home, _)| home.map_or(0, |home| home + 1));
        let tasks: Vec<Task> = drawn
            .into_iter()
            .enumerate()
            .map(|(index, (home, task))| {
                let key = if index % 2 == 0 { format!("K{index}") } else { format!("key.{index}_") };
                let section = home.and_then(|home| sections.get(home)).map(|section| SectionRef {
                    id: section.id.clone(),
                    name: section.name.clone(),
                    serial: section.mode == SectionMode::Serial,
                });
                Task { id: TaskId::new(&key), key, section, ..task }
            })
            .collect();
        round_trip(&sections, &tasks);
    }
}
