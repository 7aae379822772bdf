//! What a command writes to the disk, and when, according to strace.

use std::process::Command;

use tenure_testkit::cli::skip;

use crate::support::TestEnv;

/// The system calls of a command that write to or sync the files of a store, each with the names of its files; `None` if
/// processes cannot be traced here.
fn traced(env: &TestEnv, words: &[&str]) -> Option<Vec<String>> {
    let plain = env.process(words);
    let file = env.path("trace");
    let mut strace = Command::new("strace");
    strace
        .args(["-f", "-qq", "-y", "-e", "trace=openat,pwrite64,fsync,fdatasync,ftruncate", "-o"])
        .arg(&file);
    strace.arg(plain.get_program()).args(plain.get_args()).env_clear();
    strace.envs(plain.get_envs().filter_map(|(name, value)| Some((name, value?))));
    strace.current_dir(plain.get_current_dir().unwrap());
    let output = strace.output().expect("there is no strace; ./test installs it");
    if !output.status.success() {
        skip("strace may not trace a process here; the order of writes and syncs was not tested");
        return None;
    }
    let calls = std::fs::read_to_string(file).unwrap();
    let folder = env.path("work/.tenure").display().to_string();
    let is_of_store = |call: &&str| call.contains(&folder);
    Some(calls.lines().filter(is_of_store).map(str::to_owned).collect())
}

#[test]
fn the_name_of_a_new_log_is_on_the_disk_before_anything_is_written_to_it() {
    let env = TestEnv::new();
    let Some(calls) = traced(&env, &["init"]) else { return };
    let created = calls.iter().position(|call| call.contains("tenure.db-wal\", O_RDWR|O_CREAT")).unwrap();
    let after = &calls[created..];
    let first = |what: &str, on: &str| after.iter().position(|call| call.contains(what) && call.contains(on));
    let (named, written) = (first("sync(", "/.tenure>)"), first("pwrite64", "tenure.db-wal>"));
    assert!(named.is_some() && written.is_some() && named < written, "{calls:#?}");
}

#[test]
fn a_claim_overwrites_the_log_and_syncs_four_times() {
    let env = TestEnv::new();
    for words in [&["init"][..], &["tasks", "add", "one"], &["tasks", "add", "two"]] {
        env.process(words).output().unwrap();
    }
    // The first one may make the log longer.
    for task in ["T1", "T2"] {
        let Some(calls) = traced(&env, &["tasks", "claim", task, "--agent", "a"]) else { return };
        let syncs: Vec<&String> = calls.iter().filter(|call| call.contains("sync(")).collect();
        assert_eq!(syncs.len(), 4, "the header of the log, the commit, the log, the database: {syncs:#?}");
        assert!(
            !calls.iter().any(|call| call.contains("ftruncate") && call.contains("db-wal>")),
            "{calls:#?}"
        );
    }
}
