//! A claim over MCP, against the same transaction in this process.

use std::io::{BufRead, BufReader, Write};
use std::process::{ChildStdin, ChildStdout, Stdio};
use std::time::Instant;

use serde_json::{Value, json};
use tenure_core::holder::Incarnation;

use super::Bench;
use super::child::{ChildProcess, memory};
use super::fixture::{Fixture, agent, claim, claimable_keys, tasks_for};
use super::statistics::{median, percentile, to_millis};
use crate::{Error, Result};

impl Bench<'_> {
    /// The MCP server's start, claims and memory. The program must have `tenure mcp`.
    pub fn mcp(&mut self) -> Result<()> {
        let claims = self.rounds(400);
        let fixture = self.fixture(tasks_for(2 * claims))?;
        let mut starts = Vec::new();
        for _ in 0..self.rounds(30) {
            let begun = Instant::now();
            let client = McpClient::start(&fixture)?;
            starts.push(begun.elapsed());
            client.close()?;
            self.check_interrupts()?;
        }
        let start = to_millis(percentile(&mut starts, 50));
        self.results.wall("MCP server, start to first answer", start, "ms", 15.0);

        let mut keys = claimable_keys();
        let mut next_key = || keys.next().unwrap_or_default();
        let (store, caller) = (fixture.store()?, agent("here").with_process(Incarnation::current()));
        let mut client = McpClient::start(&fixture)?;
        let (mut over_mcp, mut in_process) = (Vec::new(), Vec::new());
        for _ in 0..claims {
            let key = next_key();
            let begun = Instant::now();
            client.call_tool("claim_task", &json!({"task": key}))?;
            over_mcp.push(begun.elapsed());
            let key = next_key();
            let begun = Instant::now();
            claim(store.as_ref(), &caller, &key)?;
            in_process.push(begun.elapsed());
            self.check_interrupts()?;
        }
        let (over_mcp, in_process) = (median(&mut over_mcp), median(&mut in_process));
        self.results.add("a claim's transaction in this process", in_process * 1000.0, "ms");
        self.results.at_most("claim_task over MCP ÷ the same transaction", over_mcp / in_process, "×", 3.0);
        if let Some(size) = memory(client.server.0.id(), "VmRSS") {
            self.results.at_most("MCP server, resident", size, "MB", 10.0);
        }
        client.close()
    }
}

/// A client of a `tenure mcp` process, over its standard input and output.
struct McpClient {
    server: ChildProcess,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
}

impl McpClient {
    /// Starts the server and initializes the session.
    fn start(fixture: &Fixture) -> Result<Self> {
        let mut command = fixture.project.command(&["mcp"]);
        let mut server = ChildProcess::start(command.stdin(Stdio::piped()).stdout(Stdio::piped()))?;
        let (Some(input), Some(output)) = (server.0.stdin.take(), server.0.stdout.take()) else {
            return Err(Error::bench("no pipe to the MCP server"));
        };
        let mut client = Self { server, input, output: BufReader::new(output) };
        let info = json!({"name": "bench", "version": "1"});
        client.request(
            "initialize",
            &json!({"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": info}),
        )?;
        Ok(client)
    }

    fn request(&mut self, method: &str, params: &Value) -> Result<String> {
        let request = json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params});
        writeln!(self.input, "{request}").map_err(Error::Spawn)?;
        let mut response = String::new();
        self.output.read_line(&mut response).map_err(Error::Spawn)?;
        Ok(response)
    }

    fn call_tool(&mut self, tool: &str, arguments: &Value) -> Result<()> {
        let response = self.request("tools/call", &json!({"name": tool, "arguments": arguments}))?;
        if response.contains(r#""isError":false"#) { Ok(()) } else { Err(Error::bench(response)) }
    }

    /// Closes the server's input, which ends it.
    fn close(self) -> Result<()> {
        let Self { mut server, input, .. } = self;
        drop(input);
        server.wait()
    }
}
