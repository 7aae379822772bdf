//! What an agent under a runner may do over MCP: the same as on the command line.

use serde_json::{Value, json};
use tenure_core::supervised::{Permission, Role, permission};

use crate::client::Client;
use crate::shop::Shop;

/// Each tool, with the verb that decides about it and arguments for the task T1, which bob holds.
fn tools(fence: i64) -> Vec<(&'static str, &'static str, Value)> {
    vec![
        ("get_status", "status", json!({})),
        ("list_tasks", "tasks list", json!({})),
        ("get_task", "tasks show", json!({"task": "T1"})),
        ("add_task", "tasks add", json!({"title": "New"})),
        ("claim_next", "tasks claim", json!({"waitSeconds": 0})),
        ("claim_task", "tasks claim", json!({"task": "T2"})),
        ("renew_lease", "tasks renew", json!({"task": "T1"})),
        ("release_task", "tasks release", json!({"task": "T1"})),
        ("finish_task", "tasks done", json!({"task": "T1", "fence": fence, "outcome": "done"})),
        (
            "finish_task",
            "tasks fail",
            json!({"task": "T1", "fence": fence, "outcome": "fail", "message": "No"}),
        ),
        ("send_message", "msg send", json!({"task": "T1", "message": "Hello"})),
        ("read_inbox", "msg list", json!({})),
        ("read_inbox", "msg ack", json!({"acknowledge": [1]})),
        ("explain", "why", json!({})),
    ]
}

/// A shop in which bob holds T1, and a client in the environment of an agent that was started for `own`.
fn connect(role: Option<Role>, own: &str) -> (Shop, Client, i64) {
    let shop = Shop::with_tasks(3);
    let claimed = shop.ok(&["task", "claim", "T1", "--agent", "bob"]);
    shop.ok(&["msg", "send", "--task", "T1", "-m", "Hello"]);
    let id = shop.ok(&["tasks", "show", own])["task"]["id"].as_str().unwrap().to_owned();
    let mut command = shop.command(&["mcp"]);
    command.env("TENURE_AGENT", "bob").env("TENURE_TASK_ID", id);
    if let Some(role) = role {
        command.env("TENURE_SUPERVISED", role.as_str());
    }
    let client = Client::of(command, "agent");
    (shop, client, claimed["lease"]["fence"].as_i64().unwrap())
}

fn is_refused(result: &Value) -> bool {
    let error = &result["structuredContent"]["error"];
    let by_role = error["details"]["role"].is_string();
    assert!(!by_role || error["code"] == "PERMISSION_DENIED", "{result}");
    by_role
}

#[test]
fn only_an_agent_under_a_runner_finishes_its_task_without_naming_the_fence() {
    for (role, code) in [(None, "INVALID_ARGUMENTS"), (Some(Role::Work), "")] {
        let (shop, mut client, _) = connect(role, "T1");
        let result = client.call("finish_task", json!({"task": "T1", "outcome": "done"}));
        let error = &result["structuredContent"]["error"];
        assert_eq!(error["code"].as_str().unwrap_or_default(), code, "{result}");
        let status = shop.ok(&["tasks", "show", "T1"])["task"]["status"].clone();
        assert_eq!(status, if role.is_some() { "completed" } else { "in_progress" });
    }
}

#[test]
fn every_tool_is_decided_by_the_role_of_the_agent() {
    for role in [None, Some(Role::Work), Some(Role::Review)] {
        for own in ["T1", "T2"] {
            let (_shop, mut client, fence) = connect(role, own);
            for (tool, verb, arguments) in tools(fence) {
                let result = client.call(tool, arguments);
                let refused = match role.map(|role| permission(verb, role)) {
                    None | Some(Permission::Allowed) => false,
                    Some(Permission::OwnTask) => own != "T1",
                    Some(Permission::Refused) => true,
                };
                assert_eq!(is_refused(&result), refused, "{role:?} for {own}: {tool} {result}");
            }
        }
    }
}

#[test]
fn every_tool_of_the_server_is_in_the_table() {
    let shop = Shop::new();
    let listed = Client::new(&shop, "reader").request("tools/list", json!({}));
    let listed: Vec<&str> =
        listed["result"]["tools"].as_array().unwrap().iter().map(|t| t["name"].as_str().unwrap()).collect();
    let mut known: Vec<&str> = tools(1).into_iter().map(|(tool, ..)| tool).collect();
    known.dedup();
    assert_eq!(known, listed);
}
