//! No permission, no HOME, another user's project. Root may do everything, so as root these run the real binary as
//! `nobody`.

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

/// Hands everything below `path` to `nobody`, if that is possible and needed.
fn give_away(path: &Path) {
    if is_root() {
        let owner = format!("{NOBODY}:{NOBODY}");
        assert!(Command::new("chown").args(["-R", &owner]).arg(path).status().unwrap().success());
    }
}

fn mode(env: &TestEnv, below: &str, mode: u32) {
    std::fs::set_permissions(env.path(below), std::fs::Permissions::from_mode(mode)).unwrap();
}

/// The real binary as a user whom permissions bind.
fn as_user(env: &TestEnv, words: &[&str]) -> Ran {
    if !is_root() {
        return env.finish(env.process(words));
    }
    // The binary may lie where that user cannot reach it.
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

/// Gets its permissions back before it is removed.
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

/// Hands the world to a user whom permissions bind. None, and said so, where that cannot be done.
fn bound(env: TestEnv) -> Option<Bound> {
    if is_root() && Command::new("setpriv").arg("--version").output().is_err() {
        skip("root may do everything, and there is no `setpriv` to become somebody else");
        return None;
    }
    for below in ["work", "home", "run"] {
        give_away(&env.path(below));
    }
    Some(Bound(env))
}

/// With a project of two tasks.
fn owned() -> Option<Bound> {
    let env = TestEnv::project();
    steps(&env, &["tasks add One", "tasks add Two"]);
    bound(env)
}

fn refuses(ran: &Ran) {
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
    refuses(&as_user(&env, &["--json", "tasks", "add", "Three"]));
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
    refuses(&as_user(&env, &["--json", "tasks", "add", "Three"]));
    refuses(&as_user(&env, &["--json", "config", "set", "locking.leaseTtl", "5m"]));
}

#[test]
fn a_database_that_may_not_even_be_read_is_said_so() {
    let Some(env) = owned() else { return };
    mode(&env, "work/.tenure/tenure.db", 0o000);
    refuses(&as_user(&env, &["--json", "tasks"]));
    refuses(&as_user(&env, &["--json", "tasks", "add", "Three"]));
}

#[test]
fn init_without_write_permission_makes_nothing() {
    let Some(env) = bound(TestEnv::new()) else { return };
    mode(&env, "work", 0o500);
    let before = std::fs::read_dir(env.path("work")).unwrap().count();
    refuses(&as_user(&env, &["--json", "init"]));
    assert_eq!(std::fs::read_dir(env.path("work")).unwrap().count(), before);
}

#[test]
fn a_configuration_that_may_not_be_read_is_said_so() {
    let Some(env) = owned() else { return };
    mode(&env, "work/.tenure/config.yaml", 0o000);
    refuses(&as_user(&env, &["--json", "tasks"]));
}

#[test]
fn a_home_that_cannot_be_written_is_never_in_the_way_of_a_task() {
    let Some(env) = owned() else { return };
    mode(&env, "home/.tenure", 0o500);
    mode(&env, "home/.tenure/tenure.db", 0o400);
    for line in
        ["tasks add Three", "tasks claim T1 --agent bob", "tasks done T1 --agent bob", "init", "status"]
    {
        let ran = as_user(&env, &line.split(' ').collect::<Vec<_>>());
        assert_eq!(ran.code, 0, "{ran}");
    }
    refuses(&as_user(&env, &["--json", "projects", "disable"]));
    refuses(&as_user(&env, &["--json", "config", "set", "--user", "locking.leaseTtl", "5m"]));
}

#[test]
fn a_home_that_cannot_even_be_looked_into_is_never_in_the_way_of_a_task() {
    let Some(env) = owned() else { return };
    mode(&env, "home", 0o000);
    for line in ["tasks add Three", "tasks claim T1 --agent bob", "tasks done T1 --agent bob", "tasks list"] {
        let ran = as_user(&env, &line.split(' ').collect::<Vec<_>>());
        assert_eq!(ran.code, 0, "{ran}");
    }
}

#[test]
fn without_a_home_tasks_work_and_only_the_registry_asks_for_one() {
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
