//! Tables on a terminal of 80 columns, with long and hostile values.

use unicode_width::UnicodeWidthStr;

use crate::support::TestEnv;
use crate::work_rows;

const RUNNER: &str = "0f1e2d3c-4b5a-4697-8899-aabbccddeeff";
const KEY: &str = "A-LONG-KEY-OF-TWENTY";

fn crowded() -> TestEnv {
    let mut env = TestEnv::project();
    let long = "a title\u{1b}[2J that goes on 日本語 and on ".repeat(9);
    env.ok(&["sections", "add", &"A section with a long name ".repeat(3)]);
    env.ok(&[
        "tasks",
        "add",
        "--id",
        KEY,
        "--section",
        &"A section with a long name ".repeat(3),
        "--",
        &long,
    ]);
    env.ok(&["tasks", "add", "Short"]);
    env.ok(&["agents", "join", "--name", &"a name with spaces ".repeat(5)]);
    env.ok(&["tasks", "claim", KEY, "--agent", RUNNER]);
    env.ok(&["msg", "send", "--task", KEY, "--from", RUNNER, "-m", &long]);
    work_rows::job(&env, "a-job-with-a-name-that-takes-most-of-the-row-of-a-terminal", None, &[]);
    env.write(
        "work/.tenure/config.yaml",
        format!(
            "project:\n  name: shop\nhooks:\n  - name: a-hook-with-a-long-name\n    event: task.completed\n    type: script\n    \
             command: /opt/{}/notify\n",
            "deep/".repeat(20)
        ),
    );
    env.on_terminal = true;
    env.width = 80;
    env.set("NO_COLOR", "1");
    env
}

#[test]
fn every_table_fits_a_terminal_of_80_columns() {
    let env = crowded();
    for words in [
        &["tasks"][..],
        &["sections"],
        &["locks"],
        &["agents"],
        &["runners"],
        &["jobs"],
        &["sessions"],
        &["projects"],
        &["hooks"],
        &["usage"],
        &["config", "show"],
        &["locks", "show", KEY, "--history"],
        &["trust", "list"],
    ] {
        let ran = env.ok(words);
        for line in ran.out.lines() {
            assert!(line.width() <= 80, "{} columns: {line:?}\n{ran}", line.width());
        }
    }
}

#[test]
fn keys_are_whole_and_holders_are_beginnings_that_commands_accept() {
    let env = crowded();
    for words in [["tasks", "list"], ["locks", "list"]] {
        let shown = env.ok(&words).out;
        assert!(shown.contains(KEY), "{shown}");
        assert!(shown.contains("0f1e2d3c") && !shown.contains(RUNNER), "{shown}");
    }
    let shown = env.ok(&["config", "show"]).out;
    for key in ["runners.wakeup.projectPaths", "runners.subprocessHangTimeout"] {
        assert!(shown.contains(key), "{shown}");
    }
}

#[test]
fn no_word_is_broken_at_the_edge() {
    let mut env = TestEnv::new();
    env.on_terminal = true;
    env.width = 80;
    env.set("NO_COLOR", "1");
    insta::assert_snapshot!(env.ok(&[] as &[&str]));
    let env = crowded();
    insta::assert_snapshot!("tables_at_80_columns", env.ok(&["tasks", "list"]));
}
