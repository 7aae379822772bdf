//! Many clients, one pool: each task exactly once.

use std::collections::BTreeMap;
use std::sync::Mutex;

use serde_json::json;

use crate::client::Client;
use crate::shop::Shop;

#[test]
fn sixteen_clients_share_two_hundred_tasks_and_each_is_done_exactly_once() {
    const CLIENTS: usize = 16;
    const TASKS: usize = 200;
    let shop = Shop::with_tasks(TASKS);
    let done = Mutex::new(BTreeMap::<String, Vec<(usize, u64)>>::new());
    std::thread::scope(|scope| {
        for number in 0..CLIENTS {
            let (shop, done) = (&shop, &done);
            scope.spawn(move || {
                let mut client = Client::new(shop, &format!("worker {number}"));
                loop {
                    let result = client.call("claim_next", json!({"waitSeconds": 0}));
                    let answer = &result["structuredContent"];
                    if result["isError"] == true {
                        assert_eq!(answer["error"]["code"], "NOTHING_READY", "{result}");
                        client.hang_up();
                        assert!(client.ended().success());
                        return;
                    }
                    let key = answer["task"]["key"].as_str().unwrap().to_owned();
                    let fence = answer["lease"]["fence"].as_u64().unwrap();
                    done.lock().unwrap().entry(key.clone()).or_default().push((number, fence));
                    client.ok("finish_task", json!({"task": key, "fence": fence, "outcome": "done"}));
                }
            });
        }
    });
    let done = done.into_inner().unwrap();
    assert_eq!(done.len(), TASKS);
    assert!(done.values().all(|holders| holders.len() == 1), "{done:?}");
    let hands: std::collections::BTreeSet<usize> =
        done.values().flatten().map(|(number, _)| *number).collect();
    assert!(hands.len() > 1, "one client did it all");
    let status = shop.ok(&["status"]);
    assert_eq!((&status["tasks"]["completed"], &status["activeClaims"]), (&json!(TASKS), &json!(0)));
    assert_eq!(status["agentsRegistered"], 0, "all have left");
}
