//! `tenure setup`: a client's configuration, so that it starts our MCP server by itself.

use std::path::{Path, PathBuf};
use std::time::Duration;

use serde_json::json;
use tenure_core::ErrorCode;

use crate::answer::Answer;
use crate::app::App;
use crate::atomic;
use crate::report::{Outcome, Report};
use crate::shell::quote;
use crate::text::{Style, Text};

mod check;
mod entry;
mod json_file;
mod toml_file;

use entry::Entry;

/// Set a client up to use tenure over MCP
///
/// Writes the client's own configuration file and keeps everything else in it: claude .mcp.json, gemini
/// .gemini/settings.json, vscode .vscode/mcp.json (all in the project), codex ~/.codex/config.toml.
///
/// Example: tenure setup claude --mcp
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// The client
    #[arg(value_enum)]
    client: Client,
    /// Over MCP
    #[arg(long, required = true)]
    mcp: bool,
    /// Start the server as the client would, call a tool, and say whether that works
    #[arg(long, conflicts_with = "remove")]
    check: bool,
    /// Take it out again
    #[arg(long)]
    remove: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Client {
    Claude,
    Codex,
    Gemini,
    Vscode,
}

/// Another process that changes the same file is waited for this long.
const PATIENCE: Duration = Duration::from_secs(5);

impl Client {
    fn name(self) -> &'static str {
        match self {
            Self::Claude => "claude",
            Self::Codex => "codex",
            Self::Gemini => "gemini",
            Self::Vscode => "vscode",
        }
    }

    /// Where it keeps its servers.
    fn file(self, app: &App<'_>) -> Outcome<PathBuf> {
        let in_project = |below: &str| Ok(app.find()?.root.join(below));
        match self {
            Self::Claude => in_project(".mcp.json"),
            Self::Gemini => in_project(".gemini/settings.json"),
            Self::Vscode => in_project(".vscode/mcp.json"),
            Self::Codex => match (app.env.var("CODEX_HOME"), app.env.var("HOME")) {
                (Some(home), _) => Ok(app.env.cwd.join(home).join("config.toml")),
                (None, Some(home)) => Ok(Path::new(home).join(".codex/config.toml")),
                (None, None) => Err(Report::new(ErrorCode::Config, "neither HOME nor CODEX_HOME is set")),
            },
        }
    }

    /// The file's text with our entry put in, or taken out for `None`. Nothing if it says so already.
    fn edit(self, text: &str, entry: Option<&Entry>) -> Result<Option<String>, String> {
        match self {
            Self::Codex => toml_file::edit(text, entry),
            Self::Claude | Self::Gemini => json_file::edit(text, "mcpServers", entry, false),
            Self::Vscode => json_file::edit(text, "servers", entry, true),
        }
    }

    /// What the file says now.
    fn read(self, text: &str) -> Result<Option<Entry>, String> {
        match self {
            Self::Codex => toml_file::read(text),
            Self::Claude | Self::Gemini => json_file::read(text, "mcpServers"),
            Self::Vscode => json_file::read(text, "servers"),
        }
    }
}

pub(crate) fn run(app: &mut App<'_>, args: Args) -> Outcome<Answer> {
    let path = args.client.file(app)?;
    if args.check {
        return check(app, args.client, &path);
    }
    let wanted = if args.remove { None } else { Some(Entry::ours(app)) };
    let folder = path.parent().unwrap_or(Path::new(".")).to_owned();
    let cannot = |verb: &'static str| {
        let path = path.clone();
        move |e: std::io::Error| Report::io(&e, ErrorCode::Config, verb, &path)
    };
    let _lock = if folder.is_dir() && !app.global.dry_run {
        // Where nobody can be kept away, the last one wins.
        atomic::lock(&folder, PATIENCE).ok()
    } else {
        None
    };
    let text = text_of(&path)?;
    let edited = args.client.edit(text.as_deref().unwrap_or_default(), wanted.as_ref());
    let changed = edited.map_err(|why| unreadable(&path, &why))?;
    if let Some(new) = changed.as_ref().filter(|_| !app.global.dry_run) {
        if new.trim().is_empty() {
            std::fs::remove_file(&path).map_err(cannot("remove"))?;
        } else {
            std::fs::create_dir_all(&folder).map_err(cannot("write"))?;
            atomic::write(&path, new, &app.env.ids.uuid()).map_err(cannot("write"))?;
        }
    }
    let name = args.client.name();
    let shown = path.display();
    let mut text = Text::new();
    match (changed.is_some(), args.remove) {
        (true, false) => text
            .styled(Style::Good, app.past("Set up", "Would set up"))
            .and(Style::Plain, format!(" {name} in {shown}")),
        (true, true) => text.line(format!("{} {name} from {shown}", app.past("Removed", "Would remove"))),
        (false, false) => text.line(format!("{name} is set up already in {shown}")),
        (false, true) => text.line(format!("{name} is not set up in {shown}; nothing changed")),
    };
    let data = json!({"client": name, "path": path, "changed": changed.is_some(), "removed": args.remove});
    let answer = Answer::new(data, text);
    Ok(if args.remove { answer } else { answer.hint("see it work", check_command(args.client)) })
}

fn check_command(client: Client) -> String {
    format!("tenure setup {} --mcp --check", client.name())
}

fn check(app: &App<'_>, client: Client, path: &Path) -> Outcome<Answer> {
    let failed = |why: String| Report::new(ErrorCode::CheckFailed, why);
    let name = client.name();
    let text = text_of(path)?.unwrap_or_default();
    let entry = client.read(&text).map_err(|why| unreadable(path, &why))?;
    let Some(entry) = entry else {
        let setup = format!("tenure setup {name} --mcp");
        return Err(failed(format!("{name} is not set up in {}", path.display())).hint("do so", setup));
    };
    let root = app.find().map_or_else(|_| app.env.cwd.clone(), |place| place.root);
    let worked = check::try_out(app, &entry, &root);
    let line = std::iter::once(&entry.command).chain(&entry.args).map(|word| quote(word)).collect::<Vec<_>>();
    let line = line.join(" ");
    let found = worked.map_err(|why| {
        failed(format!("`{line}` does not serve: {why}")).note(format!("as {} has it", path.display()))
    })?;
    let mut text = Text::new();
    text.styled(Style::Good, "It works")
        .and(Style::Plain, format!(": `{line}` serves {} tools", found.tools));
    text.line(format!("  {} in {}", found.server, path.display()));
    let data =
        json!({"client": name, "path": path, "command": line, "tools": found.tools, "server": found.server});
    Ok(Answer::new(data, text))
}

fn text_of(path: &Path) -> Outcome<Option<String>> {
    match std::fs::read_to_string(path) {
        Ok(text) => Ok(Some(text)),
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => Ok(None),
        Err(e) => Err(Report::io(&e, ErrorCode::Config, "read", path)),
    }
}

/// What cannot be read is never written over.
fn unreadable(path: &Path, why: &str) -> Report {
    Report::new(ErrorCode::Config, format!("{}: {why}", path.display()))
        .note("nothing was changed; add the server by hand: command `tenure`, argument `mcp`")
}
