//! How many calls of a client may wait at a time, and how much of a log it can read.

use std::os::unix::fs::PermissionsExt;

use serde_json::{Value, json};

use crate::client::Client;
use crate::shop::Shop;
use tenure_testkit::cli::until;

#[test]
fn at_most_sixteen_calls_of_a_client_may_wait() {
    let shop = Shop::with_tasks(1);
    shop.ok(&["task", "claim", "T1", "--agent", "holder"]);
    let wait = json!({"name": "claim_task", "arguments": {"task": "T1", "waitSeconds": 120}});
    let mut greedy = Client::new(&shop, "greedy");
    let mut waits: Vec<u64> = (0..16).map(|_| greedy.ask("tools/call", wait.clone())).collect();
    until("a call is queued", || shop.ok(&["status"])["waiting"].as_u64() > Some(0));
    // Whichever call reaches the server last exceeds the limit.
    waits.push(greedy.ask("tools/call", wait.clone()));
    let refused = greedy.receive();
    assert!(waits.contains(&refused["id"].as_u64().unwrap()), "{refused}");
    let error = &refused["result"]["structuredContent"]["error"];
    assert_eq!(error["message"], "too many of your calls are waiting already", "{refused}");
    // The limit is per client: this one can still make other calls, and another client can wait.
    greedy.ok("get_status", json!({}));
    let mut other = Client::new(&shop, "other");
    let waiting = other.ask("tools/call", wait.clone());
    until("the other client is queued", || {
        shop.ok(&["tasks", "show", "T1"])["task"]["lease"].is_object()
            && shop.ok(&["status"])["waiting"].as_u64() > Some(1)
    });
    // Cancelling one makes room.
    let still: Vec<u64> = waits.into_iter().filter(|id| *id != refused["id"].as_u64().unwrap()).collect();
    greedy.send_line(
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
    // The first attempt prints little, the second more than the resource returns.
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

#[test]
fn a_log_path_that_leads_out_of_the_projects_logs_is_not_read() {
    let shop = Shop::with_tasks(1);
    shop.ok(&["tasks", "run", "T1", "--", "true"]);
    let secret = shop.root().join("secret");
    std::fs::write(&secret, "a private key").unwrap();
    let logs = shop.root().join(".tenure/logs");
    std::fs::create_dir_all(&logs).unwrap();
    std::os::unix::fs::symlink(&secret, logs.join("T1-1.log")).unwrap();
    for path in [secret.clone(), logs.join("../../secret"), logs.join("T1-1.log")] {
        shop.sql(&format!("UPDATE attempts SET log_path = '{}'", path.display()));
        let answer = read(&mut Client::new(&shop, "reader"), "tenure://log/T1");
        assert!(answer["error"].is_object() && !answer.to_string().contains("private key"), "{answer}");
    }
}
