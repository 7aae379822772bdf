//! The local clock of a machine has no effect: the server's clock counts.

use std::time::{Duration, Instant};

use tenure_testkit::cli::{Answer, Running, until};

use crate::harness::Project;

fn run(project: &Project, skew: &str, args: &[&str]) -> Answer {
    Running::start(project.skewed(skew, &[&["--json"], args].concat())).end()
}

#[test]
fn an_hour_of_skew_between_two_machines_changes_nothing() {
    let project = Project::with_config("locking: {pollInterval: 1s}");
    project.add("F", 8);
    let plain = run(&project, "+0h", &["tasks", "claim", "F8", "--agent", "x"]);
    assert_eq!(plain.code, Some(0), "{plain:?}");
    for (n, (early, late)) in [("-1h", "+1h"), ("+1h", "-1h")].into_iter().enumerate() {
        let (held, short) = (format!("F{}", 2 * n + 1), format!("F{}", 2 * n + 2));
        let claimed = run(&project, early, &["tasks", "claim", &held, "--agent", "ann", "--ttl", "10m"]);
        assert_eq!(claimed.code, Some(0), "{claimed:?}");
        // Neither a fast nor a slow clock lets another agent take a held task.
        let refused = run(&project, late, &["tasks", "claim", &held, "--agent", "bob"]);
        assert_eq!(refused.code, Some(6), "{refused:?}");
        let shown = run(&project, late, &["locks", "show", &held]).json();
        assert_eq!(shown["data"]["lock"]["expired"], false, "{shown}");
        let shown_as_text = Running::start(project.skewed(late, &["tasks", "show", &held])).end();
        assert!(shown_as_text.out.contains("9m") || shown_as_text.out.contains("10m"), "{shown_as_text:?}");
        assert_eq!(run(&project, early, &["tasks", "check", &held, "--agent", "ann"]).code, Some(0));
        assert_eq!(run(&project, late, &["tasks", "done", &held, "--agent", "ann"]).code, Some(0));
        // A waiter sleeps until the lease expires by the server's clock, and is then served.
        run(&project, early, &["tasks", "claim", &short, "--agent", "ann", "--ttl", "3s"]);
        let begun = Instant::now();
        let waiter = Running::start(
            project.skewed(late, &["--json", "tasks", "claim", &short, "--agent", "bob", "--wait"]),
        );
        let (answer, used) = waiter.end_with_cpu();
        assert_eq!(answer.code, Some(0), "{answer:?}");
        assert!(begun.elapsed() > Duration::from_secs(2), "too early: {:?}", begun.elapsed());
        assert!(used < Duration::from_secs(1), "it did not sleep: {used:?}");
        project.ok(&["tasks", "done", &short, "--agent", "bob"]);
    }
    let times: Vec<String> =
        project.feed().iter().map(|event| event["at"].as_str().unwrap().to_owned()).collect();
    assert!(times.is_sorted(), "the feed has one clock: {times:?}");
    until("nothing is left behind", || project.ok(&["status"])["waiting"] == 0);
}
