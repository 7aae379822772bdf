//! A review from start to end: done, reviewed, rejected with notes, done again, approved.

use std::process::Command;

use crate::project::Project;

const REVIEWED: &str = "runners: {preset: pretend, killGrace: 300ms}\nreview: {enabled: true, preset: judge}\n\
                        locking: {pollInterval: 1s}";

fn git(project: &Project, args: &[&str]) {
    let output = Command::new("git")
        .args(["-c", "user.name=t", "-c", "user.email=t@example.org", "-c", "init.defaultBranch=main"])
        .args(args)
        .env("GIT_COMMITTER_DATE", "2024-01-01T00:00:00Z")
        .current_dir(project.root())
        .output()
        .unwrap();
    assert!(output.status.success(), "{output:?}");
}

fn prompts(project: &Project, role: &str) -> Vec<String> {
    let prefix = format!("prompt-{role}-");
    let folder = std::fs::read_dir(project.shared("")).unwrap();
    let mut found: Vec<(i64, String)> = folder
        .flatten()
        .filter_map(|entry| {
            let name = entry.file_name().to_string_lossy().into_owned();
            let fence = name.strip_prefix(&prefix)?.parse().ok()?;
            Some((fence, std::fs::read_to_string(entry.path()).unwrap()))
        })
        .collect();
    found.sort();
    found.into_iter().map(|(_, text)| text).collect()
}

#[test]
fn a_review_rejects_with_notes_and_approves_the_second_attempt() {
    let project = Project::with(REVIEWED);
    git(&project, &["init", "-q"]);
    std::fs::write(project.root().join("page.txt"), "old words\n").unwrap();
    git(&project, &["add", "."]);
    git(&project, &["commit", "-qm", "before"]);
    let steps = [
        "write page.txt new words",
        "mark worked",
        "review: mark looked",
        "review: tenure task show A >/dev/null",
    ];
    let script = "review: tenure task $(if [ $(wc -l <$PRETEND/looked) = 1 ]; then echo reject A -m too-short; else echo approve A; fi)";
    project.task("A", &[&steps[..], &[script]].concat());
    let ran = project.work(&[]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let task = project.show("A");
    assert_eq!(
        (task["status"].as_str(), task["rejections"].as_u64()),
        (Some("completed"), Some(1)),
        "{task}"
    );
    assert_eq!((project.marks("worked").len(), project.marks("looked").len()), (2, 2));
    assert_eq!((project.moves("A", "completed"), project.moves("A", "review")), (1, 2));
    let reviews = prompts(&project, "review");
    assert!(reviews[0].contains("-old words") && reviews[0].contains("+new words"), "{}", reviews[0]);
    assert!(reviews[0].contains("tenure task approve A"), "{}", reviews[0]);
    let works = prompts(&project, "do");
    assert!(works[1].contains("rejected by") && works[1].contains("too-short"), "{}", works[1]);
    assert!(project.locks().is_empty());
}

#[test]
fn a_reviewer_sees_commits_changes_and_new_files_of_the_task() {
    let project = Project::with(REVIEWED);
    git(&project, &["init", "-q"]);
    std::fs::write(project.root().join("page.txt"), "old words\n").unwrap();
    git(&project, &["add", "."]);
    git(&project, &["commit", "-qm", "before"]);
    // Not of this task: an ignored file, and one that was there before.
    std::fs::write(project.root().join(".git/info/exclude"), "*.log\n").unwrap();
    let notes = project.root().join("notes.txt");
    std::fs::write(&notes, "private notes\n").unwrap();
    let long_ago = std::time::SystemTime::UNIX_EPOCH + std::time::Duration::from_hours(24);
    std::fs::File::options().write(true).open(&notes).unwrap().set_modified(long_ago).unwrap();
    let commit = "shell git -c user.name=t -c user.email=t@example.org commit -qm work page.txt";
    project.task(
        "A",
        &[
            "write page.txt committed words",
            commit,
            "write brand-new.txt new words",
            "write trace.log ignored words",
            "review: mark looked",
        ],
    );
    let ran = project.work(&[]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let review = &prompts(&project, "review")[0];
    for words in ["-old words", "+committed words", "+++ b/brand-new.txt", "+new words"] {
        assert!(review.contains(words), "{words}: {review}");
    }
    for words in ["private notes", "ignored words\n"] {
        assert!(!review.contains(&format!("+{words}")), "{words}: {review}");
    }
}

#[test]
fn a_reviewers_exit_code_approves_or_rejects_and_never_fails_the_task() {
    let project = Project::with(&format!("{REVIEWED}\ntasks: {{maxRejections: 2}}"));
    project.task("A", &["mark worked", "review: print fine"]);
    project.task("B", &["mark tried", "review: print The tests are missing", "review: exit 1"]);
    let ran = project.work(&[]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let (a, b) = (project.show("A"), project.show("B"));
    assert_eq!((a["status"].as_str(), a["rejections"].as_u64()), (Some("completed"), Some(0)), "{a}");
    // Rejected once, worked on again, and rejected for the last time.
    assert_eq!((b["status"].as_str(), b["rejections"].as_u64()), (Some("failed"), Some(2)), "{b}");
    assert_eq!((project.marks("worked").len(), project.marks("tried").len()), (1, 2));
    let works = prompts(&project, "do");
    assert!(
        works.iter().any(|p| p.contains("rejected by") && p.contains("The tests are missing")),
        "{works:?}"
    );
    assert!(ran.err.contains("Rejected B"), "{}", ran.err);
    // Six attempts, two tasks.
    assert_eq!(ran.out.lines().last(), Some("Tasks: 1 completed, 1 failed."), "{ran:?}");
}

#[test]
fn the_summary_counts_each_task_once_by_its_status() {
    let project = Project::with("runners: {preset: pretend, killGrace: 300ms}\nreview: {enabled: true}");
    project.task("A", &["tenure task done A"]);
    project.task("B", &["tenure task fail B -m no"]);
    project.task("C", &["tenure task done C"]);
    let ran = project.work(&["--json"]);
    let data = ran.json()["data"].clone();
    let count = |name: &str| data[name].as_u64();
    assert_eq!(
        (count("completed"), count("failed"), count("pending")),
        (Some(0), Some(1), Some(0)),
        "{ran:?}"
    );
    assert_eq!((count("review"), count("skipped")), (Some(2), Some(0)), "{ran:?}");
    assert_eq!(project.work(&[]).out, "No task was worked on.\n");
}

#[test]
fn an_interrupted_review_leaves_the_task_in_review() {
    let project = Project::with(REVIEWED);
    project.task("A", &["review: mark looking", "review: wait go"]);
    let runner = project.runner(&[]);
    project.wait_for("looking");
    assert_eq!(project.status("A"), "in_progress");
    runner.signal(rustix::process::Signal::TERM);
    assert_eq!(runner.end().code, Some(0));
    assert_eq!((project.status("A").as_str(), project.show("A")["rejections"].as_u64()), ("review", Some(0)));
    let runner = project.runner(&[]);
    tenure_testkit::cli::until("it is reviewed again", || project.marks("looking").len() == 2);
    runner.signal(rustix::process::Signal::KILL);
    drop(runner);
    project.give("go");
    assert_eq!(project.work(&[]).code, Some(0));
    assert_eq!(project.status("A"), "completed");
}

#[test]
fn only_the_reviewer_that_holds_a_task_may_approve_or_reject_it() {
    let project = Project::with(REVIEWED);
    project.task(
        "A",
        &["mark at-work", "tenure task approve A", "wait go", "review: mark looking", "review: wait go2"],
    );
    let runner = project.runner(&[]);
    project.wait_for("at-work");
    let by_another = project.run(&["--json", "tasks", "approve", "A", "--agent", "bob"]);
    assert_eq!(by_another.code, Some(6), "{by_another:?}");
    project.give("go");
    project.wait_for("looking");
    let by_another = project.run(&["--json", "tasks", "reject", "A", "-m", "no", "--agent", "bob"]);
    assert_eq!(by_another.code, Some(6), "{by_another:?}");
    project.give("go2");
    assert_eq!(runner.end().code, Some(0));
    assert_eq!(project.status("A"), "completed");
    let fence = project.marks("at-work")[0].clone();
    assert_eq!(project.marks(&format!("codes-{fence}")), ["5"], "a worker does not approve its own work");
}

#[test]
fn an_agent_never_approves_its_own_work_even_with_a_shell() {
    let project = Project::with(REVIEWED);
    let steps = [
        "mark begun",
        "tenure task done A",
        "tenure task approve A",
        "shell tenure task approve A",
        "shell env -u TENURE_AGENT -u TENURE_ATTEMPT tenure task approve A",
        "shell env -u TENURE_AGENT -u TENURE_LEASE -u TENURE_FENCE tenure task update A --status completed",
        "review: tenure task approve A",
    ];
    project.task("A", &steps);
    let ran = project.work(&[]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let codes = project.marks(&format!("codes-{}", project.marks("begun")[0]));
    assert_eq!(codes, ["0", "5", "5", "5", "5"]);
    assert_eq!((project.status("A").as_str(), project.moves("A", "completed")), ("completed", 1));
}

#[test]
fn a_reviewer_that_cannot_work_is_parked_and_its_tasks_stay_in_review() {
    let project = Project::with(REVIEWED);
    for key in ["A", "B", "C", "D"] {
        project.task(key, &["review: print Please run /login first", "review: mark tried", "review: exit 1"]);
        project.ok(&["tasks", "update", key, "--status", "review"]);
    }
    let ran = project.work(&[]);
    assert_eq!(ran.code, Some(1), "{ran:?}");
    assert!(ran.err.contains("preset judge is parked"), "{}", ran.err);
    assert_eq!(project.marks("tried").len(), 3);
    for key in ["A", "B", "C", "D"] {
        let task = project.show(key);
        assert_eq!(
            (task["status"].as_str(), task["rejections"].as_u64()),
            (Some("review"), Some(0)),
            "{task}"
        );
    }
}
