//! `tenure setup NAME --mcp`: adds the MCP server to a client's configuration.

use std::path::{Path, PathBuf};

use serde_json::json;
use tenure_core::ErrorCode;
use tenure_core::hints;

use super::file::{FileChange, Plan, text_of, unreadable};
use super::mcp_check::try_out;
use super::mcp_entry::ServerEntry;
use super::mcp_json::Shape;
use super::{Args, Client, mcp_json, mcp_toml};
use crate::answer::Answer;
use crate::app::App;
use crate::report::{CommandResult, Report};
use crate::shell_quote::quote;
use crate::sys;
use crate::text::{Style, Text};

const BY_HAND: &str = "add the server by hand: command `tenure`, argument `mcp`";

/// The file in which the client configures MCP servers.
fn file(app: &App<'_>, client: Client) -> CommandResult<PathBuf> {
    let in_project = |below: &str| Ok(app.find()?.paths.root.join(below));
    match client {
        Client::Claude => in_project(".mcp.json"),
        Client::Gemini => in_project(".gemini/settings.json"),
        Client::Vscode => in_project(".vscode/mcp.json"),
        Client::Opencode => {
            let commented = in_project("opencode.jsonc")?;
            if commented.exists() { Ok(commented) } else { in_project("opencode.json") }
        }
        Client::Codex => in_home(app, "CODEX_HOME", ".codex", "config.toml"),
        Client::Copilot => in_home(app, "COPILOT_HOME", ".copilot", "mcp-config.json"),
        Client::AgentsMd => {
            Err(Report::usage("--mcp needs a client; agents-md is a file that many clients read")
                .hint(hints::set_up_mcp_example()))
        }
    }
}

/// A file of a client that keeps its configuration in the user's home, or in the folder that `variable` names.
fn in_home(app: &App<'_>, variable: &str, folder: &str, file: &str) -> CommandResult<PathBuf> {
    match (app.env.var(variable), app.env.user_home()) {
        (Some(own), _) => Ok(app.env.cwd.join(own).join(file)),
        (None, Some(home)) => Ok(home.join(folder).join(file)),
        (None, None) => {
            Err(Report::new(ErrorCode::Config, format!("neither {} nor {variable} is set", sys::HOME)))
        }
    }
}

/// Adds our entry to the file's text, or removes it if `entry` is `None`.
fn edit(client: Client, text: &str, entry: Option<&ServerEntry>) -> Result<FileChange, String> {
    match client {
        Client::Codex => mcp_toml::edit(text, entry),
        Client::Vscode => mcp_json::edit(text, "servers", entry, Shape::Stdio),
        Client::Opencode => mcp_json::edit(text, "mcp", entry, Shape::OneCommand),
        Client::Copilot => mcp_json::edit(text, "mcpServers", entry, Shape::Local),
        _ => mcp_json::edit(text, "mcpServers", entry, Shape::Plain),
    }
}

/// Our entry in the file's text.
fn read(client: Client, text: &str) -> Result<Option<ServerEntry>, String> {
    match client {
        Client::Codex => mcp_toml::read(text),
        Client::Vscode => mcp_json::read(text, "servers"),
        Client::Opencode => mcp_json::read(text, "mcp"),
        _ => mcp_json::read(text, "mcpServers"),
    }
}

pub(super) fn run(app: &App<'_>, args: &Args) -> CommandResult<Answer> {
    let path = file(app, args.client)?;
    if args.check {
        return check(app, args.client, &path);
    }
    let wanted = if args.remove { None } else { Some(ServerEntry::ours(app)) };
    let plan =
        Plan::of(app, path, BY_HAND, |text| edit(args.client, text.unwrap_or_default(), wanted.as_ref()))?;
    let root = app.find().map_or_else(|_| app.env.cwd.clone(), |project| project.paths.root);
    plan.carry_out(app, &root)?;
    let name = args.client.name();
    let shown = plan.path.display();
    let mut text = Text::new();
    match (plan.changes(), args.remove) {
        (true, false) => text
            .styled(Style::Good, app.past("Set up", "Would set up"))
            .and(Style::Plain, format!(" {name} in {shown}")),
        (true, true) => text.line(format!("{} {name} from {shown}", app.past("Removed", "Would remove"))),
        (false, false) => text.line(format!("{name} is already set up in {shown}")),
        (false, true) => text.line(format!("{name} is not set up in {shown}; nothing changed")),
    };
    let data = json!({"client": name, "path": plan.path, "changed": plan.changes(), "removed": args.remove});
    let answer = Answer::new(data, text);
    Ok(if args.remove { answer } else { answer.hint(hints::check_mcp(name)) })
}

fn check(app: &App<'_>, client: Client, path: &Path) -> CommandResult<Answer> {
    let failed = |why: String| Report::new(ErrorCode::CheckFailed, why);
    let name = client.name();
    let text = text_of(path)?.unwrap_or_default();
    let entry = read(client, &text).map_err(|why| unreadable(path, &why, BY_HAND))?;
    let Some(entry) = entry else {
        let report = failed(format!("{name} is not set up in {}", path.display()));
        return Err(report.hint(hints::set_up_mcp(name)));
    };
    let root = app.find().map_or_else(|_| app.env.cwd.clone(), |project| project.paths.root);
    let worked = try_out(app, &entry, &root);
    let line = std::iter::once(&entry.command).chain(&entry.args).map(|word| quote(word)).collect::<Vec<_>>();
    let line = line.join(" ");
    let found = worked.map_err(|why| {
        failed(format!("`{line}` does not work: {why}"))
            .note(format!("It is configured in {}.", path.display()))
    })?;
    let mut text = Text::new();
    text.styled(Style::Good, "It works")
        .and(Style::Plain, format!(": `{line}` serves {} tools", found.tools));
    text.line(format!("  {} in {}", found.server, path.display()));
    let data =
        json!({"client": name, "path": path, "command": line, "tools": found.tools, "server": found.server});
    Ok(Answer::new(data, text))
}
