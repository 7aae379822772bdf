//! MCP over HTTP: loopback only, with a token, no foreign pages, one agent per session, no session without a client.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::os::unix::fs::PermissionsExt;
use std::process::{Child, Stdio};

use serde_json::{Value, json};

use crate::shop::Shop;
use rustix::process::Signal;
use tenure_testkit::cli::{HANG, processes, until};

pub(crate) struct Server {
    pub(crate) child: Child,
    pub(crate) address: String,
    pub(crate) token: String,
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Server {
    pub(crate) fn start(shop: &Shop) -> Self {
        let child = shop.command(&["mcp", "--http", "127.0.0.1:0"]).stderr(Stdio::null()).spawn().unwrap();
        let file = shop.root().join(".tenure/mcp.json");
        until("it listens", || file.is_file());
        assert_eq!(std::fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o600);
        let note: Value = serde_json::from_slice(&std::fs::read(&file).unwrap()).unwrap();
        let address = note["url"].as_str().unwrap().strip_prefix("http://").unwrap();
        let address = address.strip_suffix("/mcp").unwrap().to_owned();
        Self { child, address, token: note["token"].as_str().unwrap().to_owned() }
    }

    /// Sends one request and leaves the connection open.
    fn send(&self, method: &str, headers: &[(&str, &str)], body: &str) -> TcpStream {
        let mut stream = TcpStream::connect(&self.address).unwrap();
        stream.set_read_timeout(Some(HANG)).unwrap();
        let mut head = format!("{method} /mcp HTTP/1.1\r\n");
        let usual = [
            ("Host", self.address.as_str()),
            ("Authorization", &format!("Bearer {}", self.token)),
            ("Accept", "application/json, text/event-stream"),
            ("Content-Type", "application/json"),
            ("Content-Length", &body.len().to_string()),
        ]
        .map(|(name, value)| (name.to_owned(), value.to_owned()));
        let own = |name: &str| headers.iter().any(|(own, _)| own.eq_ignore_ascii_case(name));
        let usual = usual.into_iter().filter(|(name, _)| !own(name));
        let given = headers.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
        for (name, value) in usual.chain(given).filter(|(_, value)| !value.is_empty()) {
            head = format!("{head}{name}: {value}\r\n");
        }
        // The server may answer and close the connection before it has read everything.
        let _ = stream.write_all(format!("{head}\r\n{body}").as_bytes());
        stream
    }

    fn status(&self, method: &str, headers: &[(&str, &str)], body: &str) -> u16 {
        let mut headers = headers.to_vec();
        headers.push(("Connection", "close"));
        let mut stream = self.send(method, &headers, body);
        let mut begin = [0; 12];
        stream.read_exact(&mut begin).unwrap();
        String::from_utf8_lossy(&begin)[9..].parse().unwrap()
    }

    /// Opens a session and returns its id.
    fn join(&self, name: &str) -> String {
        let mut stream = self.send("POST", &[("Connection", "close")], &hello(name));
        let mut text = String::new();
        stream.read_to_string(&mut text).unwrap();
        let id = text.lines().find_map(|line| line.strip_prefix("mcp-session-id: ")).unwrap().to_owned();
        let ready = r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#;
        assert_eq!(self.status("POST", &[("Mcp-Session-Id", &id)], ready), 202);
        id
    }

    fn call(&self, session: &str, tool: &str, arguments: Value) -> Value {
        let body = json!({"jsonrpc": "2.0", "id": 5, "method": "tools/call",
                          "params": {"name": tool, "arguments": arguments}});
        let headers = [("Mcp-Session-Id", session), ("Connection", "close")];
        let mut stream = self.send("POST", &headers, &body.to_string());
        let mut text = String::new();
        stream.read_to_string(&mut text).unwrap();
        let answer = text.lines().filter_map(|line| line.strip_prefix("data: "));
        let answer = answer.filter_map(|line| serde_json::from_str::<Value>(line).ok());
        let answer =
            answer.into_iter().find(|message| message["id"] == 5).unwrap_or_else(|| panic!("{text}"));
        answer["result"].clone()
    }
}

fn hello(name: &str) -> String {
    json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {
        "protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": name, "version": "1"}}})
    .to_string()
}

#[test]
fn requests_without_the_token_or_from_foreign_pages_are_rejected() {
    let shop = Shop::new();
    let server = Server::start(&shop);
    let body = hello("client");
    let wrong = format!("Bearer {}x", &server.token[1..]);
    let (lower, basic) = (format!("bearer {}", server.token), format!("Basic {}", server.token));
    for (headers, status) in [
        (vec![], 200),
        (vec![("Authorization", "")], 401),
        (vec![("Authorization", lower.as_str())], 200),
        (vec![("Authorization", "Bearer ")], 401),
        (vec![("Authorization", basic.as_str())], 401),
        (vec![("Authorization", wrong.as_str())], 401),
        (vec![("Authorization", server.token.as_str())], 401),
        (vec![("Origin", "http://localhost:3000")], 200),
        (vec![("Origin", "https://evil.example")], 403),
        (vec![("Origin", "http://localhost.evil.example")], 403),
        (vec![("Origin", "null")], 403),
        (vec![("Host", "evil.example")], 403),
        (vec![("Mcp-Session-Id", "made-up")], 404),
    ] {
        assert_eq!(server.status("POST", &headers, &body), status, "{headers:?}");
    }
    assert_eq!(server.status("GET", &[("Mcp-Session-Id", "made-up")], ""), 404);
    let before = processes::memory(server.child.id(), "VmRSS");
    assert_eq!(server.status("POST", &[], &"x".repeat(10 * 1024 * 1024)), 413);
    let mut answer = String::new();
    let mut stream = server.send("POST", &[("Connection", "close")], "{nonsense");
    stream.read_to_string(&mut answer).unwrap();
    assert!(answer.starts_with("HTTP/1.1 400 ") && answer.contains(r#""code":-32700"#), "{answer}");
    assert_eq!(server.status("POST", &[("Content-Type", "text/plain")], &body), 415);
    assert!(processes::memory(server.child.id(), "VmHWM") < before + 24 * 1024);
    assert_eq!(server.status("POST", &[], &body), 200, "the server still runs");
    assert_eq!(shop.ok(&["agents", "list"])["total"], 0, "none of them has called a tool");
}

#[test]
fn a_server_that_other_machines_could_reach_is_not_started() {
    let shop = Shop::new();
    for address in ["0.0.0.0:0", "[::]:0", "192.0.2.1:80"] {
        let output = shop.command(&["mcp", "--http", address]).output().unwrap();
        assert_eq!(output.status.code(), Some(2), "{address}");
    }
    let short = shop.command(&["mcp", "--http", "0"]).env("TENURE_MCP_TOKEN", "short").output().unwrap();
    assert_eq!(short.status.code(), Some(2));
}

#[test]
fn each_session_is_a_holder_and_its_tasks_are_released_when_it_ends() {
    let shop = Shop::with_tasks(2);
    let server = Server::start(&shop);
    let (ann, bob) = (server.join("ann"), server.join("bob"));
    let grant = server.call(&ann, "claim_task", json!({"task": "T1"}));
    let holder = grant["structuredContent"]["lease"]["holder"].clone();
    assert!(holder["id"].as_str().unwrap().starts_with("ann-"), "{grant}");
    assert_eq!(holder["pid"], server.child.id());
    let refused = server.call(&bob, "claim_task", json!({"task": "T1"}));
    assert_eq!(refused["structuredContent"]["error"]["details"]["lockedBy"], holder["id"], "{refused}");
    assert_eq!(server.call(&bob, "claim_next", json!({}))["structuredContent"]["task"]["key"], "T2");
    assert!(matches!(server.status("DELETE", &[("Mcp-Session-Id", &ann)], ""), 200..=204));
    until("the task is pending again", || shop.show("T1")["status"] == "pending");
    assert_eq!(shop.show("T2")["status"], "in_progress", "another session holds it");
    // When the server ends, all its sessions end.
    processes::signal(server.child.id(), Signal::TERM);
    until("the task is pending again", || shop.show("T2")["status"] == "pending");
}

#[test]
fn a_session_ends_with_its_stream_and_stays_while_the_stream_is_open() {
    let shop = Shop::with_tasks(2);
    // This limits how long a client may be silent, and how long one whose stream broke may take to reconnect.
    shop.configure("locking: {leaseTtl: 3s}");
    let server = Server::start(&shop);
    let (mortal, lasting) = (server.join("mortal"), server.join("lasting"));
    let open = |session: &str| {
        let mut stream = server.send("GET", &[("Mcp-Session-Id", session)], "");
        let mut begin = [0; 15];
        stream.read_exact(&mut begin).unwrap();
        assert_eq!(&begin, b"HTTP/1.1 200 OK");
        stream
    };
    let (dying, living) = (open(&mortal), open(&lasting));
    server.call(&mortal, "claim_task", json!({"task": "T1"}));
    let kept = server.call(&lasting, "claim_task", json!({"task": "T2"}));
    drop(dying);
    until("the dead client's task is free", || shop.show("T1")["status"] == "pending");
    assert_eq!(shop.show("T2")["lease"]["fence"], kept["structuredContent"]["lease"]["fence"]);
    let finish =
        json!({"task": "T2", "fence": kept["structuredContent"]["lease"]["fence"], "outcome": "done"});
    assert_eq!(server.call(&lasting, "finish_task", finish)["isError"], false);
    drop(living);
}

#[test]
fn a_server_has_at_most_sixty_four_sessions_and_accepts_another_when_one_ends() {
    let shop = Shop::new();
    let server = Server::start(&shop);
    let sessions: Vec<String> = (0..64).map(|n| server.join(&format!("s{n}"))).collect();
    assert_eq!(server.status("POST", &[], &hello("one-more")), 503);
    let list = server.call(&sessions[63], "list_tasks", json!({}));
    assert_eq!(list["isError"], false, "existing sessions are served: {list}");
    let left = server.status("DELETE", &[("Mcp-Session-Id", &sessions[0])], "");
    assert!((200..300).contains(&left), "{left}");
    until("there is room", || server.status("POST", &[], &hello("one-more")) == 200);
    assert_eq!(server.status("POST", &[], &hello("and-another")), 503);
}

#[test]
fn connections_without_the_token_do_not_keep_clients_out() {
    let shop = Shop::with_tasks(1);
    let server = Server::start(&shop);
    // One that presents the token stays; the silent ones after it do not.
    let mut client = server.send("POST", &[], &hello("early"));
    let silent: Vec<TcpStream> = (0..140).map(|_| TcpStream::connect(&server.address).unwrap()).collect();
    let mut late = server.send("POST", &[("Connection", "close")], &hello("late"));
    late.set_read_timeout(Some(std::time::Duration::from_secs(25))).unwrap();
    let mut begin = [0; 12];
    late.read_exact(&mut begin).expect("it is answered before the silent ones would have been given up");
    assert_eq!(&begin, b"HTTP/1.1 200");
    // A silent connection is closed, and by then the early one has been idle for as long.
    let mut last = silent.into_iter().next_back().unwrap();
    last.set_read_timeout(Some(HANG)).unwrap();
    assert_eq!(last.read(&mut [0; 1]).unwrap_or(0), 0);
    client.read_exact(&mut begin).unwrap();
    assert_eq!(&begin, b"HTTP/1.1 200");
    let head = format!(
        "POST /mcp HTTP/1.1\r\nHost: {}\r\nAuthorization: Bearer wrong\r\nContent-Length: 0\r\n\r\n",
        server.address
    );
    client.write_all(head.as_bytes()).unwrap();
    let mut text = String::new();
    while !text.contains("401") {
        let mut more = [0; 1024];
        let count = client.read(&mut more).unwrap();
        assert!(count > 0, "the connection was kept: {text}");
        text.push_str(&String::from_utf8_lossy(&more[..count]));
    }
}

#[test]
fn a_body_that_does_not_arrive_is_given_up() {
    let shop = Shop::new();
    let server = Server::start(&shop);
    let mut stream = server.send("POST", &[("Content-Length", "1000")], r#"{"jsonrpc":"#);
    let mut text = String::new();
    stream.read_to_string(&mut text).unwrap();
    assert!(text.starts_with("HTTP/1.1 408 "), "{text}");
    assert_eq!(server.status("POST", &[], &hello("client")), 200);
}

#[test]
fn the_token_is_written_to_a_new_private_file() {
    let shop = Shop::with_tasks(1);
    let file = shop.root().join(".tenure/mcp.json");
    std::fs::write(&file, "{}").unwrap();
    std::fs::set_permissions(&file, PermissionsExt::from_mode(0o644)).unwrap();
    // A reader of the old file.
    let mut old = std::fs::File::open(&file).unwrap();
    let mut child = shop.command(&["mcp", "--http", "0"]).stderr(Stdio::null()).spawn().unwrap();
    until("it is written", || std::fs::read_to_string(&file).is_ok_and(|text| text.contains("token")));
    assert_eq!(std::fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o600);
    let mut text = String::new();
    old.read_to_string(&mut text).unwrap();
    assert_eq!(text, "{}");
    child.kill().unwrap();
    child.wait().unwrap();
}
