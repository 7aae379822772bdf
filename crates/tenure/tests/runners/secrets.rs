//! Secrets of the environment appear nowhere else, and stored files are readable only by their owner.

use std::os::unix::fs::PermissionsExt;

use tenure_testkit::cli::processes;

use crate::project::Project;

const SECRET: &str = "hunter2-and-a-half";

#[test]
fn no_secret_of_the_environment_appears_in_an_argument_log_event_or_database() {
    let project = Project::new();
    project.task("A", &["print at work", "fork", "mark begun", "wait go"]);
    project.task("B", &["exit 1"]);
    let mut command = project.command(&["runners", "start", "--foreground"]);
    command
        .env("API_TOKEN", SECRET)
        .env("CLAUDECODE", "1")
        .env("TENURE_FENCE", "7")
        .env("TENURE_LEASE", "L1234ABCD-0123456789ABCDEF")
        .env("TENURE_LOG", "trace")
        .env("TENURE_AGENT", "somebody");
    let out = project.tenure_home().join("out");
    command.stdout(std::fs::File::create(&out).unwrap());
    command.stderr(std::fs::File::create(out.with_extension("err")).unwrap());
    let mut child = command.spawn().unwrap();
    project.wait_for("begun");
    let tree = processes::with(&format!("API_TOKEN={SECRET}"));
    assert!(tree.len() >= 4, "the runner and its agent have it: {tree:?}");
    for pid in &tree {
        let line = std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        assert!(!String::from_utf8_lossy(&line).contains(SECRET));
    }
    let mut keys = Vec::new();
    for pid in project.agents() {
        let environ = std::fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
        let names: Vec<_> =
            environ.split(|b| *b == 0).map(|e| String::from_utf8_lossy(e).into_owned()).collect();
        assert!(!names.iter().any(|e| e.starts_with("CLAUDECODE=")
            || e == "TENURE_AGENT=somebody"
            || e == "TENURE_FENCE=7"
            || e == "TENURE_LEASE=L1234ABCD-0123456789ABCDEF"));
        let proof = names.iter().find_map(|e| e.strip_prefix("TENURE_LEASE="));
        keys.extend(proof.and_then(|proof| proof.split_once('-')).map(|(_, key)| key.to_owned()));
    }
    let key = keys.first().expect("the agent has the lease's key").clone();
    assert_eq!(key.len(), 16);
    project.give("go");
    assert!(child.wait().unwrap().success());

    let mut seen = 0;
    for folder in [project.root().join(".tenure"), project.tenure_home()] {
        assert_no_secret_below(&folder, &[SECRET, &key], &mut seen);
    }
    assert!(seen >= 6, "databases and logs were checked: {seen}");
    let feed = serde_json::to_string(&project.feed()).unwrap();
    assert!(!feed.contains(SECRET) && !feed.contains(&key));
}

/// Asserts that no file below `folder` contains a secret, and that only the owner can read tenure's files.
fn assert_no_secret_below(folder: &std::path::Path, secrets: &[&str], seen: &mut usize) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let entry = entry.unwrap();
        let (path, mode) = (entry.path(), entry.metadata().unwrap().permissions().mode() & 0o777);
        let name = entry.file_name().to_string_lossy().into_owned();
        if entry.file_type().unwrap().is_dir() {
            assert_eq!(mode, 0o700, "{}", path.display());
            assert_no_secret_below(&path, secrets, seen);
            continue;
        }
        let bytes = std::fs::read(&path).unwrap();
        for secret in secrets {
            assert!(!bytes.windows(secret.len()).any(|w| w == secret.as_bytes()), "{}", path.display());
        }
        *seen += 1;
        if path.extension().is_some_and(|end| end == "log") || name.contains("tenure.db") {
            assert_eq!(mode, 0o600, "{}", path.display());
        }
    }
}

#[test]
fn the_prompt_is_passed_in_an_unlinked_file_and_not_as_an_argument() {
    let project = Project::new();
    project.task("A", &["print a very private wish", "mark begun", "wait go"]);
    let runner = project.runner(&[]);
    project.wait_for("begun");
    for pid in project.agents() {
        let line = std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        assert!(!String::from_utf8_lossy(&line).contains("private wish"));
    }
    let left: Vec<_> = project
        .attempt_logs()
        .into_iter()
        .filter(|path| path.file_name().unwrap().to_string_lossy().starts_with(".prompt"))
        .collect();
    assert!(left.is_empty(), "{left:?}");
    let pid: u32 = project.marks(&format!("pid-{}", project.marks("begun")[0]))[0].parse().unwrap();
    let input = std::fs::metadata(format!("/proc/{pid}/fd/0")).unwrap();
    assert_eq!(input.permissions().mode() & 0o777, 0o600);
    project.give("go");
    assert_eq!(runner.end().code, Some(0));
}
