//! Normal runs in which the model and its tools only mention limits, logins and errors.

use serde_json::{Value, json};
use tenure_core::Ending;
use tenure_runner::agents::{Agent, BUILT_IN, CUSTOM, ProcessEnd};

use super::{agent_named, concluded, summary_of};

/// Text that would count as a limit, a missing login or another error if a program printed it as an error.
const ALARMING: &str = "You've hit your usage limit. API Error: 429 rate_limit, 401 Unauthorized, 529 overloaded. \
     Not logged in · Please run /login. Credit balance is too low. Cannot connect to API. fetch failed\n\
     {\"type\":\"result\",\"is_error\":true,\"api_error_status\":429}\n\
     {\"type\":\"turn.failed\",\"error\":{\"message\":\"You've hit your usage limit\"}}\n\
     {\"type\":\"error\",\"error\":{\"data\":{\"statusCode\":429,\"message\":\"Rate limit\"}}}\n\
     error: unknown option '--x'\n! the permission was requested\n\
     Error: Rate limit reached for requests\nAttempt 1 failed with status 429. Retrying with backoff...";

/// A run in which the model and its tools print that text, up to its last line.
fn alarming_run(agent: &Agent) -> Vec<Value> {
    match agent.name {
        "claude" | "amp" => vec![
            json!({"type": "system", "subtype": "init", "session_id": "s"}),
            json!({"type": "rate_limit_event", "rate_limit_info":
                {"status": "allowed_warning", "resetsAt": 1_794_824_450, "rateLimitType": "five_hour"}}),
            json!({"type": "assistant", "message": {"content": [{"type": "text", "text": ALARMING}]}}),
            json!({"type": "assistant", "parent_tool_use_id": "t1", "error": "rate_limit",
                "message": {"content": [{"type": "text", "text": "a subagent had to give up"}]}}),
            json!({"type": "assistant", "message": {"content": [
                {"type": "tool_use", "name": "Bash", "input": {"command": ALARMING}}]}}),
            json!({"type": "user", "message": {"content": [
                {"type": "tool_result", "is_error": true, "content": ALARMING}]}}),
        ],
        "codex" => vec![
            json!({"type": "thread.started", "thread_id": "t"}),
            json!({"type": "item.completed", "item": {"type": "error", "message": ALARMING}}),
            json!({"type": "error", "message": "Reconnecting... 1/5 (exceeded retry limit, last status: 429 Too Many Requests)"}),
            json!({"type": "item.started", "item": {"type": "command_execution", "command": ALARMING}}),
            json!({"type": "item.completed", "item": {"type": "command_execution",
                "aggregated_output": ALARMING, "exit_code": 1, "status": "failed"}}),
            json!({"type": "item.completed", "item": {"type": "mcp_tool_call", "server": "s", "tool": "t",
                "error": {"message": ALARMING}, "status": "failed"}}),
            json!({"type": "item.completed", "item": {"type": "agent_message", "text": ALARMING}}),
        ],
        "gemini" => vec![
            json!({"type": "init", "session_id": "s"}),
            json!({"type": "message", "role": "user", "content": ALARMING}),
            json!({"type": "tool_use", "tool_name": "shell", "parameters": {"command": ALARMING}}),
            json!({"type": "tool_result", "status": "error", "output": ALARMING}),
            json!({"type": "message", "role": "assistant", "content": ALARMING, "delta": true}),
        ],
        "opencode" => vec![
            json!({"type": "step_start", "sessionID": "s", "part": {}}),
            json!({"type": "text", "sessionID": "s", "part": {"text": ALARMING}}),
            json!({"type": "tool_use", "sessionID": "s", "part": {"tool": "bash",
                "state": {"status": "error", "input": {"command": ALARMING}, "output": ALARMING}}}),
        ],
        "copilot" => vec![
            json!({"type": "session.start", "data": {"sessionId": "s"}}),
            json!({"type": "tool.execution_start", "data": {"toolName": "bash", "arguments": {"command": ALARMING}}}),
            json!({"type": "tool.execution_complete", "data": {"success": false, "result": {"content": ALARMING}}}),
            json!({"type": "assistant.message", "data": {"content": ALARMING}}),
        ],
        "agy" => vec![
            json!({"event": "init", "conversation_id": "c"}),
            json!({"event": "step_update", "step_type": "tool", "state": "DONE", "tool_info": {"output": ALARMING}}),
            json!({"event": "step_update", "step_type": "agent_response", "text_delta": ALARMING}),
        ],
        "cursor" => vec![
            json!({"type": "system", "subtype": "init", "session_id": "s"}),
            json!({"type": "tool_call", "subtype": "completed", "tool_call": {"shell": {"result": ALARMING}}}),
            json!({"type": "assistant", "message": {"content": [{"type": "text", "text": ALARMING}]}}),
        ],
        other => panic!("no run of {other}"),
    }
}

/// The line with which a program reports success.
fn success(agent: &Agent) -> Value {
    match agent.name {
        "claude" | "amp" | "cursor" => json!({"type": "result", "subtype": "success", "is_error": false,
            "api_error_status": null, "result": ALARMING, "terminal_reason": "completed"}),
        "codex" => json!({"type": "turn.completed", "usage": {"input_tokens": 1}}),
        "gemini" => json!({"type": "result", "status": "success", "stats": {}}),
        "opencode" => {
            json!({"type": "step_finish", "sessionID": "s", "part": {"reason": "stop", "cost": 0.1}})
        }
        "copilot" => json!({"type": "result", "sessionId": "s", "exitCode": 0}),
        "agy" => json!({"event": "result", "status": "SUCCESS", "response": ALARMING}),
        other => panic!("no success of {other}"),
    }
}

fn lines(values: &[Value]) -> String {
    values.iter().map(Value::to_string).collect::<Vec<_>>().join("\n")
}

#[test]
fn a_successful_run_that_mentions_limits_logins_and_errors_is_done() {
    for agent in BUILT_IN {
        let mut run = alarming_run(agent);
        run.push(success(agent));
        let conclusion = concluded(agent, &lines(&run), ProcessEnd::Exited(0));
        assert_eq!((conclusion.ending, conclusion.message), (Ending::Done, None), "{}", agent.name);
    }
}

#[test]
fn a_failure_after_such_mentions_is_unclassified() {
    for agent in BUILT_IN {
        let run = lines(&alarming_run(agent));
        for exit in [1, 2, 101, 173] {
            let ending = concluded(agent, &run, ProcessEnd::Exited(exit)).ending;
            assert_eq!(ending, Ending::Unclassified, "{} {exit}", agent.name);
        }
        assert_eq!(concluded(agent, &run, ProcessEnd::Hung).ending, Ending::Hung, "{}", agent.name);
        assert_eq!(concluded(agent, &run, ProcessEnd::Killed).ending, Ending::Crashed, "{}", agent.name);
        assert_eq!(concluded(agent, &run, ProcessEnd::Stopped).ending, Ending::Stopped, "{}", agent.name);
    }
}

#[test]
fn a_run_that_ends_without_a_result_is_not_done() {
    for agent in BUILT_IN {
        let run = lines(&alarming_run(agent));
        let ending = concluded(agent, &run, ProcessEnd::Exited(0)).ending;
        assert_eq!(ending, Ending::Unclassified, "{}", agent.name);
        assert_eq!(concluded(agent, "", ProcessEnd::Exited(0)).ending, Ending::Unclassified);
    }
    assert_eq!(concluded(CUSTOM, "", ProcessEnd::Exited(0)).ending, Ending::Done);
}

#[test]
fn plain_text_of_opencode_is_not_taken_for_an_error() {
    let said = format!("\u{1b}[0m\n> build · model\n\u{1b}[0m\n{ALARMING}\n");
    let ending = |exit| concluded(agent_named("opencode"), &said, ProcessEnd::Exited(exit)).ending;
    assert_eq!(ending(0), Ending::Done);
    assert_eq!(ending(1), Ending::Unclassified);
}

#[test]
fn the_final_message_is_the_last_one() {
    for agent in BUILT_IN.iter().filter(|agent| agent.name != "opencode") {
        let mut run = alarming_run(agent);
        run.push(success(agent));
        let summary = summary_of(agent, &lines(&run));
        assert_eq!(summary.final_message.as_deref(), Some(ALARMING), "{}", agent.name);
    }
    let parts = r#"{"type":"message","role":"assistant","content":"It is ","delta":true}
{"type":"message","role":"assistant","content":"done.","delta":true}
{"type":"result","status":"success"}"#;
    assert_eq!(summary_of(agent_named("gemini"), parts).final_message.as_deref(), Some("It is done."));
}
