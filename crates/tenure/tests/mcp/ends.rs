//! How a server ends, and what happens to the tasks that its client held.

use std::process::Stdio;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::client::Client;
use crate::shop::Shop;
use rustix::process::Signal;
use tenure_testkit::cli::{processes, until};

#[test]
fn a_client_that_disconnects_leaves_no_lease_and_no_server() {
    let shop = Shop::with_tasks(2);
    let mut client = Client::new(&shop, "shy");
    client.ok("claim_next", json!({}));
    client.ok("claim_next", json!({}));
    let me = client.ok("get_status", json!({}))["you"].as_str().unwrap().to_owned();
    assert_eq!(shop.show("T1")["lease"]["holder"]["id"], me);
    client.disconnect();
    assert!(client.ended().success());
    for key in ["T1", "T2"] {
        let task = shop.show(key);
        assert_eq!((task["status"].as_str(), task["lease"].is_null()), (Some("pending"), true), "{task}");
    }
    let agents = shop.ok(&["agents", "list"]);
    assert!(agents["agents"][0]["leftAt"].is_string(), "{agents}");
}

#[test]
fn a_server_that_is_asked_to_stop_releases_its_tasks_and_ends_at_once() {
    for signal in [Signal::TERM, Signal::INT] {
        let shop = Shop::with_tasks(1);
        let mut client = Client::new(&shop, "busy");
        client.ok("claim_next", json!({}));
        // Also while a call waits.
        let waiting =
            client.ask("tools/call", json!({"name": "claim_next", "arguments": {"waitSeconds": 300}}));
        until("the call is queued", || shop.ok(&["status"])["waiting"] == 1);
        processes::signal(client.pid(), signal);
        let begun = Instant::now();
        assert!(client.ended().success());
        assert!(begun.elapsed() < Duration::from_secs(20), "{:?}", begun.elapsed());
        assert_eq!(shop.show("T1")["status"], "pending");
        assert_eq!(shop.ok(&["status"])["waiting"], 0, "{waiting}");
    }
}

#[test]
fn the_task_of_a_killed_server_can_be_claimed_at_once() {
    let shop = Shop::with_tasks(1);
    let mut client = Client::new(&shop, "doomed");
    let grant = client.ok("claim_task", json!({"task": "T1", "ttl": "1h"}));
    assert_eq!(grant["lease"]["holder"]["pid"], client.pid());
    assert_eq!(shop.try_cli(&["tasks", "claim", "T1", "--agent", "next"])["error"]["code"], "TASK_LOCKED");
    processes::signal(client.pid(), Signal::KILL);
    client.ended();
    let taken = shop.ok(&["tasks", "claim", "T1", "--agent", "next"]);
    assert_eq!(taken["takenOver"]["fence"], grant["lease"]["fence"]);
    // There was no attempt, so nothing is charged.
    assert_eq!(taken["task"]["attempts"], 0);
}

#[test]
fn a_server_whose_client_was_killed_ends_even_if_its_pipes_stay_open() {
    let shop = Shop::with_tasks(1);
    // The shell plays the client. The test holds the other ends of its pipes, as another child of a client might.
    let mut shell = std::process::Command::new("sh");
    shell.args(["-c", r#""$0" mcp; true"#, env!("CARGO_BIN_EXE_tenure")]);
    shop.surround(&mut shell);
    let mut client = Client::of(shell, "orphan");
    let grant = client.ok("claim_next", json!({"ttl": "1h"}));
    let server = u32::try_from(grant["lease"]["holder"]["pid"].as_u64().unwrap()).unwrap();
    assert_ne!(server, client.pid());
    processes::signal(client.pid(), Signal::KILL);
    let begun = Instant::now();
    until("the server is gone", || !processes::is_alive(server));
    assert!(begun.elapsed() < Duration::from_secs(20), "{:?}", begun.elapsed());
    assert!(client.input.is_some());
    let taken = shop.ok(&["tasks", "claim", "T1", "--agent", "next"]);
    assert_eq!(taken["task"]["key"], "T1");
}

#[test]
fn a_server_ends_when_its_client_is_killed_and_its_tasks_are_free() {
    let shop = Shop::with_tasks(1);
    // A client whose pipes close when it dies, because an intermediate process owns them.
    let script = r#"
import subprocess, sys, json, os, time
server = subprocess.Popen([sys.argv[1], "mcp"], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
def ask(id, method, params):
    server.stdin.write((json.dumps({"jsonrpc": "2.0", "id": id, "method": method, "params": params}) + "\n").encode())
    server.stdin.flush()
    return json.loads(server.stdout.readline())
ask(1, "initialize", {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "mortal", "version": "1"}})
ask(2, "tools/call", {"name": "claim_next", "arguments": {"ttl": "1h"}})
print(server.pid, flush=True)
time.sleep(600)
"#;
    let mut client = std::process::Command::new("python3");
    client.args(["-c", script, env!("CARGO_BIN_EXE_tenure")]);
    shop.surround(&mut client);
    let mut client = client.stdout(Stdio::piped()).spawn().unwrap();
    let mut said = String::new();
    let mut output = std::io::BufReader::new(client.stdout.take().unwrap());
    std::io::BufRead::read_line(&mut output, &mut said).unwrap();
    let server: u32 = said.trim().parse().unwrap();
    assert_eq!(shop.show("T1")["status"], "in_progress");
    client.kill().unwrap();
    client.wait().unwrap();
    until("the server is gone", || !processes::is_alive(server));
    shop.ok(&["tasks", "claim", "T1", "--agent", "next"]);
}

#[test]
fn with_release_on_disconnect_off_the_same_agent_reacquires_its_leases() {
    let shop = Shop::with_tasks(1);
    shop.configure("mcp: {releaseOnDisconnect: false}");
    let named = || {
        let mut command = shop.command(&["mcp"]);
        command.env("TENURE_AGENT", "ann");
        command
    };
    let mut client = Client::of(named(), "patient");
    let grant = client.ok("claim_task", json!({"task": "T1", "ttl": "1h"}));
    assert_eq!(grant["lease"]["holder"]["id"], "ann");
    client.disconnect();
    assert!(client.ended().success());
    let task = shop.show("T1");
    assert_eq!((task["status"].as_str(), &task["lease"]["expired"]), (Some("in_progress"), &json!(false)));
    assert_eq!(shop.try_cli(&["tasks", "claim", "T1", "--agent", "bob"])["error"]["code"], "TASK_LOCKED");
    let mut again = Client::of(named(), "patient");
    let taken_up = again.ok("claim_task", json!({"task": "T1"}));
    assert_eq!(taken_up["lease"]["reacquired"], true);
    let fence = taken_up["lease"]["fence"].clone();
    again.ok("finish_task", json!({"task": "T1", "fence": fence, "outcome": "done"}));
}

#[test]
fn an_agent_acts_under_its_supervisors_lease_and_disconnecting_does_not_release_it() {
    let shop = Shop::with_tasks(1);
    let grant = shop.ok(&["tasks", "claim", "T1", "--agent", "boss", "--ttl", "1h"]);
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    let (fence, id) = (grant["lease"]["fence"].to_string(), text(&grant["task"]["id"]));
    let proof = format!("{}-{}", text(&grant["lease"]["leaseId"]), text(&grant["lease"]["leaseKey"]));
    let helper = || {
        let mut command = shop.command(&["mcp"]);
        command.env("TENURE_AGENT", "helper").env("TENURE_LEASE", &proof).env("TENURE_TASK_ID", &id);
        Client::of(command, "helper")
    };
    let mut client = helper();
    let same = client.ok("claim_task", json!({"task": "T1"}));
    assert_eq!(
        (&same["lease"]["reacquired"], same["lease"]["fence"].to_string()),
        (&json!(true), fence.clone())
    );
    client.disconnect();
    assert!(client.ended().success());
    assert_eq!(shop.show("T1")["lease"]["holder"]["id"], "boss");
    let done = json!({"task": "T1", "fence": same["lease"]["fence"], "outcome": "done"});
    assert_eq!(helper().ok("finish_task", done)["task"]["status"], "completed");
}

#[test]
fn a_client_that_sends_nothing_is_not_an_error() {
    let shop = Shop::new();
    let output = shop.command(&["mcp"]).output().unwrap();
    assert!(output.status.success() && output.stdout.is_empty() && output.stderr.is_empty(), "{output:?}");
    assert_eq!(shop.ok(&["agents", "list"])["total"], 0, "a client that calls no tool does not join");
    let outside = shop.command(&["mcp", "-C", "/"]).output().unwrap();
    assert!(outside.status.success(), "a server outside of a project serves: {outside:?}");
}

#[test]
fn calls_are_refused_after_the_database_was_replaced() {
    let shop = Shop::with_tasks(1);
    let mut client = Client::new(&shop, "old");
    let grant = client.ok("claim_task", json!({"task": "T1"}));
    std::fs::remove_dir_all(shop.root().join(".tenure")).unwrap();
    shop.init(&[]);
    shop.ok(&["tasks", "import", "plan.md"]);
    let fence = &grant["lease"]["fence"];
    for (tool, arguments) in [
        ("finish_task", json!({"task": "T1", "fence": fence, "outcome": "done"})),
        ("claim_task", json!({"task": "T1"})),
        ("add_task", json!({"title": "New"})),
        ("list_tasks", json!({})),
    ] {
        let error = client.refused("STORE_ERROR", tool, arguments);
        assert!(error["message"].as_str().unwrap().contains("was replaced by another file"), "{error}");
    }
    assert_eq!(shop.show("T1")["status"], "pending");
    assert_eq!(shop.ok(&["tasks", "list"])["total"], 1);
}
