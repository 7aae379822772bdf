//! `tenure setup` and `tenure mcp`, as far as they say something themselves; tests/mcp has the rest.

use insta::assert_snapshot;

use crate::support::TestEnv;

#[test]
fn setup_says_where_it_wrote_and_how_to_see_it_work() {
    let env = TestEnv::project();
    assert_snapshot!(env.ok(&["setup", "claude", "--mcp", "--dry-run"]));
    assert_snapshot!(env.ok(&["setup", "claude", "--mcp"]));
    assert_snapshot!(env.json(&["setup", "claude", "--mcp"]));
    assert_snapshot!(env.ok(&["setup", "codex", "--mcp", "--remove"]));
    assert_snapshot!(env.ok(&["setup", "claude", "--mcp", "--remove"]));
}

#[test]
fn setup_refuses_what_it_cannot_keep_and_says_what_is_not_set_up() {
    let env = TestEnv::project();
    env.write("work/.vscode/mcp.json", "// mine\n{}\n");
    assert_snapshot!(env.run(&["setup", "vscode", "--mcp"]).exits(3));
    assert_snapshot!(env.json(&["setup", "gemini", "--mcp", "--check"]).exits(7));
    assert_snapshot!(env.run(&["setup", "claude"]).exits(2));
    assert_snapshot!(env.run(&["setup", "emacs", "--mcp"]).exits(2));
}

#[test]
fn mcp_refuses_what_it_does_not_do() {
    let env = TestEnv::project();
    assert_snapshot!(env.run(&["mcp", "--dry-run"]).exits(2));
    assert_snapshot!(env.run(&["mcp", "--http", "0.0.0.0:7077"]).exits(2));
    assert_snapshot!(TestEnv::new().json(&["mcp"]).exits(3));
}
