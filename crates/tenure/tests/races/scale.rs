//! The cost of one process must not grow with the number of tasks. It is measured as processor time, so that a busy machine
//! does not matter, and as a ratio of two runs that alternate.

use std::time::Duration;

use rusqlite::{Connection, params};

use tenure_testkit::cli::full_or;

use crate::harness::Project;

/// Tasks as in a project in progress: a third is completed, and a tenth depends on the previous task.
fn fill(project: &Project, count: i64) {
    let conn = Connection::open(project.database()).unwrap();
    conn.execute_batch("PRAGMA synchronous = OFF; PRAGMA cache_size = -200000; BEGIN").unwrap();
    conn.execute(
        "WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < ?1)
         INSERT INTO tasks (id, key, title, status, priority, position, created_at, updated_at)
         SELECT printf('%08x-0000-4000-8000-%012x', i * 2654435761 % 4294967296, i), 'F' || i,
                'task number ' || i, CASE WHEN i % 3 = 0 THEN 'completed' ELSE 'pending' END,
                100, i * 1048576, 0, 0 FROM n",
        params![count],
    )
    .unwrap();
    conn.execute_batch(
        "INSERT INTO task_deps (task_id, depends_on)
         SELECT a.id, b.id FROM tasks a CROSS JOIN tasks b INDEXED BY tasks_position
         ON b.section_id = '' AND b.position = a.position - 1048576
         WHERE a.rowid % 10 = 0 AND a.status = 'pending';
         UPDATE tasks SET open_deps = 1 WHERE id IN (
             SELECT d.task_id FROM task_deps d JOIN tasks u ON u.id = d.depends_on WHERE u.status = 'pending');
         UPDATE sections SET open_tasks = (SELECT count(*) FROM tasks WHERE status = 'pending'),
                             completed = (SELECT count(*) FROM tasks WHERE status = 'completed') WHERE id = '';
         COMMIT; PRAGMA wal_checkpoint(TRUNCATE);",
    )
    .unwrap();
}

fn median(mut times: Vec<Duration>) -> f64 {
    times.sort();
    times[times.len() / 2].as_secs_f64()
}

#[test]
fn the_cost_of_a_command_does_not_grow_with_the_number_of_tasks() {
    let (few, many) = (Project::new(), Project::new());
    fill(&few, 100);
    fill(&many, full_or(1_000_000, 100_000));
    for args in [
        &["tasks", "next"][..],
        &["tasks", "show", "F50"],
        // A prefix of the first task's id.
        &["tasks", "show", "9e3779b1"],
        &["tasks", "next", "--claim", "--agent", "a"],
        &["tasks", "claim", "F70", "--agent", "a"],
        &["tasks", "renew", "F70", "--agent", "a"],
        &["tasks", "add", "one more"],
        &["tasks", "list", "--limit", "20"],
        &["tasks", "list", "--limit", "20", "--status", "all"],
        &["tasks", "list", "--limit", "20", "--search", "task"],
        &["status"],
        &["sections", "list"],
        &["locks", "list"],
        &["events"],
    ] {
        let cost = |project: &Project| {
            let (answer, used) = project.spawn(args).end_with_cpu();
            assert_eq!(answer.code, Some(0), "{args:?}: {answer:?}");
            used
        };
        let (mut at_few, mut at_many) = (Vec::new(), Vec::new());
        for _ in 0..15 {
            at_few.push(cost(&few));
            at_many.push(cost(&many));
        }
        let ratio = median(at_many) / median(at_few);
        eprintln!("{}: {ratio:.2} × the processor time", args.join(" "));
        assert!(ratio <= 1.5, "{args:?} costs {ratio:.2} times as much");
    }
}

#[test]
fn consecutive_pages_of_a_listing_have_no_gap_and_no_overlap() {
    let project = Project::new();
    fill(&project, 1000);
    let mut seen = Vec::new();
    for offset in (0..).step_by(100) {
        let page = project.ok(&["tasks", "list", "--offset", &offset.to_string()]);
        let tasks = page["tasks"].as_array().unwrap();
        assert!(tasks.len() <= 100);
        if tasks.is_empty() {
            assert_eq!(page["total"], seen.len());
            break;
        }
        seen.extend(tasks.iter().map(|task| task["key"].as_str().unwrap().to_owned()));
    }
    let mut distinct = seen.clone();
    distinct.sort();
    distinct.dedup();
    assert_eq!(distinct.len(), seen.len());
    assert_eq!(seen.len(), 667);
}

#[test]
fn short_processes_checkpoint_the_write_ahead_log() {
    let project = Project::new();
    for number in 0..60 {
        project.ok(&["tasks", "add", &format!("task {number}")]);
    }
    let log = std::fs::metadata(project.database().with_extension("db-wal")).map_or(0, |found| found.len());
    assert!(log < 1 << 20, "{log} bytes, which the next process has to read first");
}
