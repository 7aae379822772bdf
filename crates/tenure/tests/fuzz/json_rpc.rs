//! Messages of an MCP client.

use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, Stdio};
use std::sync::mpsc::{Receiver, channel};

use serde_json::{Value, json};
use tenure_testkit::cli::{Dice, HANG, Project, Sandbox, StoreKind, Suite, full_or};

use crate::mutations::Corpus;

const SUITE: Suite = Suite { binary: env!("CARGO_BIN_EXE_tenure"), store: StoreKind::Sqlite };
const WORDS: &[&str] = &[
    "\"id\":",
    "\"method\":",
    "\"params\":",
    "\"tools/call\"",
    "\"arguments\":",
    "null",
    "[]",
    "{}",
    "-1",
    "1e999",
    "\"\\ud800\"",
    "\"jsonrpc\":\"2.0\"",
    "notifications/initialized",
    "a_tool_with_a_long_name",
    "tenure://board",
    "\\u0000",
];
/// After this many mutated messages, the server has to answer a valid one.
const BATCH: usize = 40;

struct Server {
    child: Child,
    input: ChildStdin,
    lines: Receiver<String>,
}

impl Server {
    fn start(project: &Project) -> Self {
        let mut command = project.command(&["mcp"]);
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let (input, output) = (child.stdin.take().unwrap(), child.stdout.take().unwrap());
        let (send, lines) = channel();
        std::thread::spawn(move || {
            for line in BufReader::new(output).lines().map_while(Result::ok) {
                if send.send(line).is_err() {
                    return;
                }
            }
        });
        let mut server = Self { child, input, lines };
        let client = json!({"name": "fuzz", "version": "1"});
        let params = json!({"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": client});
        server.send(
            json!({"jsonrpc": "2.0", "id": "hello", "method": "initialize", "params": params})
                .to_string()
                .as_bytes(),
        );
        server.wait_for("hello");
        server.send(br#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#);
        server
    }

    fn send(&mut self, line: &[u8]) {
        self.input
            .write_all(&[line, b"\n"].concat())
            .and_then(|()| self.input.flush())
            .expect("the server reads");
    }

    fn wait_for(&self, id: &str) {
        loop {
            let line = self.lines.recv_timeout(HANG).expect("the server answers");
            let answer: Value = serde_json::from_str(&line).expect("every line is JSON");
            if answer["id"] == id {
                return;
            }
        }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A message of the corpus with one value replaced. It is still JSON, so it reaches the tools.
fn replaced(dice: &mut Dice, corpus: &Corpus) -> Vec<u8> {
    let mut message: Value = serde_json::from_slice(corpus.seed(dice)).unwrap();
    let mut at = &mut message;
    loop {
        let inside = match at {
            Value::Object(fields) => fields.len(),
            Value::Array(items) => items.len(),
            _ => 0,
        };
        if inside == 0 || dice.one_in(6) {
            break;
        }
        let index = usize::try_from(dice.below(inside as u64)).unwrap();
        at = match at {
            Value::Object(fields) => fields.values_mut().nth(index).unwrap(),
            Value::Array(items) => &mut items[index],
            _ => break,
        };
    }
    *at = match (dice.below(10), &*at) {
        (0, _) => Value::Null,
        (1, _) => json!(-1),
        (2, _) => json!(u64::MAX),
        (3, _) => json!(1e300),
        (4, _) => json!([[[[]]]]),
        (5, _) => json!({"a": {"a": {}}}),
        (6, _) => json!("é\u{202e}\0".repeat(1 + usize::try_from(dice.below(5000)).unwrap())),
        (_, Value::String(text)) => json!(text.repeat(usize::try_from(dice.below(5)).unwrap())),
        _ => json!(""),
    };
    message.to_string().into_bytes()
}

#[test]
fn whatever_a_client_sends_the_server_answers_the_next_message() {
    let corpus = Corpus::of(&["fuzz/corpus/json_rpc"], WORDS).by_line();
    let project = Sandbox::new(SUITE).project("shop");
    project.ok(&["tasks", "add", "One", "--id", "T1"]);
    let mut dice = Dice::for_test("json_rpc");
    let mut server = Server::start(&project);
    for round in 0..full_or(1000, 40) {
        let batch: Vec<Vec<u8>> = (0..BATCH)
            .map(|_| {
                if dice.one_in(2) {
                    return replaced(&mut dice, &corpus);
                }
                // A message is one line.
                let mut line = corpus.changed(&mut dice);
                line.retain(|byte| *byte != b'\n');
                line
            })
            .collect();
        let id = format!("after {round}");
        let right = json!({"jsonrpc": "2.0", "id": id, "method": "ping"}).to_string();
        let answered = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            for line in &batch {
                server.send(line);
            }
            server.send(right.as_bytes());
            server.wait_for(&id);
        }));
        if let Err(panic) = answered {
            for line in &batch {
                eprintln!("{}", line.escape_ascii());
            }
            std::panic::resume_unwind(panic);
        }
    }
    assert!(server.child.try_wait().unwrap().is_none(), "the server is still there");
}
