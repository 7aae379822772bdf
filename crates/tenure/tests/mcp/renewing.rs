//! A connected client keeps its leases without further calls, and the next answer after a loss reports the loss.

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
    // It is renewed until long after it would have expired, and never granted anew.
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
fn a_wrong_fence_does_not_name_the_client_as_another_holder() {
    let shop = Shop::with_tasks(1);
    let mut client = Client::new(&shop, "forgetful");
    let grant = client.ok("claim_task", json!({"task": "T1"}));
    let fence = grant["lease"]["fence"].as_i64().unwrap();
    let me = grant["lease"]["holder"]["id"].as_str().unwrap();
    let wrong = json!({"task": "T1", "fence": fence + 7, "outcome": "done"});
    let refused = client.refused("NOT_HOLDER", "finish_task", wrong);
    let message = refused["message"].as_str().unwrap();
    assert!(!message.contains(me) && message.contains(&format!("fence is {fence}")), "{refused}");
    client.ok("finish_task", json!({"task": "T1", "fence": fence, "outcome": "done"}));
}

#[test]
fn a_finish_elsewhere_under_the_same_lease_is_not_reported_as_a_loss() {
    let shop = Shop::with_tasks(2);
    let mut client = Client::new(&shop, "calm");
    let grant = client.ok("claim_task", json!({"task": "T1", "ttl": "3s"}));
    client.ok("claim_task", json!({"task": "T2", "ttl": "3s"}));
    let (id, key) = (&grant["lease"]["leaseId"], &grant["lease"]["leaseKey"]);
    let proof = format!("{}-{}", id.as_str().unwrap(), key.as_str().unwrap());
    shop.ok(&["tasks", "done", "T1", "--lease", &proof]);
    // When T2, which was claimed later, has been renewed twice more, the renewal of T1 was due as well.
    let mut renewals = BTreeSet::new();
    until("T2 is renewed twice", || {
        renewals.insert(shop.show("T2")["lease"]["heartbeatAt"].to_string());
        renewals.len() > 2
    });
    assert_eq!(client.ok("list_tasks", json!({"status": ["all"]}))["lost"], Value::Null);
}

#[test]
fn an_eviction_is_reported_to_the_client_at_once_and_its_late_finish_is_refused() {
    let shop = Shop::with_tasks(2);
    let mut client = Client::new(&shop, "late");
    let grant = client.ok("claim_task", json!({"task": "T1"}));
    let kept = client.ok("claim_task", json!({"task": "T2"}));
    shop.ok(&["locks", "release", "T1", "--force"]);
    let mut reported = Value::Null;
    // Long before the heartbeat of 30 s, because the eviction rings the server's doorbell.
    until("the loss is reported", || {
        reported = client.call("get_status", json!({}));
        reported["structuredContent"]["lost"].is_array()
    });
    let lost = &reported["structuredContent"]["lost"][0];
    assert_eq!((&lost["code"], &lost["task"]), (&json!("LEASE_LOST"), &json!("T1")));
    let text = reported["content"][0]["text"].as_str().unwrap();
    assert!(text.starts_with("LEASE_LOST: You no longer hold T1"), "{text}");
    assert_eq!(client.ok("get_status", json!({}))["lost"], Value::Null, "once");
    let late = json!({"task": "T1", "fence": grant["lease"]["fence"], "outcome": "done"});
    let error = client.refused("LEASE_LOST", "finish_task", late.clone());
    assert!(error["message"].as_str().unwrap().contains("no longer hold"), "{error}");
    client.refused("LEASE_LOST", "renew_lease", json!({"task": "T1"}));
    client.refused("LEASE_LOST", "release_task", json!({"task": "T1"}));
    // The loss is reported even after another agent has claimed the task.
    shop.ok(&["tasks", "claim", "T1", "--agent", "other"]);
    let error = client.refused("LEASE_LOST", "finish_task", late);
    assert_eq!(error["details"]["current"]["lockedBy"], "other", "{error}");
    assert_eq!(shop.show("T1")["status"], "in_progress");
    client.ok("finish_task", json!({"task": "T2", "fence": kept["lease"]["fence"], "outcome": "review"}));
    assert_eq!(shop.show("T2")["status"], "review");
}

#[test]
fn a_server_that_was_suspended_past_the_expiry_reports_what_it_has_lost() {
    let shop = Shop::with_tasks(1);
    let mut client = Client::new(&shop, "sleeper");
    let grant = client.ok("claim_task", json!({"task": "T1", "ttl": "1s"}));
    processes::signal(client.pid(), Signal::STOP);
    until("another may take it", || {
        shop.try_cli(&["tasks", "claim", "T1", "--agent", "other"])["success"] == true
    });
    processes::signal(client.pid(), Signal::CONT);
    until("the loss is reported", || {
        client.call("list_tasks", json!({}))["structuredContent"]["lost"].is_array()
    });
    let late = json!({"task": "T1", "fence": grant["lease"]["fence"], "outcome": "done"});
    client.refused("LEASE_LOST", "finish_task", late);
    assert_eq!(shop.show("T1")["lease"]["holder"]["id"], "other");
}

#[test]
fn waiting_calls_are_served_in_order_and_a_cancelled_one_leaves_the_queue() {
    let shop = Shop::with_tasks(1);
    let mut holder = Client::new(&shop, "holder");
    let grant = holder.ok("claim_task", json!({"task": "T1"}));
    let wait = json!({"name": "claim_task", "arguments": {"task": "T1", "waitSeconds": 120}, "_meta": {"progressToken": 9}});
    let waiting = |count: u64| {
        until("the calls are queued", || shop.ok(&["status"])["waiting"] == count);
    };
    let mut first = Client::new(&shop, "first");
    let cancelled = first.ask("tools/call", wait.clone());
    waiting(1);
    assert_eq!(first.receive()["method"], "notifications/progress");
    let mut second = Client::new(&shop, "second");
    let served = second.ask("tools/call", wait);
    waiting(2);
    first.send_line(
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
fn a_call_that_waits_for_any_task_gets_one_that_is_added() {
    let shop = Shop::new();
    let mut client = Client::new(&shop, "eager");
    let waiting = client.ask("tools/call", json!({"name": "claim_next", "arguments": {"waitSeconds": 120}}));
    until("the call is queued", || shop.ok(&["status"])["waiting"] == 1);
    shop.ok(&["tasks", "add", "At last"]);
    let answer = client.answer(waiting);
    assert_eq!(answer["result"]["structuredContent"]["task"]["title"], "At last", "{answer}");
}
