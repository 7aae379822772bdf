//! A disk that fills up in the middle of a job: what was written stays readable, and the job continues afterwards.

use rustix::process::Signal;
use serde_json::Value;
use tenure_testkit::SmallDisk;

use tenure_testkit::cli::{skip, until};

use crate::project::Project;

#[test]
fn a_full_disk_leaves_the_checkpoint_readable() {
    let p = Project::new();
    let Some(disk) = SmallDisk::mount(&p.shared("disk"), 4096) else {
        skip("mounting a small file system needs root; the full disk was not tested");
        return;
    };
    let run = |args: &[&str]| {
        let mut command = p.command(args);
        command.current_dir(disk.path());
        command
    };
    assert!(run(&["init"]).output().unwrap().status.success());
    let script = p.root().join("item.sh");
    p.script("item.sh", "echo \"$1\" >>\"$PRETEND/ran\"; if [ \"$1\" = 3 ]; then while [ ! -e \"$PRETEND/full\" ]; do sleep 0.02; done; fi; echo \"$1\" >>\"$PRETEND/over\"");
    p.numbers("items.txt", 8);
    let list = p.root().join("items.txt");
    let (script, list) = (script.to_str().unwrap(), list.to_str().unwrap());
    let args = ["jobs", "start", "a", "--items", list, "--", script, "{item}"];
    let log = std::fs::File::create(p.shared("log")).unwrap();
    let mut running = run(&args).stdout(log.try_clone().unwrap()).stderr(log).spawn().unwrap();
    until("the third is at work", || p.marks("ran").len() == 3);
    // The log keeps its size, and a write that fits into it needs no space.
    let database = rusqlite::Connection::open(disk.path().join(".tenure/tenure.db")).unwrap();
    database.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(())).unwrap();
    drop(database);
    let filler = disk.fill();
    p.give("full");
    let show = || -> Value {
        let shown = run(&["--json", "jobs", "show", "a"]).output().unwrap();
        assert!(shown.status.success(), "{shown:?}");
        serde_json::from_slice::<Value>(&shown.stdout).unwrap()["data"]["job"].clone()
    };
    // The third success cannot be written yet. It is kept outside the disk. Everything written before is there.
    until("the third is over", || p.marks("over").len() == 3);
    let is_kept = || {
        let stores = std::fs::read_dir(p.tenure_home().join("outcomes"));
        stores
            .into_iter()
            .flatten()
            .flatten()
            .any(|store| std::fs::read_dir(store.path()).unwrap().count() == 1)
    };
    until("it is kept", is_kept);
    assert_eq!((show()["succeeded"].as_u64(), show()["total"].as_u64()), (Some(2), Some(8)));
    assert!(running.try_wait().unwrap().is_none(), "it retries the write");
    rustix::process::kill_process(
        rustix::process::Pid::from_raw(i32::try_from(running.id()).unwrap()).unwrap(),
        Signal::KILL,
    )
    .unwrap();
    running.wait().unwrap();
    assert_eq!(show()["succeeded"], 2, "also after a kill on a full disk");
    let refused = run(&["--json", "resume", "a"]).output().unwrap();
    assert_eq!(refused.status.code(), Some(1), "{refused:?}");
    assert!(String::from_utf8_lossy(&refused.stdout).contains("disk is full"), "{refused:?}");
    std::fs::remove_file(filler).unwrap();
    let resumed = run(&["--json", "resume", "a"]).output().unwrap();
    assert_eq!(resumed.status.code(), Some(0), "{resumed:?}");
    assert_eq!((show()["succeeded"].as_u64(), show()["status"].as_str()), (Some(8), Some("completed")));
    assert_eq!(p.marks("ran").len(), 8, "the kept success was not run again");
    assert!(!is_kept(), "it was applied");
}
