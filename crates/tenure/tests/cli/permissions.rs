//! Missing permissions, a missing HOME, and another user's project. Root may do everything, so as root these tests run the
//! real binary as the user `nobody`.

use std::os::unix::fs::{PermissionsExt, chown};
use std::path::Path;
use std::process::Command;

use tenure_testkit::cli::skip;

use crate::story::steps;
use crate::support::{Ran, TestEnv};

const NOBODY: u32 = 65534;

fn is_root() -> bool {
    let output = Command::new("id").arg("-u").output().unwrap();
    output.stdout == b"0\n"
}

/// Gives everything below `path` to the user `nobody`, if that is possible and needed.
fn give_away(path: &Path) {
    if is_root() {
        let owner = format!("{NOBODY}:{NOBODY}");
        assert!(Command::new("chown").args(["-R", &owner]).arg(path).status().unwrap().success());
    }
}

fn mode(env: &TestEnv, below: &str, mode: u32) {
    std::fs::set_permissions(env.path(below), std::fs::Permissions::from_mode(mode)).unwrap();
}

/// The real binary as a user that permissions apply to.
fn as_user(env: &TestEnv, words: &[&str]) -> Ran {
    if !is_root() {
        return env.finish(env.process(words));
    }
    // The binary may be in a folder that this user cannot read.
    let binary = env.path("tenure-binary");
    if !binary.exists() {
        std::fs::copy(env!("CARGO_BIN_EXE_tenure"), &binary).unwrap();
        mode(env, ".", 0o755);
    }
    let mut command = Command::new("setpriv");
    let (uid, gid) = (format!("--reuid={NOBODY}"), format!("--regid={NOBODY}"));
    command.args([&uid, &gid, "--clear-groups"]).arg(&binary).args(words);
    command.env_clear().envs(&env.env.vars).current_dir(&env.env.cwd).stdin(std::process::Stdio::null());
    env.finish(command)
}

/// Restores the permissions of the environment before it is removed.
struct Bound(TestEnv);

impl std::ops::Deref for Bound {
    type Target = TestEnv;

    fn deref(&self) -> &TestEnv {
        &self.0
    }
}

impl Drop for Bound {
    fn drop(&mut self) {
        let _ = Command::new("chmod").args(["-R", "u+rwx"]).arg(self.path(".")).output();
    }
}

/// Gives the environment to a user that permissions apply to. `None`, with a message, if that is not possible.
fn bound(env: TestEnv) -> Option<Bound> {
    if is_root() && Command::new("setpriv").arg("--version").output().is_err() {
        skip("root may do everything, and there is no `setpriv` to run as another user");
        return None;
    }
    for below in ["work", "home", "run"] {
        give_away(&env.path(below));
    }
    Some(Bound(env))
}

/// An environment with a project of two tasks.
fn owned() -> Option<Bound> {
    let env = TestEnv::project();
    steps(&env, &["tasks add One", "tasks add Two"]);
    bound(env)
}

fn assert_refused(ran: &Ran) {
    assert_eq!(ran.code, 5, "{ran}");
    assert_eq!(ran.error_code(), "PERMISSION_DENIED", "{ran}");
    assert!(!ran.message().contains("os error"), "{ran}");
}

#[test]
fn a_read_only_database_can_be_read_and_is_not_written() {
    let Some(env) = owned() else { return };
    for name in ["tenure.db", "tenure.db-wal", "tenure.db-shm"] {
        if env.path("work/.tenure").join(name).exists() {
            mode(&env, &format!("work/.tenure/{name}"), 0o400);
        }
    }
    assert_refused(&as_user(&env, &["--json", "tasks", "add", "Three"]));
    let ran = as_user(&env, &["--json", "tasks"]);
    assert_eq!(ran.code, 0, "{ran}");
    assert_eq!(ran.data()["total"], 2, "{ran}");
}

#[test]
fn a_project_in_a_read_only_folder_can_be_read() {
    let Some(env) = owned() else { return };
    mode(&env, "work/.tenure", 0o500);
    for name in ["tenure.db", "tenure.db-wal", "tenure.db-shm", "tenure.gate.lock", "tenure.queue.lock"] {
        mode(&env, &format!("work/.tenure/{name}"), 0o400);
    }
    let ran = as_user(&env, &["--json", "tasks"]);
    assert_eq!(ran.code, 0, "{ran}");
    assert_eq!(ran.data()["total"], 2, "{ran}");
    assert_refused(&as_user(&env, &["--json", "tasks", "add", "Three"]));
    assert_refused(&as_user(&env, &["--json", "config", "set", "locking.leaseTtl", "5m"]));
}

#[test]
fn an_unreadable_database_is_reported() {
    let Some(env) = owned() else { return };
    mode(&env, "work/.tenure/tenure.db", 0o000);
    assert_refused(&as_user(&env, &["--json", "tasks"]));
    assert_refused(&as_user(&env, &["--json", "tasks", "add", "Three"]));
}

#[test]
fn init_without_write_permission_creates_nothing() {
    let Some(env) = bound(TestEnv::new()) else { return };
    mode(&env, "work", 0o500);
    let before = std::fs::read_dir(env.path("work")).unwrap().count();
    assert_refused(&as_user(&env, &["--json", "init"]));
    assert_eq!(std::fs::read_dir(env.path("work")).unwrap().count(), before);
}

#[test]
fn an_unreadable_configuration_is_reported() {
    let Some(env) = owned() else { return };
    mode(&env, "work/.tenure/config.yaml", 0o000);
    assert_refused(&as_user(&env, &["--json", "tasks"]));
}

#[test]
fn tasks_work_with_an_unwritable_home() {
    let Some(env) = owned() else { return };
    mode(&env, "home/.tenure", 0o500);
    mode(&env, "home/.tenure/tenure.db", 0o400);
    for line in
        ["tasks add Three", "tasks claim T1 --agent bob", "tasks done T1 --agent bob", "init", "status"]
    {
        let ran = as_user(&env, &line.split(' ').collect::<Vec<_>>());
        assert_eq!(ran.code, 0, "{ran}");
    }
    assert_refused(&as_user(&env, &["--json", "projects", "disable"]));
    assert_refused(&as_user(&env, &["--json", "config", "set", "--user", "locking.leaseTtl", "5m"]));
}

#[test]
fn tasks_work_with_an_unreadable_home() {
    let Some(env) = owned() else { return };
    mode(&env, "home", 0o000);
    for line in ["tasks add Three", "tasks claim T1 --agent bob", "tasks done T1 --agent bob", "tasks list"] {
        let ran = as_user(&env, &line.split(' ').collect::<Vec<_>>());
        assert_eq!(ran.code, 0, "{ran}");
    }
}

#[test]
fn without_a_home_tasks_work_and_only_the_registry_fails() {
    let mut env = TestEnv::new();
    env.unset("HOME");
    let ran = env.run(&["init"]).exits(0);
    assert!(ran.err.contains("not registered") && ran.err.contains("HOME"), "{ran}");
    steps(
        &env,
        &["tasks add One", "tasks claim T1 --agent bob", "tasks done T1 --agent bob", "status", "whoami"],
    );
    steps(&env, &["config show", "config set locking.leaseTtl 5m", "config path", "config validate"]);
    for words in [
        &["projects", "list"][..],
        &["projects", "add"],
        &["tasks", "list", "--global"],
        &["config", "set", "--user", "locking.leaseTtl", "5m"],
        &["config", "edit", "--user"],
    ] {
        let ran = env.json(words).exits(3);
        assert!(ran.message().contains("HOME"), "{ran}");
    }
    env.set("HOME", "");
    env.run(&["projects", "list"]).exits(3);
    env.set("HOME", "/nowhere/at/all");
    steps(&env, &["tasks add Two"]);
}

#[test]
fn the_project_of_another_user_is_refused_unless_trusted() {
    if !is_root() {
        skip("only root can give a folder away; another user's project was not tested");
        return;
    }
    let mut env = TestEnv::project();
    chown(env.path("work/.tenure"), Some(NOBODY), Some(NOBODY)).unwrap();
    for words in [
        &["tasks"][..],
        &["tasks", "add", "One"],
        &["init"],
        &["config", "set", "locking.leaseTtl", "5m"],
        &["config", "edit"],
    ] {
        let ran = env.run(words).exits(5);
        assert!(ran.err.contains("another user") && ran.err.contains("TENURE_TRUST_OWNER"), "{ran}");
    }
    env.set("TENURE_TRUST_OWNER", "1");
    steps(&env, &["tasks add One"]);
}

/// A project that only its owner can read is not reported as missing, and `init` is not suggested.
#[test]
fn an_unreadable_project_is_named_as_another_users() {
    if !is_root() {
        skip("only root can give a folder away; another user's unreadable project was not tested");
        return;
    }
    let Some(env) = bound(TestEnv::project()) else { return };
    chown(env.path("work/.tenure"), Some(0), Some(0)).unwrap();
    mode(&env, "work/.tenure", 0o700);
    for words in [&["--json", "tasks"][..], &["--json", "tasks", "add", "One"], &["--json", "init"]] {
        let ran = as_user(&env, words);
        assert_refused(&ran);
        assert!(ran.message().contains("another user"), "{ran}");
        assert!(ran.envelope()["hints"].is_null(), "{ran}");
    }
}
