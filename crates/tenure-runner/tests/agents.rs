//! Endings of real agents, as recorded, and normal runs in which error messages are only quoted.

#![expect(clippy::unwrap_used, clippy::panic, reason = "a failed expectation is a failed test")]

use std::fs;
use std::path::Path;

use serde_json::{Value, json};
use tenure_core::Timestamp;
use tenure_runner::agents::{AgentKind, Ending, Event, Observed};

fn concluded(agent: AgentKind, output: &str, exit: Option<i32>) -> Ending {
    let mut observed = Observed::default();
    for line in output.lines() {
        observed.add(agent.parse(line));
    }
    agent.conclude(exit, &observed)
}

fn name_of(ending: Ending) -> &'static str {
    match ending {
        Ending::Done => "done",
        Ending::Limited { .. } => "limited",
        Ending::Overloaded => "overloaded",
        Ending::NoNetwork => "no_network",
        Ending::NoCredit => "no_credit",
        Ending::NotLoggedIn => "not_logged_in",
        Ending::Misconfigured => "misconfigured",
        Ending::TaskError => "task_error",
        _ => "unclassified",
    }
}

fn agent_named(name: &str) -> AgentKind {
    AgentKind::of_program(Path::new(name)).unwrap_or_else(|| panic!("{name} is not a known agent"))
}

fn recording(name: &str) -> String {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/agent-recordings");
    fs::read_to_string(folder.join(name)).unwrap()
}

#[test]
fn every_recorded_ending_is_classified_as_expected() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/agent-recordings");
    let mut wrong = Vec::new();
    let mut seen = 0;
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_none_or(|extension| extension != "json") {
            continue;
        }
        let about: Value = serde_json::from_str(&fs::read_to_string(&path).unwrap()).unwrap();
        let output = fs::read_to_string(path.with_extension("out")).unwrap();
        let exit = about["exit"].as_i64().map(|code| i32::try_from(code).unwrap());
        let found = name_of(concluded(agent_named(about["agent"].as_str().unwrap()), &output, exit));
        seen += 1;
        if found != about["expect"] {
            wrong.push(format!("{}: {found}, expected {}", path.display(), about["expect"]));
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
    assert_eq!(seen, 32);
}

#[test]
fn a_limit_has_the_reset_time_that_was_printed() {
    let ending = concluded(AgentKind::Claude, &recording("claude-usage-5h.out"), Some(1));
    let reset = Timestamp::from_millis(1_794_824_450_000);
    assert_eq!(ending, Ending::Limited { resets_at: Some(reset) });
    let shown = ending.obstacle(AgentKind::Claude).unwrap();
    assert_eq!(shown, "claude reports a usage limit until 2026-11-16T10:20:50Z");
    let codex = concluded(AgentKind::Codex, &recording("codex-usage-limit.out"), Some(1));
    assert_eq!(codex, Ending::Limited { resets_at: None });
    assert_eq!(codex.obstacle(AgentKind::Codex).unwrap(), "codex reports a usage limit");
}

#[test]
fn a_reset_time_in_the_past_or_years_away_is_ignored() {
    let now = Timestamp::from_millis(1_794_824_450_000);
    for (seconds, believed) in [(-1, false), (0, false), (1, true), (7 * 86_400, true), (400 * 86_400, false)]
    {
        let at = Timestamp::from_millis(now.as_millis() + seconds * 1000);
        let ending = Ending::Limited { resets_at: Some(at) }.with_plausible_reset(now);
        assert_eq!(ending.resets_at(), believed.then_some(at), "{seconds}");
    }
}

/// Text that would mean an obstacle if a program printed it as an error.
const ALARMING: &str = "You've hit your usage limit. API Error: 429 rate_limit, 401 Unauthorized, 529 overloaded. \
     Not logged in · Please run /login. Credit balance is too low. Cannot connect to API. fetch failed\n\
     {\"type\":\"result\",\"is_error\":true,\"api_error_status\":429}\n\
     {\"type\":\"turn.failed\",\"error\":{\"message\":\"You've hit your usage limit\"}}\n\
     {\"type\":\"error\",\"error\":{\"data\":{\"statusCode\":429,\"message\":\"Rate limit\"}}}\n\
     Error: Rate limit reached for requests\nAttempt 1 failed with status 429. Retrying with backoff...";

/// A run in which the model and its tools print that text, up to its last line.
fn alarming_run(agent: AgentKind) -> Vec<Value> {
    match agent {
        AgentKind::Claude => vec![
            json!({"type": "system", "subtype": "init", "session_id": "s"}),
            json!({"type": "rate_limit_event", "rate_limit_info":
                {"status": "allowed_warning", "resetsAt": 1_794_824_450, "rateLimitType": "five_hour"}}),
            json!({"type": "assistant", "message": {"content": [{"type": "text", "text": ALARMING}]}}),
            json!({"type": "assistant", "parent_tool_use_id": "t1", "error": "rate_limit",
                "message": {"content": [{"type": "text", "text": "a subagent had to give up"}]}}),
            json!({"type": "user", "message": {"content": [
                {"type": "tool_result", "is_error": true, "content": ALARMING}]}}),
        ],
        AgentKind::Codex => vec![
            json!({"type": "thread.started", "thread_id": "t"}),
            json!({"type": "item.completed", "item": {"type": "error", "message": ALARMING}}),
            json!({"type": "error", "message": "Reconnecting... 1/5 (exceeded retry limit, last status: 429 Too Many Requests)"}),
            json!({"type": "item.completed", "item": {"type": "command_execution",
                "aggregated_output": ALARMING, "exit_code": 1, "status": "failed"}}),
            json!({"type": "item.completed", "item": {"type": "agent_message", "text": ALARMING}}),
        ],
        AgentKind::Gemini => vec![
            json!({"type": "init", "session_id": "s"}),
            json!({"type": "message", "role": "user", "content": ALARMING}),
            json!({"type": "tool_result", "status": "error", "output": ALARMING}),
            json!({"type": "message", "role": "assistant", "content": ALARMING, "delta": true}),
        ],
        AgentKind::Opencode => vec![
            json!({"type": "text", "sessionID": "s", "part": {"text": ALARMING}}),
            json!({"type": "tool_use", "sessionID": "s", "part": {"state": {"output": ALARMING}}}),
        ],
    }
}

fn lines(values: &[Value]) -> String {
    values.iter().map(Value::to_string).collect::<Vec<_>>().join("\n")
}

#[test]
fn a_successful_run_that_mentions_limits_logins_and_errors_is_done() {
    for agent in AgentKind::ALL {
        let mut run = alarming_run(agent);
        run.push(match agent {
            AgentKind::Claude => json!({"type": "result", "subtype": "success", "is_error": false,
                "api_error_status": null, "result": ALARMING, "terminal_reason": "completed"}),
            AgentKind::Codex => json!({"type": "turn.completed", "usage": {"input_tokens": 1}}),
            AgentKind::Gemini => json!({"type": "result", "status": "success", "stats": {}}),
            AgentKind::Opencode => json!({"type": "step_finish", "sessionID": "s", "part": {"cost": 0.1}}),
        });
        assert_eq!(concluded(agent, &lines(&run), Some(0)), Ending::Done, "{agent:?}");
    }
}

#[test]
fn a_failure_after_such_mentions_is_unclassified() {
    for agent in AgentKind::ALL {
        for exit in [Some(1), Some(2), Some(101), Some(173), None] {
            let ending = concluded(agent, &lines(&alarming_run(agent)), exit);
            assert_eq!(ending, Ending::Unclassified, "{agent:?} {exit:?}");
        }
    }
}

#[test]
fn plain_text_of_opencode_is_not_taken_for_an_error() {
    let said = format!("> build · model\n{ALARMING}\n");
    assert_eq!(concluded(AgentKind::Opencode, &said, Some(0)), Ending::Done);
    assert_eq!(concluded(AgentKind::Opencode, &said, Some(1)), Ending::Unclassified);
}

#[test]
fn a_retry_that_succeeded_does_not_explain_a_later_failure() {
    let retry = r#"{"type":"system","subtype":"api_retry","error_status":529,"error":"overloaded"}"#;
    let answer = r#"{"type":"assistant","message":{"content":[]}}"#;
    let while_retrying = format!("{answer}\n{retry}\n");
    assert_eq!(concluded(AgentKind::Claude, &while_retrying, None), Ending::Overloaded);
    let overcome = format!("{retry}\n{answer}\n");
    assert_eq!(concluded(AgentKind::Claude, &overcome, None), Ending::Unclassified);
    assert_eq!(concluded(AgentKind::Claude, &overcome, Some(1)), Ending::Unclassified);
}

#[test]
fn lines_that_cannot_be_parsed_are_ignored() {
    let strange = [
        "",
        "{",
        "{}",
        "null",
        "[1]",
        "{\"type\":7}",
        "{\"type\":\"tomorrow\"}",
        "\u{1b}[0m",
        "{\"type\":\"result",
    ];
    for agent in AgentKind::ALL {
        for line in strange {
            assert_eq!(agent.parse(line), Event::Other, "{agent:?} {line}");
        }
        assert_eq!(concluded(agent, &strange.join("\n"), Some(1)), Ending::Unclassified, "{agent:?}");
        assert_eq!(concluded(agent, "", Some(0)), Ending::Done, "{agent:?}");
    }
}

#[test]
fn an_agent_is_recognised_only_by_its_exact_program_name() {
    assert_eq!(AgentKind::of_program(Path::new("/usr/bin/claude")), Some(AgentKind::Claude));
    for other in ["claude.sh", "my-codex", "sh", "/"] {
        assert_eq!(AgentKind::of_program(Path::new(other)), None, "{other}");
    }
}
