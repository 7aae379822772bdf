//! A thousand projects with nothing to do.

use std::time::{Duration, Instant};

use tenure_testkit::cli::full_or;

use crate::idle_projects::age_files;
use crate::machine::Machine;

/// The processor time that all reaped child processes have used so far.
fn spent() -> Duration {
    let text = std::fs::read_to_string("/proc/self/stat").unwrap();
    let fields: Vec<&str> = text.rsplit_once(") ").unwrap().1.split(' ').collect();
    let ticks: u64 = fields[13].parse::<u64>().unwrap() + fields[14].parse::<u64>().unwrap();
    Duration::from_millis(ticks * 10)
}

#[test]
fn a_thousand_idle_projects_take_less_than_a_second_and_less_when_nothing_has_changed() {
    let count = full_or(1000, 1000);
    let machine = Machine::new();
    let first = machine.project("p0");
    first.task("A", &[]);
    first.ok(&["tasks", "update", "A", "--status", "completed"]);
    // Copies of one project, because only their number matters. They were made in an earlier boot, so they can be used.
    // This is also the last process that has the database open, so it leaves no log beside it.
    first.sql("UPDATE identity SET boot = 'before'");
    let home = rusqlite::Connection::open(machine.tenure_home().join("tenure.db")).unwrap();
    home.execute_batch("BEGIN").unwrap();
    for n in 1..count {
        let root = machine.path(&format!("projects/p{n}"));
        std::fs::create_dir_all(root.join(".tenure")).unwrap();
        for file in ["tenure.db", "config.yaml"] {
            std::fs::copy(first.root().join(".tenure").join(file), root.join(".tenure").join(file)).unwrap();
        }
        machine.trust(&root);
        home.execute(
            "INSERT INTO known_projects SELECT ?1, name, registered_at, last_seen_at, enabled, project_id
             FROM known_projects WHERE path = ?2",
            [root.to_string_lossy(), first.root().to_string_lossy()],
        )
        .unwrap();
    }
    home.execute_batch("COMMIT").unwrap();
    drop(home);
    // Files that were written a moment ago are not trusted yet.
    for n in 0..count {
        age_files(&machine.path(&format!("projects/p{n}/.tenure")));
    }
    age_files(&machine.tenure_home());
    let round = || {
        let (before, begun) = (spent(), Instant::now());
        let data = machine.ok(&["runners", "wakeup"]);
        let took = begun.elapsed();
        assert_eq!(data["total"], count, "every project is looked after");
        let idle = data["results"].as_array().unwrap().iter().all(|r| r["decision"] == "idle");
        assert!(idle);
        (spent().saturating_sub(before), took)
    };
    let (all, all_took) = round();
    let (unchanged, unchanged_took) = round();
    eprintln!(
        "{count} projects: first {} ms ({} ms of processor), then {} ms ({} ms of processor)",
        all_took.as_millis(),
        all.as_millis(),
        unchanged_took.as_millis(),
        unchanged.as_millis(),
    );
    // Processor time, because the machine may be busy. This is an unoptimised build.
    assert!(unchanged < Duration::from_secs(1), "{unchanged:?}");
    assert!(unchanged * 3 < all, "{unchanged:?} is not much less than {all:?}");
}
