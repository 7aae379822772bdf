//! `tenure setup NAME --mcp`: edits a client's configuration file, keeps everything else in it, and checks the server by
//! starting it.

use serde_json::{Value, json};

use crate::shop::Shop;

#[test]
fn setup_can_be_checked_repeated_and_removed_for_every_client() {
    for (client, file) in [
        ("claude", "projects/shop/.mcp.json"),
        ("gemini", "projects/shop/.gemini/settings.json"),
        ("vscode", "projects/shop/.vscode/mcp.json"),
        ("opencode", "projects/shop/opencode.json"),
        ("codex", "home/.codex/config.toml"),
        ("copilot", "home/.copilot/mcp-config.json"),
    ] {
        let shop = Shop::new();
        let run = |more: &[&str]| {
            let mut words = vec!["setup", client, "--mcp"];
            words.extend(more);
            shop.try_cli(&words)
        };
        let missing = run(&["--check"]);
        assert_eq!(missing["error"]["code"], "CHECK_FAILED", "{missing}");
        assert_eq!(run(&["--dry-run"])["data"]["changed"], true);
        assert!(!shop.path(file).exists(), "{client}");
        assert_eq!(run(&[])["data"]["changed"], true);
        let made = std::fs::read_to_string(shop.path(file)).unwrap();
        let checked = run(&["--check"]);
        assert_eq!((&checked["success"], &checked["data"]["tools"]), (&json!(true), &json!(12)), "{checked}");
        assert_eq!(run(&[])["data"]["changed"], false);
        assert_eq!(std::fs::read_to_string(shop.path(file)).unwrap(), made);
        assert_eq!(run(&["--remove"])["data"]["changed"], true);
        assert!(!shop.path(file).exists(), "{client}");
        assert_eq!(run(&["--remove"])["data"]["changed"], false);
    }
}

#[test]
fn the_commented_file_of_opencode_is_used_if_there_is_one() {
    let shop = Shop::new();
    let file = shop.path("projects/shop/opencode.jsonc");
    let before = "{\n  // the large one\n  \"model\": \"a/b\"\n}\n";
    std::fs::write(&file, before).unwrap();
    shop.ok(&["setup", "opencode", "--mcp"]);
    let after = std::fs::read_to_string(&file).unwrap();
    assert!(after.contains("// the large one") && after.contains("\"tenure\""), "{after}");
    assert!(!shop.path("projects/shop/opencode.json").exists());
    shop.ok(&["setup", "opencode", "--mcp", "--remove"]);
    assert_eq!(std::fs::read_to_string(&file).unwrap(), before);
}

#[test]
fn setup_keeps_everything_else_in_the_file() {
    let shop = Shop::new();
    let path = shop.root().join(".mcp.json");
    let before = "{\n\t\"mcpServers\": {\n\t\t\"zoo\": {\n\t\t\t\"command\": \"zoo\"\n\t\t}\n\t},\n\t\"aardvark\": true\n}\n";
    std::fs::write(&path, before).unwrap();
    shop.ok(&["setup", "claude", "--mcp"]);
    let after: Value = serde_json::from_slice(&std::fs::read(&path).unwrap()).unwrap();
    let keys: Vec<_> = after.as_object().unwrap().keys().collect();
    assert_eq!(keys, ["mcpServers", "aardvark"]);
    assert_eq!(after["mcpServers"]["zoo"]["command"], "zoo");
    assert_eq!(after["mcpServers"]["tenure"], json!({"command": "tenure", "args": ["mcp"]}));
    shop.ok(&["setup", "claude", "--mcp", "--remove"]);
    assert_eq!(std::fs::read_to_string(&path).unwrap(), before);
    // Comments stay where they are.
    let commented = "{ // mine\n  \"mcpServers\": {\n    \"zoo\": {} // animals\n  }\n}";
    std::fs::write(&path, commented).unwrap();
    shop.ok(&["setup", "claude", "--mcp"]);
    let after = std::fs::read_to_string(&path).unwrap();
    assert!(after.starts_with("{ // mine\n") && after.contains("\"zoo\": {}, // animals\n"), "{after}");
    assert!(after.contains("\"tenure\": {"), "{after}");
    shop.ok(&["setup", "claude", "--mcp", "--remove"]);
    assert_eq!(std::fs::read_to_string(&path).unwrap(), commented);
    // An unreadable file is left unchanged.
    std::fs::write(&path, "{ # mine\n}").unwrap();
    let refused = shop.try_cli(&["setup", "claude", "--mcp"]);
    assert_eq!(refused["error"]["code"], "CONFIG_ERROR", "{refused}");
    assert_eq!(std::fs::read_to_string(&path).unwrap(), "{ # mine\n}");
}

#[test]
fn a_check_fails_if_the_server_does_not_answer() {
    let shop = Shop::new();
    for command in ["/no/such/program", "true", "cat", "false"] {
        let file = json!({"mcpServers": {"tenure": {"command": command, "args": ["mcp"]}}});
        std::fs::write(shop.root().join(".mcp.json"), file.to_string()).unwrap();
        let checked = shop.try_cli(&["setup", "claude", "--mcp", "--check", "--timeout", "5s"]);
        assert_eq!(checked["error"]["code"], "CHECK_FAILED", "{command}: {checked}");
    }
    // Outside a project the server reports that, and the check passes it on.
    let file = json!({"mcpServers": {"tenure": {"command": env!("CARGO_BIN_EXE_tenure"), "args": ["mcp", "-C", "/"]}}});
    std::fs::write(shop.root().join(".mcp.json"), file.to_string()).unwrap();
    let checked = shop.try_cli(&["setup", "claude", "--mcp", "--check"]);
    let said = checked["error"]["message"].as_str().unwrap();
    assert!(said.contains("init"), "{said}");
}
