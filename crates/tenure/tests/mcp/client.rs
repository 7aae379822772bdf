//! A client that is nothing but lines of JSON, so that a test can also say what no good client would.

use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, Command, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, channel};

use serde_json::{Value, json};

use crate::shop::Shop;
use tenure_testkit::cli::{HANG, until};

#[derive(Debug)]
pub(crate) struct Client {
    pub(crate) child: Child,
    pub(crate) input: Option<ChildStdin>,
    pub(crate) lines: Receiver<String>,
    next: u64,
}

impl Client {
    /// Started and introduced.
    pub(crate) fn new(shop: &Shop, name: &str) -> Self {
        Self::of(shop.command(&["mcp"]), name)
    }

    pub(crate) fn of(mut command: Command, name: &str) -> Self {
        command.stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let input = child.stdin.take();
        let output = child.stdout.take().unwrap();
        let (send, lines) = channel();
        std::thread::spawn(move || {
            for line in BufReader::new(output).lines().map_while(Result::ok) {
                if send.send(line).is_err() {
                    return;
                }
            }
        });
        let mut client = Self { child, input, lines, next: 1 };
        let hello = json!({
            "protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": name, "version": "1"}
        });
        let answer = client.request("initialize", hello);
        assert_eq!(answer["result"]["serverInfo"]["name"], "tenure", "{answer}");
        client.say(r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#);
        client
    }

    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Any line at all.
    pub(crate) fn say(&mut self, line: &str) {
        let input = self.input.as_mut().unwrap();
        writeln!(input, "{line}").and_then(|()| input.flush()).unwrap();
    }

    pub(crate) fn hear(&self) -> Value {
        let line = self.lines.recv_timeout(HANG).expect("an answer");
        serde_json::from_str(&line).unwrap_or_else(|e| panic!("{e}: {line:.200}"))
    }

    /// Sends a request: its id.
    pub(crate) fn ask(&mut self, method: &str, params: Value) -> u64 {
        let id = self.next;
        self.next += 1;
        self.say(&json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}).to_string());
        id
    }

    pub(crate) fn answer(&self, id: u64) -> Value {
        loop {
            let message = self.hear();
            if message["id"] == id {
                return message;
            }
        }
    }

    pub(crate) fn request(&mut self, method: &str, params: Value) -> Value {
        let id = self.ask(method, params);
        self.answer(id)
    }

    /// The result of a tool, good or bad.
    pub(crate) fn call(&mut self, tool: &str, arguments: Value) -> Value {
        let answer = self.request("tools/call", json!({"name": tool, "arguments": arguments}));
        assert!(answer["result"].is_object(), "{tool}: {answer}");
        answer["result"].clone()
    }

    /// The object that a tool answers when all is well.
    #[track_caller]
    pub(crate) fn ok(&mut self, tool: &str, arguments: Value) -> Value {
        let result = self.call(tool, arguments);
        assert_eq!(result["isError"], false, "{tool}: {result}");
        result["structuredContent"].clone()
    }

    /// The error of a tool that refuses.
    #[track_caller]
    pub(crate) fn refused(&mut self, code: &str, tool: &str, arguments: Value) -> Value {
        let result = self.call(tool, arguments);
        assert_eq!(result["isError"], true, "{tool}: {result}");
        let error = result["structuredContent"]["error"].clone();
        assert_eq!(error["code"], code, "{tool}: {result}");
        error
    }

    pub(crate) fn hang_up(&mut self) {
        self.input = None;
    }

    pub(crate) fn ended(&mut self) -> ExitStatus {
        let mut status = None;
        until("the server has ended", || {
            status = self.child.try_wait().unwrap();
            status.is_some()
        });
        status.unwrap()
    }
}

impl Drop for Client {
    fn drop(&mut self) {
        self.input = None;
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
