//! `--dry-run` shows what would happen and writes no byte below the project or the home.

use crate::story::steps;
use crate::support::TestEnv;

/// Every command that writes, with arguments with which it would succeed.
const WRITING: &[&[&str]] = &[
    &["init"],
    &["tasks", "add", "New", "--section", "Backend", "--depends-on", "OPEN"],
    &["tasks", "import", "plan.md"],
    &["tasks", "update", "OPEN", "--title", "Uno", "--label", "x"],
    &["tasks", "update", "OPEN", "--status", "completed"],
    &["tasks", "update", "OPEN", "--status", "in_progress", "--agent", "eve"],
    &["tasks", "next", "--claim"],
    &["tasks", "claim", "OPEN"],
    &["tasks", "claim", "OPEN", "--agent", "eve", "--wait"],
    &["tasks", "renew", "HELD", "--agent", "bob"],
    &["tasks", "release", "HELD", "--agent", "bob", "-m", "later"],
    &["tasks", "done", "HELD", "--agent", "bob"],
    &["tasks", "fail", "HELD", "--agent", "bob", "-m", "no"],
    &["tasks", "approve", "REVIEW"],
    &["tasks", "reject", "REVIEW", "-m", "no"],
    &["tasks", "skip", "HELD", "--force"],
    &["tasks", "retry", "FAILED"],
    &["tasks", "delete", "FAILED"],
    &["tasks", "depend", "FAILED", "--on", "OPEN"],
    &["sections", "add", "New"],
    &["sections", "update", "Docs", "--parallel", "--after", "Backend"],
    &["sections", "depend", "Docs", "--on", "Backend"],
    &["sections", "delete", "Docs"],
    &["locks", "release", "HELD", "--agent", "bob"],
    &["locks", "release", "section:Backend", "--force"],
    &["locks", "cleanup"],
    &["agents", "join", "--name", "new"],
    &["agents", "leave", "bob"],
    &["msg", "send", "--task", "OPEN", "-m", "Hello"],
    &["msg", "ack", "1"],
    &["projects", "add"],
    &["projects", "remove"],
    &["projects", "disable"],
    &["projects", "enable"],
    &["jobs", "cancel", "job"],
    &["jobs", "retry", "job"],
    &["resume", "job"],
    &["config", "set", "locking.leaseTtl", "5m"],
    &["config", "set", "locking.leaseTtl", "5m", "--user"],
    &["config", "edit", "--user"],
    &["runners", "wakeup"],
    &["runners", "cron", "install", "--with", "systemd"],
    &["doctor", "--fix"],
];

fn prepare() -> TestEnv {
    let mut env = TestEnv::project();
    steps(
        &env,
        &[
            "sections add Backend",
            "sections add Docs",
            "tasks add One --id OPEN",
            "tasks add Lapsed --id LAPSED",
            "tasks add Two --id HELD --section Backend",
            "tasks add Three --id REVIEW",
            "tasks add Four --id FAILED",
            "tasks claim LAPSED --agent eve --ttl 1s",
            "tasks update REVIEW --status review",
            "tasks update FAILED --status failed",
            "msg send --task OPEN -m Hello",
        ],
    );
    env.later(std::time::Duration::from_mins(1));
    steps(&env, &["tasks claim HELD --agent bob"]);
    env.write("work/plan.md", "## New section\n- [ ] Write it down\n");
    env.write(
        "home/.tenure/config.yaml",
        "runners: {preset: mine}\npresets: {mine: {command: ['/bin/true']}}\n",
    );
    crate::work_rows::job(&env, "job", None, &[]);
    env.set("EDITOR", "touch").set("PATH", std::env::var("PATH").unwrap());
    env
}

/// Every row of every table, in order. Read from a copy, because closing a database changes its files.
fn dump(env: &TestEnv) -> Vec<String> {
    let copy = tempfile::tempdir().unwrap();
    for name in ["tenure.db", "tenure.db-wal"] {
        std::fs::copy(env.path("work/.tenure").join(name), copy.path().join(name)).unwrap();
    }
    let conn = rusqlite::Connection::open(copy.path().join("tenure.db")).unwrap();
    let mut tables =
        conn.prepare("SELECT name FROM sqlite_schema WHERE type = 'table' ORDER BY name").unwrap();
    let tables: Vec<String> = tables.query_map([], |row| row.get(0)).unwrap().map(Result::unwrap).collect();
    let mut rows = Vec::new();
    for table in tables {
        let mut statement = conn.prepare(&format!("SELECT * FROM {table}")).unwrap();
        let columns = statement.column_count();
        let mut found = statement.query([]).unwrap();
        while let Some(row) = found.next().unwrap() {
            let values: Vec<_> = (0..columns).map(|i| format!("{:?}", row.get_ref(i).unwrap())).collect();
            rows.push(format!("{table}: {}", values.join(" ")));
        }
    }
    rows.sort();
    rows
}

#[test]
fn a_dry_run_of_any_command_writes_nothing() {
    let env = prepare();
    let (files, rows) = (env.snapshot(), dump(&env));
    assert!(rows.len() > 30, "the comparison sees the rows");
    for words in WRITING {
        for form in ["--dry-run", "--json"] {
            let mut line = words.to_vec();
            line.push("--dry-run");
            line.push(form);
            line.dedup();
            let ran = env.run(&line);
            assert_eq!(ran.code, 0, "{ran}");
            if form == "--json" {
                assert_eq!(ran.envelope()["dryRun"], true, "{ran}");
                assert!(ran.envelope().get("hints").is_none(), "a dry run has no next step: {ran}");
            } else {
                assert!(ran.out.to_lowercase().contains("would") || ran.out.contains("already"), "{ran}");
            }
            let after = env.snapshot();
            let changed: Vec<_> = files
                .iter()
                .filter(|(path, bytes)| after.get(*path) != Some(bytes))
                .map(|(path, _)| path)
                .chain(after.keys().filter(|path| !files.contains_key(*path)))
                .collect();
            assert!(changed.is_empty(), "{ran} wrote {changed:?}");
        }
    }
    assert_eq!(dump(&env), rows);
}

#[test]
fn a_dry_run_without_a_project_creates_nothing() {
    let mut env = TestEnv::new();
    let before = env.snapshot();
    env.set("EDITOR", "touch");
    for (words, code) in [
        (&["init"][..], 0),
        (&["config", "set", "locking.leaseTtl", "5m"], 0),
        (&["config", "edit"], 0),
        (&["projects", "remove"], 4),
        (&["projects", "enable"], 4),
        (&["projects", "add"], 3),
        (&["tasks", "add", "One"], 3),
        (&["demo"], 2),
    ] {
        let mut line = words.to_vec();
        line.push("--dry-run");
        env.run(&line).exits(code);
        assert_eq!(env.snapshot(), before, "{words:?}");
    }
}

#[test]
fn reading_commands_write_nothing() {
    let env = prepare();
    let files = env.snapshot();
    for words in [
        &["status"][..],
        &["whoami", "--agent", "bob"],
        &["why"],
        &["why", "HELD"],
        &["tasks"],
        &["tasks", "list", "--global"],
        &["tasks", "show", "HELD", "--history"],
        &["tasks", "audit", "HELD"],
        &["tasks", "next"],
        &["tasks", "check", "HELD", "--agent", "bob"],
        &["sections"],
        &["sections", "show", "Backend"],
        &["locks"],
        &["locks", "show", "HELD", "--history"],
        &["agents"],
        &["msg"],
        &["events"],
        &["projects"],
        &["config"],
        &["config", "get", "locking"],
        &["config", "path"],
        &["config", "validate"],
        &["runners", "cron"],
        &["doctor", "--json"],
        &["completions", "bash"],
        &["man"],
        &["help"],
        &["version"],
        &["--help"],
    ] {
        let ran = env.run(words);
        // A lease has lapsed there, which `doctor` reports.
        assert_eq!(ran.code, if words[0] == "doctor" { 7 } else { 0 }, "{ran}");
        assert!(env.snapshot() == files, "{ran}");
    }
}
