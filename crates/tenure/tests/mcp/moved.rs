//! The store of a running server is copied away, or its file is replaced. Each call reports that and changes nothing.

use serde_json::{Value, json};
use tenure_testkit::postgres::Cluster;

use crate::client::Client;
use crate::shop::Shop;

/// Calls that read, claim and change.
fn calls() -> [(&'static str, Value); 4] {
    [
        ("list_tasks", json!({})),
        ("claim_next", json!({"waitSeconds": 0})),
        ("claim_task", json!({"task": "T1"})),
        ("add_task", json!({"title": "lost"})),
    ]
}

#[test]
fn a_server_on_a_store_that_was_copied_away_names_the_new_one() {
    let shop = Shop::with_tasks(1);
    let mut client = Client::new(&shop, "worker");
    client.ok("list_tasks", json!({}));
    let url = Cluster::shared().url();
    shop.ok(&["store", "copy", "--to", &url]);
    for (tool, arguments) in calls() {
        let error = client.refused("STORE_MOVED", tool, arguments);
        assert!(error["message"].as_str().unwrap().contains(&url), "{error}");
        assert_eq!(error["details"]["movedTo"], url.as_str(), "{error}");
    }
}

#[test]
fn a_server_whose_database_was_replaced_refuses_each_call() {
    let shop = Shop::with_tasks(1);
    let mut client = Client::new(&shop, "worker");
    let held = client.ok("claim_task", json!({"task": "T1"}));
    std::fs::rename(shop.root().join(".tenure"), shop.root().join("before")).unwrap();
    shop.init(&[]);
    shop.ok(&["tasks", "add", "Other"]);
    for (tool, arguments) in calls() {
        let error = client.refused("STORE_ERROR", tool, arguments);
        let message = error["message"].as_str().unwrap();
        assert!(message.contains("replaced by another file"), "{message}");
    }
    let finish = json!({"task": "T1", "fence": held["lease"]["fence"], "outcome": "done"});
    client.refused("STORE_ERROR", "finish_task", finish);
    let task = shop.show("T1");
    assert_eq!((&task["title"], &task["status"]), (&json!("Other"), &json!("pending")));
    assert_eq!(shop.ok(&["tasks", "list"])["total"], 1);
}
