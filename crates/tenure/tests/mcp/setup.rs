//! `tenure setup NAME --mcp`: a client's own file, everything else in it kept, and a check that really starts the server.

use serde_json::{Value, json};

use crate::world::Context;

#[test]
fn every_client_is_set_up_checked_set_up_again_and_removed() {
    for (client, file) in [
        ("claude", "projects/shop/.mcp.json"),
        ("gemini", "projects/shop/.gemini/settings.json"),
        ("vscode", "projects/shop/.vscode/mcp.json"),
        ("codex", "home/.codex/config.toml"),
    ] {
        let world = Context::new();
        let run = |more: &[&str]| {
            let mut words = vec!["setup", client, "--mcp"];
            words.extend(more);
            world.try_cli(&words)
        };
        let missing = run(&["--check"]);
        assert_eq!(missing["error"]["code"], "CHECK_FAILED", "{missing}");
        assert_eq!(run(&["--dry-run"])["data"]["changed"], true);
        assert!(!world.path(file).exists(), "{client}");
        assert_eq!(run(&[])["data"]["changed"], true);
        let made = std::fs::read_to_string(world.path(file)).unwrap();
        let checked = run(&["--check"]);
        assert_eq!((&checked["success"], &checked["data"]["tools"]), (&json!(true), &json!(12)), "{checked}");
        assert_eq!(run(&[])["data"]["changed"], false);
        assert_eq!(std::fs::read_to_string(world.path(file)).unwrap(), made);
        assert_eq!(run(&["--remove"])["data"]["changed"], true);
        assert!(!world.path(file).exists(), "{client}");
        assert_eq!(run(&["--remove"])["data"]["changed"], false);
    }
}

#[test]
fn everything_else_in_the_file_stays() {
    let world = Context::new();
    let path = world.root().join(".mcp.json");
    let before = "{\n\t\"mcpServers\": {\n\t\t\"zoo\": {\n\t\t\t\"command\": \"zoo\"\n\t\t}\n\t},\n\t\"aardvark\": true\n}\n";
    std::fs::write(&path, before).unwrap();
    world.ok(&["setup", "claude", "--mcp"]);
    let after: Value = serde_json::from_slice(&std::fs::read(&path).unwrap()).unwrap();
    let keys: Vec<_> = after.as_object().unwrap().keys().collect();
    assert_eq!(keys, ["mcpServers", "aardvark"]);
    assert_eq!(after["mcpServers"]["zoo"]["command"], "zoo");
    assert_eq!(after["mcpServers"]["tenure"], json!({"command": "tenure", "args": ["mcp"]}));
    world.ok(&["setup", "claude", "--mcp", "--remove"]);
    assert_eq!(std::fs::read_to_string(&path).unwrap(), before);
    // What cannot be read is left alone.
    std::fs::write(&path, "{ // mine\n}").unwrap();
    let refused = world.try_cli(&["setup", "claude", "--mcp"]);
    assert_eq!(refused["error"]["code"], "CONFIG_ERROR", "{refused}");
    assert_eq!(std::fs::read_to_string(&path).unwrap(), "{ // mine\n}");
}

#[test]
fn a_check_fails_for_a_server_that_does_not_serve() {
    let world = Context::new();
    for command in ["/no/such/program", "true", "cat", "false"] {
        let file = json!({"mcpServers": {"tenure": {"command": command, "args": ["mcp"]}}});
        std::fs::write(world.root().join(".mcp.json"), file.to_string()).unwrap();
        let checked = world.try_cli(&["setup", "claude", "--mcp", "--check", "--timeout", "5s"]);
        assert_eq!(checked["error"]["code"], "CHECK_FAILED", "{command}: {checked}");
    }
    // Where there is no project, the server says so, and so does the check.
    let file = json!({"mcpServers": {"tenure": {"command": env!("CARGO_BIN_EXE_tenure"), "args": ["mcp", "-C", "/"]}}});
    std::fs::write(world.root().join(".mcp.json"), file.to_string()).unwrap();
    let checked = world.try_cli(&["setup", "claude", "--mcp", "--check"]);
    let said = checked["error"]["message"].as_str().unwrap();
    assert!(said.contains("init"), "{said}");
}
