//! `tenure mcp`: serves the project to clients without a shell.

use std::io::IsTerminal;
use std::net::{SocketAddr, TcpListener};
use std::path::PathBuf;

use tenure_core::ErrorCode;
use tenure_core::hints;
use tenure_serve::{Http, Transport};

use crate::answer::Answer;
use crate::app::{App, Open};
use crate::execution::Surroundings;
use crate::report::{CommandResult, Report};
use crate::supervised;
use crate::text::Text;

mod claims;
mod handler;
mod pages;
mod without_project;

use handler::McpHandler;

/// Serve this project over MCP, on standard input and output
///
/// Each connection is a separate agent. The server renews its leases while it is connected and releases them afterwards. In
/// a folder without a project, the server still starts and answers each call with how to create a project.
///
/// Example: tenure mcp --http 127.0.0.1:7077
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Listen on this loopback address or port instead (the token is in .tenure/mcp.json, or TENURE_MCP_TOKEN)
    #[arg(long, value_name = "ADDR", value_parser = crate::loopback::parse_address)]
    http: Option<SocketAddr>,
}

/// A shorter token could be guessed.
const SHORTEST_TOKEN: usize = 16;

pub(crate) fn run(app: &mut App<'_>, args: Args) -> CommandResult<Option<Answer>> {
    if app.global.dry_run {
        return Err(Report::usage("`mcp` does not support --dry-run"));
    }
    if args.http.is_some() {
        supervised::check(app.env, "mcp --http")?;
    }
    let mut open = match app.open() {
        Err(report) if report.code == ErrorCode::NotInitialized && args.http.is_none() => {
            return without_project::serve(app, report).map(|()| None);
        }
        opened => opened?,
    };
    // No call waits for a hook.
    open.config.hooks.iter_mut().for_each(|hook| hook.run_async = true);
    let named = if args.http.is_none() { app.env.var("TENURE_AGENT").map(str::to_owned) } else { None };
    if let Some(id) = &named {
        tenure_core::text::check_agent_id(id).map_err(tenure_core::Error::from)?;
    }
    let (transport, _address_file) = match args.http {
        None => {
            welcome(app);
            (Transport::Stdio, None)
        }
        Some(address) => {
            let (http, address_file) = listen(app, &open, address)?;
            (Transport::Http(http), Some(address_file))
        }
    };
    let surroundings = Surroundings::new(&open)?;
    let (source, ttl) = (open.source.clone(), open.config.locking.lease_ttl);
    let another = move || source.open_for_beats(ttl);
    let exec = surroundings.execution(&open, &another);
    let mut handler = McpHandler::new(app, &open, named, surroundings.doorbell_address());
    let interval = open.config.runners.heartbeat_interval;
    tenure_serve::run(&mut handler, exec, interval, transport).map_err(cannot_serve)?;
    Ok(None)
}

#[expect(clippy::needless_pass_by_value, reason = "it is passed to map_err")]
fn cannot_serve(error: std::io::Error) -> Report {
    Report::new(ErrorCode::General, format!("cannot serve: {error}"))
}

/// Prints, if standard input is a terminal, that the server waits for a client.
fn welcome(app: &mut App<'_>) {
    if std::io::stdin().is_terminal() {
        let mut text = Text::new();
        text.line(
            "Speaking MCP on standard input and output; Ctrl+D ends it. Clients start this by themselves:",
        );
        text.line("  set one up: tenure setup claude --mcp");
        app.printer.notice(&text);
    }
}

/// The file with the address and the token for clients. It is removed when the server ends.
#[derive(Debug)]
struct AddressFile {
    path: PathBuf,
    text: String,
}

impl Drop for AddressFile {
    fn drop(&mut self) {
        // Another server may have replaced the file since.
        if std::fs::read_to_string(&self.path).is_ok_and(|text| text == self.text) {
            let _ = std::fs::remove_file(&self.path);
        }
    }
}

fn listen(app: &mut App<'_>, open: &Open<'_>, address: SocketAddr) -> CommandResult<(Http, AddressFile)> {
    let cannot = |e: std::io::Error| {
        Report::new(ErrorCode::General, format!("cannot listen on {address}: {e}")).hint(hints::choose_port())
    };
    let listener = TcpListener::bind(address).map_err(cannot)?;
    let address = listener.local_addr().map_err(cannot)?;
    let token = match app.env.var("TENURE_MCP_TOKEN") {
        Some(token) if token.len() < SHORTEST_TOKEN => {
            return Err(Report::usage(format!(
                "TENURE_MCP_TOKEN is too short; {SHORTEST_TOKEN} characters at least"
            )));
        }
        Some(token) => token.to_owned(),
        None => format!("{}{}", app.env.ids.uuid(), app.env.ids.uuid()).replace('-', ""),
    };
    let url = format!("http://{address}/mcp");
    let path = open.paths.mcp_address();
    let contents = serde_json::json!({"url": url, "token": token, "pid": std::process::id()});
    let contents = format!("{contents:#}\n");
    crate::atomic::write_secret(&path, &contents, &app.env.ids.uuid())
        .map_err(|e| Report::io(&e, ErrorCode::General, "write", &path))?;
    let mut text = Text::new();
    text.line(format!("Listening on {url}"));
    text.line(format!("The token is in {}", path.display()));
    app.printer.notice(&text);
    Ok((Http { listener, token, quiet: open.config.locking.lease_ttl }, AddressFile { path, text: contents }))
}
