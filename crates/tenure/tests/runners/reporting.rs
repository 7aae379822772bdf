//! A built-in agent has to say that its task is done: by a command, a file, or the last line of its final message.

use serde_json::json;
use tenure_testkit::cli::write_program;

use crate::project::Project;

const CONFIG: &str = "runners: {preset: pretend-claude, killGrace: 300ms}\nlocking: {pollInterval: 1s}";

/// A step that prints claude's success line with this final message.
fn result(message: &str) -> String {
    let line = json!({"type": "result", "subtype": "success", "is_error": false, "result": message});
    format!("print {line}")
}

fn ending(project: &Project, key: &str) -> String {
    project.show(key)["lastEnding"]["kind"].as_str().unwrap_or_default().to_owned()
}

#[test]
fn every_way_to_report_counts() {
    let project = Project::with(CONFIG);
    let last_line = result("I have changed the page.\n\nTENURE-RESULT: done");
    let gave_up = result("TENURE-RESULT: failed there is no such page");
    let file = r#"tenure --version >/dev/null && printf '{"result": "done"}' >"$TENURE_REPORT""#;
    let no = r#"tenure --version >/dev/null && printf '{"result": "failed", "reason": "no way"}' >"$TENURE_REPORT""#;
    project.task("COMMAND", &["tenure task done COMMAND", &result("Done.")]);
    project.task("LINE", &[&last_line]);
    project.task("LINE-FAILED", &[&gave_up]);
    project.task("FILE", &[file, &result("Done.")]);
    project.task("FILE-FAILED", &[no, &result("Done.")]);
    let ran = project.work(&[]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    for (key, status, kind) in [
        ("COMMAND", "completed", "done"),
        ("LINE", "completed", "done"),
        ("LINE-FAILED", "failed", "gave_up"),
        ("FILE", "completed", "done"),
        ("FILE-FAILED", "failed", "gave_up"),
    ] {
        assert_eq!((project.status(key).as_str(), ending(&project, key).as_str()), (status, kind), "{key}");
    }
    assert_eq!(project.show("LINE-FAILED")["lastEnding"]["message"], "there is no such page");
    let left = std::fs::read_dir(project.root().join(".tenure/attempts")).unwrap().count();
    assert_eq!(left, 0, "the folders of the reports are removed");
}

#[test]
fn without_a_report_a_task_goes_to_review_and_is_not_charged() {
    let project = Project::with(CONFIG);
    project.task("A", &[&result("I could not run the tests.")]);
    let ran = project.work(&[]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let task = project.show("A");
    assert_eq!((task["status"].as_str(), task["attempts"].as_u64()), (Some("review"), Some(0)), "{task}");
    assert_eq!(task["lastEnding"]["kind"], "unreported");
    assert!(ran.err.contains("Ended A: claude ended without a report; the task is in review"), "{}", ran.err);
    assert_eq!(task["lastEnding"]["finalMessage"], "I could not run the tests.");
    let why = project.run(&["why", "A"]).out;
    assert!(why.contains("claude ended without a report"), "{why}");
    assert!(project.run(&["tasks", "show", "A"]).out.contains("I could not run the tests."));
}

#[test]
fn a_denied_permission_is_never_done_without_a_report() {
    let project = Project::with("runners: {preset: pretend-claude, killGrace: 300ms, requireReport: false}");
    let denied = json!({"type": "result", "subtype": "success", "is_error": false, "result": "Done.",
        "permission_denials": [{"tool_name": "Bash", "tool_input": {"command": "npm test"}}]});
    project.task("A", &[&format!("print {denied}")]);
    project.task("B", &[&result("Done.")]);
    let ran = project.work(&[]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert_eq!((project.status("A").as_str(), project.status("B").as_str()), ("review", "completed"));
    let why = project.run(&["why", "A"]).out;
    assert!(why.contains("was denied a permission") && why.contains("Bash: npm test"), "{why}");
}

#[test]
fn a_custom_agent_has_to_report_only_if_it_is_configured() {
    let project = Project::new();
    project.task("A", &[]);
    assert_eq!(project.work(&[]).code, Some(0));
    assert_eq!(project.status("A"), "completed");
    let project = Project::with("runners: {preset: pretend, killGrace: 300ms, requireReport: true}");
    project.task("B", &[]);
    project.task("C", &["print TENURE-RESULT: done"]);
    assert_eq!(project.work(&[]).code, Some(0));
    assert_eq!((project.status("B").as_str(), project.status("C").as_str()), ("review", "completed"));
}

/// A claude that ends without a report, and that prints `answer` when its conversation is continued.
fn forgetful_claude(project: &Project, answer: &str) {
    let (program, shared) = (project.shared("claude"), project.shared(""));
    let started = json!({"type": "system", "subtype": "init", "session_id": "c0ffee"});
    let first = json!({"type": "result", "subtype": "success", "is_error": false, "result": "Done."});
    let second = json!({"type": "result", "subtype": "success", "is_error": false, "result": answer});
    let script = format!(
        "#!/bin/sh\ncat >>'{0}/prompts'\necho \"$*\" >>'{0}/args'\necho '{started}'\n\
         case \"$*\" in *--resume*) printf '%s\\n' '{second}' ;; *) echo '{first}' ;; esac\n",
        shared.display()
    );
    write_program(&program, &script);
}

#[test]
fn an_agent_that_does_not_report_is_asked_once_in_its_own_conversation() {
    let project = Project::with(CONFIG);
    forgetful_claude(&project, "It works.\nTENURE-RESULT: done");
    project.task("A", &[]);
    let ran = project.work(&[]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let task = project.show("A");
    assert_eq!((task["status"].as_str(), task["attempts"].as_u64()), (Some("completed"), Some(0)), "{task}");
    assert_eq!(project.marks("args"), ["", "--resume c0ffee"]);
    assert!(ran.out.contains("Tasks: 1 completed.\n"), "{}", ran.out);
    let prompts = project.marks("prompts").join("\n");
    assert!(prompts.contains("You ended without a report on task A."), "{prompts}");
    assert_eq!(project.moves("A", "review"), 0);
}

#[test]
fn an_agent_that_does_not_answer_is_not_asked_again() {
    let project = Project::with(CONFIG);
    forgetful_claude(&project, "I am not sure.");
    project.task("A", &[]);
    let ran = project.work(&[]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let task = project.show("A");
    assert_eq!((task["status"].as_str(), task["attempts"].as_u64()), (Some("review"), Some(0)), "{task}");
    assert_eq!(project.marks("args"), ["", "--resume c0ffee"]);
}

#[test]
fn an_agent_that_cannot_answer_is_not_asked_again_either() {
    let project = Project::with(CONFIG);
    forgetful_claude(&project, "");
    let program = project.shared("claude");
    let script = std::fs::read_to_string(&program).unwrap();
    write_program(&program, &script.replace("*--resume*)", "*--resume*) exit 1;"));
    project.task("A", &[]);
    let ran = project.work(&[]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let task = project.show("A");
    assert_eq!((task["status"].as_str(), task["attempts"].as_u64()), (Some("review"), Some(0)), "{task}");
    assert_eq!(project.marks("args").len(), 2);
}

#[test]
fn three_tasks_in_a_row_without_a_report_park_the_preset() {
    let project = Project::with(CONFIG);
    for n in 1..=5 {
        project.task(&format!("T{n}"), &["mark tried", &result("Done.")]);
    }
    let ran = project.work(&[]);
    assert_eq!(ran.code, Some(1), "{ran:?}");
    assert!(
        ran.err.contains("preset pretend-claude is parked: claude ended without a report"),
        "{}",
        ran.err
    );
    assert_eq!(project.marks("tried").len(), 3);
    let why = project.run(&["why"]).out;
    assert!(why.contains("it is tried again by `tenure runners start`"), "{why}");
}

#[test]
fn after_a_limit_the_same_conversation_goes_on() {
    let project = Project::with(CONFIG);
    let limit = include_str!("../../../tenure-runner/tests/agent-recordings/claude-usage-5h.out");
    std::fs::write(project.shared("limit"), limit).unwrap();
    let (program, shared) = (project.shared("claude"), project.shared(""));
    let started = json!({"type": "system", "subtype": "init", "session_id": "c0ffee"});
    let ended = json!({"type": "result", "subtype": "success", "is_error": false, "result": "Done."});
    let script = format!(
        "#!/bin/sh\ncat >/dev/null\necho \"$*\" >>'{0}/args'\n\
         if [ -e '{0}/limit' ]; then cat '{0}/limit'; exit 1; fi\n\
         echo '{started}'\ntenure task done \"$TENURE_TASK_ID\" >&2 && echo '{ended}'\n",
        shared.display()
    );
    write_program(&program, &script);
    project.task("A", &[]);
    assert_eq!(project.work(&[]).code, Some(1));
    std::fs::remove_file(project.shared("limit")).unwrap();
    let ran = project.work(&[]);
    assert_eq!((ran.code, project.status("A").as_str()), (Some(0), "completed"));
    assert!(ran.out.contains("Tasks: 1 completed.\n") && ran.err.contains("Completed A"), "{ran:?}");
    assert_eq!(project.ok(&["status"])["parked"], json!([]), "the account works again");
    assert_eq!(project.marks("args"), ["", "--resume ad190932-e601-4afd-a7dc-ee130ce44af9"]);
}

#[test]
fn a_lost_conversation_starts_afresh_and_costs_nothing() {
    let project = Project::with(CONFIG);
    let limit = include_str!("../../../tenure-runner/tests/agent-recordings/claude-usage-5h.out");
    std::fs::write(project.shared("limit"), limit).unwrap();
    let (program, shared) = (project.shared("claude"), project.shared(""));
    let script = format!(
        "#!/bin/sh\ncat >/dev/null\necho \"$*\" >>'{0}/args'\n\
         if [ -e '{0}/limit' ]; then cat '{0}/limit'; exit 1; fi\n\
         case \"$*\" in *--resume*) echo 'No conversation found with session ID: x' >&2; exit 1 ;; esac\n\
         exec tenure task done \"$TENURE_TASK_ID\"\n",
        shared.display()
    );
    write_program(&program, &script);
    project.task("A", &[]);
    assert_eq!(project.work(&[]).code, Some(1));
    std::fs::remove_file(project.shared("limit")).unwrap();
    let ran = project.work(&[]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let task = project.show("A");
    assert_eq!((task["status"].as_str(), task["attempts"].as_u64()), (Some("completed"), Some(0)), "{task}");
    assert_eq!(project.marks("args").len(), 3);
}

#[test]
fn what_the_attempts_at_a_task_used_is_summed_and_running_totals_are_told_apart() {
    let project = Project::with(CONFIG);
    let printed = r#"{"type":"result","subtype":"success","is_error":false,"result":"TENURE-RESULT: done","total_cost_usd":0.15990000000000004,"modelUsage":{"m":{"inputTokens":15600,"outputTokens":1001,"cacheReadInputTokens":65000}}}"#;
    project.task("A", &[&format!("print {printed}")]);
    assert_eq!(project.work(&[]).code, Some(0));
    let usage = json!({"inputTokens": 15600, "outputTokens": 1001, "cachedTokens": 65000, "cacheWriteTokens": 0, "usd": 0.1599});
    assert_eq!(project.show("A")["usage"], usage);
    let shown = project.run(&["tasks", "show", "A"]).out;
    assert!(
        shown.contains("Used: 15600 tokens of input, 65000 from a cache, 1001 of output, $0.16"),
        "{shown}"
    );

    // Codex prints the total of its conversation, and is asked once in it.
    let (codex, shared) = (project.shared("codex"), project.shared(""));
    let total =
        |input: u64| json!({"type": "turn.completed", "usage": {"input_tokens": input, "output_tokens": 10}});
    let started = json!({"type": "thread.started", "thread_id": "t1"});
    let report =
        json!({"type": "item.completed", "item": {"type": "agent_message", "text": "TENURE-RESULT: done"}});
    let script = format!(
        "#!/bin/sh\ncat >/dev/null\necho \"$*\" >>'{}/codex-args'\necho '{started}'\n\
         case \"$*\" in *resume*) echo '{report}'; echo '{}' ;; *) echo '{}' ;; esac\n",
        shared.display(),
        total(7500),
        total(6000),
    );
    write_program(&codex, &script);
    project.task("B", &[]);
    let path = format!("{}:{}", shared.display(), std::env::var("PATH").unwrap());
    let args = ["runners", "start", "--foreground", "--preset", "codex"];
    let ran = project.command(&args).env("PATH", path).output().unwrap();
    assert!(ran.status.success(), "{ran:?}");
    assert_eq!(project.status("B"), "completed");
    assert_eq!(project.marks("codex-args").len(), 2);
    assert_eq!(
        project.show("B")["usage"],
        json!({"inputTokens": 7500, "outputTokens": 10, "cachedTokens": 0, "cacheWriteTokens": 0})
    );
}
