//! MCP servers of Codex, which configures them in TOML. Comments, order and layout of everything else are preserved.

use toml_edit::{Array, DocumentMut, Item, Table, TableLike, value};

use super::NAME;
use super::file::FileChange;
use super::mcp_entry::ServerEntry;

const GROUP: &str = "mcp_servers";

pub(super) fn edit(text: &str, entry: Option<&ServerEntry>) -> Result<FileChange, String> {
    let mut root = parse(text)?;
    match entry {
        Some(wanted) => {
            let mut group = Table::new();
            group.set_implicit(true);
            let servers = root.entry(GROUP).or_insert(Item::Table(group));
            let servers = servers.as_table_like_mut().ok_or_else(|| format!("{GROUP} is not a table"))?;
            if servers.get(NAME).and_then(entry_of).is_some_and(|found| found.serves(wanted)) {
                return Ok(FileChange::Nothing);
            }
            let server = servers.entry(NAME).or_insert(Item::Table(Table::new()));
            let server =
                server.as_table_like_mut().ok_or_else(|| format!("{GROUP}.{NAME} is not a table"))?;
            server.insert("command", value(&wanted.command));
            server.insert("args", value(wanted.args.iter().collect::<Array>()));
        }
        None => {
            let Some(servers) = root.get_mut(GROUP).and_then(Item::as_table_like_mut) else {
                return Ok(FileChange::Nothing);
            };
            if servers.remove(NAME).is_none() {
                return Ok(FileChange::Nothing);
            }
            if servers.is_empty() {
                root.remove(GROUP);
            }
        }
    }
    let text = root.to_string();
    Ok(if text.trim().is_empty() { FileChange::Delete } else { FileChange::Write(text) })
}

pub(super) fn read(text: &str) -> Result<Option<ServerEntry>, String> {
    Ok(parse(text)?.get(GROUP).and_then(|servers| servers.get(NAME)).and_then(entry_of))
}

fn parse(text: &str) -> Result<DocumentMut, String> {
    text.parse().map_err(|e: toml_edit::TomlError| format!("this is not TOML: {}", e.to_string().trim()))
}

fn entry_of(item: &Item) -> Option<ServerEntry> {
    let server = item.as_table_like()?;
    let args = server.get("args").and_then(Item::as_array);
    let env = server.get("env").and_then(Item::as_table_like).map(TableLike::iter);
    Some(ServerEntry {
        command: server.get("command")?.as_str()?.to_owned(),
        args: args.into_iter().flatten().filter_map(|word| word.as_str().map(str::to_owned)).collect(),
        env: env
            .into_iter()
            .flatten()
            .filter_map(|(k, v)| Some((k.to_owned(), v.as_str()?.to_owned())))
            .collect(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ours() -> ServerEntry {
        ServerEntry { command: "tenure".into(), args: vec!["mcp".into()], env: Vec::new() }
    }

    fn written(change: FileChange) -> String {
        let FileChange::Write(text) = change else { panic!("{change:?}") };
        text
    }

    #[test]
    fn comments_and_order_stay_and_the_entry_comes_and_goes() {
        let before =
            "# mine\nmodel = \"x\"   # the good one\n\n[mcp_servers.other]\ncommand = 'y'\n\n[tui]\nz = 1\n";
        let after = written(edit(before, Some(&ours())).unwrap());
        for line in
            ["# mine", "model = \"x\"   # the good one", "command = 'y'", "[mcp_servers.tenure]", "z = 1"]
        {
            assert!(after.contains(line), "{line}: {after}");
        }
        assert_eq!(read(&after).unwrap(), Some(ours()));
        assert_eq!(
            edit(&after, Some(&ours())).unwrap(),
            FileChange::Nothing,
            "a second time changes nothing"
        );
        assert_eq!(written(edit(&after, None).unwrap()), before);
    }

    #[test]
    fn an_empty_file_gets_one_table_and_loses_it_again() {
        let made = written(edit("", Some(&ours())).unwrap());
        assert_eq!(made, "[mcp_servers.tenure]\ncommand = \"tenure\"\nargs = [\"mcp\"]\n");
        assert_eq!(edit(&made, None).unwrap(), FileChange::Delete);
    }

    #[test]
    fn servers_in_one_line_are_understood_and_what_is_broken_is_not_touched() {
        let inline = "mcp_servers = { other = { command = 'y' } }\n";
        let after = written(edit(inline, Some(&ours())).unwrap());
        assert_eq!(read(&after).unwrap(), Some(ours()), "{after}");
        for broken in ["a = ", "mcp_servers = 3", "[mcp_servers]\ntenure = 3"] {
            assert!(edit(broken, Some(&ours())).is_err(), "{broken}");
        }
    }
}
