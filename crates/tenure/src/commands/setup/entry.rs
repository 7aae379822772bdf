//! A server as clients configure it: a command, its arguments, and what is added to its environment.

use std::path::Path;

use crate::app::App;

/// What clients call us.
pub(super) const NAME: &str = "tenure";

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Entry {
    pub(super) command: String,
    pub(super) args: Vec<String>,
    pub(super) env: Vec<(String, String)>,
}

impl Entry {
    /// By name where the name leads to a tenure, because such files are shared; else by the path of this one.
    pub(super) fn ours(app: &App<'_>) -> Self {
        let path = app.env.var("PATH").unwrap_or_default();
        let on_path = std::env::split_paths(path).any(|folder| folder.join(NAME).is_file());
        let own =
            || crate::own_binary().map_or_else(|_| NAME.to_owned(), |p| p.to_string_lossy().into_owned());
        let command = if on_path { NAME.to_owned() } else { own() };
        Self { command, args: vec!["mcp".to_owned()], env: Vec::new() }
    }

    /// Is this `wanted`, or any tenure that serves MCP as its owner wants it?
    pub(super) fn serves(&self, wanted: &Self) -> bool {
        if (&self.command, &self.args) == (&wanted.command, &wanted.args) {
            return true;
        }
        let program = Path::new(&self.command).file_stem().unwrap_or_default();
        program == NAME && self.args.iter().any(|word| word == "mcp")
    }
}
