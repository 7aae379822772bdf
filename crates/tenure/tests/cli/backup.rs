//! Backups of the store.

use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use serde_json::Value;

use crate::support::TestEnv;

const DATABASE: &str = "work/.tenure/tenure.db";

fn project() -> TestEnv {
    let env = TestEnv::project();
    env.ok(&["tasks", "add", "One"]);
    env
}

/// The titles of the tasks in a database file, without the files that may be beside it.
fn titles(database: &Path) -> Vec<String> {
    let folder = tempfile::tempdir().unwrap();
    let copy = folder.path().join("copy.db");
    std::fs::copy(database, &copy).unwrap();
    let conn = rusqlite::Connection::open(copy).unwrap();
    let mut query = conn.prepare("SELECT title FROM tasks ORDER BY title").unwrap();
    query.query_map([], |row| row.get(0)).unwrap().map(Result::unwrap).collect()
}

/// The data of a command that succeeds.
fn data(env: &TestEnv, words: &[&str]) -> Value {
    let ran = env.run(&[&["--json"], words].concat());
    assert_eq!(ran.code, 0, "{ran}");
    ran.envelope()["data"].clone()
}

fn listed(env: &TestEnv) -> Vec<String> {
    let tasks = data(env, &["tasks", "list", "--status", "all"])["tasks"].clone();
    let title = |task: &Value| task["title"].as_str().unwrap().to_owned();
    tasks.as_array().unwrap().iter().map(title).collect()
}

#[test]
fn a_backup_is_one_private_file_and_restores_what_was_there() {
    let env = project();
    let saved = data(&env, &["store", "backup", "saved"]);
    assert_eq!(saved["store"]["tasks"], 1);
    let file = env.path("work/saved");
    assert_eq!(file.metadata().unwrap().permissions().mode() & 0o777, 0o600);
    assert_eq!(titles(&file), ["One"]);
    env.ok(&["tasks", "add", "Two"]);
    let refused = env.run(&["--json", "store", "backup", "saved"]);
    assert_eq!(refused.code, 2, "{refused}");
    assert_eq!(titles(&file), ["One"], "a file is not overwritten");
    assert_eq!(data(&env, &["store", "backup", "later"])["store"]["tasks"], 2);

    let dry = data(&env, &["store", "restore", "saved", "--dry-run"]);
    assert_eq!(dry["store"]["tasks"], 1);
    assert_eq!(listed(&env), ["One", "Two"]);
    env.ok(&["store", "restore", "saved"]);
    assert_eq!(listed(&env), ["One"]);
    assert_eq!(data(&env, &["tasks", "add", "Three"])["task"]["key"], "T3", "T2 is not given again");
    env.ok(&["store", "backup", "saved", "--force"]);
    assert_eq!(titles(&file), ["One", "Three"]);
    let left = std::fs::read_dir(env.path("work")).unwrap().map(|entry| entry.unwrap().file_name());
    assert!(left.into_iter().all(|name| !name.to_string_lossy().starts_with(".tenure-")));
}

#[test]
fn a_restore_is_refused_while_a_lease_is_held_and_forgets_the_leases_of_the_backup() {
    let env = project();
    env.ok(&["tasks", "claim", "T1", "--agent", "ann"]);
    env.ok(&["store", "backup", "saved"]);
    let refused = env.run(&["--json", "store", "restore", "saved"]);
    assert_eq!((refused.code, refused.error_code().as_str()), (6, "TASK_LOCKED"), "{refused}");
    let restored = data(&env, &["store", "restore", "saved", "--force"]);
    assert!(restored["store"]["fence"].as_i64().unwrap() >= 1 << 20);
    let late = env.run(&["--json", "tasks", "done", "T1", "--agent", "ann"]);
    assert_eq!(late.code, 8, "{late}");
    let claimed = data(&env, &["tasks", "claim", "T1", "--agent", "bob"]);
    assert!(claimed["lease"]["fence"].as_i64().unwrap() > 1 << 20);
}

#[test]
fn a_damaged_truncated_or_missing_database_is_restored_and_the_damaged_one_is_kept() {
    let env = project();
    env.ok(&["store", "backup", "saved"]);
    let damages: [&dyn Fn(); 3] = [
        &|| drop(env.write(DATABASE, "no database".repeat(1000))),
        &|| drop(env.write(DATABASE, "")),
        &|| std::fs::remove_file(env.path(DATABASE)).unwrap(),
    ];
    for (damage, aside) in damages.iter().zip([".damaged", ".damaged-2", ".damaged-3"]) {
        for side in ["-wal", "-shm"] {
            drop(std::fs::remove_file(env.path(&format!("{DATABASE}{side}"))));
        }
        damage();
        let there = env.path(DATABASE).exists();
        if there {
            let failed = env.run(&["tasks", "list"]);
            assert!(failed.err.contains("  restore a backup: tenure store restore --help"), "{failed}");
        }
        env.ok(&["store", "restore", "saved"]);
        assert_eq!(listed(&env), ["One"]);
        assert_eq!(env.path(&format!("{DATABASE}{aside}")).exists(), there);
    }
}

#[test]
fn a_file_that_is_not_a_backup_changes_nothing() {
    let env = project();
    env.write("work/notes.txt", "not a database".repeat(1000));
    let refused = env.run(&["--json", "store", "restore", "notes.txt"]);
    assert_eq!((refused.code, refused.error_code().as_str()), (1, "STORE_ERROR"), "{refused}");
    assert_eq!(listed(&env), ["One"]);
}

#[test]
fn a_plain_copy_of_the_database_is_complete_after_the_last_process_has_ended() {
    let env = project();
    env.finish(env.process(&["tasks", "add", "Two"]));
    assert_eq!(titles(&env.path(DATABASE)), ["One", "Two"]);
    for round in 0..3 {
        let add = |n| env.process(&["tasks", "add", &format!("Round {round}-{n}")]).spawn().unwrap();
        let mut adding: Vec<_> = (0..8).map(add).collect();
        assert!(adding.iter_mut().all(|process| process.wait().unwrap().success()));
        assert_eq!(titles(&env.path(DATABASE)).len(), 2 + 8 * (round + 1));
    }
    std::fs::copy(env.path(DATABASE), env.path("work/plain")).unwrap();
    env.ok(&["tasks", "add", "Later"]);
    env.ok(&["store", "restore", "plain"]);
    assert_eq!(listed(&env).len(), 26);
}
