//! The cost of a call compared with its transaction, in one run. The bench has exact figures; this finds regressions.

use std::sync::Arc;
use std::time::{Duration, Instant};

use serde_json::json;
use tenure_core::holder::{Caller, Holder, Incarnation, ThisMachine};
use tenure_core::id::{RandomIds, TaskId};
use tenure_core::kernel::{self, Terms, Verdict};
use tenure_core::store::{Durability, Store};
use tenure_core::{Policy, SystemClock, reference};
use tenure_sqlite::{OpenOptions, SqliteStore};

use crate::client::Client;
use crate::shop::Shop;
use tenure_testkit::cli::processes;

#[test]
fn a_claim_over_the_wire_takes_little_more_than_its_transaction() {
    const CLAIMS: usize = 150;
    let shop = Shop::with_tasks(2 * CLAIMS);
    let mut client = Client::new(&shop, "quick");
    client.ok("get_status", json!({}));
    let database = shop.root().join(".tenure/tenure.db");
    let store: Box<dyn Store> =
        Box::new(SqliteStore::open(&database, OpenOptions::new(Arc::new(SystemClock))).unwrap());
    let policy =
        Policy { ticket_life: Duration::from_secs(15), max_attempts: 3, max_rejections: 5, review: false };
    let rules = tenure_core::Context::new(&ThisMachine, &RandomIds, policy);
    let caller = Caller::new(Holder::agent("here")).with_process(Incarnation::current());
    let (mut wire, mut here) = (Vec::new(), Vec::new());
    for number in 0..CLAIMS {
        let begun = Instant::now();
        client.ok("claim_task", json!({"task": format!("T{}", 2 * number + 1)}));
        wire.push(begun.elapsed());
        let key = format!("T{}", 2 * number + 2);
        let begun = Instant::now();
        let verdict = store.write(Durability::Power, |tx| {
            let id = TaskId::new(reference::task(tx, &key)?.id);
            kernel::acquire_task(tx, &rules, &caller, &id, &Terms::new(Duration::from_mins(15)))
        });
        here.push(begun.elapsed());
        assert!(matches!(verdict, Ok(Verdict::Granted(_))));
    }
    wire.sort();
    here.sort();
    let ratio = wire[CLAIMS / 2].as_secs_f64() / here[CLAIMS / 2].as_secs_f64();
    eprintln!("round trip {:?}, transaction {:?}, ratio {ratio:.2}", wire[CLAIMS / 2], here[CLAIMS / 2]);
    // The budget is 3. Twice that cannot be explained by a busy machine.
    assert!(ratio < 6.0, "{ratio}");
    let resident = processes::memory(client.pid(), "VmRSS");
    eprintln!("resident {resident} kB");
}

#[test]
fn commands_that_need_no_server_start_no_runtime() {
    let shop = Shop::with_tasks(1);
    // An async executor needs an epoll or event descriptor, or a thread. These commands create none.
    for words in [&["tasks", "list"][..], &["task", "claim", "T1", "--agent", "a"]] {
        let trace = shop.path("trace");
        let mut command = std::process::Command::new("strace");
        command.args(["-f", "-qq", "-e", "trace=epoll_create1,clone,clone3,eventfd2", "-o"]).arg(&trace);
        command.arg(env!("CARGO_BIN_EXE_tenure")).args(words);
        shop.surround(&mut command);
        let output = command.output().expect("strace is needed");
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        let calls = std::fs::read_to_string(&trace).unwrap();
        let made: Vec<_> = calls.lines().filter(|line| !line.contains("exited with")).collect();
        assert!(made.is_empty(), "{words:?}: {made:?}");
    }
}
