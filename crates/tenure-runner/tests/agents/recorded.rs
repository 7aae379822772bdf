//! Endings of real agents, as recorded.

use std::collections::BTreeMap;

use jiff::tz::TimeZone;
use serde_json::json;
use tenure_core::{Ending, Timestamp, Usage};
use tenure_runner::agents::{ProcessEnd, RunUsage};

use super::{agent_named, concluded, concluded_in, recordings, summary_of};

#[test]
fn every_recorded_ending_is_classified_as_expected() {
    let all = recordings();
    let wrong: Vec<String> = all
        .iter()
        .filter_map(|run| {
            let found = concluded(run.agent, &run.output, run.end).ending;
            (found.as_str() != run.expect).then(|| format!("{}: {found}, expected {}", run.name, run.expect))
        })
        .collect();
    assert!(wrong.is_empty(), "{wrong:#?}");
    assert!(all.len() >= 32, "{}", all.len());
}

#[test]
fn the_sentence_about_an_ending_is_meant_for_people() {
    let sentences: BTreeMap<String, String> = recordings()
        .into_iter()
        .map(|run| (run.name, concluded(run.agent, &run.output, run.end).sentence(run.agent)))
        .collect();
    for (name, sentence) in &sentences {
        let plain = !sentence.contains(['{', '\n', '\u{1b}']) && sentence.chars().count() < 400;
        assert!(plain, "{name}: {sentence}");
    }
    for (name, sentence) in [
        (
            "claude-usage-5h",
            "claude reports a usage limit until 2026-11-16T10:20:50Z: \
             You've hit your session limit · resets 10:20am (UTC)",
        ),
        (
            "claude-notloggedin",
            "claude is not logged in, or its key was refused: Not logged in · Please run /login",
        ),
        (
            "codex-429-quota",
            "codex reports that its account has no credit for this: \
            Quota exceeded. Check your plan and billing details.",
        ),
        (
            "gemini-429-perday",
            "gemini reports a usage limit: \
            You have exhausted your daily quota on this model.",
        ),
        ("gemini-500", "gemini reports that its provider is overloaded"),
        ("opencode-503", "opencode reports that its provider is overloaded: The server is overloaded"),
    ] {
        assert_eq!(sentences[name], sentence);
    }
}

#[test]
fn a_limit_has_the_reset_time_that_was_printed() {
    let all = recordings();
    let of = |name: &str| {
        let run = all.iter().find(|run| run.name == name).unwrap();
        concluded(run.agent, &run.output, run.end)
    };
    let claude = of("claude-usage-5h");
    assert_eq!(claude.ending, Ending::Limited);
    assert_eq!(claude.resets_at, Some(Timestamp::from_millis(1_794_824_450_000)));
    // Codex prints local time: `try again at 10:25 AM`.
    let codex = of("codex-usage-limit");
    assert_eq!((codex.ending, codex.resets_at), (Ending::Limited, Timestamp::parse("2026-11-16T10:25:00Z")));
    let run = all.iter().find(|run| run.name == "codex-usage-limit").unwrap();
    let tokyo = TimeZone::posix("JST-9").unwrap();
    let tokyo = concluded_in(tokyo, run.agent, &run.output, run.end);
    assert_eq!(tokyo.resets_at, Timestamp::parse("2026-11-17T01:25:00Z"));
}

#[test]
fn the_reset_of_codex_is_read_in_all_its_sentences() {
    let codex = agent_named("codex");
    let of = |message: &str| {
        let line = json!({"type": "turn.failed", "error": {"message": message}}).to_string();
        let found = concluded(codex, &line, ProcessEnd::Exited(1));
        (found.ending, found.resets_at)
    };
    for (message, reset) in [
        ("You've hit your usage limit. Try again at 10:25 AM.", Some("2026-11-16T10:25:00Z")),
        ("You've hit your usage limit. Try again at Nov 20th, 2026 3:05 PM.", Some("2026-11-20T15:05:00Z")),
        (
            "You\u{2019}ve hit your usage limit for gpt-5. Switch to another model now, or try again at 1:00 PM.",
            Some("2026-11-16T13:00:00Z"),
        ),
        ("You've hit your usage limit. Try again later.", None),
        ("You've hit your usage limit. Try again at noon.", None),
    ] {
        assert_eq!(of(message), (Ending::Limited, reset.and_then(Timestamp::parse)), "{message}");
    }
    // Only the sentence about a limit names a reset.
    assert_eq!(of("Quota exceeded. Try again at 10:25 AM."), (Ending::NoCredit, None));
}

#[test]
fn a_retry_that_succeeded_does_not_explain_a_later_failure() {
    let claude = agent_named("claude");
    let retry = r#"{"type":"system","subtype":"api_retry","error_status":529,"error":"overloaded"}"#;
    let answer = r#"{"type":"assistant","message":{"content":[]}}"#;
    let while_retrying = format!("{answer}\n{retry}\n");
    let overcome = format!("{retry}\n{answer}\n");
    let ending = |output: &str, end| concluded(claude, output, end).ending;
    assert_eq!(ending(&while_retrying, ProcessEnd::Hung), Ending::Overloaded);
    assert_eq!(ending(&while_retrying, ProcessEnd::TimedOut), Ending::Overloaded);
    assert_eq!(ending(&overcome, ProcessEnd::Hung), Ending::Hung);
    assert_eq!(ending(&overcome, ProcessEnd::Exited(1)), Ending::Unclassified);
    assert_eq!(ending(&overcome, ProcessEnd::Killed), Ending::Crashed);
}

/// Lines that the real programs printed.
#[test]
fn usage_is_what_the_program_printed() {
    let used = |agent: &str, line: &str| summary_of(agent_named(agent), line).usage().unwrap();
    let usage = |input_tokens, output_tokens, cached_tokens, micro_usd| Usage {
        input_tokens,
        output_tokens,
        cached_tokens,
        cache_write_tokens: 0,
        micro_usd,
    };
    let claude = r#"{"type":"result","subtype":"success","is_error":false,"result":"I could not run the tests.","total_cost_usd":0.15990000000000004,"usage":{"input_tokens":15600},"modelUsage":{"claude-opus-4-8[1m]":{"inputTokens":15600,"outputTokens":1001,"cacheReadInputTokens":65000,"cacheCreationInputTokens":3900,"costUSD":0.15990000000000004}},"permission_denials":[{"tool_name":"Bash","tool_input":{"command":"npm test"}}]}"#;
    let with_cache = Usage { cache_write_tokens: 3900, ..usage(15_600, 1001, 65_000, Some(159_900)) };
    assert_eq!(used("claude", claude), RunUsage::Run(with_cache));
    let codex = r#"{"type":"turn.completed","usage":{"input_tokens":6000,"cached_input_tokens":4000,"cache_write_input_tokens":0,"output_tokens":352,"reasoning_output_tokens":44}}"#;
    assert_eq!(used("codex", codex), RunUsage::Conversation(usage(6000, 352, 4000, None)));
    let gemini = r#"{"type":"result","timestamp":"2026-11-16T08:08:28.304Z","status":"success","stats":{"total_tokens":7330,"input_tokens":7000,"output_tokens":275,"cached":2000,"input":5000,"duration_ms":1293,"tool_calls":3,"models":{}}}"#;
    assert_eq!(used("gemini", gemini), RunUsage::Run(usage(7000, 275, 2000, None)));
    let opencode = r#"{"type":"step_finish","timestamp":1794817171462,"sessionID":"ses_1","part":{"reason":"tool-calls","tokens":{"total":1366,"input":600,"output":66,"reasoning":0,"cache":{"write":0,"read":700}},"cost":0.001}}"#;
    let twice = format!("{opencode}\n{opencode}\n");
    assert_eq!(used("opencode", &twice), RunUsage::Run(usage(1200, 132, 1400, Some(2000))));
    let denied = concluded(agent_named("claude"), claude, ProcessEnd::Exited(0));
    assert_eq!(denied.ending, Ending::PermissionDenied);
    assert_eq!(denied.message.as_deref(), Some("Bash: npm test"));
}

#[test]
fn the_name_of_the_conversation_is_found() {
    for (agent, line, name) in [
        ("claude", r#"{"type":"system","subtype":"init","session_id":"5f1c-a"}"#, Some("5f1c-a")),
        ("codex", r#"{"type":"thread.started","thread_id":"0199-b"}"#, Some("0199-b")),
        ("gemini", r#"{"type":"init","session_id":"77-c","model":"auto"}"#, Some("77-c")),
        ("opencode", r#"{"type":"step_start","sessionID":"ses_d"}"#, Some("ses_d")),
        ("copilot", r#"{"type":"result","sessionId":"11bf-e","exitCode":0}"#, Some("11bf-e")),
        ("claude", r#"{"type":"assistant","text":"session_id"}"#, None),
        ("claude", r#"{"type":"system","subtype":"init","session_id":"--dangerous"}"#, None),
        ("claude", r#"{"type":"system","subtype":"init","session_id":7}"#, None),
        ("claude", r#"{"type":"system","subtype":"init","session_id":"cut"#, None),
    ] {
        assert_eq!(summary_of(agent_named(agent), line).conversation.as_deref(), name, "{line}");
    }
}

#[test]
fn an_unknown_argument_is_a_matter_of_configuration() {
    for (agent, line) in [
        ("claude", "error: unknown option '--colour'"),
        ("codex", "error: unexpected argument '--colour' found"),
        ("codex", "Not inside a trusted directory and --skip-git-repo-check was not specified."),
        ("gemini", "Unknown argument: colour"),
    ] {
        let ending = concluded(agent_named(agent), line, ProcessEnd::Exited(1)).ending;
        assert_eq!(ending, Ending::Misconfigured, "{agent}: {line}");
    }
}

/// Messages that providers document, in the line with which opencode reports a fatal error.
#[test]
fn the_messages_of_providers_are_recognised_in_the_plain_format_of_opencode() {
    for (message, ending) in [
        ("The model `m` does not exist or you do not have access to it.", Ending::Misconfigured),
        ("Your account does not have access to this model.", Ending::NotLoggedIn),
        ("You are not allowed to sample from this model", Ending::NotLoggedIn),
        ("The server had an error while processing your request", Ending::Overloaded),
        ("An internal error has occurred.", Ending::Overloaded),
        ("It is what it is", Ending::Unclassified),
    ] {
        let line = format!("\u{1b}[91m\u{1b}[1mError: \u{1b}[0m{message}");
        let found = concluded(agent_named("opencode"), &line, ProcessEnd::Exited(1)).ending;
        assert_eq!(found, ending, "{message}");
    }
}

/// The macOS Keychain is locked over ssh and for processes that launchd starts. claude then prints the same as without a
/// login.
#[test]
fn a_locked_keychain_is_a_missing_login() {
    let recordings = recordings();
    let recorded = recordings.iter().find(|run| run.name == "claude-notloggedin").unwrap();
    for said in [
        "Not logged in · Please run /login",
        "Not logged in · Run /login",
        "Missing API key · Run /login",
        "Please run /login · API Error: 401 Invalid authentication credentials",
    ] {
        let output = recorded.output.replace("Not logged in · Please run /login", said);
        let found = concluded(recorded.agent, &output, recorded.end);
        assert_eq!(found.ending, Ending::NotLoggedIn, "{said}");
        assert!(found.sentence(recorded.agent).ends_with(said), "{}", found.sentence(recorded.agent));
    }
}
