//! A database file that was restored from a copy, or created anew, grants the same fences again. Credentials from before
//! are refused.

use std::path::Path;

use serde_json::Value;

use crate::harness::Project;

/// Makes the files in `to` those of `from`. An existing file stays the same file with another content.
fn copy(from: &Path, to: &Path) {
    std::fs::create_dir_all(to).unwrap();
    for entry in std::fs::read_dir(to).unwrap().map(Result::unwrap) {
        if entry.file_type().unwrap().is_file() && !from.join(entry.file_name()).exists() {
            std::fs::remove_file(entry.path()).unwrap();
        }
    }
    for entry in std::fs::read_dir(from).unwrap().map(Result::unwrap) {
        if entry.file_type().unwrap().is_file() {
            std::fs::copy(entry.path(), to.join(entry.file_name())).unwrap();
        }
    }
}

fn claim(project: &Project, agent: &str) -> Value {
    project.ok(&["tasks", "claim", "F1", "--agent", agent])["lease"].clone()
}

/// `replace` restores or replaces the database after alice has claimed F1.
fn assert_that_the_earlier_holder_is_refused(replace: impl Fn(&Project, &Path)) {
    for holder in ["bob", "alice"] {
        let project = Project::new();
        project.add("F", 1);
        let folder = project.root().join(".tenure");
        let backup = project.root().join("backup");
        copy(&folder, &backup);
        let old = claim(&project, "alice");
        replace(&project, &backup);
        let new = claim(&project, holder);
        assert_eq!(old["fence"], new["fence"], "the store has forgotten the fence");
        let fence = old["fence"].to_string();
        let proof = format!("{}-{}", old["leaseId"].as_str().unwrap(), old["leaseKey"].as_str().unwrap());
        let mut credentials =
            vec![vec!["--lease", &proof], vec!["--agent", "alice", "--lease", &proof, "--fence", &fence]];
        if holder == "bob" {
            credentials.push(vec!["--agent", "alice", "--fence", &fence]);
        }
        for credential in credentials {
            for verb in ["done", "renew", "release", "check"] {
                let command = [&["tasks", verb, "F1"], credential.as_slice()].concat();
                let answer = project.run(&command);
                assert_eq!(answer.code, Some(8), "{command:?}: {answer:?}");
            }
        }
        let done = project.ok(&["tasks", "done", "F1", "--agent", holder]);
        assert_eq!(done["changed"], true, "the holder's own finish is the first one");
    }
}

#[test]
fn after_a_restore_a_late_write_by_the_earlier_holder_is_refused() {
    assert_that_the_earlier_holder_is_refused(|project, backup| {
        copy(backup, &project.root().join(".tenure"));
    });
}

#[test]
fn in_a_new_database_a_late_write_by_the_earlier_holder_is_refused() {
    assert_that_the_earlier_holder_is_refused(|project, _| {
        std::fs::remove_dir_all(project.root().join(".tenure")).unwrap();
        project.init(&[]);
        project.add("F", 1);
    });
}
