//! Tests the MCP server: starts it as its client would, and calls a tool.

use std::io::{BufRead, BufReader, Read, Write};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::mcp_entry::ServerEntry;
use crate::app::App;

/// How long the server may take. A client would give up on a slower one.
const PATIENCE: Duration = Duration::from_secs(10);
/// How long the server may take to exit after its input is closed.
const EXIT_PATIENCE: Duration = Duration::from_secs(5);
const VERSION: &str = "2025-06-18";

#[derive(Debug)]
pub(super) struct Found {
    pub(super) tools: usize,
    /// The server's name and version.
    pub(super) server: String,
}

pub(super) fn try_out(app: &App<'_>, entry: &ServerEntry, root: &Path) -> Result<Found, String> {
    let mut command = Command::new(&entry.command);
    command.args(&entry.args).current_dir(root).env_clear().envs(&app.env.vars);
    command.envs(entry.env.iter().map(|(name, value)| (name, value)));
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().map_err(|e| format!("cannot start it: {e}"))?;
    let patience = app.global.timeout.map_or(PATIENCE, |limit| limit.min(PATIENCE));
    let found = converse(&mut child, patience);
    let ended = end(&mut child);
    match (found, ended) {
        (Ok(found), true) => Ok(found),
        (Ok(_), false) => Err("it keeps running after its client has disconnected".to_owned()),
        (Err(why), _) => {
            let stderr = child.stderr.take().map(last_line).unwrap_or_default();
            Err(if stderr.is_empty() { why } else { format!("{why} ({stderr})") })
        }
    }
}

fn converse(child: &mut Child, patience: Duration) -> Result<Found, String> {
    let (Some(mut input), Some(output)) = (child.stdin.take(), child.stdout.take()) else {
        return Err("its standard input and output are not connected".to_owned());
    };
    let (send, answers) = channel();
    std::thread::spawn(move || {
        for line in BufReader::new(output).lines().map_while(Result::ok) {
            if send.send(line).is_err() {
                return;
            }
        }
    });
    let deadline = Instant::now() + patience;
    let mut ask = |id: u32, method: &str, params: Value| {
        let asked = json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params});
        let _ = writeln!(input, "{asked}").and_then(|()| input.flush());
        answer(&answers, id, deadline).map_err(|why| format!("{method}: {why}"))
    };
    let client = json!({"name": "tenure-setup", "version": env!("CARGO_PKG_VERSION")});
    let hello =
        ask(1, "initialize", json!({"protocolVersion": VERSION, "capabilities": {}, "clientInfo": client}))?;
    let listed = ask(2, "tools/list", json!({}))?;
    let called = ask(3, "tools/call", json!({"name": "get_status", "arguments": {}}))?;
    if called["isError"] == true {
        return Err(called["content"][0]["text"].as_str().unwrap_or("the tool failed").to_owned());
    }
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let info = &hello["serverInfo"];
    Ok(Found {
        tools: listed["tools"].as_array().map_or(0, Vec::len),
        server: format!("{} {}", text(&info["name"]), text(&info["version"])),
    })
}

fn answer(answers: &Receiver<String>, id: u32, deadline: Instant) -> Result<Value, String> {
    loop {
        let line = match answers.recv_timeout(deadline.saturating_duration_since(Instant::now())) {
            Ok(line) => line,
            Err(RecvTimeoutError::Timeout) => return Err("no answer".to_owned()),
            Err(RecvTimeoutError::Disconnected) => return Err("it exited".to_owned()),
        };
        let Ok(message) = serde_json::from_str::<Value>(&line) else {
            return Err(format!("it printed something other than JSON: {line:.80}"));
        };
        if message["id"] == id {
            return match message.get("result") {
                Some(result) => Ok(result.clone()),
                None => Err(message["error"]["message"].as_str().unwrap_or("unknown error").to_owned()),
            };
        }
    }
}

/// Waits for the server to exit after its input was closed, and kills it otherwise. Returns true if it exited.
fn end(child: &mut Child) -> bool {
    let deadline = Instant::now() + EXIT_PATIENCE;
    while Instant::now() < deadline {
        if !matches!(child.try_wait(), Ok(None)) {
            return true;
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    let _ = child.kill();
    let _ = child.wait();
    false
}

fn last_line(errors: impl Read) -> String {
    let mut text = String::new();
    let _ = errors.take(64 * 1024).read_to_string(&mut text);
    text.lines().rfind(|line| !line.trim().is_empty()).unwrap_or_default().trim().to_owned()
}
