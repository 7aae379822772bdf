//! The nemesis with a server that fails too: it is stopped as in a power failure and restarted, and connections are cut in
//! the middle of a commit.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use tenure_testkit::postgres::Cluster;
use tenure_testkit::proxy::{Cut, Proxy};

use tenure_testkit::cli::{Dice, full_or};

use crate::harness::Project;
use crate::nemesis::{CONFIG, run_storm};

#[test]
fn every_task_is_completed_once_through_restarts_of_the_server() {
    let cluster = Cluster::private(&[]);
    let proxy = Proxy::to(cluster.port());
    let project = Project::bare_on(Some(cluster.tcp_url("tenure", proxy.port())));
    project.ok(&["init"]);
    let project = project.configured(CONFIG);
    let (over, restarts) = (AtomicBool::new(false), AtomicU64::new(0));
    std::thread::scope(|scope| {
        let weather = scope.spawn(|| {
            while !over.load(Ordering::SeqCst) {
                let how = if restarts.load(Ordering::SeqCst) % 2 == 0 { Cut::After } else { Cut::Before };
                proxy.cut(how, 7);
                std::thread::sleep(Duration::from_millis(2500));
                cluster.stop_immediately();
                std::thread::sleep(Duration::from_millis(200));
                cluster.start();
                restarts.fetch_add(1, Ordering::SeqCst);
            }
            proxy.cut(Cut::Never, 1);
        });
        // Set even if the storm fails; otherwise the test would hang instead of reporting the failure.
        let calm = || over.store(true, Ordering::SeqCst);
        let outcome = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            run_storm(&project, full_or(1000, 60), Dice::seed("outage"), true, || {
                calm();
                weather.join().unwrap();
            });
        }));
        calm();
        if let Err(panic) = outcome {
            std::panic::resume_unwind(panic);
        }
    });
    let (cuts, restarts) = (proxy.cuts(), restarts.load(Ordering::SeqCst));
    eprintln!("outage: {restarts} restarts, {cuts} commits cut");
    assert!(restarts >= 2 && cuts >= 5, "too little happened: {restarts} restarts, {cuts} cuts");
}
