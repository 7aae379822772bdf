//! What an agent did can be read while it works and afterwards: `tasks logs`, a runner in the foreground and `runners logs`.

use serde_json::{Value, json};
use tenure_testkit::cli::processes::memory;
use tenure_testkit::cli::{full_or, until};

use crate::project::Project;

const CONFIG: &str = "runners: {preset: pretend-claude, killGrace: 300ms}\nlocking: {pollInterval: 1s}";
const STARTED: &str = r#"print {"type":"system","subtype":"init","session_id":"5f1c","model":"opus","claude_code_version":"2.1.197"}"#;
const CALL: &str = r#"print {"type":"assistant","message":{"content":[{"type":"text","text":"I look around."},{"type":"tool_use","name":"Bash","input":{"command":"ls"}}]}}"#;
/// The output has an escape sequence, a control character as it is, and one that reverses the text after it.
const OUTPUT: &str = concat!(
    r#"{"type":"user","message":{"content":[{"type":"tool_result","content":"a.txt \u001b]0;title\u0007"#,
    "\u{7f}\u{202e}",
    r#"evil"}]}}"#
);
const RESULT: &str = r#"print {"type":"result","subtype":"success","is_error":false,"result":"All done.","total_cost_usd":0.1599,"modelUsage":{"opus":{"inputTokens":15600,"outputTokens":1001,"cacheReadInputTokens":65000,"cacheCreationInputTokens":3900}}}"#;

fn project() -> Project {
    let project = Project::with(CONFIG);
    std::fs::write(project.shared("output"), format!("{OUTPUT}\n")).unwrap();
    let done = "tenure -q task done A";
    project.task("A", &[STARTED, CALL, "show output", "mark begun", "storm wait go", done, RESULT]);
    project
}

/// Texts without the times at the beginning of their lines.
fn texts(shown: &str) -> Vec<&str> {
    shown.lines().map(|line| line.get("2026-11-16T09:00:00Z  ".len()..).unwrap_or(line)).collect()
}

#[test]
fn the_log_of_an_agent_is_readable_text_json_or_what_it_printed() {
    let project = project();
    project.give("calm");
    assert_eq!(project.work(&[]).code, Some(0));
    let shown = project.run(&["tasks", "logs", "A"]);
    assert_eq!(shown.code, Some(0), "{shown:?}");
    let printed: Vec<&str> =
        texts(&shown.out).into_iter().filter(|line| !line.starts_with("exit ")).collect();
    assert_eq!(
        printed,
        [
            "conversation 5f1c, model opus, version 2.1.197",
            "I look around.",
            "→ Bash: ls",
            "  a.txt \\x1b]0;title\\x07\\x7f\\u{202e}evil",
            "Marked A done",
            "All done.",
            "Ended: completed",
            "Used: 15600 tokens of input, 65000 from a cache, 3900 to a cache, 1001 of output, $0.16",
        ]
    );
    assert!(shown.out.lines().next().unwrap().starts_with("20"), "the time comes first: {}", shown.out);

    let json = project.run(&["--json", "tasks", "logs", "A"]);
    let entries: Vec<Value> = json.out.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let kinds: Vec<&str> = entries.iter().map(|entry| entry["kind"].as_str().unwrap()).collect();
    assert_eq!(kinds, ["started", "message", "tool", "output", "line", "line", "result", "ended"]);
    assert_eq!(
        (&entries[2]["tool"], &entries[2]["text"], &entries[2]["task"]),
        (&json!("Bash"), &json!("ls"), &json!("A"))
    );
    assert_eq!(entries[3]["text"], "a.txt \u{1b}]0;title\u{7}\u{7f}\u{202e}evil");
    let used = &entries[7]["usage"];
    assert_eq!(
        (&used["inputTokens"], &used["cacheWriteTokens"], &used["usd"]),
        (&json!(15600), &json!(3900), &json!(0.1599))
    );

    let raw = project.run(&["tasks", "logs", "A", "--raw"]);
    let lines: Vec<&str> = raw.out.lines().collect();
    assert_eq!(lines[0], STARTED.strip_prefix("print ").unwrap());
    let output: Value = serde_json::from_str(lines[2]).unwrap();
    assert_eq!(output, serde_json::from_str::<Value>(OUTPUT).unwrap());
    assert_eq!(project.run(&["--json", "tasks", "logs", "A", "--raw"]).code, Some(2));

    let shown = project.run(&["tasks", "show", "A"]).out;
    for part in ["All done.", "$0.16", ".tenure/logs/A-", "Last attempt: done"] {
        assert!(shown.contains(part), "{part}: {shown}");
    }
}

#[test]
fn a_log_is_followed_until_its_attempt_ends() {
    let project = project();
    let runner = project.runner(&[]);
    project.wait_for("begun");
    let follower = project.spawn(&["tasks", "logs", "A", "--follow"]);
    let followed = project.spawn(&["runners", "logs", "--follow"]);
    until("what was printed before is shown", || follower.output_so_far().contains("→ Bash: ls"));
    until("the runner's log is followed", || followed.output_so_far().contains("Log of A (claude): "));
    project.give("go");
    assert_eq!(runner.end().code, Some(0));
    let shown = follower.end();
    assert_eq!(shown.code, Some(0), "{shown:?}");
    assert!(shown.out.contains("All done.") && shown.out.contains("Used: 15600 tokens"), "{}", shown.out);
    until("the agent's lines are among the runner's", || {
        let shown = followed.output_so_far();
        let at = |text: &str| shown.find(text);
        at("A  All done.").is_some_and(|said| at("Completed A: ").is_some_and(|end| said < end))
    });
}

#[test]
fn a_runner_in_the_foreground_shows_what_its_agent_does() {
    let project = project();
    project.give("calm");
    let ran = project.work(&[]);
    for line in [
        "A  I look around.",
        "A  → Bash: ls",
        "A    a.txt \\x1b]0;title\\x07\\x7f\\u{202e}evil",
        "A  All done.",
    ] {
        assert!(ran.err.contains(&format!("] {line}\n")), "{line}: {}", ran.err);
    }
    let log = project.run(&["runners", "logs"]).out;
    assert!(
        log.contains("Completed A") && !log.contains("I look around."),
        "only the runner's lines are kept: {log}"
    );
}

#[test]
fn each_attempt_has_its_log_and_a_failed_task_says_why() {
    let project = Project::with(CONFIG);
    let error =
        r#"print {"type":"result","subtype":"error_max_turns","is_error":true,"result":"too many turns"}"#;
    let said = |text: &str| {
        format!(r#"print {{"type":"assistant","message":{{"content":[{{"type":"text","text":"{text}"}}]}}}}"#)
    };
    project.task("A", &[&said("first try"), "storm kill KILL", &said("second try"), error, "exit 1"]);
    for calm in [false, true] {
        if calm {
            project.give("calm");
        }
        let ran = project.work(&["--once"]);
        assert_eq!(ran.code, Some(1), "{ran:?}");
    }
    assert_eq!(project.status("A"), "failed");
    let log = |number: &str| project.run(&["tasks", "logs", "A", "--attempt", number]);
    assert!(!log("1").out.contains("second try") && log("1").out.contains("first try"));
    assert!(log("2").out.contains("second try") && log("2").out.contains("Ended: "));
    for number in ["0", "3"] {
        let refused = log(number);
        assert_eq!(refused.code, Some(4), "{refused:?}");
        assert!(
            refused.err.contains(&format!("A has 2 attempts; there is no attempt {number}")),
            "{refused:?}"
        );
    }
    let why = project.run(&["why", "A"]).out;
    for part in ["too many turns", "second try", ".tenure/logs/A-", "tenure tasks logs A"] {
        assert!(why.contains(part), "{part}: {why}");
    }
    let why = project.ok(&["why", "A"]);
    assert_eq!(why["lastEnding"]["kind"], "task_error", "{why}");

    project.rewrite_processes(|process| {
        process["host_id"] = json!("another");
        process["hostname"] = json!("web-2");
    });
    let refused = log("2");
    assert_eq!(refused.code, Some(1), "{refused:?}");
    assert!(refused.err.contains("the log of A is on web-2: /"), "{refused:?}");
}

/// The peak memory of a runner and of `tasks logs`, in kB, for an agent that prints this many bytes.
fn peaks(size: u64) -> (u64, u64) {
    let project = Project::with(CONFIG);
    let flood = format!("events {size}");
    project.task(
        "A",
        &[&flood, "line 3000000", "print the end", "mark flooded", "wait go", "tenure -q task done A"],
    );
    let runner = project.runner(&[]);
    project.wait_for("flooded");
    let reader = project.spawn(&["tasks", "logs", "A", "--follow"]);
    until("everything is shown", || reader.output_so_far().ends_with("  the end\n"));
    let peaks = (memory(runner.pid(), "VmHWM"), memory(reader.pid(), "VmHWM"));
    project.give("go");
    assert_eq!((runner.end().code, reader.end().code), (Some(0), Some(0)));
    peaks
}

#[test]
fn the_memory_for_a_long_stream_is_that_of_a_short_one() {
    let size = full_or(300_000_000, 20_000_000);
    let ((short_runner, short_reader), (long_runner, long_reader)) = (peaks(100_000), peaks(size));
    eprintln!(
        "{size} bytes: the runner {long_runner} kB, `tasks logs` {long_reader} kB; \
         100 kB: {short_runner} kB, {short_reader} kB"
    );
    assert!(long_reader * 4 < short_reader * 5, "{long_reader} kB instead of {short_reader} kB");
    assert!(long_runner * 4 < short_runner * 5, "{long_runner} kB instead of {short_runner} kB");
}
