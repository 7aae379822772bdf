//! How a server ends, and what becomes of what its client held.

use std::process::Stdio;
use std::time::{Duration, Instant};

use serde_json::json;

use crate::client::Client;
use crate::shop::Shop;
use rustix::process::Signal;
use tenure_testkit::cli::{processes, until};

#[test]
fn a_client_that_hangs_up_leaves_nothing_held_and_no_server() {
    let shop = Shop::with_tasks(2);
    let mut client = Client::new(&shop, "shy");
    client.ok("claim_next", json!({}));
    client.ok("claim_next", json!({}));
    let me = client.ok("get_status", json!({}))["you"].as_str().unwrap().to_owned();
    assert_eq!(shop.show("T1")["lease"]["holder"]["id"], me);
    client.hang_up();
    assert!(client.ended().success());
    for key in ["T1", "T2"] {
        let task = shop.show(key);
        assert_eq!((task["status"].as_str(), task["lease"].is_null()), (Some("pending"), true), "{task}");
    }
    let agents = shop.ok(&["agents", "list"]);
    assert!(agents["agents"][0]["leftAt"].is_string(), "{agents}");
}

#[test]
fn a_server_that_is_asked_to_stop_lets_go_and_ends_at_once() {
    for signal in [Signal::TERM, Signal::INT] {
        let shop = Shop::with_tasks(1);
        let mut client = Client::new(&shop, "busy");
        client.ok("claim_next", json!({}));
        // Also while somebody waits.
        let waiting =
            client.ask("tools/call", json!({"name": "claim_next", "arguments": {"waitSeconds": 300}}));
        until("it stands in line", || shop.ok(&["status"])["waiting"] == 1);
        processes::signal(client.pid(), signal);
        let begun = Instant::now();
        assert!(client.ended().success());
        assert!(begun.elapsed() < Duration::from_secs(20), "{:?}", begun.elapsed());
        assert_eq!(shop.show("T1")["status"], "pending");
        assert_eq!(shop.ok(&["status"])["waiting"], 0, "{waiting}");
    }
}

#[test]
fn what_a_killed_server_held_can_be_claimed_at_once() {
    let shop = Shop::with_tasks(1);
    let mut client = Client::new(&shop, "doomed");
    let grant = client.ok("claim_task", json!({"task": "T1", "ttl": "1h"}));
    assert_eq!(grant["lease"]["holder"]["pid"], client.pid());
    assert_eq!(shop.try_cli(&["tasks", "claim", "T1", "--agent", "next"])["error"]["code"], "TASK_LOCKED");
    processes::signal(client.pid(), Signal::KILL);
    client.ended();
    let taken = shop.ok(&["tasks", "claim", "T1", "--agent", "next"]);
    assert_eq!(taken["takenOver"]["fence"], grant["lease"]["fence"]);
    // It ran nothing, so nothing is charged.
    assert_eq!(taken["task"]["attempts"], 0);
}

#[test]
fn a_server_whose_client_was_killed_ends_although_somebody_keeps_the_pipes_open() {
    let shop = Shop::with_tasks(1);
    // The shell stands for the client. We hold the other ends of its pipes, as a client's other child might.
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
fn a_server_ends_with_a_client_that_was_killed_and_its_tasks_are_free() {
    let shop = Shop::with_tasks(1);
    // A client whose pipes die with it: the lines come from a process in between.
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
fn leases_expire_instead_where_that_is_configured_and_the_same_name_takes_them_up_again() {
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
    client.hang_up();
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
fn an_agent_of_a_supervisor_speaks_for_its_lease_and_never_lets_it_go_by_hanging_up() {
    let shop = Shop::with_tasks(1);
    let grant = shop.ok(&["tasks", "claim", "T1", "--agent", "boss", "--ttl", "1h"]);
    let (fence, id) = (grant["lease"]["fence"].to_string(), grant["task"]["id"].as_str().unwrap().to_owned());
    let helper = || {
        let mut command = shop.command(&["mcp"]);
        command.env("TENURE_AGENT", "helper").env("TENURE_FENCE", &fence).env("TENURE_TASK_ID", &id);
        Client::of(command, "helper")
    };
    let mut client = helper();
    let same = client.ok("claim_task", json!({"task": "T1"}));
    assert_eq!(
        (&same["lease"]["reacquired"], same["lease"]["fence"].to_string()),
        (&json!(true), fence.clone())
    );
    client.hang_up();
    assert!(client.ended().success());
    assert_eq!(shop.show("T1")["lease"]["holder"]["id"], "boss");
    let done = json!({"task": "T1", "fence": same["lease"]["fence"], "outcome": "done"});
    assert_eq!(helper().ok("finish_task", done)["task"]["status"], "completed");
}

#[test]
fn an_empty_conversation_is_no_failure() {
    let shop = Shop::new();
    let output = shop.command(&["mcp"]).output().unwrap();
    assert!(output.status.success() && output.stdout.is_empty() && output.stderr.is_empty(), "{output:?}");
    assert_eq!(shop.ok(&["agents", "list"])["total"], 0, "who never called never joined");
    let outside = shop.command(&["mcp", "-C", "/"]).output().unwrap();
    assert_eq!(outside.status.code(), Some(3));
}
