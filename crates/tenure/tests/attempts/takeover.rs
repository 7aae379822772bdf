//! Two workers never run on one task, no matter how the first one ended.

use rustix::process::Signal;
use tenure_testkit::cli::{Running, processes};

use crate::project::{Project, end, finish, wait_for};

/// Processes that are hard to find or kill: double-forked, ignoring SIGTERM, one in another session, one without the
/// environment. They write their pids to `old`, five lines, and their mark to `mark`.
const TREE: &str = r#"
    trap '' TERM INT HUP
    echo $TENURE_ATTEMPT > mark
    (sh -c 'trap "" TERM HUP; echo $$ >> old; while :; do sleep 2; done' &) &
    (setsid sh -c 'trap "" TERM HUP; echo $$ >> old; while :; do sleep 2; done' &) &
    (env -i sh -c 'trap "" TERM HUP; echo $$ >> old; sleep 120' &) &
    (setsid setsid -f sh -c 'trap "" TERM HUP; echo $$ >> old; while :; do sleep 2; done' &) &
    echo $$ >> old
    while :; do sleep 2; done
"#;

/// The second worker's first step: it writes to `seen` which processes of the first are alive, by pid and by mark.
const LIST_SURVIVORS: &str = r#"
    for pid in $(cat old); do
        state=$(cut -d ' ' -f 3 /proc/$pid/stat 2>/dev/null)
        case "$state" in ''|Z) ;; *) echo "pid $pid $state" ;; esac
    done > seen.new
    grep -zxlF "TENURE_ATTEMPT=$(cat mark)" /proc/[0-9]*/environ >> seen.new 2>/dev/null
    mv seen.new seen
"#;

/// Starts a first worker with its tree of processes.
fn start_first(project: &Project, ttl: &str) -> (Running, Vec<u32>) {
    let first = project.start("first", &["--ttl", ttl], TREE);
    let old = project.wait_for_pids("old", 5);
    assert!(old.iter().all(|pid| processes::is_alive(*pid)));
    (first, old)
}

fn start_second(project: &Project) -> Running {
    project.start("second", &["--wait", "--ttl", "10m"], LIST_SURVIVORS)
}

fn assert_none_left(project: &Project, old: &[u32]) {
    assert_eq!(project.read("seen"), "", "processes of the first worker when the second began");
    assert!(old.iter().all(|pid| !processes::is_alive(*pid)));
}

#[test]
fn a_takeover_starts_when_all_processes_of_a_killed_supervisor_are_gone() {
    let project = Project::with_own_programs();
    let (first, old) = start_first(&project, "10m");
    let second = start_second(&project);
    project.wait_for_waiter();
    first.signal(Signal::KILL);
    let (code, said) = end(second);
    assert_eq!(code, 0, "{said}");
    assert_none_left(&project, &old);
    assert_eq!((project.status().as_str(), project.attempts()), ("completed", 1));
}

#[test]
fn a_takeover_from_a_paused_supervisor_reaps_its_processes_and_refuses_its_writes() {
    let project = Project::with_own_programs();
    let (first, old) = start_first(&project, "1s");
    let lock = project.lock();
    let (fence, holder) = (lock["fence"].to_string(), lock["holder"]["id"].as_str().unwrap().to_owned());
    first.signal(Signal::STOP);
    let second = start_second(&project);
    let (code, said) = end(second);
    assert_eq!(code, 0, "{said}");
    assert_none_left(&project, &old);
    let before = project.task();
    for verb in [&["done", "T"][..], &["fail", "T", "-m", "x"], &["release", "T"], &["renew", "T"]] {
        let args: Vec<&str> =
            ["task"].iter().chain(verb).chain(&["--agent", &holder, "--fence", &fence]).copied().collect();
        assert_eq!(project.code(&args), 8, "{verb:?}");
    }
    first.signal(Signal::CONT);
    let (code, said) = end(first);
    assert_eq!(code, 8, "{said}");
    assert!(said.contains("no longer hold"), "{said}");
    assert_eq!(project.task(), before);
    assert_eq!((project.status().as_str(), project.attempts()), ("completed", 0));
}

#[test]
fn a_bare_claim_returns_only_when_the_old_processes_are_gone() {
    for claim in [
        &["task", "claim", "T"][..],
        &["task", "next", "--claim"],
        &["task", "update", "T", "--status", "in_progress"],
    ] {
        let project = Project::with_own_programs();
        let (first, old) = start_first(&project, "10m");
        first.signal(Signal::KILL);
        assert_eq!(end(first).0, 137);
        let args: Vec<&str> = claim.iter().chain(&["--agent", "second"]).copied().collect();
        let script = format!("tenure {} > /dev/null || exit; {LIST_SURVIVORS}", args.join(" "));
        assert_eq!(finish(project.shell(&script)).status.code(), Some(0), "{claim:?}");
        assert_none_left(&project, &old);
        assert_eq!(project.lock()["holder"]["id"], "second");
    }
}

#[test]
fn a_command_that_runs_on_after_releasing_its_task_is_reaped_by_the_next_claim() {
    let project = Project::new();
    let script = "tenure task release T > /dev/null && echo $$ > pid; sleep 120";
    let first = project.start("first", &[], script);
    let pid = project.wait_for_pids("pid", 1)[0];
    assert!(processes::is_alive(pid));
    project.ok(&["task", "claim", "T", "--agent", "second"]);
    assert!(!processes::is_alive(pid));
    assert_eq!(end(first).0, 137);
    assert_eq!(project.lock()["holder"]["id"], "second");
    assert_eq!(project.attempts(), 1, "the command has given the task back");
}

#[test]
fn a_cleanup_reaps_what_a_dead_supervisor_left() {
    let project = Project::with_own_programs();
    let (first, old) = start_first(&project, "10m");
    first.signal(Signal::KILL);
    assert_eq!(end(first).0, 137);
    project.ok(&["locks", "cleanup"]);
    assert!(old.iter().all(|pid| !processes::is_alive(*pid)));
    assert_eq!((project.status().as_str(), project.attempts()), ("pending", 1));
}

#[test]
fn a_paused_supervisor_continues_if_its_task_was_not_taken_even_after_a_cleanup() {
    for cleanup in [false, true] {
        let project = Project::new();
        let script = "echo $$ > pid; while [ ! -e stop ]; do sleep 0.05; done";
        let running = project.start("a", &["--ttl", "1s"], script);
        let pid = project.wait_for_pids("pid", 1)[0];
        running.signal(Signal::STOP);
        wait_for("the expiry", || project.lock()["expired"] == true);
        if cleanup {
            project.ok(&["locks", "cleanup"]);
            assert_eq!(project.status(), "pending");
        }
        assert!(processes::is_alive(pid), "the cleanup ended work that was only late");
        running.signal(Signal::CONT);
        wait_for("the revival", || project.lock()["expired"] == false);
        assert!(processes::is_alive(pid));
        assert_eq!(project.code(&["task", "claim", "T", "--agent", "b"]), 6);
        std::fs::write(project.path("stop"), "").unwrap();
        assert_eq!(end(running).0, 0);
        assert_eq!((project.status().as_str(), project.attempts()), ("completed", 0));
    }
}
