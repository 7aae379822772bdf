//! For every command, a line that succeeds and a line that fails, and the project in which they run.

use tenure_core::kernel::ItemOutcome;

use crate::story::steps;
use crate::support::{Ran, TestEnv};
use crate::work_rows;

/// Command lines of one command: one that succeeds, and one that fails with this exit code and error code.
pub(crate) struct Example {
    pub(crate) path: &'static str,
    pub(crate) good: &'static [&'static str],
    pub(crate) bad: &'static [&'static str],
    pub(crate) exit: i32,
    pub(crate) code: &'static str,
}

macro_rules! examples {
    ($($path:literal: [$($good:literal),*] or [$($bad:literal),*] => $exit:literal $code:literal;)*) => {
        &[$(Example { path: $path, good: &[$($good),*], bad: &[$($bad),*], exit: $exit, code: $code }),*]
    };
}

/// Each runs in the environment of [`prepare`]; a failing line that begins with `outside` runs where there is no project.
pub(crate) const EXAMPLES: &[Example] = examples! {
    "init": ["init"] or ["init", "--name", ""] => 2 "INVALID_ARGUMENTS";
    "demo": ["demo"] or ["demo", "--dry-run"] => 2 "INVALID_ARGUMENTS";
    "self-check": ["self-check"] or ["self-check", "--dry-run"] => 2 "INVALID_ARGUMENTS";
    "status": ["status"] or ["outside", "status"] => 3 "NOT_INITIALIZED";
    "board": ["board"] or ["board"] => 2 "INVALID_ARGUMENTS";
    "whoami": ["whoami"] or ["whoami", "--agent", "a b"] => 2 "INVALID_ARGUMENTS";
    "why": ["why", "OPEN"] or ["why", "NOWHERE"] => 4 "TASK_NOT_FOUND";
    "tasks": ["tasks"] or ["outside", "tasks"] => 3 "NOT_INITIALIZED";
    "tasks add": ["tasks", "add", "New"] or ["tasks", "add", "New", "--section", "Nowhere"] => 4 "SECTION_NOT_FOUND";
    "tasks import": ["tasks", "import", "plan.md"] or ["tasks", "import", "circle.json"] => 2 "DEPENDENCY_CYCLE";
    "tasks export": ["tasks", "export"] or ["tasks", "export", "--section", "Nowhere"] => 4 "SECTION_NOT_FOUND";
    "tasks tree": ["tasks", "tree"] or ["tasks", "tree", "--section", "Nowhere"] => 4 "SECTION_NOT_FOUND";
    "tasks list": ["tasks", "list"] or ["tasks", "list", "--section", "Nowhere"] => 4 "SECTION_NOT_FOUND";
    "tasks show": ["tasks", "show", "OPEN"] or ["tasks", "show", "e"] => 2 "AMBIGUOUS";
    "tasks audit": ["tasks", "audit", "OPEN"] or ["tasks", "audit", "NOWHERE"] => 4 "TASK_NOT_FOUND";
    "tasks logs": ["tasks", "logs", "HELD"] or ["tasks", "logs", "OPEN"] => 4 "TASK_NOT_FOUND";
    "tasks update": ["tasks", "update", "OPEN", "--title", "Uno"] or
        ["tasks", "update", "HELD", "--status", "completed"] => 6 "TASK_LOCKED";
    "tasks next": ["tasks", "next"] or ["tasks", "next", "--section", "Backend"] => 10 "NOTHING_READY";
    "tasks claim": ["tasks", "claim", "OPEN", "--agent", "eve"] or
        ["tasks", "claim", "WAITS", "--agent", "eve"] => 10 "NOT_READY";
    "tasks renew": ["tasks", "renew", "HELD", "--agent", "bob"] or
        ["tasks", "renew", "HELD", "--agent", "eve"] => 8 "NOT_HOLDER";
    "tasks release": ["tasks", "release", "HELD", "--agent", "bob"] or
        ["tasks", "release", "HELD", "--agent", "bob", "--fence", "2"] => 8 "NOT_HOLDER";
    "tasks done": ["tasks", "done", "HELD", "--agent", "bob"] or ["tasks", "done", "HELD"] => 2 "INVALID_ARGUMENTS";
    "tasks fail": ["tasks", "fail", "HELD", "--agent", "bob", "-m", "No"] or
        ["tasks", "fail", "HELD", "--agent", "eve", "-m", "No"] => 8 "NOT_HOLDER";
    "tasks run": ["tasks", "run", "OPEN", "--agent", "eve", "--", "true"] or
        ["tasks", "run", "WAITS", "--agent", "eve", "--", "true"] => 10 "NOT_READY";
    "tasks check": ["tasks", "check", "HELD", "--agent", "bob"] or
        ["tasks", "check", "HELD", "--agent", "eve"] => 8 "NOT_HOLDER";
    "tasks approve": ["tasks", "approve", "REVIEW"] or ["tasks", "approve", "OPEN"] => 2 "INVALID_TRANSITION";
    "tasks reject": ["tasks", "reject", "REVIEW", "-m", "No"] or
        ["tasks", "reject", "HELD", "-m", "No"] => 6 "TASK_LOCKED";
    "tasks skip": ["tasks", "skip", "OPEN"] or ["tasks", "skip", "HELD"] => 6 "TASK_LOCKED";
    "tasks retry": ["tasks", "retry", "FAILED"] or ["tasks", "retry", "OPEN"] => 2 "INVALID_TRANSITION";
    "tasks reopen": ["tasks", "reopen", "FAILED"] or ["tasks", "reopen", "OPEN"] => 2 "INVALID_TRANSITION";
    "tasks delete": ["tasks", "delete", "FAILED"] or ["tasks", "delete", "OPEN"] => 2 "INVALID_ARGUMENTS";
    "tasks depend": ["tasks", "depend", "FAILED", "--on", "OPEN"] or
        ["tasks", "depend", "OPEN", "--on", "WAITS"] => 2 "DEPENDENCY_CYCLE";
    "sections": ["sections"] or ["outside", "sections"] => 3 "NOT_INITIALIZED";
    "sections add": ["sections", "add", "New"] or ["sections", "add", "Backend"] => 2 "INVALID_ARGUMENTS";
    "sections list": ["sections", "list"] or ["outside", "sections", "list"] => 3 "NOT_INITIALIZED";
    "sections show": ["sections", "show", "Backend"] or ["sections", "show", "Nowhere"] => 4 "SECTION_NOT_FOUND";
    "sections update": ["sections", "update", "Docs", "--parallel"] or
        ["sections", "update", "Nowhere", "--parallel"] => 4 "SECTION_NOT_FOUND";
    "sections depend": ["sections", "depend", "Docs", "--on", "Backend"] or
        ["sections", "depend", "Docs", "--on", "Docs"] => 2 "DEPENDENCY_CYCLE";
    "sections delete": ["sections", "delete", "Docs"] or ["sections", "delete", "Backend"] => 6 "SECTION_LOCKED";
    "locks": ["locks"] or ["outside", "locks"] => 3 "NOT_INITIALIZED";
    "locks list": ["locks", "list"] or ["locks", "list", "--type", "none"] => 2 "INVALID_ARGUMENTS";
    "locks show": ["locks", "show", "HELD"] or ["locks", "show", "NOWHERE"] => 4 "TASK_NOT_FOUND";
    "locks release": ["locks", "release", "HELD", "--agent", "bob"] or
        ["locks", "release", "HELD"] => 5 "PERMISSION_DENIED";
    "locks cleanup": ["locks", "cleanup"] or ["outside", "locks", "cleanup"] => 3 "NOT_INITIALIZED";
    "agents": ["agents"] or ["outside", "agents"] => 3 "NOT_INITIALIZED";
    "agents join": ["agents", "join"] or ["agents", "join", "--name", ""] => 2 "INVALID_ARGUMENTS";
    "agents list": ["agents", "list"] or ["outside", "agents", "list"] => 3 "NOT_INITIALIZED";
    "agents leave": ["agents", "leave", "bob"] or ["agents", "leave", "nobody"] => 4 "AGENT_NOT_FOUND";
    "msg": ["msg"] or ["outside", "msg"] => 3 "NOT_INITIALIZED";
    "msg send": ["msg", "send", "--task", "OPEN", "-m", "Hello"] or
        ["msg", "send", "--task", "NOWHERE", "-m", "Hello"] => 4 "TASK_NOT_FOUND";
    "msg list": ["msg", "list"] or ["msg", "list", "--mine"] => 2 "INVALID_ARGUMENTS";
    "msg ack": ["msg", "ack", "1"] or ["msg", "ack"] => 2 "INVALID_ARGUMENTS";
    "msg wait": ["msg", "wait"] or ["msg", "wait", "--to", "eve", "--for", "0s"] => 9 "WAIT_TIMEOUT";
    "events": ["events"] or ["events", "--task", "NOWHERE"] => 4 "TASK_NOT_FOUND";
    "projects": ["projects"] or ["projects", "--all"] => 2 "INVALID_ARGUMENTS";
    "projects list": ["projects", "list"] or ["projects", "list", "--all"] => 2 "INVALID_ARGUMENTS";
    "projects add": ["projects", "add"] or ["outside", "projects", "add"] => 3 "NOT_INITIALIZED";
    "projects remove": ["projects", "remove"] or ["outside", "projects", "remove"] => 4 "PROJECT_NOT_FOUND";
    "projects enable": ["projects", "enable"] or ["outside", "projects", "enable"] => 4 "PROJECT_NOT_FOUND";
    "projects disable": ["projects", "disable"] or ["outside", "projects", "disable"] => 4 "PROJECT_NOT_FOUND";
    "exclusive": ["exclusive"] or ["outside", "exclusive"] => 3 "NOT_INITIALIZED";
    "exclusive acquire": ["exclusive", "acquire", "--holder", "tool"] or
        ["exclusive", "acquire", "--holder", ""] => 2 "INVALID_ARGUMENTS";
    "exclusive release": ["exclusive", "release"] or ["outside", "exclusive", "release"] => 3 "NOT_INITIALIZED";
    "exclusive status": ["exclusive", "status"] or ["outside", "exclusive", "status"] => 3 "NOT_INITIALIZED";
    "exclusive run": ["exclusive", "run", "--holder", "tool", "--", "true"] or
        ["exclusive", "run", "--holder", "tool"] => 2 "INVALID_ARGUMENTS";
    "usage": ["usage"] or ["usage", "--by", "moon"] => 2 "INVALID_ARGUMENTS";
    "runners": ["runners"] or ["runners", "--nonsense"] => 2 "INVALID_ARGUMENTS";
    "runners start": ["runners", "start", "--preset", "mine", "--dry-run"] or
        ["runners", "start", "--preset", "nowhere"] => 3 "CONFIG_ERROR";
    "runners list": ["runners", "list"] or ["runners", "list", "--ended", "x"] => 2 "INVALID_ARGUMENTS";
    "runners stop": ["runners", "stop"] or ["runners", "stop", "nowhere"] => 4 "RUNNER_NOT_FOUND";
    "runners logs": ["runners", "logs", "--all"] or ["runners", "logs", "nowhere"] => 4 "RUNNER_NOT_FOUND";
    "runners wakeup": ["runners", "wakeup", "--dry-run"] or
        ["runners", "wakeup", "--config", "wrong.yaml"] => 3 "CONFIG_ERROR";
    "runners cron": ["runners", "cron"] or ["runners", "cron", "--with"] => 2 "INVALID_ARGUMENTS";
    "runners cron install": ["runners", "cron", "install", "--with", "systemd", "--dry-run"] or
        ["runners", "cron", "install", "--with", "anacron"] => 2 "INVALID_ARGUMENTS";
    "runners cron uninstall": ["runners", "cron", "uninstall", "--with", "launchd"] or
        ["runners", "cron", "uninstall", "--with", "x"] => 2 "INVALID_ARGUMENTS";
    "runners cron status": ["runners", "cron", "status"] or
        ["runners", "cron", "status", "--config", "wrong.yaml"] => 3 "CONFIG_ERROR";
    // Run with `--quiet`, because they report that they have removed the stale lock.
    "jobs": ["jobs"] or ["outside", "jobs"] => 3 "NOT_INITIALIZED";
    "jobs start": ["jobs", "start", "new", "-q", "--items", "list.txt", "--", "true"] or
        ["jobs", "start", "new", "--items", "nowhere", "--", "true"] => 2 "INVALID_ARGUMENTS";
    "jobs work": ["jobs", "work", "job", "-q"] or ["jobs", "work", "nowhere"] => 4 "JOB_NOT_FOUND";
    "jobs list": ["jobs", "list"] or ["outside", "jobs", "list"] => 3 "NOT_INITIALIZED";
    "jobs show": ["jobs", "show", "job"] or ["jobs", "show", "nowhere"] => 4 "JOB_NOT_FOUND";
    "jobs cancel": ["jobs", "cancel", "job"] or ["jobs", "cancel", "nowhere"] => 4 "JOB_NOT_FOUND";
    "jobs retry": ["jobs", "retry", "job", "-q"] or ["jobs", "retry", "changed"] => 2 "DEFINITION_CHANGED";
    "sessions": ["sessions"] or ["outside", "sessions"] => 3 "NOT_INITIALIZED";
    "sessions list": ["sessions", "list"] or ["outside", "sessions", "list"] => 3 "NOT_INITIALIZED";
    "sessions show": ["sessions", "show", "5e551010"] or ["sessions", "show", "nowhere"] => 4 "SESSION_NOT_FOUND";
    "resume": ["resume", "job", "-q"] or ["resume", "nowhere"] => 4 "SESSION_NOT_FOUND";
    "hooks": ["hooks"] or ["outside", "hooks"] => 3 "NOT_INITIALIZED";
    "hooks list": ["hooks", "list"] or ["outside", "hooks", "list"] => 3 "NOT_INITIALIZED";
    "hooks test": ["hooks", "test", "idle"] or ["hooks", "test", "nobody"] => 2 "INVALID_ARGUMENTS";
    "hooks run": ["hooks", "run", "project.completed"] or ["hooks", "run", "task.failed"] => 2 "INVALID_ARGUMENTS";
    "config": ["config"] or ["config", "--config", "nowhere.yaml"] => 3 "CONFIG_ERROR";
    "config show": ["config", "show"] or ["config", "show", "--config", "wrong.yaml"] => 3 "CONFIG_ERROR";
    "config get": ["config", "get", "locking"] or ["config", "get", "lockng"] => 2 "INVALID_ARGUMENTS";
    "config set": ["config", "set", "locking.leaseTtl", "5m"] or
        ["config", "set", "runners.staleTimeout", "1s"] => 3 "CONFIG_ERROR";
    "config unset": ["config", "unset", "locking.leaseTtl"] or
        ["config", "unset", "lockng"] => 2 "INVALID_ARGUMENTS";
    "config path": ["config", "path"] or ["config", "path", "-C", "nowhere"] => 2 "INVALID_ARGUMENTS";
    "config validate": ["config", "validate"] or ["config", "validate", "wrong.yaml"] => 3 "CONFIG_ERROR";
    "config edit": ["config", "edit"] or ["config", "edit", "--config", "wrong.yaml"] => 3 "CONFIG_ERROR";
    "trust": ["trust", "--show"] or ["trust", "--yes"] => 5 "PERMISSION_DENIED";
    "trust list": ["trust", "list"] or ["trust", "list", "--all"] => 2 "INVALID_ARGUMENTS";
    "untrust": ["untrust"] or ["outside", "untrust"] => 3 "NOT_INITIALIZED";
    "prime": ["prime"] or ["outside", "prime"] => 3 "NOT_INITIALIZED";
    "doctor": ["doctor"] or ["doctor", "everything"] => 2 "INVALID_ARGUMENTS";
    "mcp": ["mcp"] or ["mcp", "--http", "0.0.0.0:7077"] => 2 "INVALID_ARGUMENTS";
    "web": ["web"] or ["web", "--http", "0.0.0.0:7077"] => 2 "INVALID_ARGUMENTS";
    "setup": ["setup", "claude"] or ["setup", "claude", "--mcp", "--check"] => 7 "CHECK_FAILED";
    "store": ["store", "copy", "--to", "postgres://ann@db.example/work", "--dry-run"] or
        ["store"] => 2 "INVALID_ARGUMENTS";
    "store adopt": ["store", "adopt"] or ["store", "adopt", "now"] => 2 "INVALID_ARGUMENTS";
    "store backup": ["store", "backup", "saved"] or ["store", "backup", "plan.md"] => 2 "INVALID_ARGUMENTS";
    "store restore": ["store", "restore", "old.backup", "--force"] or
        ["store", "restore", "plan.md"] => 1 "STORE_ERROR";
    "store copy": ["store", "copy", "--to", "postgres://ann@db.example/work", "--dry-run"] or
        ["store", "copy", "--to", "mysql://ann:secret@host/work"] => 3 "CONFIG_ERROR";
    "bench": ["bench", "locks", "--quick"] or ["bench", "--dry-run"] => 2 "INVALID_ARGUMENTS";
    "completions": ["completions", "bash"] or ["completions", "tcsh"] => 2 "INVALID_ARGUMENTS";
    "man": ["man"] or ["man", "nothing"] => 2 "INVALID_ARGUMENTS";
    "help": ["help", "tasks", "claim"] or ["help", "nothing"] => 2 "INVALID_ARGUMENTS";
    "version": ["version"] or ["version", "now"] => 2 "INVALID_ARGUMENTS";
};

pub(crate) fn prepare() -> TestEnv {
    let mut env = TestEnv::project();
    steps(
        &env,
        &[
            "sections add Backend",
            "sections add Docs",
            "tasks add One --id OPEN",
            "tasks add Two --id HELD --section Backend",
            "tasks add Three --id WAITS --depends-on OPEN",
            "tasks add Four --id REVIEW",
            "tasks add Five --id FAILED",
            "tasks claim HELD --agent eve",
            "tasks release HELD --agent eve",
            "tasks claim HELD --agent bob",
            "tasks update REVIEW --status review",
            "tasks update FAILED --status failed",
            "msg send --task OPEN -m Hello",
        ],
    );
    env.write("work/plan.md", "- [ ] Write it down\n");
    env.write("work/circle.json", r#"[{"id":"A","title":"A","dependsOn":["A"]}]"#);
    // No example triggers this hook, because none starts a runner.
    env.write(
        "home/.tenure/config.yaml",
        "hooks: [{name: idle, event: runner.started, type: script, command: 'true'}]\n\
         runners: {preset: mine}\npresets: {mine: {command: ['/bin/true']}}\n",
    );
    // Left by a process that no longer exists, so it blocks nothing.
    let stale = format!(
        r#"{{"holder":"gone","pid":{},"hostname":"{}","started_at":"2026-01-02T03:04:05Z"}}"#,
        i32::MAX,
        tenure_lock::hostname()
    );
    env.write("work/.tenure/.exclusive-lock", &stale);
    env.write("work/wrong.yaml", "lockng: {}\n");
    // Hides the real crontab.
    let bin = env.write("bin/crontab", "#!/bin/sh\necho 'no crontab for ann' >&2\nexit 1\n");
    std::fs::set_permissions(&bin, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    let path = format!("{}:{}", bin.parent().unwrap().display(), std::env::var("PATH").unwrap());
    env.set("EDITOR", "true").set("PATH", path);
    env.write("work/list.txt", "one\ntwo\n");
    work_rows::job(&env, "job", None, &[ItemOutcome::Succeeded]);
    work_rows::job(&env, "changed", Some("work/list.txt"), &[]);
    work_rows::session(&env);
    work_rows::logged_attempt(&env, "HELD");
    steps(&env, &["store backup old.backup"]);
    env.set("EDITOR", "true").set("PATH", std::env::var("PATH").unwrap());
    env
}

/// The demo waits for real leases, so it needs the real clock; commands that start processes need the real binary.
pub(crate) fn run(env: &mut TestEnv, words: &[&str]) -> Ran {
    env.cd("work");
    let words = match words {
        ["outside", rest @ ..] => {
            env.cd("elsewhere");
            rest
        }
        _ => words,
    };
    if words.starts_with(&["store", "copy"]) {
        // No lease may be live.
        env.later(std::time::Duration::from_hours(1));
    }
    if words.contains(&"demo")
        || words.contains(&"self-check")
        || words.contains(&"bench")
        || words.starts_with(&["tasks", "run"])
        || words.starts_with(&["exclusive", "run"])
        || words.starts_with(&["jobs", "start"])
        || words.starts_with(&["jobs", "work"])
        || words.starts_with(&["jobs", "retry"])
        || words.contains(&"resume")
    {
        env.finish(env.process(words))
    } else {
        env.run(words)
    }
}
