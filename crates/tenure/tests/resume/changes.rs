//! A job whose list has changed since it was started, and a name that is given twice.

use rustix::process::Signal;

use tenure_testkit::cli::until;

use crate::project::Project;

/// A job of five items, interrupted after the first two.
fn interrupted(p: &Project) {
    p.numbers("items.txt", 5);
    p.script(
        "item.sh",
        "if [ \"$1\" = 3 ] && [ ! -e \"$PRETEND/go\" ]; then echo x >\"$PRETEND/at3\"; sleep 1000; fi; echo \"$1\" >>\"$PRETEND/ran\"",
    );
    let running = p.spawn(&["jobs", "start", "a", "--items", "items.txt", "--", "./item.sh", "{item}"]);
    p.wait_for("at3");
    running.signal(Signal::TERM);
    assert_eq!(running.end().code, Some(143));
    assert_eq!(p.job_status("a"), "interrupted");
    p.give("go");
}

#[test]
fn a_changed_list_is_refused_and_what_changed_is_said() {
    let p = Project::new();
    interrupted(&p);
    p.items("items.txt", ["1", "2", "4", "5", "6", "7"].map(str::to_owned));
    let answer = p.run(&["--json", "resume", "a"]);
    assert_eq!(answer.code, Some(2), "{answer:?}");
    let error = answer.json()["error"].clone();
    assert_eq!(error["code"], "DEFINITION_CHANGED");
    assert_eq!(error["details"]["changes"][0], "items: 5 → 6");
    let text = p.run(&["resume", "a"]).err;
    assert!(text.contains("items: 5 → 6") && text.contains("--accept-changes"), "{text}");
    assert_eq!(p.marks("ran"), ["1", "2"], "nothing was run");
}

#[test]
fn an_accepted_change_adds_what_is_new_drops_what_is_gone_and_keeps_what_is_done() {
    let p = Project::new();
    interrupted(&p);
    p.items("items.txt", ["2", "4", "5", "5", "6"].map(str::to_owned));
    let answer = p.run(&["--json", "resume", "a", "--accept-changes"]);
    assert_eq!(answer.code, Some(0), "{answer:?}");
    let mut ran = p.marks("ran");
    ran.sort();
    assert_eq!(
        ran,
        ["1", "2", "4", "5", "5", "6"],
        "3 was dropped, the second 5 and 6 were added, 2 was not repeated"
    );
    let job = &answer.json()["data"]["job"];
    assert_eq!((job["total"].as_u64(), job["status"].as_str()), (Some(6), Some("completed")));
}

#[test]
fn a_list_that_is_gone_does_not_keep_the_job_from_going_on() {
    let p = Project::new();
    interrupted(&p);
    std::fs::remove_file(p.root().join("items.txt")).unwrap();
    let answer = p.run(&["resume", "a"]);
    assert_eq!(answer.code, Some(0), "{answer:?}");
    assert!(answer.err.contains("no longer exists"), "{answer:?}");
    assert_eq!(p.successes(), [1, 2, 3, 4, 5]);
}

#[test]
fn an_unfinished_job_is_not_replaced_by_another_of_its_name() {
    let p = Project::new();
    interrupted(&p);
    let start = |more: &[&str]| {
        let mut args = vec!["--json", "jobs", "start", "a", "--items", "items.txt"];
        args.extend(more);
        args.extend(["--", "./item.sh", "{item}"]);
        p.run(&args)
    };
    let same = start(&[]);
    assert_eq!(
        (same.code, same.json()["hints"][0]["command"].as_str().unwrap()),
        (Some(2), "tenure resume a")
    );
    let other = start(&["--parallel", "4", "--max-items", "2"]);
    assert_eq!(other.code, Some(2), "{other:?}");
    assert_eq!(other.json()["error"]["code"], "DEFINITION_CHANGED");
    let changes = other.json()["error"]["details"]["changes"].to_string();
    assert!(changes.contains("parallel: 1 → 4") && changes.contains("items: 5 → 2"), "{changes}");
    assert_eq!(p.run(&["resume", "a"]).code, Some(0));
    assert_eq!(start(&[]).code, Some(0), "a finished one leaves its name");
    until("there are two", || p.ok(&["jobs", "list"])["total"] == 2);
}
