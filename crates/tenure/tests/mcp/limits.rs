//! What a client may have at a time, and how much of a log it is given.

use std::os::unix::fs::PermissionsExt;

use serde_json::{Value, json};

use crate::client::Client;
use crate::shop::Shop;
use tenure_testkit::cli::until;

#[test]
fn a_client_stands_in_sixteen_lines_and_is_told_when_it_wants_one_more() {
    let shop = Shop::with_tasks(1);
    shop.ok(&["task", "claim", "T1", "--agent", "holder"]);
    let wait = json!({"name": "claim_task", "arguments": {"task": "T1", "waitSeconds": 120}});
    let mut greedy = Client::new(&shop, "greedy");
    let mut waits: Vec<u64> = (0..16).map(|_| greedy.ask("tools/call", wait.clone())).collect();
    until("somebody stands in line", || shop.ok(&["status"])["waiting"].as_u64() > Some(0));
    // Whichever of them comes last to the server is one too many.
    waits.push(greedy.ask("tools/call", wait.clone()));
    let refused = greedy.hear();
    assert!(waits.contains(&refused["id"].as_u64().unwrap()), "{refused}");
    let error = &refused["result"]["structuredContent"]["error"];
    assert_eq!(error["message"], "too many of your calls are waiting already", "{refused}");
    // It is the client's own limit: it may do anything else, and another may wait.
    greedy.ok("get_status", json!({}));
    let mut other = Client::new(&shop, "other");
    let waiting = other.ask("tools/call", wait.clone());
    until("another stands in line", || {
        shop.ok(&["tasks", "show", "T1"])["task"]["lease"].is_object()
            && shop.ok(&["status"])["waiting"].as_u64() > Some(1)
    });
    // One that is cancelled makes room.
    let still: Vec<u64> = waits.into_iter().filter(|id| *id != refused["id"].as_u64().unwrap()).collect();
    greedy.say(
        &json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": still[0]}})
            .to_string(),
    );
    until("there is room", || {
        let arguments = json!({"task": "T1", "waitSeconds": 1});
        let tried = greedy.call("claim_task", arguments);
        tried["structuredContent"]["error"]["code"] == "WAIT_TIMEOUT"
    });
    drop(greedy);
    shop.ok(&["task", "release", "T1", "--agent", "holder"]);
    let answer = other.answer(waiting);
    assert_eq!(answer["result"]["isError"], false, "{answer}");
}

fn read(client: &mut Client, uri: &str) -> Value {
    client.request("resources/read", json!({"uri": uri}))
}

#[test]
fn the_end_of_the_latest_attempts_log_can_be_read() {
    let shop = Shop::with_tasks(2);
    shop.configure("runners: {preset: mine}\npresets: {mine: {command: [./agent.sh]}}");
    let agent = shop.root().join("agent.sh");
    // One says a little, the other more than is given out.
    let script = "#!/bin/sh\nif [ -e twice ]; then seq 1 40000; else touch twice; fi\necho the end of $TENURE_TASK_ID\n";
    std::fs::write(&agent, script).unwrap();
    std::fs::set_permissions(&agent, std::fs::Permissions::from_mode(0o755)).unwrap();
    let mut client = Client::new(&shop, "reader");
    let none = read(&mut client, "tenure://log/T1");
    assert_eq!(none["error"]["message"], "no attempt at T1 has left a log", "{none}");
    assert!(shop.command(&["runners", "start", "--foreground"]).output().unwrap().status.success());

    let mut log = |key: &str| {
        let id = shop.show(key)["id"].as_str().unwrap().to_owned();
        let answer = read(&mut client, &format!("tenure://log/{key}"));
        let page = &answer["result"]["contents"][0];
        assert_eq!(page["mimeType"], "text/plain", "{answer}");
        (page["text"].as_str().unwrap().to_owned(), id)
    };
    let (short, id) = log("T1");
    assert_eq!(
        short.lines().filter(|line| line.ends_with(&format!("the end of {id}"))).count(),
        1,
        "{short}"
    );
    let (long, id) = log("T2");
    assert!(long.len() <= 64 * 1024 && long.len() > 32 * 1024, "{} bytes", long.len());
    assert!(long.trim_end().ends_with(&format!("the end of {id}")), "{}", &long[long.len() - 200..]);
    assert!(long.contains(" 40000\n") && !long.contains(" 100\n"), "the end, not the beginning");
}
