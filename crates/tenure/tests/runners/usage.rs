//! `tenure usage` sums what the agents printed, even if one continues its conversation after a limit.

use serde_json::{Value, json};
use tenure_testkit::cli::{Terminal, until};

use crate::SUITE;
use crate::project::Project;

const CONFIG: &str = "runners: {preset: pretend-claude, killGrace: 300ms}\nlocking: {pollInterval: 1s}";

/// What an agent prints in its first attempt, which a limit ends, and when it continues; and the sum of both.
struct Case {
    agent: &'static str,
    first: &'static str,
    second: &'static str,
    /// Input, from the cache, to the cache, output, dollars.
    sum: (u64, u64, u64, u64, Option<f64>),
}

const CASES: &[Case] = &[
    // Totals of the process.
    Case {
        agent: "claude",
        first: r#"{"type":"system","subtype":"init","session_id":"c1","model":"opus","claude_code_version":"2.1.197"}
{"type":"assistant","message":{"id":"m1","content":[{"type":"text","text":"Working"}],"usage":{"input_tokens":7,"output_tokens":1}}}
{"type":"rate_limit_event","rate_limit_info":{"status":"rejected","rateLimitType":"five_hour"}}
{"type":"result","subtype":"success","is_error":true,"api_error_status":429,"result":"You've hit your session limit","total_cost_usd":0.15990000000000004,"modelUsage":{"opus":{"inputTokens":15600,"outputTokens":1001,"cacheReadInputTokens":65000,"cacheCreationInputTokens":3900},"haiku":{"inputTokens":100,"outputTokens":10,"cacheReadInputTokens":0,"cacheCreationInputTokens":0}}}
"#,
        second: r#"{"type":"system","subtype":"init","session_id":"c1","model":"opus","claude_code_version":"2.1.197"}
{"type":"result","subtype":"success","is_error":false,"result":"Done","total_cost_usd":0.0201,"modelUsage":{"opus":{"inputTokens":300,"outputTokens":20,"cacheReadInputTokens":1000,"cacheCreationInputTokens":100}}}
"#,
        sum: (16_000, 66_000, 4000, 1031, Some(0.18)),
    },
    // Totals of the conversation: the second one includes the first.
    Case {
        agent: "codex",
        first: r#"{"type":"thread.started","thread_id":"t1"}
{"type":"turn.completed","usage":{"input_tokens":3000,"cached_input_tokens":2000,"cache_write_input_tokens":0,"output_tokens":176,"reasoning_output_tokens":22}}
{"type":"turn.failed","error":{"message":"You've hit your usage limit. Try again later."}}
"#,
        second: r#"{"type":"thread.started","thread_id":"t1"}
{"type":"turn.completed","usage":{"input_tokens":4500,"cached_input_tokens":3000,"cache_write_input_tokens":0,"output_tokens":264,"reasoning_output_tokens":33}}
"#,
        sum: (4500, 3000, 0, 264, None),
    },
    // Totals of the process under the same event, which are less than those before.
    Case {
        agent: "codex",
        first: r#"{"type":"thread.started","thread_id":"t2"}
{"type":"turn.completed","usage":{"input_tokens":3000,"cached_input_tokens":2000,"output_tokens":176}}
{"type":"turn.failed","error":{"message":"You've hit your usage limit. Try again later."}}
"#,
        second: r#"{"type":"thread.started","thread_id":"t2"}
{"type":"turn.completed","usage":{"input_tokens":1500,"cached_input_tokens":1000,"output_tokens":88}}
"#,
        sum: (4500, 3000, 0, 264, None),
    },
    Case {
        agent: "gemini",
        first: r#"{"type":"init","session_id":"g1","model":"flash"}
{"type":"result","status":"error","error":{"type":"TerminalQuotaError","message":"You have exhausted your capacity"},"stats":{"total_tokens":7330,"input_tokens":7000,"output_tokens":275,"cached":2000,"input":5000}}
"#,
        second: r#"{"type":"init","session_id":"g1","model":"flash"}
{"type":"result","status":"success","stats":{"total_tokens":110,"input_tokens":100,"output_tokens":10,"cached":50,"input":50}}
"#,
        sum: (7100, 2050, 0, 285, None),
    },
    // One event per request.
    Case {
        agent: "opencode",
        first: r#"{"type":"step_start","sessionID":"ses_1","part":{}}
{"type":"step_finish","sessionID":"ses_1","part":{"reason":"tool-calls","tokens":{"input":600,"output":66,"cache":{"write":5,"read":700}},"cost":0.012}}
{"type":"step_finish","sessionID":"ses_1","part":{"reason":"tool-calls","tokens":{"input":600,"output":66,"cache":{"write":5,"read":700}},"cost":0.012}}
{"type":"error","sessionID":"ses_1","error":{"name":"APIError","data":{"message":"rate limit","statusCode":429}}}
"#,
        second: r#"{"type":"step_start","sessionID":"ses_1","part":{}}
{"type":"step_finish","sessionID":"ses_1","part":{"reason":"stop","tokens":{"input":50,"output":8,"cache":{"write":0,"read":1400}},"cost":0.006}}
"#,
        sum: (1250, 2800, 10, 140, Some(0.03)),
    },
    Case {
        agent: "copilot",
        first: r#"{"type":"session.start","data":{"sessionId":"s1","selectedModel":"m"}}
{"type":"assistant.usage","data":{"inputTokens":100,"outputTokens":10,"cacheReadTokens":40}}
{"type":"session.error","data":{"errorType":"rate_limit","statusCode":429,"message":"limit"}}
"#,
        second: r#"{"type":"session.start","data":{"sessionId":"s1","selectedModel":"m"}}
{"type":"assistant.usage","data":{"inputTokens":200,"outputTokens":20,"cacheReadTokens":60}}
{"type":"result","sessionId":"s1","exitCode":0,"usage":{"premiumRequests":0}}
"#,
        sum: (300, 100, 0, 30, None),
    },
];

fn figures(used: &Value) -> (u64, u64, u64, u64, Option<f64>) {
    let number = |name: &str| used[name].as_u64().unwrap();
    let tokens = ["inputTokens", "cachedTokens", "cacheWriteTokens", "outputTokens"].map(number);
    (tokens[0], tokens[1], tokens[2], tokens[3], used["usd"].as_f64())
}

/// The preset starts the same script under the name of another program.
fn act_as(project: &Project, agent: &str) {
    if agent == "claude" {
        return;
    }
    std::fs::copy(project.shared("claude"), project.shared(agent)).unwrap();
    let file = project.root().join(".tenure/config.yaml");
    let config = std::fs::read_to_string(&file).unwrap();
    std::fs::write(&file, config.replace("/claude']", &format!("/{agent}']"))).unwrap();
    project.trust();
}

#[test]
fn usage_is_what_each_agent_printed_before_a_limit_and_when_it_went_on() {
    for case in CASES {
        let project = Project::with(CONFIG);
        act_as(&project, case.agent);
        project.task("A", &["replay first", "tenure -q task done A", "show second"]);
        std::fs::write(project.shared("first"), case.first).unwrap();
        std::fs::write(project.shared("second"), case.second).unwrap();
        let ran = project.work(&[]);
        assert_eq!((ran.code, project.status("A").as_str()), (Some(1), "pending"), "{ran:?}");
        std::fs::remove_file(project.shared("first")).unwrap();
        let ran = project.work(&[]);
        assert_eq!((ran.code, project.status("A").as_str()), (Some(0), "completed"), "{ran:?}");
        assert!(ran.err.contains("Resuming the agent's session"), "{}: {}", case.agent, ran.err);

        for (by, name) in [("task", "A"), ("agent", case.agent)] {
            let used = project.ok(&["usage", "--by", by]);
            let row = &used["usage"][0];
            assert_eq!(
                (&row["name"], &row["attempts"], &used["total"]),
                (&json!(name), &json!(2), &json!(1)),
                "{used}"
            );
            assert_eq!(figures(row), case.sum, "{} {used}", case.agent);
            assert_eq!(figures(&used["sum"]), case.sum, "{used}");
        }
        assert_eq!(
            project.ok(&["usage", "--by", "day", "--since", "2d"])["sum"],
            project.ok(&["usage"])["sum"]
        );
        assert_eq!(project.ok(&["usage", "--since", "2999-01-01"])["usage"], json!([]));
        assert_eq!(figures(&project.show("A")["usage"]), case.sum);
    }
}

#[test]
fn a_conversation_that_is_resumed_by_its_session_is_not_counted_twice() {
    let project = Project::with(CONFIG);
    act_as(&project, "codex");
    let case = &CASES[1];
    project.task("A", &["replay first", "show second", "mark begun", "storm hang", "tenure -q task done A"]);
    std::fs::write(project.shared("first"), case.first).unwrap();
    std::fs::write(project.shared("second"), case.second).unwrap();
    assert_eq!(project.work(&[]).code, Some(1));
    std::fs::remove_file(project.shared("first")).unwrap();
    // The runner is killed while its agent continues the conversation.
    let runner = project.runner(&[]);
    project.wait_for("begun");
    until("the conversation is recorded", || {
        let sessions = project.ok(&["sessions", "list"]);
        sessions.to_string().contains("t1")
    });
    project.stop_between_writes(runner.pid());
    runner.signal(rustix::process::Signal::KILL);
    drop(runner);
    project.give("calm");
    let session = project.ok(&["sessions", "list"])["sessions"][0]["id"].as_str().unwrap().to_owned();
    let ran = project.run(&["resume", &session]);
    assert_eq!((ran.code, project.status("A").as_str()), (Some(0), "completed"), "{ran:?}");
    let used = project.ok(&["usage"]);
    assert_eq!(figures(&used["sum"]), case.sum, "{used}");
}

/// What an agent has printed when its runner is killed, and when it continues; and the sum of both.
const KILLED: &[Case] = &[
    // No result was printed, so its requests count; each may be printed several times.
    Case {
        agent: "claude",
        first: r#"{"type":"system","subtype":"init","session_id":"c1","model":"opus","claude_code_version":"2.1.197"}
{"type":"assistant","message":{"id":"m1","content":[{"type":"text","text":"I begin"}],"usage":{"input_tokens":700,"output_tokens":11,"cache_read_input_tokens":40,"cache_creation_input_tokens":5}}}
{"type":"assistant","message":{"id":"m1","content":[{"type":"tool_use","name":"Bash","input":{"command":"make"}}],"usage":{"input_tokens":700,"output_tokens":11,"cache_read_input_tokens":40,"cache_creation_input_tokens":5}}}
{"type":"assistant","message":{"id":"m2","content":[{"type":"text","text":"I go on"}],"usage":{"input_tokens":300,"output_tokens":9,"cache_read_input_tokens":60,"cache_creation_input_tokens":0}}}
"#,
        second: r#"{"type":"system","subtype":"init","session_id":"c1","model":"opus","claude_code_version":"2.1.197"}
{"type":"result","subtype":"success","is_error":false,"result":"Done","total_cost_usd":0.0201,"modelUsage":{"opus":{"inputTokens":200,"outputTokens":20,"cacheReadInputTokens":1000,"cacheCreationInputTokens":100}}}
"#,
        sum: (1200, 1100, 105, 40, Some(0.0201)),
    },
    Case {
        agent: "codex",
        first: r#"{"type":"thread.started","thread_id":"t1"}
{"type":"turn.completed","usage":{"input_tokens":3000,"cached_input_tokens":2000,"output_tokens":176}}
"#,
        second: r#"{"type":"thread.started","thread_id":"t1"}
{"type":"turn.completed","usage":{"input_tokens":4500,"cached_input_tokens":3000,"output_tokens":264}}
"#,
        sum: (4500, 3000, 0, 264, None),
    },
];

#[test]
fn what_a_run_had_used_when_its_runner_was_killed_is_counted() {
    for case in KILLED {
        let project = Project::with(CONFIG);
        act_as(&project, case.agent);
        let done = "tenure -q task done A";
        project.task("A", &["storm show first", "storm mark begun", "storm hang", "show second", done]);
        std::fs::write(project.shared("first"), case.first).unwrap();
        std::fs::write(project.shared("second"), case.second).unwrap();
        let runner = project.runner(&[]);
        project.wait_for("begun");
        let last = case.first.lines().last().unwrap();
        until("its output is in the log", || {
            let logs = project.attempt_logs();
            logs.iter().any(|log| std::fs::read_to_string(log).unwrap_or_default().contains(last))
        });
        project.stop_between_writes(runner.pid());
        runner.signal(rustix::process::Signal::KILL);
        drop(runner);
        project.give("calm");
        let ran = project.work(&[]);
        assert_eq!((ran.code, project.status("A").as_str()), (Some(0), "completed"), "{ran:?}");
        assert!(ran.err.contains("Resuming the agent's session"), "{}: {}", case.agent, ran.err);
        let used = project.ok(&["usage"]);
        assert_eq!(figures(&used["sum"]), case.sum, "{} {used}", case.agent);
        assert_eq!(used["usage"][0]["attempts"], 2, "{used}");
    }
}

#[test]
fn what_a_running_agent_has_used_so_far_is_on_the_board() {
    let project = Project::with(CONFIG);
    project.task("A", &["show first", "mark begun", "wait more", "show later", "mark printed", "wait end"]);
    std::fs::write(project.shared("first"), KILLED[0].first).unwrap();
    let later = r#"{"type":"assistant","message":{"id":"m3","content":[],"usage":{"input_tokens":500,"output_tokens":1}}}"#;
    std::fs::write(project.shared("later"), format!("{later}\n")).unwrap();
    let is_logged = |line: &str| {
        let logs = project.attempt_logs();
        logs.iter().any(|log| std::fs::read_to_string(log).unwrap_or_default().contains(line))
    };
    let _runner = project.runner(&[]);
    project.wait_for("begun");
    until("its output is in the log", || is_logged(KILLED[0].first.lines().last().unwrap()));
    let terminal = Terminal::open(project.sandbox(), "board", project.root(), (200, 50));
    terminal.start(&format!("{} board", SUITE.binary));
    terminal.wait_for("2 Held (1)");
    terminal.press(&["2"]);
    terminal.wait_for("used      1000 tokens of input");
    project.give("more");
    project.wait_for("printed");
    until("the rest is in the log", || is_logged(later));
    // The board reads again when the store changes, as it does with each heartbeat.
    project.ok(&["tasks", "add", "Another"]);
    terminal.wait_for("used      1500 tokens of input");
    terminal.press(&["q"]);
    terminal.wait_until_idle();
}
