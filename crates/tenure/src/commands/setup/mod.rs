//! `tenure setup`: writes tenure's instructions, hooks and MCP server into the files of a client.

use tenure_core::hints;

use crate::answer::Answer;
use crate::app::App;
use crate::report::{CommandResult, Report};

mod block;
mod claude_settings;
mod file;
mod instructions;
mod json_edit;
#[cfg(feature = "serve")]
mod mcp;
#[cfg(feature = "serve")]
mod mcp_check;
#[cfg(feature = "serve")]
mod mcp_entry;
#[cfg(feature = "serve")]
mod mcp_json;
#[cfg(feature = "serve")]
mod mcp_toml;

/// Our name in clients' files, and the name of the program.
const NAME: &str = "tenure";

/// Set up a client to work with tenure, with instructions and hooks or over MCP
///
/// Instructions are written between two markers into CLAUDE.md (claude), GEMINI.md (gemini) or AGENTS.md (the others).
/// claude also gets hooks in .claude/settings.json, which name each session's agent, renew its leases while it works and
/// release them when it ends. With --mcp the server is added to .mcp.json (claude), .gemini/settings.json, opencode.json,
/// .vscode/mcp.json, ~/.codex/config.toml or ~/.copilot/mcp-config.json. The rest of each file is preserved.
///
/// Example: tenure setup claude
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// The client, or the file that many clients read
    #[arg(value_enum, value_name = "NAME")]
    client: Client,
    /// Set up the MCP server instead
    #[cfg(feature = "serve")]
    #[arg(long)]
    mcp: bool,
    /// Check whether the setup is up to date; with --mcp, start the server and call a tool
    #[arg(long, conflicts_with = "remove")]
    check: bool,
    /// Remove the setup
    #[arg(long)]
    remove: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Client {
    Claude,
    Codex,
    Gemini,
    Opencode,
    Copilot,
    Vscode,
    AgentsMd,
}

impl Client {
    fn name(self) -> &'static str {
        match self {
            Self::Claude => "claude",
            Self::Codex => "codex",
            Self::Gemini => "gemini",
            Self::Opencode => "opencode",
            Self::Copilot => "copilot",
            Self::Vscode => "vscode",
            Self::AgentsMd => "agents-md",
        }
    }
}

pub(crate) fn run(app: &mut App<'_>, args: Args) -> CommandResult<Answer> {
    #[cfg(feature = "serve")]
    if args.mcp {
        return mcp::run(app, &args);
    }
    let Some(file) = instructions::file_of(args.client) else {
        return Err(Report::usage("vscode reads its instructions from AGENTS.md")
            .hint(hints::write_agents_md())
            .hint(hints::use_mcp()));
    };
    instructions::run(app, &args, file)
}

/// The command that starts tenure: its name if it is on `PATH`, because these files are shared between machines, otherwise
/// the path of this binary.
fn program(app: &App<'_>) -> String {
    let path = app.env.var("PATH").unwrap_or_default();
    let on_path = std::env::split_paths(path).any(|folder| folder.join(NAME).is_file());
    let own = || crate::own_binary().map_or_else(|_| NAME.to_owned(), |p| p.to_string_lossy().into_owned());
    if on_path { NAME.to_owned() } else { own() }
}
