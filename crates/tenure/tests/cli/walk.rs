//! Every command there is, from the parser's own tree: none may be missing from the tables below.

use std::collections::BTreeSet;

use serde_json::Value;
use tenure_core::kernel::ItemOutcome;

use crate::story::steps;
use crate::support::{Ran, TestEnv};
use crate::work_rows;

/// Command lines of one command: one that succeeds, and one that fails with this exit code and error code.
struct Example {
    path: &'static str,
    good: &'static [&'static str],
    bad: &'static [&'static str],
    exit: i32,
    code: &'static str,
}

macro_rules! examples {
    ($($path:literal: [$($good:literal),*] or [$($bad:literal),*] => $exit:literal $code:literal;)*) => {
        &[$(Example { path: $path, good: &[$($good),*], bad: &[$($bad),*], exit: $exit, code: $code }),*]
    };
}

/// Each in the world of [`prepare`]; a bad line that begins with `outside` is run where there is no project.
const EXAMPLES: &[Example] = examples! {
    "init": ["init"] or ["init", "--name", ""] => 2 "INVALID_ARGUMENTS";
    "demo": ["demo"] or ["demo", "--dry-run"] => 2 "INVALID_ARGUMENTS";
    "status": ["status"] or ["outside", "status"] => 3 "NOT_INITIALIZED";
    "whoami": ["whoami"] or ["whoami", "--agent", "a b"] => 2 "INVALID_ARGUMENTS";
    "why": ["why", "OPEN"] or ["why", "NOWHERE"] => 4 "TASK_NOT_FOUND";
    "tasks": ["tasks"] or ["outside", "tasks"] => 3 "NOT_INITIALIZED";
    "tasks add": ["tasks", "add", "New"] or ["tasks", "add", "New", "--section", "Nowhere"] => 4 "SECTION_NOT_FOUND";
    "tasks import": ["tasks", "import", "plan.md"] or ["tasks", "import", "circle.json"] => 2 "DEPENDENCY_CYCLE";
    "tasks list": ["tasks", "list"] or ["tasks", "list", "--section", "Nowhere"] => 4 "SECTION_NOT_FOUND";
    "tasks show": ["tasks", "show", "OPEN"] or ["tasks", "show", "e"] => 2 "AMBIGUOUS";
    "tasks audit": ["tasks", "audit", "OPEN"] or ["tasks", "audit", "NOWHERE"] => 4 "TASK_NOT_FOUND";
    "tasks update": ["tasks", "update", "OPEN", "--title", "Uno"] or
        ["tasks", "update", "HELD", "--status", "completed"] => 6 "TASK_LOCKED";
    "tasks next": ["tasks", "next"] or ["tasks", "next", "--section", "Backend"] => 10 "NOTHING_READY";
    "tasks claim": ["tasks", "claim", "OPEN", "--agent", "eve"] or
        ["tasks", "claim", "WAITS", "--agent", "eve"] => 10 "NOT_READY";
    "tasks renew": ["tasks", "renew", "HELD", "--agent", "bob"] or
        ["tasks", "renew", "HELD", "--agent", "eve"] => 8 "NOT_HOLDER";
    "tasks release": ["tasks", "release", "HELD", "--agent", "bob"] or
        ["tasks", "release", "HELD", "--fence", "2"] => 8 "LEASE_LOST";
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
    "tasks delete": ["tasks", "delete", "FAILED"] or ["tasks", "delete", "OPEN"] => 2 "INVALID_ARGUMENTS";
    "tasks depend": ["tasks", "depend", "FAILED", "--on", "OPEN"] or
        ["tasks", "depend", "OPEN", "--on", "WAITS"] => 2 "DEPENDENCY_CYCLE";
    "sections": ["sections"] or ["outside", "sections"] => 3 "NOT_INITIALIZED";
    "sections add": ["sections", "add", "New"] or ["sections", "add", "Backend"] => 2 "INVALID_ARGUMENTS";
    "sections list": ["sections", "list"] or ["outside", "sections", "list"] => 3 "NOT_INITIALIZED";
    "sections show": ["sections", "show", "Backend"] or ["sections", "show", "Nowhere"] => 4 "SECTION_NOT_FOUND";
    "sections update": ["sections", "update", "Docs", "--parallel"] or
        ["sections", "update", "Backend", "--parallel"] => 6 "SECTION_LOCKED";
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
    "projects remove": ["projects", "remove"] or ["outside", "projects", "remove"] => 1 "GENERAL_ERROR";
    "projects enable": ["projects", "enable"] or ["outside", "projects", "enable"] => 1 "GENERAL_ERROR";
    "projects disable": ["projects", "disable"] or ["outside", "projects", "disable"] => 1 "GENERAL_ERROR";
    "exclusive": ["exclusive"] or ["outside", "exclusive"] => 3 "NOT_INITIALIZED";
    "exclusive acquire": ["exclusive", "acquire", "--holder", "tool"] or
        ["exclusive", "acquire", "--holder", ""] => 2 "INVALID_ARGUMENTS";
    "exclusive release": ["exclusive", "release"] or ["outside", "exclusive", "release"] => 3 "NOT_INITIALIZED";
    "exclusive status": ["exclusive", "status"] or ["outside", "exclusive", "status"] => 3 "NOT_INITIALIZED";
    "exclusive run": ["exclusive", "run", "--holder", "tool", "--", "true"] or
        ["exclusive", "run", "--holder", "tool"] => 2 "INVALID_ARGUMENTS";
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
    // Quiet, because they say that they have removed the stale lock.
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
    "config path": ["config", "path"] or ["config", "path", "-C", "nowhere"] => 2 "INVALID_ARGUMENTS";
    "config validate": ["config", "validate"] or ["config", "validate", "wrong.yaml"] => 3 "CONFIG_ERROR";
    "config edit": ["config", "edit"] or ["config", "edit", "--config", "wrong.yaml"] => 3 "CONFIG_ERROR";
    "prime": ["prime"] or ["outside", "prime"] => 3 "NOT_INITIALIZED";
    "doctor": ["doctor"] or ["doctor", "everything"] => 2 "INVALID_ARGUMENTS";
    "mcp": ["mcp"] or ["mcp", "--http", "0.0.0.0:7077"] => 2 "INVALID_ARGUMENTS";
    "setup": ["setup", "claude", "--mcp"] or ["setup", "claude", "--mcp", "--check"] => 7 "CHECK_FAILED";
    "store": ["store", "copy", "--to", "sqlite:copy.db"] or ["store"] => 2 "INVALID_ARGUMENTS";
    "store copy": ["store", "copy", "--to", "sqlite:copy.db"] or
        ["store", "copy", "--to", "mysql://ann:secret@host/work"] => 3 "CONFIG_ERROR";
    "bench": ["bench", "locks", "--quick"] or ["bench", "--dry-run"] => 2 "INVALID_ARGUMENTS";
    "completions": ["completions", "bash"] or ["completions", "tcsh"] => 2 "INVALID_ARGUMENTS";
    "man": ["man"] or ["man", "nothing"] => 2 "INVALID_ARGUMENTS";
};

fn prepare() -> TestEnv {
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
    // Nothing that any example does makes a runner start.
    env.write(
        "home/.tenure/config.yaml",
        "hooks: [{name: idle, event: runner.started, type: script, command: 'true'}]\n\
         presets: {mine: {command: ['true']}}\n",
    );
    // Left by a process that is no more, so it is in nobody's way.
    let stale = format!(
        r#"{{"holder":"gone","pid":{},"hostname":"{}","started_at":"2026-01-02T03:04:05Z"}}"#,
        i32::MAX,
        tenure_lock::hostname()
    );
    env.write("work/.tenure/.exclusive-lock", &stale);
    env.write("work/wrong.yaml", "lockng: {}\n");
    // Nobody's real crontab.
    let bin = env.write("bin/crontab", "#!/bin/sh\necho 'no crontab for ann' >&2\nexit 1\n");
    std::fs::set_permissions(&bin, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    let path = format!("{}:{}", bin.parent().unwrap().display(), std::env::var("PATH").unwrap());
    env.set("EDITOR", "true").set("PATH", path);
    env.write("work/list.txt", "one\ntwo\n");
    work_rows::job(&env, "job", None, &[ItemOutcome::Succeeded]);
    work_rows::job(&env, "changed", Some("work/list.txt"), &[]);
    work_rows::session(&env);
    env.set("EDITOR", "true").set("PATH", std::env::var("PATH").unwrap());
    env
}

/// The demo waits for real leases, so it needs the real clock; a command is started by our own binary.
fn run(env: &mut TestEnv, words: &[&str]) -> Ran {
    env.cd("work");
    let words = match words {
        ["outside", rest @ ..] => {
            env.cd("elsewhere");
            rest
        }
        _ => words,
    };
    if words.starts_with(&["store", "copy"]) {
        // Nothing may be held.
        env.later(std::time::Duration::from_hours(1));
    }
    if words.contains(&"demo")
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

/// Every way to name a command: `tasks`, `tasks add`, and so on. What tenure calls itself is nobody's to name.
pub(crate) fn commands() -> Vec<(String, clap::Command)> {
    fn walk(prefix: &str, command: &clap::Command, found: &mut Vec<(String, clap::Command)>) {
        for sub in command.get_subcommands().filter(|sub| !sub.is_hide_set()) {
            let path = format!("{prefix}{}", sub.get_name());
            found.push((path.clone(), sub.clone()));
            walk(&format!("{path} "), sub, found);
        }
    }
    let mut found = Vec::new();
    walk("", &tenure::command(), &mut found);
    found
}

/// `command` and `subcommand` as the envelope must have them. A family alone does what its list does.
fn names(path: &str) -> (String, Option<String>) {
    let mut words = path.split(' ').map(str::to_owned);
    let command = words.next().unwrap();
    let alone = match command.as_str() {
        "tasks" | "sections" | "locks" | "agents" | "msg" | "projects" | "hooks" | "runners" | "jobs"
        | "sessions" => Some("list".to_owned()),
        "exclusive" => Some("status".to_owned()),
        "config" => Some("show".to_owned()),
        // It has but one verb, and is nothing without it.
        "store" => Some("copy".to_owned()),
        _ => None,
    };
    (command, words.next().or(alone))
}

fn check_envelope(example: &Example, ran: &Ran, success: bool) {
    assert_eq!(ran.out.lines().count(), 1, "one object on one line: {ran}");
    let envelope = ran.envelope();
    let keys: BTreeSet<&str> = envelope.as_object().unwrap().keys().map(String::as_str).collect();
    let always = BTreeSet::from(["schemaVersion", "success", "command", "subcommand", "data", "error"]);
    assert!(always.is_subset(&keys), "{ran}");
    assert!(keys.iter().all(|key| always.contains(key) || ["hints", "dryRun"].contains(key)), "{ran}");
    assert_eq!(envelope["schemaVersion"], 1, "{ran}");
    assert_eq!(envelope["success"], success, "{ran}");
    let (command, subcommand) = names(example.path);
    assert_eq!(envelope["command"], command.as_str(), "{ran}");
    // A family whose own flags are wrong has not come as far as a subcommand.
    if success || example.path.contains(' ') {
        assert_eq!(envelope["subcommand"].as_str(), subcommand.as_deref(), "{ran}");
    }
    let (filled, null) = if success { ("data", "error") } else { ("error", "data") };
    assert!(envelope[filled].is_object(), "{ran}");
    assert_eq!(envelope[null], Value::Null, "{ran}");
    if !success {
        assert!(envelope["error"]["code"].is_string() && envelope["error"]["message"].is_string(), "{ran}");
        assert!(envelope["error"].as_object().unwrap().contains_key("details"), "{ran}");
    }
    check_names(&envelope["data"], ran);
    check_names(&envelope["error"]["details"], ran);
    for hint in envelope["hints"].as_array().into_iter().flatten() {
        let command = hint["command"].as_str().unwrap();
        assert!(!command.contains("--force"), "agents follow hints: {ran}");
        if command.starts_with("tenure ") {
            let parsed = tenure::command().try_get_matches_from(shell_words(command));
            assert!(parsed.is_ok(), "a hint works when pasted: {ran}");
        }
    }
}

/// camelCase, times that end in `Z`, durations that end in `Ms`; not inside what the user named.
fn check_names(value: &Value, ran: &Ran) {
    match value {
        Value::Object(fields) => {
            for (key, value) in fields {
                let users_own = key.contains('.');
                // Statuses are words of their own, also where they are keys.
                assert!(users_own || key == "in_progress" || !key.contains(['_', '-', ' ']), "{key}: {ran}");
                if key.ends_with("At") && !value.is_null() {
                    assert!(value.as_str().unwrap().ends_with('Z'), "{key}: {ran}");
                }
                if key.ends_with("Ms") {
                    assert!(value.is_u64(), "{key}: {ran}");
                }
                check_names(value, ran);
            }
        }
        Value::Array(items) => items.iter().for_each(|item| check_names(item, ran)),
        _ => {}
    }
}

#[test]
fn the_table_of_examples_has_every_command() {
    let there: BTreeSet<String> = commands().into_iter().map(|(path, _)| path).collect();
    let told: BTreeSet<String> = EXAMPLES.iter().map(|example| example.path.to_owned()).collect();
    assert_eq!(
        there.difference(&told).collect::<Vec<_>>(),
        Vec::<&String>::new(),
        "commands without examples"
    );
    assert_eq!(
        told.difference(&there).collect::<Vec<_>>(),
        Vec::<&String>::new(),
        "examples without a command"
    );
}

#[test]
fn every_command_answers_success_with_an_envelope_and_zero() {
    // What `mcp` says is a protocol of its own.
    for example in EXAMPLES.iter().filter(|example| example.path != "mcp") {
        let mut words = example.good.to_vec();
        let end = words.iter().position(|word| *word == "--").unwrap_or(words.len());
        words.insert(end, "--json");
        let ran = run(&mut prepare(), &words);
        assert_eq!(ran.code, 0, "{ran}");
        check_envelope(example, &ran, true);
        assert!(ran.err.is_empty(), "nothing else is said: {ran}");
    }
}

#[test]
fn every_command_answers_failure_with_an_envelope_and_its_exit_code() {
    let mut env = prepare();
    for example in EXAMPLES {
        let mut words = example.bad.to_vec();
        words.insert(usize::from(words[0] == "outside"), "--json");
        let ran = run(&mut env, &words);
        assert_eq!((ran.code, ran.error_code().as_str()), (example.exit, example.code), "{ran}");
        check_envelope(example, &ran, false);
    }
}

#[test]
fn every_failure_as_text_is_one_error_on_standard_error_and_nothing_else() {
    let mut env = prepare();
    for example in EXAMPLES {
        let ran = run(&mut env, example.bad);
        assert_eq!(ran.code, example.exit, "{ran}");
        assert!(ran.out.is_empty(), "{ran}");
        assert!(ran.err.starts_with("Error: "), "{ran}");
        assert_eq!(ran.err.matches("Error:").count(), 1, "{ran}");
        assert!(!ran.err.contains("--force") && !ran.err.contains("os error"), "{ran}");
    }
}

#[test]
fn every_command_has_help_with_an_example_that_names_it() {
    let env = TestEnv::new();
    for (path, command) in commands() {
        let mut words: Vec<&str> = path.split(' ').collect();
        words.push("--help");
        let ran = env.ok(&words);
        let example = ran.out.lines().find_map(|line| line.strip_prefix("Example: "));
        let example = example.unwrap_or_else(|| panic!("no example: {ran}"));
        let family = path.split(' ').next().unwrap();
        assert!(example.contains("tenure") && example.contains(family), "{path}: {example}");
        for argument in command.get_arguments().filter(|argument| argument.get_id() != "help") {
            assert!(argument.get_help().is_some(), "{path}: {} has no help", argument.get_id());
        }
        assert!(env.json(&words).data()["help"].is_string());
    }
}

#[test]
fn the_example_in_the_help_of_every_command_is_one_that_the_parser_takes() {
    let env = TestEnv::new();
    for (path, _) in commands() {
        let mut words: Vec<&str> = path.split(' ').collect();
        words.push("--help");
        let help = env.ok(&words).out;
        let example = help.lines().find_map(|line| line.strip_prefix("Example: ")).unwrap();
        let (_, from) = example.split_once("tenure ").unwrap();
        let line = from.split([')', '|', '>', '&']).next().unwrap();
        let mut args = vec!["tenure".to_owned()];
        args.extend(shell_words(line));
        tenure::command().try_get_matches_from(&args).unwrap_or_else(|e| panic!("{example}: {e}"));
    }
}

/// Words as a shell splits them, as far as the examples need it.
fn shell_words(line: &str) -> Vec<String> {
    let mut words = Vec::new();
    for (index, part) in line.split('\'').enumerate() {
        if index % 2 == 1 {
            words.push(part.to_owned());
        } else {
            words.extend(part.split_whitespace().map(str::to_owned));
        }
    }
    words
}
