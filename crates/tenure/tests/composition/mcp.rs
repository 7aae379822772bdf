//! MCP clients over stdio, whose servers are killed and paused like any other process.

use std::io::{BufRead, BufReader, Write};
use std::process::{Child, Stdio};
use std::sync::mpsc::{Receiver, channel};

use serde_json::{Value, json};
use tenure_testkit::cli::{Dice, HANG};

use crate::history::{Call, now};
use crate::storm::{EMPTY, PARALLEL, SERIAL, Storm};

/// A server and its connection. Killed on drop.
struct Connection {
    child: Child,
    lines: Receiver<String>,
    next: u64,
}

impl Drop for Connection {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Connection {
    fn new(storm: &Storm, name: &str, dice: &mut Dice) -> Option<Self> {
        let mut command = storm.command(&["mcp".to_owned()], dice);
        command.env("TENURE_AGENT", name).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut child = command.spawn().unwrap();
        let output = child.stdout.take().unwrap();
        let (send, lines) = channel();
        std::thread::spawn(move || {
            for line in BufReader::new(output).lines().map_while(Result::ok) {
                if send.send(line).is_err() {
                    return;
                }
            }
        });
        let mut connection = Self { child, lines, next: 1 };
        let hello = json!({
            "protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": name, "version": "1"}
        });
        connection.request("initialize", &hello)?;
        connection.send(r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#)?;
        Some(connection)
    }

    /// `None` if the server is gone.
    fn send(&mut self, line: &str) -> Option<()> {
        let input = self.child.stdin.as_mut()?;
        writeln!(input, "{line}").and_then(|()| input.flush()).ok()
    }

    /// The answer, or `None` if the server is gone.
    fn request(&mut self, method: &str, params: &Value) -> Option<Value> {
        let id = self.next;
        self.next += 1;
        self.send(&json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}).to_string())?;
        loop {
            let line = match self.lines.recv_timeout(HANG) {
                Ok(line) => line,
                Err(std::sync::mpsc::RecvTimeoutError::Disconnected) => return None,
                Err(timeout) => panic!("{method} {params}: {timeout}"),
            };
            let message: Value = serde_json::from_str(&line).unwrap_or_else(|e| panic!("{e}: {line}"));
            if message["id"] == id {
                return Some(message);
            }
        }
    }
}

struct Client<'a> {
    storm: &'a Storm,
    name: &'a str,
    dice: Dice,
    connection: Option<Connection>,
}

impl Client<'_> {
    /// Calls a tool and records it. `None` if there is no server or it is gone.
    fn call(&mut self, verb: &'static str, tool: &str, arguments: &Value) -> Option<(Call, Value)> {
        if self.connection.is_none() {
            self.connection = Connection::new(self.storm, self.name, &mut self.dice);
        }
        let connection = self.connection.as_mut()?;
        let mut call = Call {
            actor: self.name.to_owned(),
            pid: connection.child.id(),
            verb,
            words: format!("mcp {tool} {arguments}"),
            section: arguments["section"].as_str().map(str::to_owned),
            begun: now(),
            ..Call::default()
        };
        let answer = connection.request("tools/call", &json!({"name": tool, "arguments": arguments}));
        call.ended = now();
        let Some(answer) = answer else {
            self.connection = None;
            self.storm.record(Call { killed: true, ..call });
            return None;
        };
        let content = answer["result"]["structuredContent"].clone();
        let failed = answer["result"]["isError"] == true;
        call.read(&content, if failed { &content["error"] } else { &Value::Null });
        call.code = Some(if failed { exit_code(&call) } else { 0 });
        call.said = answer.to_string();
        Some((call, content))
    }
}

/// The exit code that the command line has for the error.
fn exit_code(call: &Call) -> i32 {
    match call.error.as_deref() {
        Some("TASK_LOCKED" | "SECTION_LOCKED") => 6,
        Some("LEASE_LOST" | "NOT_HOLDER") => 8,
        Some("WAIT_TIMEOUT") => 9,
        Some("NOTHING_READY" | "NOT_READY") => 10,
        Some("INVALID_TRANSITION") => 2,
        Some("TASK_NOT_FOUND") => 4,
        _ => 1,
    }
}

/// Takes tasks and finishes most of them, until the storm is over.
pub(crate) fn work(storm: &Storm, name: &str) {
    let mut client = Client { storm, name, dice: storm.dice(name), connection: None };
    while !storm.is_over() {
        let Some((key, fence)) = client.claim() else { continue };
        if !storm.is_calm() {
            storm.pause(client.dice.below(400));
        }
        let (verb, tool, arguments) = if storm.is_calm() || !client.dice.one_in(5) {
            ("done", "finish_task", json!({"task": key, "fence": fence, "outcome": "done"}))
        } else {
            ("release", "release_task", json!({"task": key, "fence": fence}))
        };
        if let Some((mut call, content)) = client.call(verb, tool, &arguments) {
            call.presented = Some(fence);
            call.finished = verb == "done" && call.code == Some(0) && content["changed"] == true;
            storm.record(call);
        }
    }
}

impl Client<'_> {
    fn claim(&mut self) -> Option<(String, i64)> {
        let calm = self.storm.is_calm();
        let ttl = "3s";
        let (verb, tool, arguments) = if calm || !self.dice.one_in(4) {
            let wait = self.dice.below(3);
            let section = *self.dice.pick(&[None, None, Some(SERIAL), Some(PARALLEL), Some(EMPTY)]);
            let mut arguments = json!({"ttl": ttl, "waitSeconds": wait});
            if let Some(section) = section.filter(|_| !calm) {
                arguments["section"] = json!(section);
            }
            ("next", "claim_next", arguments)
        } else {
            let key = self.storm.some_key(&mut self.dice)?;
            ("claim", "claim_task", json!({"task": key, "ttl": ttl, "waitSeconds": self.dice.below(2)}))
        };
        let (call, content) = self.call(verb, tool, &arguments)?;
        let granted = call.granted;
        let waits = call.code != Some(0);
        self.storm.record(call);
        if waits {
            // Without this pause, a client that finds nothing would ask continuously.
            self.storm.pause(50);
        }
        Some((content["task"]["key"].as_str()?.to_owned(), granted?))
    }
}
