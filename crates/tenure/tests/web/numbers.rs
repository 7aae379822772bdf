//! `/metrics`: only with the token, and only numbers that the store has.

use serde_json::Value;

use crate::client::{Server, shop};
use tenure_testkit::cli::Project;

pub(crate) fn token(shop: &Project) -> String {
    let folder = std::fs::read_dir(shop.tenure_home().join("web")).unwrap();
    let mut files = folder.map(|entry| entry.unwrap().path());
    let file = files
        .find(|path| {
            path.extension().is_some_and(|ending| ending == "json")
                && !path.to_string_lossy().contains("totals-")
        })
        .unwrap();
    let saved: Value = serde_json::from_slice(&std::fs::read(file).unwrap()).unwrap();
    saved["metricsToken"].as_str().unwrap().to_owned()
}

#[test]
fn the_numbers_are_those_of_the_store_and_need_the_token() {
    let shop = shop(&["One", "Two", "Three"]);
    shop.ok(&["tasks", "skip", "T3"]);
    // T1 is handed from ann to a waiter, T2 is taken over, and the late write of its first holder is rejected.
    shop.ok(&["tasks", "claim", "T1", "--agent", "ann"]);
    let waiter = shop.spawn(&["tasks", "claim", "T1", "--agent", "bob", "--wait", "1m"]);
    tenure_testkit::cli::until("bob is queued", || shop.ok(&["status"])["waiting"] == 1);
    let server = Server::start(&shop, &[]);
    let numeric = format!("127.0.0.1:{}", server.port);
    let bearer = format!("Bearer {}", token(&shop));
    let read = || server.get("/metrics", &[("Host", &numeric), ("Authorization", &bearer)]);
    let value = |text: &str, name: &str| -> Option<f64> {
        let line = text.lines().find(|line| {
            line.starts_with(&format!("tenure_{}{{", name.split('|').next().unwrap()))
                && name.split('|').skip(1).all(|label| line.contains(label))
        })?;
        line.rsplit(' ').next()?.parse().ok()
    };
    let first = read();
    assert_eq!(first.status, 200, "{first:?}");
    assert_eq!(value(&first.body, "queue_length"), Some(1.0), "{}", first.body);
    assert!(value(&first.body, "queue_oldest_wait_seconds") > Some(0.0), "{}", first.body);
    shop.ok(&["tasks", "release", "T1", "--agent", "ann"]);
    assert_eq!(waiter.end().code, Some(0));
    let lost =
        shop.ok(&["tasks", "claim", "T2", "--agent", "ann", "--ttl", "1s"])["lease"]["fence"].to_string();
    shop.wait_until_expired("T2");
    shop.ok(&["tasks", "claim", "T2", "--agent", "bob"]);
    assert_eq!(shop.run(&["tasks", "done", "T2", "--agent", "ann", "--fence", &lost]).code, Some(8));

    let text = read().body;
    for (name, expected) in [
        ("tasks|status=\"pending\"", 0.0),
        ("tasks|status=\"in_progress\"", 2.0),
        ("tasks|status=\"skipped\"", 1.0),
        ("leases|kind=\"task\"|state=\"live\"", 2.0),
        ("queue_length", 0.0),
        ("takeovers_total", 1.0),
        ("rejected_late_writes_total", 1.0),
        ("handoff_seconds_count", 1.0),
    ] {
        assert_eq!(value(&text, name), Some(expected), "{name}: {text}");
    }
    assert!(value(&text, "handoff_seconds_sum") < Some(30.0), "{text}");
    // Each event is counted once.
    assert_eq!(value(&read().body, "takeovers_total"), Some(1.0));
    for wrong in ["", "Bearer nonsense", "Basic abc"] {
        let reply = server.get("/metrics", &[("Host", &numeric), ("Authorization", wrong)]);
        assert!(reply.status == 401 && !reply.body.contains("tenure_"), "{wrong:?}: {reply:?}");
    }
}

#[test]
fn totals_go_on_after_a_restart_and_begin_anew_with_another_store() {
    let shop = shop(&["One"]);
    let rejected = |server: &Server| {
        let bearer = format!("Bearer {}", token(&shop));
        let text = server.get("/metrics", &[("Host", &server.host), ("Authorization", &bearer)]).body;
        let line = text.lines().find(|line| line.starts_with("tenure_rejected_late_writes_total{"));
        line.unwrap_or_else(|| panic!("{text}")).rsplit(' ').next().unwrap().to_owned()
    };
    let reject = || {
        let fence = shop.ok(&["tasks", "claim", "T1", "--agent", "ann"])["lease"]["fence"].to_string();
        shop.ok(&["locks", "release", "T1", "--force"]);
        let late = shop.run(&["tasks", "done", "T1", "--agent", "ann", "--fence", &fence]);
        assert_eq!(late.code, Some(8), "{late:?}");
    };
    // Events before the first scrape are not counted.
    reject();
    let server = Server::start(&shop, &[]);
    assert_eq!(rejected(&server), "0");
    reject();
    assert_eq!(rejected(&server), "1");
    server.end();
    reject();
    let server = Server::start(&shop, &[]);
    assert_eq!(rejected(&server), "2", "what happened while there was no server is counted");
    server.end();
    let folder = std::fs::read_dir(shop.tenure_home().join("web")).unwrap();
    let mut files = folder.map(|entry| entry.unwrap().path());
    let file = files.find(|path| path.to_string_lossy().contains("totals-")).unwrap();
    let mut saved: Value = serde_json::from_slice(&std::fs::read(&file).unwrap()).unwrap();
    saved["store"] = "another".into();
    std::fs::write(&file, saved.to_string()).unwrap();
    let server = Server::start(&shop, &[]);
    assert_eq!(rejected(&server), "0");
}
