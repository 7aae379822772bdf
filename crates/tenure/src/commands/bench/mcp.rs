//! A claim over MCP, beside the same transaction in this process.

use std::io::{BufRead, BufReader, Write};
use std::process::{ChildStdin, ChildStdout, Stdio};
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use tenure_core::holder::Incarnation;

use super::ground::{
    Ground, Running, agent, claim, claimable, median, megabytes, millis, percentile, tasks_for,
};
use super::{Bench, failed};
use crate::report::Outcome;
use crate::scratch::cannot_run;

pub(super) fn measure(bench: &mut Bench<'_, '_>) -> Outcome<()> {
    let claims = bench.rounds(400);
    let ground = bench.ground(tasks_for(2 * claims))?;
    let mut starts = Vec::new();
    for _ in 0..bench.rounds(30) {
        let begun = Instant::now();
        let wire = Wire::new(&ground)?;
        starts.push(begun.elapsed());
        wire.end()?;
        bench.go_on()?;
    }
    let time = millis(percentile(&mut starts, 50));
    bench.table.wall("MCP server, start to first answer", time, "ms", 15.0);

    let mut keys = claimable();
    let (store, caller) = (ground.store()?, agent("here").with_process(Incarnation::current()));
    let mut wire = Wire::new(&ground)?;
    let (mut there, mut here): (Vec<Duration>, Vec<Duration>) = Default::default();
    for _ in 0..claims {
        let (one, other) = (keys.next().unwrap_or_default(), keys.next().unwrap_or_default());
        let begun = Instant::now();
        wire.call("claim_task", &json!({"task": one}))?;
        there.push(begun.elapsed());
        let begun = Instant::now();
        claim(store.as_ref(), &caller, &other)?;
        here.push(begun.elapsed());
        bench.go_on()?;
    }
    let (there, here) = (median(&mut there), median(&mut here));
    bench.table.told("a claim's transaction in this process", here * 1000.0, "ms");
    bench.table.at_most("claim_task over MCP ÷ the same transaction", there / here, "×", 3.0);
    if let Some(size) = megabytes(wire.server.0.id(), "VmRSS") {
        bench.table.at_most("MCP server, resident", size, "MB", 15.0);
    }
    wire.end()
}

/// A server and somebody who talks to it.
struct Wire {
    server: Running,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
}

impl Wire {
    fn new(ground: &Ground) -> Outcome<Self> {
        let mut command = ground.scratch.command(&["mcp"]);
        let mut server = Running::start(command.stdin(Stdio::piped()).stdout(Stdio::piped()))?;
        let (Some(input), Some(output)) = (server.0.stdin.take(), server.0.stdout.take()) else {
            return Err(failed("no pipe to the MCP server"));
        };
        let mut wire = Self { server, input, output: BufReader::new(output) };
        let client = json!({"name": "bench", "version": "1"});
        wire.ask(
            "initialize",
            &json!({"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": client}),
        )?;
        Ok(wire)
    }

    fn ask(&mut self, method: &str, params: &Value) -> Outcome<String> {
        let request = json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params});
        writeln!(self.input, "{request}").map_err(cannot_run)?;
        let mut line = String::new();
        self.output.read_line(&mut line).map_err(cannot_run)?;
        Ok(line)
    }

    fn call(&mut self, tool: &str, arguments: &Value) -> Outcome<()> {
        let answer = self.ask("tools/call", &json!({"name": tool, "arguments": arguments}))?;
        if answer.contains(r#""isError":false"#) { Ok(()) } else { Err(failed(answer)) }
    }

    fn end(self) -> Outcome<()> {
        let Self { mut server, input, .. } = self;
        drop(input);
        server.wait()
    }
}
