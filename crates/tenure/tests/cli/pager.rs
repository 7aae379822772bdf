//! Output that is longer than the terminal is shown in a pager, but only to a person.

use std::os::unix::fs::PermissionsExt as _;
use std::process::Command;

use crate::support::TestEnv;

/// Runs a shell line at a terminal of ten lines, with `tenure` on the search path. Returns what the terminal shows.
pub(crate) fn at_a_terminal(env: &TestEnv, line: &str) -> String {
    let binary = std::path::Path::new(env!("CARGO_BIN_EXE_tenure")).parent().unwrap();
    let path = format!("{}:{}", binary.display(), std::env::var("PATH").unwrap());
    let output = Command::new("script")
        .args(["-qefc", &format!("stty rows 10 cols 80; {line}"), "/dev/null"])
        .env_clear()
        .envs(&env.env.vars)
        .env("PATH", path)
        .env("TERM", "xterm")
        .current_dir(&env.env.cwd)
        .output()
        .unwrap();
    assert!(output.status.success(), "{output:?}");
    String::from_utf8(output.stdout).unwrap()
}

/// A project with twenty tasks. The pager writes what it is given to the file `paged`.
fn long_list() -> TestEnv {
    let mut env = TestEnv::project();
    for n in 0..20 {
        env.ok(&["tasks", "add", &format!("Task number {n}")]);
    }
    env.set("TENURE_PAGER", "cat > paged");
    env
}

fn paged(env: &TestEnv) -> Option<String> {
    let found = std::fs::read_to_string(env.path("work/paged")).ok();
    let _ = std::fs::remove_file(env.path("work/paged"));
    found
}

#[test]
fn a_person_sees_long_output_in_the_pager_and_short_output_directly() {
    let env = long_list();
    let shown = at_a_terminal(&env, "tenure tasks");
    let seen = paged(&env).expect("the pager was started");
    assert!(seen.contains("Task number 19") && !shown.contains("Task number"), "{shown}");
    assert!(at_a_terminal(&env, "tenure tasks --limit 2").contains("Task number 1"));
    assert_eq!(paged(&env), None);
}

#[test]
fn programs_agents_and_those_who_do_not_want_it_get_no_pager() {
    let env = long_list();
    for line in [
        "tenure tasks --no-pager",
        "tenure tasks --json",
        "CI=true tenure tasks",
        "TERM=dumb tenure tasks",
        "TENURE_AGENT=bob tenure tasks",
        "CLAUDECODE=1 tenure tasks",
        "TENURE_PAGER= tenure tasks",
        "TENURE_PAGER=cat tenure tasks",
        "tenure tasks | cat",
    ] {
        assert!(at_a_terminal(&env, line).contains("Task number 19"), "{line}");
        assert_eq!(paged(&env), None, "{line}");
    }
}

#[test]
fn without_the_pager_the_output_is_printed_and_leaving_it_early_is_no_error() {
    let env = long_list();
    assert!(at_a_terminal(&env, "TENURE_PAGER=no-such-pager tenure tasks").contains("Task number 19"));
    assert!(at_a_terminal(&env, "TENURE_PAGER='head -n 1' tenure tasks").contains("KEY"));
    let shown = at_a_terminal(&env, "unset TENURE_PAGER; PAGER='head -n 2' tenure tasks");
    assert!(shown.contains("Task number 0") && !shown.contains("Task number 9"), "{shown}");
}

#[test]
fn a_person_reads_a_manual_page_formatted_and_a_program_gets_its_source() {
    let mut env = TestEnv::project();
    std::fs::create_dir(env.path("work/bin")).unwrap();
    let man = env.path("work/bin/man");
    // A pretend `man`, which tells how it was called.
    std::fs::write(&man, "#!/bin/sh\ncat >page\necho \"man $*\"\nexit \"${MAN_EXIT:-0}\"\n").unwrap();
    std::fs::set_permissions(&man, std::fs::Permissions::from_mode(0o755)).unwrap();
    env.set("TENURE_PAGER", "cat > paged");
    let shown = at_a_terminal(&env, "PATH=$PWD/bin:$PATH tenure man tasks claim");
    assert!(shown.contains("man -l -") && !shown.contains(".TH"), "{shown}");
    assert!(std::fs::read_to_string(env.path("work/page")).unwrap().contains(".TH tenure-tasks-claim"));
    // A `man` that does not read pages from its input.
    at_a_terminal(&env, "PATH=$PWD/bin:$PATH MAN_EXIT=1 tenure man tasks claim");
    assert!(paged(&env).expect("the source is printed").contains(".TH tenure-tasks-claim"));
    for line in ["tenure man tasks claim | cat", "CLAUDECODE=1 tenure man tasks claim"] {
        assert!(at_a_terminal(&env, line).contains(".TH tenure-tasks-claim"), "{line}");
    }
}
