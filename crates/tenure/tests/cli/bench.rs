use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};

use crate::support::TestEnv;

/// The real temporary folder may contain the benches of other tests.
fn with_a_temporary_folder() -> TestEnv {
    let mut env = TestEnv::new();
    env.cd("tmp").cd("work");
    let tmp = env.path("tmp");
    env.set("TMPDIR", tmp);
    env
}

fn left_in_the_temporary_folder(env: &TestEnv) -> Vec<std::ffi::OsString> {
    std::fs::read_dir(env.path("tmp")).unwrap().map(|entry| entry.unwrap().file_name()).collect()
}

#[test]
fn every_budget_stands_in_one_table_of_one_run() {
    let env = with_a_temporary_folder();
    let ran = env.finish(env.process(&["bench", "--quick", "--json"])).exits(0);
    assert!(ran.err.is_empty(), "{ran}");
    let data = ran.data();
    let rows = data["budgets"].as_array().unwrap();
    for (what, is, budget) in [
        ("--version ÷ /bin/true, wall", "atMost", 2.0),
        ("--help ÷ /bin/true, wall", "atMost", 2.0),
        ("tasks list ÷ /bin/true, wall", "atMost", 3.0),
        ("task show ÷ /bin/true, wall", "atMost", 3.0),
        ("task claim ÷ /bin/true, wall", "atMost", 4.0),
        ("claims per second ÷ raw commits", "atLeast", 0.6),
        ("8 writers, share of slowest ÷ fastest", "atLeast", 0.25),
        ("32 writers, share of slowest ÷ fastest", "atLeast", 0.25),
        ("release → next waiter has it, p50 ÷ raw commit", "atMost", 2.0),
        ("release → next waiter has it, p99", "atMost", 10.0),
        ("holder killed → waiter has it, p50 ÷ raw commit", "atMost", 4.0),
        ("holder killed → waiter has it, worst", "atMost", 1000.0),
        ("8 waiters, rounds per second ÷ raw commits", "atLeast", 0.4),
        ("task next --claim: with 10,000 tasks ÷ with 100", "atMost", 1.5),
        ("tasks list, first page: with 10,000 tasks ÷ with 100", "atMost", 1.5),
        ("status: with 10,000 tasks ÷ with 100", "atMost", 1.5),
        ("sections list: with 10,000 tasks ÷ with 100", "atMost", 1.5),
        ("locks list: with 10,000 tasks ÷ with 100", "atMost", 1.5),
        ("file lock: acquire and release", "atMost", 100.0),
        ("file lock: refuse", "atMost", 15.0),
        ("file lock: take over from a dead holder", "atMost", 50.0),
        ("idle runner, resident", "atMost", 8.0),
        ("idle runner, of one processor", "atMost", 0.1),
        ("MCP server, resident", "atMost", 10.0),
        ("claim_task over MCP ÷ the same transaction", "atMost", 3.0),
    ] {
        let row = rows.iter().find(|row| row["what"] == what).unwrap_or_else(|| panic!("no {what} in {ran}"));
        assert_eq!((&row["is"], &row["budget"]), (&is.into(), &budget.into()), "{row}");
        assert!(row["value"].as_f64().is_some_and(|value| value >= 0.0), "{row}");
        // The tests run a debug build on a busy machine.
        assert_eq!(row["verdict"], "not judged", "{row}");
    }
    for what in ["refuse ÷ bare flock", "this program", "raw commits", "/bin/true, whole process"] {
        let shown = rows.iter().any(|row| {
            row["what"].as_str().unwrap().contains(what) && row["value"].as_f64().is_some_and(|v| v > 0.0)
        });
        assert!(shown, "no {what} in {ran}");
    }
    assert!(left_in_the_temporary_folder(&env).is_empty() && !env.path("home/.tenure").exists());
}

#[test]
fn one_theme_can_be_asked_for_alone() {
    let env = with_a_temporary_folder();
    let ran = env.finish(env.process(&["bench", "--quick", "locks", "binary"])).exits(0);
    let lines: Vec<&str> = ran.out.lines().collect();
    assert!(lines[0].starts_with("WHAT "), "{ran}");
    let rows = &lines[1..lines.len() - 1];
    assert_eq!(rows.iter().filter(|line| line.starts_with("file lock: ")).count(), 6, "{ran}");
    assert_eq!(rows.iter().filter(|line| line.starts_with("this program")).count(), 1, "{ran}");
    assert_eq!(rows.len(), 7, "{ran}");
    assert!(lines[lines.len() - 1].starts_with("This is a debug build, so nothing is judged."), "{ran}");
}

#[test]
fn a_comparison_with_a_tool_counts_races_and_times_claims() {
    let env = with_a_temporary_folder();
    let ran =
        env.finish(env.process(&["bench", "--quick", "--json", "--against", "flock", "--against", "raw"]));
    let data = ran.exits(0).data();
    let value = |what: &str| {
        let row = data["budgets"].as_array().unwrap().iter().find(|row| row["what"] == what);
        row.unwrap_or_else(|| panic!("no {what} in {data}"))["value"].as_f64().unwrap()
    };
    for name in ["tenure", "flock", "raw SQLite"] {
        let share = value(&format!("races of 8 with one winner, {name}"));
        assert!((share - 1.0).abs() < f64::EPSILON, "{data}");
    }
    assert!(value("one claim, flock ÷ tenure") > 0.0 && value("one claim, in this process, tenure") > 0.0);
    assert!(left_in_the_temporary_folder(&env).is_empty());
}

#[test]
fn a_tool_that_is_not_installed_is_named_with_how_to_install_it() {
    let mut env = with_a_temporary_folder();
    let nothing = env.path("nothing");
    env.set("PATH", nothing);
    let ran = env.finish(env.process(&["bench", "--quick", "--json", "--against", "lodestar"])).exits(1);
    assert!(ran.message().starts_with("lodestar is not installed"), "{ran}");
    assert_eq!(ran.envelope()["hints"][0]["command"], "pip install lodestar-cli", "{ran}");
    assert!(left_in_the_temporary_folder(&env).is_empty());
}

#[test]
fn an_interrupted_bench_leaves_nothing_behind() {
    let env = with_a_temporary_folder();
    let mut command = env.process(&["bench", "runner"]);
    let mut child = command.stdout(std::process::Stdio::null()).spawn().unwrap();
    let deadline = Instant::now() + Duration::from_secs(30);
    let has_begun = || {
        left_in_the_temporary_folder(&env)
            .iter()
            .any(|name| env.path("tmp").join(name).join("project/.tenure/tenure.db").exists())
    };
    while !has_begun() {
        assert!(Instant::now() < deadline, "it never began");
        std::thread::sleep(Duration::from_millis(20));
    }
    kill_process(Pid::from_child(&child), Signal::INT).unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(130));
    assert!(left_in_the_temporary_folder(&env).is_empty());
}

#[test]
fn the_bench_cannot_measure_without_writing() {
    let env = TestEnv::new();
    insta::assert_snapshot!(env.run(&["bench", "--dry-run"]));
}

#[test]
fn a_place_that_is_not_there_is_not_made_but_said() {
    let mut env = TestEnv::new();
    let nowhere = env.path("nowhere");
    env.set("TMPDIR", &nowhere);
    for (command, words) in [("bench", &["bench", "locks"][..]), ("demo", &["demo"])] {
        let mut words = words.to_vec();
        words.push("--json");
        let ran = env.finish(env.process(&words)).exits(1);
        assert!(ran.message().starts_with("cannot create "), "{ran}");
        let hint = ran.envelope()["hints"][0]["command"].clone();
        assert_eq!(hint, format!("TMPDIR=/var/tmp tenure {command}"), "{ran}");
    }
    assert!(!nowhere.exists());
}
