use std::time::Duration;

use crate::story::{Story, steps};
use crate::support::TestEnv;

/// Hides the amount of free disk space, which differs between machines.
fn settled(story: &Story) -> String {
    let text = story.to_string();
    let line = |line: &str| match line.split_once(" free at ") {
        Some((before, after)) => {
            let number = before.trim_end_matches([' ', 'M', 'G', 'B']);
            let start = number.trim_end_matches(|c: char| c.is_ascii_digit());
            format!("{start}[SIZE] free at {after}")
        }
        None => line.to_owned(),
    };
    text.lines().map(line).collect::<Vec<_>>().join("\n")
}

fn sql(env: &TestEnv, sql: &str) {
    let conn = rusqlite::Connection::open(env.path("work/.tenure/tenure.db")).unwrap();
    conn.execute_batch(sql).unwrap();
}

#[test]
fn a_sound_project_is_told_so_and_what_could_be_better_is_a_warning() {
    insta::assert_snapshot!(settled(&Story::project(|_| {}).tell(&["doctor"])));
    insta::assert_snapshot!("outside", settled(&Story::outside(|_| {}).tell(&["doctor"])));
}

/// One of each problem that a store can have.
fn everything_wrong(env: &mut TestEnv) {
    steps(
        env,
        &[
            "sections add Backend",
            "tasks add Lapsed --id LAPSED",
            "tasks add Untold --id UNTOLD",
            "tasks add Unheld --id UNHELD",
            "tasks add Counted --id COUNTED --section Backend",
            "tasks claim LAPSED --agent eve --ttl 1m",
        ],
    );
    env.later(Duration::from_secs(90));
    sql(
        env,
        "UPDATE tasks SET status = 'failed' WHERE key = 'UNTOLD';
         UPDATE tasks SET status = 'in_progress' WHERE key = 'UNHELD';
         UPDATE tasks SET open_deps = 3 WHERE key = 'COUNTED';
         UPDATE sections SET open_tasks = 9 WHERE name = 'Backend';
         INSERT INTO leases (lease_id, key_hash, resource_kind, resource_id, holder_kind, holder_id, ttl_ms, acquired_at,
                             heartbeat_at, expires_at)
         VALUES ('L0000AAAA', '', 'task', 'nowhere', 'agent', 'ghost', 1, 1, 1, 9999999999999);",
    );
    std::fs::set_permissions(env.path("work/.tenure"), std::os::unix::fs::PermissionsExt::from_mode(0o755))
        .unwrap();
}

#[test]
fn every_finding_has_a_severity_a_sentence_and_the_command_that_mends_it() {
    let story = Story::project(everything_wrong)
        .tell(&["doctor"])
        .tell(&["doctor", "--fix", "--dry-run"])
        .tell(&["doctor", "--fix"]);
    insta::assert_snapshot!(settled(&story));
    let mut env = TestEnv::project();
    everything_wrong(&mut env);
    let findings = env.json(&["doctor"]).exits(7).envelope()["error"]["details"]["findings"].clone();
    assert!(findings.as_array().unwrap().len() >= 7, "{findings}");
    for finding in findings.as_array().unwrap() {
        let field = |name: &str| finding[name].as_str().unwrap_or_default().to_owned();
        assert!(["problem", "warning"].contains(&field("severity").as_str()), "{finding}");
        assert!(!field("sentence").is_empty() && !field("command").is_empty(), "{finding}");
        if field("command").starts_with("tenure ") {
            let words: Vec<_> = field("command").split(' ').map(str::to_owned).collect();
            assert!(tenure::command().try_get_matches_from(words).is_ok(), "{finding}");
        }
    }
    // All problems are fixed, and stay fixed.
    env.ok(&["doctor", "--fix"]);
    env.ok(&["doctor"]);
    assert_eq!(
        env.json(&["tasks", "show", "UNTOLD"]).data()["task"]["status"],
        "failed",
        "nothing was undone"
    );
}

#[test]
fn without_fix_not_a_byte_is_changed_and_with_it_only_what_was_wrong() {
    let mut env = TestEnv::project();
    steps(&env, &["tasks add One --id ONE", "tasks claim ONE --agent bob"]);
    // Opening the file, even to read it, creates an empty write-ahead log.
    let files_of = |env: &TestEnv| {
        let mut files = env.snapshot();
        files.retain(|path, bytes| !(bytes.is_empty() && path.to_string_lossy().ends_with("-wal")));
        files
    };
    let sound = files_of(&env);
    env.ok(&["doctor"]);
    assert!(files_of(&env) == sound, "a sound project was changed");
    everything_wrong(&mut env);
    // The first process that ends moves the log into the file.
    env.ok(&["tasks"]);
    let wrong = files_of(&env);
    env.run(&["doctor"]).exits(7);
    env.json(&["doctor"]).exits(7);
    env.ok(&["doctor", "--fix", "--dry-run"]);
    assert!(files_of(&env) == wrong, "something was changed without --fix");
    env.ok(&["doctor", "--fix"]);
    let kept = env.json(&["tasks", "show", "ONE"]).data()["task"].clone();
    assert_eq!(
        (kept["status"].as_str(), kept["lease"]["holder"]["id"].as_str()),
        (Some("in_progress"), Some("bob"))
    );
}

#[test]
fn two_holders_of_one_task_are_found_and_left_to_a_person() {
    let env = TestEnv::project();
    steps(&env, &["tasks add One --id ONE", "tasks claim ONE --agent bob"]);
    sql(
        &env,
        "DROP INDEX leases_open;
         INSERT INTO leases (lease_id, key_hash, resource_kind, resource_id, holder_kind, holder_id, ttl_ms, acquired_at,
                             heartbeat_at, expires_at)
         SELECT 'L0000BBBB', '', resource_kind, resource_id, 'agent', 'eve', ttl_ms, acquired_at, heartbeat_at, expires_at
         FROM leases WHERE holder_id = 'bob';",
    );
    for words in [&["doctor"][..], &["doctor", "--fix"]] {
        let error = env.json(words).exits(7).envelope()["error"].clone();
        let first = error["details"]["findings"][0].clone();
        assert_eq!(
            (first["check"].as_str(), first["fixable"].as_bool()),
            (Some("leases"), Some(false)),
            "{error}"
        );
        assert!(
            first["sentence"].as_str().unwrap().starts_with("ONE has 2 holders at the same time: "),
            "{first}"
        );
    }
}

#[test]
fn a_store_that_is_damaged_or_misconfigured_is_a_finding_and_not_a_crash() {
    let env = TestEnv::project();
    steps(&env, &["tasks add One", "tasks add Two"]);
    for side in ["tenure.db-wal", "tenure.db-shm"] {
        let _ = std::fs::remove_file(env.path("work/.tenure").join(side));
    }
    env.write("work/.tenure/tenure.db", vec![7; 8192]);
    let error = env.json(&["doctor"]).exits(7).envelope()["error"].clone();
    assert_eq!(error["details"]["findings"][0]["check"], "store", "{error}");
    let command = error["details"]["findings"][0]["command"].as_str().unwrap().to_owned();
    assert!(command.starts_with("mv ") && command.contains("tenure init"), "{command}");
    env.run(&["doctor", "--fix"]).exits(7);
    let other = TestEnv::project();
    other.write("work/.tenure/config.yaml", "lockng: {}\n");
    let error = other.json(&["doctor"]).exits(7).envelope()["error"].clone();
    assert_eq!(error["details"]["findings"][0]["command"], "tenure config validate", "{error}");
}

#[test]
fn pages_that_are_damaged_are_found_by_sqlites_own_check() {
    let env = TestEnv::project();
    for n in 0..200 {
        env.ok(&["tasks", "add", &format!("Task {n} with a title that takes some room in its page")]);
    }
    // Moves everything into one file, so that the middle of that file can be damaged.
    sql(&env, "PRAGMA wal_checkpoint(TRUNCATE)");
    let path = env.path("work/.tenure/tenure.db");
    let mut bytes = std::fs::read(&path).unwrap();
    let middle = bytes.len() / 2 / 4096 * 4096;
    bytes[middle..middle + 4096].fill(0x55);
    std::fs::write(&path, &bytes).unwrap();
    let error = env.json(&["doctor"]).exits(7).envelope()["error"].clone();
    let first = error["details"]["findings"][0].clone();
    assert_eq!(
        (first["check"].as_str(), first["severity"].as_str()),
        (Some("store"), Some("problem")),
        "{error}"
    );
    assert_eq!(std::fs::read(&path).unwrap(), bytes, "and left as it is");
}

#[test]
fn agents_are_found_with_their_versions_and_never_started_to_work() {
    let mut env = TestEnv::project();
    for (name, text) in [
        ("claude", "#!/bin/sh\n[ \"$1\" = --version ] && echo '2.1.0 (Claude Code)'\n"),
        ("codex", "#!/bin/sh\nexec sleep 600\n"),
        ("own", "#!/bin/sh\necho started >>\"$HOME/started\"\n"),
    ] {
        let path = env.write(&format!("bin/{name}"), text);
        std::fs::set_permissions(&path, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    }
    env.write("home/.tenure/config.yaml", "presets: {mine: {command: [own]}}\n");
    env.set("PATH", format!("{}:/usr/bin:/bin", env.path("bin").display()));
    let agents = env.json(&["doctor"]).data()["agents"].clone();
    let said: Vec<_> = agents
        .as_array()
        .unwrap()
        .iter()
        .map(|a| (a["preset"].as_str().unwrap(), a["version"].as_str()))
        .collect();
    assert_eq!(said, [("claude", Some("2.1.0 (Claude Code)")), ("codex", None), ("mine", None)]);
    assert!(!env.path("home/started").exists());
}

#[test]
fn the_configured_agent_is_asked_whether_it_can_work() {
    let mut env = TestEnv::project();
    let program = |env: &TestEnv, name: &str, text: &str| {
        let path = env.write(&format!("bin/{name}"), format!("#!/bin/sh\n{text}\n"));
        std::fs::set_permissions(&path, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    };
    // Nothing else is on PATH, so that neither the sandbox nor another agent of this machine is found.
    env.set("PATH", env.path("bin").display().to_string());
    program(&env, "claude", "[ \"$*\" != 'auth status' ]");
    let agents = |env: &TestEnv| -> Vec<(String, String)> {
        let data = env.json(&["doctor"]).data();
        let findings = data["findings"].as_array().unwrap().iter().filter(|f| f["check"] == "agents");
        let text = |finding: &serde_json::Value, key: &str| finding[key].as_str().unwrap().to_owned();
        findings.map(|finding| (text(finding, "sentence"), text(finding, "command"))).collect()
    };
    let said = agents(&env);
    assert!(said[0].0.contains("needs bwrap and socat") && said.len() == 1, "{said:?}");
    // The suggested command solves the problem.
    env.ok(&["config", "set", "runners.allow", "[make, git add, git commit]"]);
    assert!(said[0].1.contains("tenure config set runners.allow '[make, git add, git commit]'"), "{said:?}");
    let not_logged_in = ("claude: not logged in".to_owned(), "claude auth login".to_owned());
    assert_eq!(agents(&env), vec![not_logged_in.clone()]);
    program(&env, "socat", "exit 0");
    program(&env, "bwrap", "exit 1");
    let broken = agents(&env);
    assert!(
        broken[0].0.contains("bwrap cannot start its sandbox") && broken[1] == not_logged_in,
        "{broken:?}"
    );
    program(&env, "bwrap", "exit 0");
    program(&env, "claude", "exit 0");
    assert_eq!(agents(&env), []);
}

#[test]
fn a_timer_that_is_installed_and_does_not_fire_is_a_problem() {
    let mut env = TestEnv::project();
    let crontab = env.write("bin/crontab", "#!/bin/sh\ncat \"$HOME/crontab\"\n");
    std::fs::set_permissions(&crontab, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    env.set("PATH", format!("{}:/usr/bin:/bin", env.path("bin").display()));
    let line = |binary: &str| {
        format!(
            "# >>> tenure wake-up >>>\n* * * * * /usr/bin/env PATH=/bin {binary} runners wakeup --quiet --timer cron\n\
             # <<< tenure wake-up <<<\n"
        )
    };
    let timer = |env: &TestEnv| {
        let envelope = env.json(&["doctor"]).envelope();
        let data =
            if envelope["success"] == true { &envelope["data"] } else { &envelope["error"]["details"] };
        let findings = data["findings"].as_array().unwrap().clone();
        findings
            .into_iter()
            .find(|f| f["check"] == "timer")
            .map(|f| f["sentence"].as_str().unwrap().to_owned())
    };
    env.write("home/crontab", line("/bin/true"));
    assert!(timer(&env).unwrap().ends_with("does not fire: it has never fired"));
    env.ok(&["runners", "wakeup", "--timer", "cron"]);
    assert_eq!(timer(&env), None);
    env.later(Duration::from_mins(5));
    assert!(timer(&env).unwrap().ends_with("does not fire: it last fired 5m ago"));
    env.write("home/crontab", line("/nowhere/tenure"));
    assert!(timer(&env).unwrap().ends_with("runs /nowhere/tenure, which does not exist"));
}

#[test]
fn a_time_in_the_future_is_a_warning() {
    let env = TestEnv::project();
    env.ok(&["tasks", "add", "A"]);
    let found = |env: &TestEnv| env.run(&["doctor"]).exits(0).out.contains("in the future");
    assert!(!found(&env));
    sql(&env, "UPDATE events SET at = at + 7200000");
    assert!(found(&env));
}
