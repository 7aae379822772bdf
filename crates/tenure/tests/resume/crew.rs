//! Several processes at one job: each item is given to one of them.

use rustix::process::Signal;

use tenure_testkit::cli::until;

use crate::project::Project;

const ITEM: &str = "echo \"$1\" >>\"$PRETEND/ran\"; sleep 0.02";

#[test]
fn several_workers_share_one_job_and_each_item_is_run_once() {
    let p = Project::new();
    p.numbers("items.txt", 60);
    p.script("item.sh", ITEM);
    let coordinator = p.spawn(&["jobs", "start", "a", "--items", "items.txt", "--", "./item.sh", "{item}"]);
    until("the job is there", || p.run(&["jobs", "show", "a"]).code == Some(0));
    let workers: Vec<_> = (0..3).map(|_| p.spawn(&["jobs", "work", "a", "--parallel", "2"])).collect();
    for worker in workers {
        let answer = worker.end();
        assert_eq!(answer.code, Some(0), "{answer:?}");
    }
    assert_eq!(coordinator.end().code, Some(0));
    let mut ran: Vec<u64> = p.marks("ran").iter().map(|n| n.parse().unwrap()).collect();
    ran.sort_unstable();
    assert_eq!(ran, (1..=60).collect::<Vec<_>>());
    assert_eq!(p.successes(), ran);
}

#[test]
fn the_items_of_a_killed_worker_are_done_by_the_others() {
    let p = Project::new();
    p.numbers("items.txt", 6);
    p.script(
        "item.sh",
        "echo \"$1\" >>\"$PRETEND/ran\"; if [ \"$1\" -le 2 ] && [ ! -e \"$PRETEND/go\" ]; then sleep 1000; fi",
    );
    let first = p.spawn(&[
        "jobs",
        "start",
        "a",
        "--items",
        "items.txt",
        "--parallel",
        "2",
        "--",
        "./item.sh",
        "{item}",
    ]);
    until("two hang", || p.marks("ran").len() == 2);
    first.signal(Signal::KILL);
    first.end();
    p.give("go");
    let answer = p.run(&["--json", "jobs", "work", "a"]);
    assert_eq!(answer.code, Some(0), "{answer:?}");
    assert_eq!(answer.json()["data"]["job"]["status"], "completed", "also without a coordinator");
    assert_eq!(p.successes(), [1, 2, 3, 4, 5, 6]);
    p.expect_no_agents();
}
