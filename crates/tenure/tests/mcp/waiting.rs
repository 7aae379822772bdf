//! Several calls of one client wait at the same time, each for another task.

use serde_json::json;
use tenure_testkit::cli::until;
use tenure_testkit::postgres::Cluster;

use crate::client::Client;
use crate::shop::Shop;

/// Polling alone would take longer than a test may.
const NEVER_POLLED: &str = "locking: {pollInterval: 1h}";

fn each_of_two_waiting_calls_is_woken_by_the_release_of_its_task(server: Option<String>) {
    let shop = Shop::with_tasks_on(server, 2);
    shop.configure(NEVER_POLLED);
    for task in ["T1", "T2"] {
        shop.ok(&["tasks", "claim", task, "--agent", "ann"]);
    }
    let mut client = Client::new(&shop, "patient");
    let mut waiting = Vec::new();
    for task in ["T1", "T2"] {
        let wait = json!({"name": "claim_task", "arguments": {"task": task, "waitSeconds": 300}});
        waiting.push((task, client.ask("tools/call", wait)));
        until("the call is queued", || shop.ok(&["status"])["waiting"] == waiting.len());
    }
    for (task, call) in waiting {
        shop.ok(&["tasks", "release", task, "--agent", "ann"]);
        let answer = client.answer(call);
        assert_eq!(answer["result"]["structuredContent"]["task"]["key"], task, "{answer}");
    }
}

#[test]
fn each_of_two_waiting_calls_is_woken_by_the_release_of_its_task_on_sqlite() {
    each_of_two_waiting_calls_is_woken_by_the_release_of_its_task(None);
}

#[test]
fn each_of_two_waiting_calls_is_woken_by_the_release_of_its_task_on_postgresql() {
    each_of_two_waiting_calls_is_woken_by_the_release_of_its_task(Some(Cluster::shared().url()));
}
