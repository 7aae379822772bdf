//! Concurrent resume: one process proceeds, and the others report its pid, its host and when it took the lock.

use rustix::process::Signal;
use serde_json::Value;

use crate::sessions;
use tenure_testkit::cli::{Answer, Running, full_or, until};

use crate::project::Project;

/// A session whose runner was killed in the middle of a task, and the pid of that runner.
fn killed_session(p: &Project, key: &str) -> (String, u32) {
    p.task(key, &[&format!("mark {key}"), &format!("wait go-{key}")]);
    let runner = p.runner(&[]);
    // Waits for the content as well, because a kill between creating and writing the file would leave it empty.
    until("the agent has left its mark", || p.marks(key).len() == 1);
    let pid = runner.pid();
    runner.signal(Signal::KILL);
    runner.end();
    let all = p.ok(&["sessions", "list"])["sessions"].clone();
    (all[0]["id"].as_str().unwrap().to_owned(), pid)
}

fn stale(p: &Project, key: &str) -> String {
    killed_session(p, key).0
}

/// The pid in the refusal's message: `PID 123 on HOST (acquired 2026-01-02 03:04:05 UTC)`.
fn named_in(answer: &Answer, id: &str) -> u32 {
    let mut lines = answer.err.lines();
    assert_eq!(
        lines.next(),
        Some(format!("Error: Resume already in progress for job {id}").as_str()),
        "{answer:?}"
    );
    let held = lines.next().unwrap().strip_prefix("Lock held by: PID ").unwrap();
    let (pid, rest) = held.split_once(' ').unwrap();
    assert!(rest.starts_with(&format!("on {} (acquired 20", tenure_lock::hostname())), "{held}");
    assert!(rest.ends_with(" UTC)"), "{held}");
    assert_eq!(lines.next(), Some("Please wait for the other process to complete."));
    assert!(!answer.err.contains("--force"));
    pid.parse().unwrap()
}

/// Runs eight resumes at the same time, each by one of the names. Returns the process that proceeds; the others have named
/// it. On a busy machine one of them may have read the lock file before it was rewritten, and named the dead process.
fn race(p: &Project, names: &[String; 4], id: &str, before: u32, round: u32) -> Running {
    let mut running: Vec<Running> = (0..8).map(|n| p.spawn(&["resume", &names[n % 4]])).collect();
    let mut winner = None;
    until("all but one have ended", || {
        let alive: Vec<usize> = (0..8).filter(|n| running[*n].is_running()).collect();
        assert!(!alive.is_empty(), "no process proceeds");
        winner = Some(alive[0]);
        alive.len() == 1
    });
    let winner = running.swap_remove(winner.unwrap());
    for loser in running {
        let answer = loser.end();
        assert_eq!(answer.code, Some(6), "round {round}: {answer:?}");
        let named = named_in(&answer, id);
        assert!([winner.pid(), before].contains(&named), "round {round}: {named}, not {}", winner.pid());
    }
    let late = p.run(&["resume", &names[0]]);
    assert_eq!((late.code, named_in(&late, id)), (Some(6), winner.pid()), "round {round}");
    winner
}

#[test]
fn of_eight_concurrent_resumes_of_a_stale_session_exactly_one_proceeds() {
    for round in 0..full_or(200, 4) {
        let p = Project::new();
        let (id, dead) = killed_session(&p, "A");
        // The whole id, a prefix, and capitals all name the same session.
        let names = [id.clone(), id[..8].to_owned(), id[..13].to_owned(), id.to_uppercase()];
        let winner = race(&p, &names, &id, dead, round);
        p.give("go-A");
        let answer = winner.end();
        assert_eq!(answer.code, Some(0), "round {round}: {answer:?}");
        assert_eq!((p.status("A").as_str(), p.marks("A").len()), ("completed", 2), "round {round}");
    }
}

#[test]
fn of_eight_concurrent_resumes_of_an_interrupted_job_exactly_one_proceeds() {
    let p = Project::new();
    p.numbers("items.txt", 3);
    p.script(
        "wait.sh",
        "echo \"$1\" >>\"$PRETEND/ran\"; while [ ! -e \"$PRETEND/go\" ]; do sleep 0.02; done",
    );
    let first = p.spawn(&["jobs", "start", "nightly", "--items", "items.txt", "--", "./wait.sh", "{item}"]);
    until("it has begun", || p.marks("ran").len() == 1);
    let mut dead = first.pid();
    for round in 0..full_or(40, 3) {
        if round == 0 {
            first.signal(Signal::KILL);
        }
        let id = p.job("nightly")["id"].as_str().unwrap().to_owned();
        let names = ["nightly".to_owned(), id.clone(), id[..8].to_owned(), "nightly".to_owned()];
        let winner = race(&p, &names, &id, dead, round);
        dead = winner.pid();
        winner.signal(Signal::KILL);
        winner.end();
    }
    p.give("go");
    assert_eq!(p.run(&["resume", "nightly"]).code, Some(0));
    assert_eq!(p.successes(), [1, 2, 3]);
}

#[test]
fn a_second_resume_succeeds_after_the_first_has_completed() {
    let p = Project::new();
    let first = stale(&p, "A");
    p.give("go-A");
    assert_eq!(p.run(&["resume", &first]).code, Some(0));
    assert_eq!(p.run(&["resume", &first]).code, Some(0));
    assert_eq!(p.marks("A").len(), 2);
    assert_eq!(p.ok(&["sessions", "show", &first])["session"]["status"], "completed");
}

#[test]
fn resume_after_a_crash_clears_the_stale_lock_file() {
    let p = Project::new();
    let id = stale(&p, "A");
    let file = p.tenure_home().join("resume_locks").join(format!("{id}.lock"));
    assert!(file.exists(), "the killed process has left it");
    // Written by another tool, for a process that no longer exists.
    let foreign = serde_json::json!({
        "job_id": id, "process_id": 999_999_999, "hostname": tenure_lock::hostname(),
        "acquired_at": "2025-01-11T10:30:00Z",
    });
    std::fs::write(&file, foreign.to_string()).unwrap();
    p.give("go-A");
    assert_eq!(p.run(&["resume", &id]).code, Some(0));
    assert!(!file.exists());
}

#[test]
fn a_resume_lock_of_another_tool_or_machine_is_honoured_unless_forced() {
    let p = Project::new();
    let id = stale(&p, "A");
    let file = p.tenure_home().join("resume_locks").join(format!("{id}.lock"));
    p.give("go-A");
    let write = |pid: u32, host: &str| {
        let text = serde_json::json!({
            "job_id": id, "process_id": pid, "hostname": host, "acquired_at": "2025-01-11T10:30:00Z",
        });
        std::fs::write(&file, text.to_string()).unwrap();
    };
    write(std::process::id(), &tenure_lock::hostname());
    let refused = p.run(&["resume", &id]);
    assert_eq!(refused.code, Some(6), "{refused:?}");
    assert_eq!(named_in_foreign(&refused), std::process::id());
    write(12345, "elsewhere");
    let refused = p.run(&["resume", &id]);
    assert_eq!(refused.code, Some(6), "{refused:?}");
    let held = "Lock held by: PID 12345 on elsewhere (acquired 2025-01-11 10:30:00 UTC)";
    assert!(refused.err.contains(held), "{refused:?}");
    let details = p.run(&["--json", "resume", &id]).json()["error"].clone();
    assert_eq!(
        (details["code"].as_str(), details["details"]["holder"]["pid"].as_u64()),
        (Some("RESUME_LOCKED"), Some(12345))
    );
    assert_eq!(p.run(&["resume", &id, "--force"]).code, Some(0));
    assert_eq!(p.status("A"), "completed");
}

fn named_in_foreign(answer: &Answer) -> u32 {
    let held = answer.err.lines().find_map(|line| line.strip_prefix("Lock held by: PID ")).unwrap();
    held.split(' ').next().unwrap().parse().unwrap()
}

#[test]
fn the_lease_in_the_store_refuses_a_second_resume_from_another_home() {
    let p = Project::new();
    let id = stale(&p, "A");
    let winner = p.spawn(&["resume", &id]);
    until("it continues", || p.marks("A").len() == 2);
    // Another home has another lock file, so only the lease in the store can refuse this.
    let mut command = p.command(&["--json", "resume", &id]);
    let refused = command.env("TENURE_HOME", p.root().join("other-home")).output().unwrap();
    assert_eq!(refused.status.code(), Some(6), "{refused:?}");
    let error: Value = serde_json::from_slice::<Value>(&refused.stdout).unwrap()["error"].clone();
    // The same process holds the slot, which is requested first.
    assert!(["RESUME_LOCKED", "RUNNER_ACTIVE"].contains(&error["code"].as_str().unwrap()), "{error}");
    assert!(
        error["message"].as_str().unwrap().to_lowercase().contains(&format!("pid {}", winner.pid())),
        "{error}"
    );
    p.give("go-A");
    assert_eq!(winner.end().code, Some(0));
    assert_eq!(sessions::session(&p)["status"], "completed");
}

#[test]
fn with_an_unwritable_home_the_job_runs_with_a_warning() {
    let p = Project::new();
    p.numbers("items.txt", 2);
    std::fs::write(p.root().join("file"), "").unwrap();
    let mut command = p.command(&["jobs", "start", "a", "--items", "items.txt", "--", "true"]);
    let ran = command.env("TENURE_HOME", p.root().join("file")).output().unwrap();
    assert!(ran.status.success(), "{ran:?}");
    assert!(String::from_utf8_lossy(&ran.stderr).contains("resume lock file"), "{ran:?}");
    assert_eq!(p.successes(), [1, 2]);
}

#[test]
fn a_malformed_id_is_a_usage_error_and_an_unknown_one_is_not_found() {
    let p = Project::new();
    for bad in ["../../etc/passwd", ".hidden", "a b", "", "x/y"] {
        assert_eq!(p.run(&["resume", bad]).code, Some(2), "{bad:?}");
    }
    assert_eq!(p.run(&["resume", "--", "-rf"]).code, Some(2));
    for unknown in ["nightly", "0123abcd", "01234567-89ab-cdef-0123-456789abcdef"] {
        let answer = p.run(&["--json", "resume", unknown]);
        assert_eq!(
            (answer.code, answer.json()["error"]["code"].as_str()),
            (Some(4), Some("SESSION_NOT_FOUND")),
            "{unknown}"
        );
    }
    assert_eq!(p.run(&["--json", "jobs", "show", "nightly"]).json()["error"]["code"], "JOB_NOT_FOUND");
    assert!(!p.tenure_home().join("resume_locks").exists());
}
