//! Who is connected keeps what it holds without a word; who has lost it is told with the next one.

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use tenure_core::Timestamp;

use crate::client::Client;
use crate::shop::Shop;
use rustix::process::Signal;
use tenure_testkit::cli::{processes, until};

#[test]
fn a_silent_client_keeps_its_task_far_beyond_the_ttl() {
    let shop = Shop::with_tasks(1);
    let mut client = Client::new(&shop, "silent");
    let grant = client.ok("claim_task", json!({"task": "T1", "ttl": "2s"}));
    let times = |lease: &Value, field: &str| Timestamp::parse(lease[field].as_str().unwrap()).unwrap();
    let end = times(&grant["lease"], "expiresAt").after(Duration::from_secs(3));
    let mut lease = Value::Null;
    // Beaten for long after it would have run out, and never taken up anew.
    until("it is renewed", || {
        lease = shop.show("T1")["lease"].clone();
        assert_eq!(lease["fence"], grant["lease"]["fence"]);
        times(&lease, "heartbeatAt") > end
    });
    let fence = lease["fence"].clone();
    let finished = client.ok("finish_task", json!({"task": "T1", "fence": fence, "outcome": "done"}));
    assert_eq!(finished["task"]["status"], "completed");
}

#[test]
fn what_is_finished_elsewhere_with_the_fence_is_no_loss() {
    let shop = Shop::with_tasks(2);
    let mut client = Client::new(&shop, "calm");
    let grant = client.ok("claim_task", json!({"task": "T1", "ttl": "3s"}));
    client.ok("claim_task", json!({"task": "T2", "ttl": "3s"}));
    shop.ok(&["tasks", "done", "T1", "--fence", &grant["lease"]["fence"].to_string()]);
    // When T2, which was claimed later, has been renewed twice more, the renewal of T1 was due as well.
    let mut renewals = BTreeSet::new();
    until("T2 is renewed twice", || {
        renewals.insert(shop.show("T2")["lease"]["heartbeatAt"].to_string());
        renewals.len() > 2
    });
    assert_eq!(client.ok("list_tasks", json!({"status": ["all"]}))["lost"], Value::Null);
}

#[test]
fn a_client_is_told_of_a_forced_loss_at_once_and_its_late_word_bounces() {
    let shop = Shop::with_tasks(2);
    let mut client = Client::new(&shop, "late");
    let grant = client.ok("claim_task", json!({"task": "T1"}));
    let kept = client.ok("claim_task", json!({"task": "T2"}));
    shop.ok(&["locks", "release", "T1", "--force"]);
    let mut told = Value::Null;
    // Long before a heartbeat of 30 s: the keeper was rung.
    until("it is told", || {
        told = client.call("get_status", json!({}));
        told["structuredContent"]["lost"].is_array()
    });
    let lost = &told["structuredContent"]["lost"][0];
    assert_eq!((&lost["code"], &lost["task"]), (&json!("LEASE_LOST"), &json!("T1")));
    let text = told["content"][0]["text"].as_str().unwrap();
    assert!(text.starts_with("LEASE_LOST: You no longer hold T1"), "{text}");
    assert_eq!(client.ok("get_status", json!({}))["lost"], Value::Null, "once");
    let late = json!({"task": "T1", "fence": grant["lease"]["fence"], "outcome": "done"});
    let error = client.refused("LEASE_LOST", "finish_task", late.clone());
    assert!(error["message"].as_str().unwrap().contains("no longer hold"), "{error}");
    client.refused("LEASE_LOST", "renew_lease", json!({"task": "T1"}));
    client.refused("LEASE_LOST", "release_task", json!({"task": "T1"}));
    // Also when another has it by now.
    shop.ok(&["tasks", "claim", "T1", "--agent", "other"]);
    let error = client.refused("LEASE_LOST", "finish_task", late);
    assert_eq!(error["details"]["current"]["lockedBy"], "other", "{error}");
    assert_eq!(shop.show("T1")["status"], "in_progress");
    client.ok("finish_task", json!({"task": "T2", "fence": kept["lease"]["fence"], "outcome": "review"}));
    assert_eq!(shop.show("T2")["status"], "review");
}

#[test]
fn a_server_that_slept_past_its_expiry_says_what_it_has_lost() {
    let shop = Shop::with_tasks(1);
    let mut client = Client::new(&shop, "sleeper");
    let grant = client.ok("claim_task", json!({"task": "T1", "ttl": "1s"}));
    processes::signal(client.pid(), Signal::STOP);
    until("another may take it", || {
        shop.try_cli(&["tasks", "claim", "T1", "--agent", "other"])["success"] == true
    });
    processes::signal(client.pid(), Signal::CONT);
    until("it is told", || client.call("list_tasks", json!({}))["structuredContent"]["lost"].is_array());
    let late = json!({"task": "T1", "fence": grant["lease"]["fence"], "outcome": "done"});
    client.refused("LEASE_LOST", "finish_task", late);
    assert_eq!(shop.show("T1")["lease"]["holder"]["id"], "other");
}

#[test]
fn a_waiting_call_is_served_first_come_first_served_and_a_cancelled_one_leaves_the_line() {
    let shop = Shop::with_tasks(1);
    let mut holder = Client::new(&shop, "holder");
    let grant = holder.ok("claim_task", json!({"task": "T1"}));
    let wait = json!({"name": "claim_task", "arguments": {"task": "T1", "waitSeconds": 120}, "_meta": {"progressToken": 9}});
    let waiting = |count: u64| {
        until("they stand in line", || shop.ok(&["status"])["waiting"] == count);
    };
    let mut first = Client::new(&shop, "first");
    let cancelled = first.ask("tools/call", wait.clone());
    waiting(1);
    assert_eq!(first.hear()["method"], "notifications/progress");
    let mut second = Client::new(&shop, "second");
    let served = second.ask("tools/call", wait);
    waiting(2);
    first.say(
        &json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": cancelled}})
            .to_string(),
    );
    waiting(1);
    let begun = Instant::now();
    holder.ok("release_task", json!({"task": "T1", "message": "Your turn"}));
    let answer = second.answer(served);
    assert!(begun.elapsed() < Duration::from_secs(20), "{:?}", begun.elapsed());
    let lease = &answer["result"]["structuredContent"]["lease"];
    assert!(lease["fence"].as_u64() > grant["lease"]["fence"].as_u64(), "{answer}");
    assert!(lease["holder"]["id"].as_str().unwrap().starts_with("second-"), "{answer}");
    assert_eq!(first.ok("list_tasks", json!({"mine": true}))["total"], 0);
}

#[test]
fn somebody_who_waits_for_anything_gets_what_is_added() {
    let shop = Shop::new();
    let mut client = Client::new(&shop, "eager");
    let waiting = client.ask("tools/call", json!({"name": "claim_next", "arguments": {"waitSeconds": 120}}));
    until("it stands in line", || shop.ok(&["status"])["waiting"] == 1);
    shop.ok(&["tasks", "add", "At last"]);
    let answer = client.answer(waiting);
    assert_eq!(answer["result"]["structuredContent"]["task"]["title"], "At last", "{answer}");
}
