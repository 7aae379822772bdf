//! An MCP server in a client's configuration: its command, arguments and environment variables.

use std::path::Path;

use super::NAME;
use crate::app::App;

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct ServerEntry {
    pub(super) command: String,
    pub(super) args: Vec<String>,
    pub(super) env: Vec<(String, String)>,
}

impl ServerEntry {
    pub(super) fn ours(app: &App<'_>) -> Self {
        Self { command: super::program(app), args: vec!["mcp".to_owned()], env: Vec::new() }
    }

    /// Whether this entry is `wanted`, or another command that runs `tenure … mcp`, which its owner may have adapted.
    pub(super) fn serves(&self, wanted: &Self) -> bool {
        if (&self.command, &self.args) == (&wanted.command, &wanted.args) {
            return true;
        }
        let program = Path::new(&self.command).file_stem().unwrap_or_default();
        program == NAME && self.args.iter().any(|word| word == "mcp")
    }
}
