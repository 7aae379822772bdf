//! Losing the lease ends the work under it.

use tenure_testkit::cli::processes;

use crate::project::{Project, end};

const WORK: &str = "trap '' TERM; echo $$ > pid; while :; do sleep 0.2; done";

#[test]
fn an_eviction_ends_the_command_long_before_its_next_heartbeat() {
    for force in [&["locks", "release", "T", "--force"][..], &["tasks", "skip", "T", "--force"]] {
        let project = Project::new();
        let running = project.start("a", &[], WORK);
        let pid = project.wait_for_pids("pid", 1)[0];
        project.ok(&force.iter().chain(&["--agent", "boss"]).copied().collect::<Vec<_>>());
        let (code, said) = end(running);
        assert_eq!(code, 8, "{said}");
        assert!(said.contains("forced"), "{said}");
        assert!(!processes::is_alive(pid));
        assert_eq!(project.attempts(), 0);
        let status = if force[0] == "locks" { "pending" } else { "skipped" };
        assert_eq!(project.status(), status);
        let recorded = project.json(&["events", "--kind", "write.rejected,lease.ended"]);
        let events: Vec<_> = recorded["data"]["events"].as_array().unwrap().iter().collect();
        let kinds: Vec<_> = events.iter().map(|event| event["kind"].as_str().unwrap()).collect();
        assert_eq!(kinds, ["lease.ended", "write.rejected"], "its late heartbeat is recorded once");
        assert_eq!(events[1]["fence"], events[0]["fence"]);
    }
}

#[test]
fn deleting_the_database_ends_the_command() {
    let project = Project::new();
    let running = project.start("a", &["--ttl", "2s"], WORK);
    let pid = project.wait_for_pids("pid", 1)[0];
    std::fs::remove_dir_all(project.path(".tenure")).unwrap();
    let (code, said) = end(running);
    assert_eq!(code, 8, "{said}");
    assert!(said.contains("was deleted"), "{said}");
    assert!(!processes::is_alive(pid));
    assert!(!project.path(".tenure").exists());
}

#[test]
fn replacing_the_database_ends_the_command() {
    let project = Project::new();
    let running = project.start("a", &["--ttl", "2s"], WORK);
    let pid = project.wait_for_pids("pid", 1)[0];
    for name in ["tenure.db", "tenure.db-wal", "tenure.db-shm"] {
        let _ = std::fs::remove_file(project.path(&format!(".tenure/{name}")));
    }
    project.ok(&["init"]);
    let (code, said) = end(running);
    assert_eq!(code, 8, "{said}");
    assert!(said.contains("was deleted") || said.contains("was replaced"), "{said}");
    assert!(!processes::is_alive(pid));
}

#[test]
fn an_exit_after_the_database_was_deleted_is_not_a_success() {
    let project = Project::new();
    let running = project.start("a", &[], "touch up; while [ ! -e stop ]; do sleep 0.05; done");
    project.wait_for_file("up");
    std::fs::remove_file(project.path(".tenure/tenure.db")).unwrap();
    std::fs::write(project.path("stop"), "").unwrap();
    let (code, said) = end(running);
    assert_eq!(code, 8, "{said}");
}
