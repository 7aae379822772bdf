//! `/metrics` in a project with a long history.

use std::sync::Arc;
use std::time::{Duration, Instant};

use tenure_core::SystemClock;
use tenure_core::event::{EventKind, NewEvent};
use tenure_core::id::TaskId;
use tenure_core::store::{Durability, Store};
use tenure_sqlite::{OpenOptions, SqliteStore};
use tenure_testkit::cli::Project;

use crate::client::{Server, shop};
use crate::numbers::token;

const LONG: usize = 100_000;

fn prolong_history(shop: &Project, events: usize) {
    let store = SqliteStore::open(&shop.database(), OpenOptions::new(Arc::new(SystemClock))).unwrap();
    let store: &dyn Store = &store;
    let task = TaskId::new(shop.show("T1")["id"].as_str().unwrap());
    for _ in 0..events / 10_000 {
        let append = store.write(Durability::Process, |tx| {
            for _ in 0..10_000 {
                let mut event = NewEvent::new(EventKind::WriteRejected, "ann");
                event.task = Some(&task);
                tx.append(event)?;
            }
            Ok(())
        });
        append.unwrap();
    }
}

/// How long the first scrape of a server takes.
fn first_scrape(shop: &Project) -> Duration {
    let server = Server::start(shop, &[]);
    let bearer = format!("Bearer {}", token(shop));
    let begun = Instant::now();
    let reply = server.get("/metrics", &[("Host", &server.host), ("Authorization", &bearer)]);
    assert_eq!(reply.status, 200, "{reply:?}");
    begun.elapsed()
}

#[test]
fn a_first_scrape_takes_no_longer_in_a_project_with_a_long_history() {
    let (young, old) = (shop(&["One"]), shop(&["One"]));
    prolong_history(&old, LONG);
    let fastest = |shop: &Project, forget: bool| {
        let times = (0..4).map(|_| {
            if forget {
                let folder = std::fs::read_dir(shop.tenure_home().join("web")).into_iter().flatten();
                for entry in
                    folder.flatten().filter(|e| e.file_name().to_string_lossy().starts_with("totals-"))
                {
                    std::fs::remove_file(entry.path()).unwrap();
                }
            }
            first_scrape(shop)
        });
        times.min().unwrap()
    };
    for forget in [true, false] {
        let (short, long) = (fastest(&young, forget), fastest(&old, forget));
        eprintln!(
            "a first scrape: {short:?} with a few events, {long:?} with {LONG} (totals removed: {forget})"
        );
        assert!(long < short * 3 + Duration::from_millis(30), "{long:?} instead of {short:?}");
    }
}
