//! Lines as real agents print them, and the text that people see.

use super::*;

/// The lines that people see of an agent's output.
fn shown(agent: &str, output: &str) -> Vec<String> {
    let mut transcript = Transcript::new(Some(agent));
    let mut entries: Vec<Entry> =
        output.lines().flat_map(|line| transcript.read_printed(None, line)).collect();
    entries.extend(transcript.end());
    entries.iter().flat_map(Entry::lines).collect()
}

#[test]
fn messages_tools_and_errors_of_every_agent_are_readable() {
    let claude = r#"{"type":"system","subtype":"init","session_id":"5f1c","model":"opus","claude_code_version":"2.1.197"}
{"type":"assistant","message":{"id":"m1","content":[{"type":"text","text":"I run the tests."},{"type":"tool_use","name":"Bash","input":{"command":"cargo test\n--all"}}],"usage":{"input_tokens":3}}}
{"type":"user","message":{"content":[{"type":"tool_result","is_error":true,"content":"1\n2\n3\n4\n5\n6\n7"}]}}
{"type":"system","subtype":"something_new","text":"?"}
Ignoring 1 permissions.allow entry
{"type":"assistant","message":{"content":[{"type":"text","text":"They fail."}]}}
{"type":"result","subtype":"success","is_error":false,"result":"They fail."}"#;
    let codex = r#"{"type":"thread.started","thread_id":"t1"}
{"type":"item.started","item":{"id":"i1","type":"command_execution","command":"ls","status":"in_progress"}}
{"type":"item.completed","item":{"id":"i1","type":"command_execution","command":"ls","aggregated_output":"a\nb\n","status":"completed"}}
{"type":"item.completed","item":{"id":"i2","type":"agent_message","text":"Two files."}}
{"type":"error","message":"Reconnecting... 2/5 (unexpected status 503)"}
{"type":"turn.failed","error":{"message":"You've hit your usage limit. Try again later."}}"#;
    let gemini = r#"{"type":"init","timestamp":"2026-11-16T08:08:28.304Z","session_id":"g1","model":"flash"}
{"type":"message","role":"assistant","content":"One li","delta":true}
{"type":"message","role":"assistant","content":"ne\nand ano","delta":true}
{"type":"message","role":"assistant","content":"ther","delta":true}
{"type":"tool_use","tool_name":"read_file","tool_id":"1","parameters":{"file_path":"a.txt"}}
{"type":"tool_result","tool_id":"1","status":"success","output":"text"}
{"type":"result","status":"success","stats":{"input_tokens":7000}}"#;
    let opencode = r#"{"type":"step_start","sessionID":"ses_1","part":{}}
{"type":"tool_use","sessionID":"ses_1","part":{"tool":"bash","state":{"status":"completed","input":{"command":"ls"},"output":"x"}}}
{"type":"text","sessionID":"ses_1","part":{"text":"Done."}}"#;
    let copilot = r#"{"type":"tool.execution_start","data":{"toolName":"bash","arguments":{"command":"ls"}}}
{"type":"tool.execution_complete","data":{"success":false,"error":{"message":"no such file"}}}
{"type":"assistant.message","data":{"content":"Hello"}}"#;
    for (agent, output, expected) in [
        (
            "claude",
            claude,
            &[
                "conversation 5f1c, model opus, version 2.1.197",
                "I run the tests.",
                "→ Bash: cargo test …",
                "  failed",
                "  1",
                "  2",
                "  3",
                "  4",
                "  5",
                "  … 2 more lines",
                "Ignoring 1 permissions.allow entry",
                "They fail.",
            ][..],
        ),
        (
            "codex",
            codex,
            &[
                "conversation t1",
                "→ command_execution: ls",
                "  a",
                "  b",
                "Two files.",
                "retrying: overloaded: unexpected status 503",
                "error: limited: You've hit your usage limit. Try again later.",
            ],
        ),
        (
            "gemini",
            gemini,
            &["conversation g1, model flash", "One line", "and another", "→ read_file: a.txt", "  text"],
        ),
        ("opencode", opencode, &["conversation ses_1", "→ bash: ls", "  x", "Done."]),
        ("copilot", copilot, &["→ bash: ls", "  failed", "  no such file", "Hello"]),
        ("my-script", "{\"a\":1}\nplain", &["{\"a\":1}", "plain"]),
    ] {
        assert_eq!(shown(agent, output), expected, "{agent}");
    }
}

#[test]
fn the_time_of_a_line_in_the_log_is_its_own() {
    let (at, rest) = split_time("[2026-11-16T08:08:28.304Z] [not a time] x");
    assert_eq!(
        (at.map(Timestamp::to_seconds).as_deref(), rest),
        (Some("2026-11-16T08:08:28Z"), "[not a time] x")
    );
    assert_eq!(split_time("[2026-11-16T08:08:28.304Z] ").1, "");
    assert_eq!(split_time("[x] y"), (None, "[x] y"));
}

#[test]
fn colours_are_left_out_and_other_control_characters_stay_for_the_printer_to_escape() {
    let line = r#"{"type":"user","message":{"content":[{"type":"tool_result","content":"\u001b[31mred\u001b[0m\tand \u001b]0;title\u0007"}]}}"#;
    assert_eq!(shown("claude", line), ["  red    and \u{1b}]0;title\u{7}"]);
    assert_eq!(shown("mine", "a\u{1b}[2Jb\u{1b}["), ["ab"]);
}

#[test]
fn a_message_that_never_ends_is_shown_in_pieces() {
    let part = format!(
        "{{\"type\":\"message\",\"role\":\"assistant\",\"content\":\"{}\",\"delta\":true}}",
        "é".repeat(1000)
    );
    let mut transcript = Transcript::new(Some("gemini"));
    let mut longest = 0;
    for _ in 0..100 {
        transcript.read_printed(None, &part);
        longest = longest.max(transcript.part.len());
    }
    assert!(longest <= LONGEST_PART, "{longest}");
}
