//! Malformed, oversized and excessive input gets clear errors in bounded memory, and the server keeps running.

use std::io::Write;
use std::time::{Duration, Instant};

use serde_json::json;

use crate::client::Client;
use crate::shop::Shop;
use tenure_testkit::cli::processes;

#[test]
fn invalid_input_gets_a_clear_error_and_the_server_keeps_running() {
    let shop = Shop::with_tasks(1);
    let mut client = Client::new(&shop, "odd");
    let answers = [
        ("{nonsense", -32700),
        ("[]", -32600),
        (r#""text""#, -32600),
        (r#"{"jsonrpc":"2.0","id":900}"#, -32600),
        (r#"{"jsonrpc":"2.0","id":901,"method":"no/such/method","params":{}}"#, -32601),
        (r#"{"jsonrpc":"2.0","id":902,"method":"tools/call","params":{"name":"no_such_tool"}}"#, -32602),
        (r#"{"jsonrpc":"2.0","id":903,"method":"tools/call","params":{"name":7}}"#, -32602),
        (r#"{"jsonrpc":"2.0","id":904,"method":"tools/call","params":[]}"#, -32600),
        (r#"{"jsonrpc":"2.0","id":905,"method":"tools/call"}"#, -32602),
        (
            r#"{"jsonrpc":"2.0","id":906,"method":"resources/read","params":{"uri":"file:///etc/passwd"}}"#,
            -32002,
        ),
    ];
    for (line, code) in answers {
        client.send_line(line);
        let answer = client.receive();
        assert_eq!(answer["error"]["code"], code, "{line}: {answer}");
        assert!(answer["error"]["message"].as_str().is_some_and(|text| text.len() > 4), "{line}: {answer}");
        if let Ok(sent) = serde_json::from_str::<serde_json::Value>(line)
            && sent["id"].is_number()
        {
            assert_eq!(answer["id"], sent["id"], "{line}");
        }
    }
    // None of these gets an answer.
    client.send_line("");
    client.send_line(r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":12345}}"#);
    client.send_line(r#"{"jsonrpc":"2.0","method":"notifications/no_such"}"#);
    for (tool, arguments) in [
        ("claim_task", json!({})),
        ("claim_task", json!({"task": ["T1"]})),
        ("claim_task", json!({"task": "T1", "force": true})),
        ("claim_next", json!({"waitSeconds": 1e9})),
        ("claim_next", json!({"ttl": "0s"})),
        ("list_tasks", json!({"status": ["lost"]})),
        ("list_tasks", json!({"limit": -3})),
        ("finish_task", json!({"task": "T1", "fence": "1", "outcome": "done"})),
        ("send_message", json!({"message": "for nobody"})),
        ("add_task", json!({"title": "a\u{0}b"})),
    ] {
        client.refused("INVALID_ARGUMENTS", tool, arguments);
    }
    assert_eq!(client.ok("claim_next", json!({}))["task"]["key"], "T1");
}

#[test]
fn ten_megabytes_of_arguments_are_refused_under_their_id_and_not_stored() {
    let shop = Shop::new();
    let mut client = Client::new(&shop, "big");
    client.ok("get_status", json!({}));
    let before = processes::memory(client.pid(), "VmRSS");
    let big = "x".repeat(10 * 1024 * 1024);
    for _ in 0..5 {
        let answer = client.request("tools/call", json!({"name": "add_task", "arguments": {"title": big}}));
        assert_eq!(answer["error"]["code"], -32600, "{answer}");
        assert!(answer["error"]["message"].as_str().unwrap().contains("too long"), "{answer}");
    }
    // The id may come after the payload.
    client.send_line(&format!(
        r#"{{"method":"tools/call","params":{{"name":"{big}"}},"jsonrpc":"2.0","id":"last"}}"#
    ));
    assert_eq!(client.receive()["id"], "last");
    // A message below the limit of the transport may still exceed the limit of a task.
    let error = client.refused(
        "INVALID_ARGUMENTS",
        "add_task",
        json!({"title": "A", "description": "y".repeat(1024 * 1024)}),
    );
    assert!(error["message"].as_str().unwrap().len() < 3000);
    let whole = "z".repeat(256 * 1024);
    let added = client.ok("add_task", json!({"title": "B", "description": whole}));
    assert_eq!(added["task"]["description"].as_str().map(str::len), Some(256 * 1024));
    let listed = client.ok("list_tasks", json!({}))["tasks"][0]["description"].as_str().unwrap().to_owned();
    assert!(listed.len() < 600 && listed.ends_with('…'), "a list is short");
    let grown = processes::memory(client.pid(), "VmHWM").saturating_sub(before);
    assert!(grown < 24 * 1024, "grew by {grown} kB");
}

#[test]
fn a_flood_of_requests_is_throttled_and_answered_in_bounded_memory() {
    let count = if std::env::var_os("TENURE_TEST_FULL").is_some() { 100_000 } else { 10_000 };
    let shop = Shop::with_tasks(3);
    let mut calm = Client::new(&shop, "calm");
    calm.ok("list_tasks", json!({}));
    let before = processes::memory(calm.pid(), "VmRSS");
    drop(calm);
    let mut child = shop
        .command(&["mcp"])
        .stdin(std::process::Stdio::piped())
        .stdout(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    let (mut input, output) = (child.stdin.take().unwrap(), child.stdout.take().unwrap());
    let writer = std::thread::spawn(move || {
        let hello = json!({"jsonrpc": "2.0", "id": "hello", "method": "initialize", "params": {
            "protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "flood", "version": "1"}}});
        writeln!(input, "{hello}").unwrap();
        writeln!(input, r#"{{"jsonrpc":"2.0","method":"notifications/initialized"}}"#).unwrap();
        for id in 0..count {
            let call = json!({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": {
                "name": "list_tasks", "arguments": {"search": "number", "total": true}}});
            writeln!(input, "{call}").unwrap();
        }
        input
    });
    // Waits until the server has stopped reading: its memory does not grow beyond this while the answers are not read.
    let mut last = (0, Instant::now());
    while last.1.elapsed() < Duration::from_secs(1) {
        let used = cpu_ticks(child.id());
        if used != last.0 {
            last = (used, Instant::now());
        }
        std::thread::sleep(Duration::from_millis(50));
    }
    assert!(!writer.is_finished(), "the requests all fit into the pipes");
    let grown = processes::memory(child.id(), "VmHWM").saturating_sub(before);
    assert!(grown < 12 * 1024, "grew by {grown} kB while no answer was read");
    let mut answered = std::collections::HashSet::new();
    for line in std::io::BufRead::lines(std::io::BufReader::new(output)) {
        let answer: serde_json::Value = serde_json::from_str(&line.unwrap()).unwrap();
        if let Some(id) = answer["id"].as_u64() {
            assert_eq!(answer["result"]["structuredContent"]["total"], 3, "{answer}");
            assert!(answered.insert(id), "answered twice: {id}");
        }
        if answered.len() == count {
            break;
        }
    }
    drop(writer.join().unwrap());
    let grown = processes::memory(child.id(), "VmHWM").saturating_sub(before);
    assert!(grown < 12 * 1024, "grew by {grown} kB");
    assert!(child.wait().unwrap().success());
}

/// Processor time of a process in clock ticks.
fn cpu_ticks(pid: u32) -> u64 {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap();
    let fields: Vec<&str> = stat.rsplit(')').next().unwrap().split_whitespace().collect();
    fields[11].parse::<u64>().unwrap() + fields[12].parse::<u64>().unwrap()
}

#[test]
fn a_server_in_a_folder_without_a_project_answers_each_call_with_how_to_create_one() {
    let shop = Shop::new();
    let empty = shop.path("empty");
    std::fs::create_dir(&empty).unwrap();
    let mut command = shop.command(&["mcp"]);
    command.current_dir(&empty).env_remove("TENURE_PROJECT");
    let mut client = Client::of(command, "everywhere");
    let tools = client.request("tools/list", json!({}));
    assert_eq!(tools["result"]["tools"].as_array().unwrap().len(), 12, "{tools}");
    for (tool, arguments) in [
        ("get_status", json!({})),
        ("list_tasks", json!({})),
        ("claim_next", json!({})),
        ("claim_task", json!({"task": "T1"})),
        ("add_task", json!({"title": "New"})),
    ] {
        let answer = client.call(tool, arguments);
        assert_eq!(answer["structuredContent"]["error"]["code"], "NOT_INITIALIZED", "{tool}: {answer}");
        let text = answer["content"][0]["text"].as_str().unwrap();
        assert!(text.contains("tenure init"), "{tool}: {text}");
    }
    assert!(std::fs::read_dir(&empty).unwrap().next().is_none(), "nothing was written");
}
