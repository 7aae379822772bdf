//! What a repository can bring below `.tenure/`: links that lead out of the project, open modes, and files of any size.

use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;

use crate::story::steps;
use crate::support::TestEnv;

fn mode(path: &Path) -> u32 {
    path.metadata().unwrap().permissions().mode() & 0o777
}

#[test]
fn a_link_among_a_projects_files_is_refused_and_not_followed() {
    for name in [
        "",
        "/tenure.db",
        "/tenure.db-wal",
        "/tenure.db-shm",
        "/tenure.gate.lock",
        "/tenure.queue.lock",
        "/tenure.open.lock",
        "/config.yaml",
        "/logs",
        "/mcp.json",
    ] {
        let env = TestEnv::project();
        let ours = env.path(&format!("work/.tenure{name}"));
        let outside = env.path("outside");
        if ours.exists() {
            std::fs::rename(&ours, &outside).unwrap();
        } else if name == "/logs" {
            std::fs::create_dir(&outside).unwrap();
        } else {
            env.write("outside", "");
        }
        symlink(&outside, &ours).unwrap();
        let before = env.snapshot();
        for words in [
            &["tasks", "list"][..],
            &["tasks", "add", "X"],
            &["init"],
            &["runners", "start"],
            &["config", "show"],
        ] {
            // The configuration alone is read without the rest.
            if words[0] == "config" && !["", "/config.yaml"].contains(&name) {
                continue;
            }
            let ran = env.json(words);
            assert_eq!((ran.code, ran.error_code().as_str()), (5, "PERMISSION_DENIED"), "{name}: {ran}");
            assert!(ran.message().contains("is a symbolic link"), "{ran}");
        }
        assert_eq!(env.snapshot(), before, "{name}");
    }
}

#[test]
fn a_link_instead_of_gitignore_is_left_alone() {
    let env = TestEnv::new();
    let outside = env.write("outside", "mine\n");
    symlink(&outside, env.path("work/.gitignore")).unwrap();
    let ran = env.ok(&["init"]);
    assert_eq!(std::fs::read_to_string(&outside).unwrap(), "mine\n");
    assert!(ran.err.contains(".gitignore is a symbolic link"), "{ran}");
    let nowhere = TestEnv::new();
    symlink(nowhere.path("new"), nowhere.path("work/.gitignore")).unwrap();
    nowhere.ok(&["init"]);
    assert!(!nowhere.path("new").exists());
}

#[test]
fn init_closes_what_a_clone_brought_to_other_users() {
    let env = TestEnv::new();
    env.write("work/.tenure/config.yaml", "project: {name: shop}\n");
    env.write("work/.tenure/mcp.json", "{}");
    std::fs::create_dir(env.path("work/.tenure/logs")).unwrap();
    for (name, open) in [("", 0o755), ("/config.yaml", 0o644), ("/mcp.json", 0o644), ("/logs", 0o755)] {
        let path = env.path(&format!("work/.tenure{name}"));
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(open)).unwrap();
    }
    env.ok(&["init"]);
    for (name, closed) in
        [("", 0o700), ("/config.yaml", 0o644), ("/mcp.json", 0o600), ("/logs", 0o700), ("/tenure.db", 0o600)]
    {
        assert_eq!(mode(&env.path(&format!("work/.tenure{name}"))), closed, "{name}");
    }
}

#[test]
fn an_import_that_is_too_large_is_refused_with_the_limit() {
    let env = TestEnv::project();
    let file = std::fs::File::create(env.path("work/plan.md")).unwrap();
    file.set_len(64 * 1024 * 1024 + 1).unwrap();
    let ran = env.json(&["tasks", "import", "plan.md"]);
    assert_eq!((ran.code, ran.error_code().as_str()), (2, "INVALID_ARGUMENTS"), "{ran}");
    assert_eq!(ran.message(), "plan.md is larger than 64 MiB; split it into several files");
    std::fs::write(env.path("work/plan.md"), "- [ ] Fits\n").unwrap();
    steps(&env, &["tasks import plan.md"]);
}

#[test]
fn a_key_or_an_id_of_a_hostile_database_never_becomes_a_path() {
    for change in [
        "UPDATE tasks SET key = '../../../escaped'",
        "UPDATE tasks SET key = '/tmp/escaped'",
        "UPDATE tasks SET key = ''",
        "UPDATE identity SET store_id = '../../escaped'",
    ] {
        let env = TestEnv::project();
        steps(&env, &["tasks add One --id A"]);
        let database = rusqlite::Connection::open(env.path("work/.tenure/tenure.db")).unwrap();
        database.execute_batch(change).unwrap();
        drop(database);
        for words in [&["tasks", "list"][..], &["tasks", "next", "--claim", "--agent", "bob"]] {
            let ran = env.json(words);
            assert_eq!((ran.code, ran.error_code().as_str()), (1, "STORE_ERROR"), "{change}: {ran}");
        }
    }
}
