//! Many concurrent writers: no write fails, none is lost, and the feed has every change of status (T1).

use std::collections::BTreeMap;

use serde_json::Value;

use tenure_testkit::cli::{Answer, Dice, Running, full_or};

use crate::harness::Project;

#[test]
fn forty_processes_initialise_one_project_and_add_forty_tasks() {
    for round in 0..full_or(20, 3) {
        let project = Project::bare();
        let answers: Vec<Answer> = std::thread::scope(|scope| {
            let project = &project;
            let workers: Vec<_> = (0..40)
                .map(|n| {
                    scope.spawn(move || {
                        let init = project.run(&["init"]);
                        [init, project.run(&["tasks", "add", &format!("task {n}")])]
                    })
                })
                .collect();
            workers.into_iter().flat_map(|w| w.join().unwrap()).collect()
        });
        let failed: Vec<_> = answers.iter().filter(|a| a.code != Some(0)).collect();
        assert!(failed.is_empty(), "round {round}: {failed:?}");
        let listed = project.ok(&["tasks", "list"]);
        assert_eq!(listed["total"], 40);
        let mut keys: Vec<_> = listed["tasks"]
            .as_array()
            .unwrap()
            .iter()
            .map(|t| t["key"].as_str().unwrap().to_owned())
            .collect();
        keys.sort();
        keys.dedup();
        assert_eq!(keys.len(), 40, "every task has a different key");
        assert_eq!(project.ok(&["projects", "list"])["total"], 1);
    }
}

#[test]
fn an_update_changes_everything_or_nothing() {
    let project = Project::new();
    project.ok(&["sections", "add", "Backend"]);
    project.add("F", 2);
    project.ok(&["tasks", "add", "Blocked", "--id", "B1", "--depends-on", "F1"]);
    project.ok(&["tasks", "add", "Completed", "--id", "C1"]);
    project.ok(&["tasks", "update", "C1", "--status", "completed"]);
    project.ok(&["tasks", "claim", "F1", "--agent", "ann"]);
    let fields = ["--title", "New", "-d", "More", "--priority", "5", "--label", "x", "--source", "S.md"];
    // Each part that is refused comes after the fields were written.
    let refused: [(&str, &[&str], i32); 6] = [
        ("F1", &["--status", "completed", "--agent", "bob"], 6),
        ("F1", &["--section", "Backend"], 6),
        ("F2", &["--section", "Nowhere"], 4),
        ("F2", &["--section", "Backend", "--after", "F1"], 2),
        ("C1", &["--section", "Backend", "--status", "skipped"], 2),
        ("B1", &["--status", "in_progress", "--agent", "bob", "--no-wait"], 10),
    ];
    for (task, more, code) in refused {
        let before = (project.ok(&["tasks", "show", task])["task"].clone(), project.feed());
        let command = [&["tasks", "update", task], &fields[..], more].concat();
        let answer = project.run(&command);
        assert_eq!(answer.code, Some(code), "{command:?}: {answer:?}");
        let after = (project.ok(&["tasks", "show", task])["task"].clone(), project.feed());
        assert_eq!(after, before, "{command:?}");
    }
    let all =
        [&["tasks", "update", "F2"], &fields[..], &["--section", "Backend", "--status", "review"]].concat();
    let task = &project.ok(&all)["task"];
    assert_eq!(
        (&task["title"], &task["section"], &task["status"]),
        (&"New".into(), &"Backend".into(), &"review".into())
    );
}

/// What one process reported.
#[derive(Debug)]
enum Did {
    Added,
    Labelled(String, String),
    Rejected(String),
    Moved,
}

#[test]
fn eight_processes_add_update_and_reject_the_same_tasks_and_nothing_is_lost() {
    let each = full_or(200, 25);
    let start = Dice::seed("writers");
    let project = Project::with_config("tasks: {maxRejections: 100000}");
    let shared = project.add("S", 4);
    let did: Vec<Did> = std::thread::scope(|scope| {
        let (project, shared) = (&project, &shared);
        let workers: Vec<_> = (0..8_u64)
            .map(|worker| {
                scope.spawn(move || {
                    let mut dice = Dice::new(start.wrapping_add(worker));
                    (0..each)
                        .filter_map(|step| one_step(project, shared, worker, step, &mut dice))
                        .collect::<Vec<_>>()
                })
            })
            .collect();
        workers.into_iter().flat_map(|w| w.join().unwrap()).collect()
    });

    let tasks = project.ok(&["tasks", "list", "--status", "all", "--limit", "100000"]);
    let tasks: BTreeMap<String, Value> = tasks["tasks"]
        .as_array()
        .unwrap()
        .iter()
        .map(|task| (task["key"].as_str().unwrap().to_owned(), task.clone()))
        .collect();
    let added = did.iter().filter(|d| matches!(d, Did::Added)).count();
    assert_eq!(tasks.len(), shared.len() + added);
    for key in &shared {
        let labels: Vec<&str> =
            tasks[key]["labels"].as_array().unwrap().iter().map(|l| l.as_str().unwrap()).collect();
        for said in &did {
            if let Did::Labelled(task, label) = said
                && task == key
            {
                assert!(labels.contains(&label.as_str()), "{key} has lost {label}: {labels:?}");
            }
        }
        let rejections = did.iter().filter(|d| matches!(d, Did::Rejected(task) if task == key)).count();
        assert_eq!(tasks[key]["rejections"], rejections, "{key}");
    }
    assert_feed_matches(&project.feed(), &tasks);
}

fn one_step(project: &Project, shared: &[String], worker: u64, step: u64, dice: &mut Dice) -> Option<Did> {
    let task = dice.pick(shared).as_str();
    let label = format!("w{worker}s{step}");
    let (args, did): (Vec<&str>, Did) = match dice.below(8) {
        0 => (vec!["tasks", "add", &label], Did::Added),
        1..=3 => {
            (vec!["tasks", "update", task, "--label", &label], Did::Labelled(task.to_owned(), label.clone()))
        }
        4 => (vec!["tasks", "update", task, "--status", "completed"], Did::Moved),
        5 => (vec!["tasks", "update", task, "--status", "review"], Did::Moved),
        _ => (vec!["tasks", "reject", task, "-m", "again"], Did::Rejected(task.to_owned())),
    };
    let answer = Running::start(project.command(&args)).end();
    match answer.code {
        Some(0) => Some(did),
        // A status change that is not allowed from the current status.
        Some(2) => None,
        _ => panic!("{args:?}: {answer:?}"),
    }
}

/// Replays the feed from its first event: it ends with the tasks' statuses, and no step is missing.
fn assert_feed_matches(feed: &[Value], tasks: &BTreeMap<String, Value>) {
    let mut last: BTreeMap<&str, &str> = BTreeMap::new();
    for event in feed {
        let Some(task) = event["taskId"].as_str() else { continue };
        match event["kind"].as_str().unwrap() {
            "task.created" => assert_eq!(last.insert(task, event["to"].as_str().unwrap()), None, "{event}"),
            "task.status" => {
                let before = last.insert(task, event["to"].as_str().unwrap());
                assert_eq!(before, event["from"].as_str(), "{event}");
                assert_ne!(event["from"], event["to"], "{event}");
            }
            _ => {}
        }
    }
    assert_eq!(last.len(), tasks.len());
    for task in tasks.values() {
        assert_eq!(last[task["id"].as_str().unwrap()], task["status"], "{task}");
    }
}
