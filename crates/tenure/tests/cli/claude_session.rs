//! A simulated Claude Code session: the hooks from the settings that `setup` has written, run as Claude Code's
//! documentation describes, and shell calls that share nothing but the exports file.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use tenure_core::{Clock, SystemClock};
use tenure_testkit::cli::until;

use crate::support::{Ran, TestEnv};

struct Project {
    env: TestEnv,
}

/// The result of one hook or shell call.
#[derive(Debug)]
struct Done {
    code: i32,
    out: String,
    err: String,
}

impl Project {
    fn new() -> Self {
        let mut env = TestEnv::project();
        let binaries = Path::new(env!("CARGO_BIN_EXE_tenure")).parent().unwrap();
        env.set("PATH", format!("{}:{}", binaries.display(), std::env::var("PATH").unwrap()));
        let project = Self { env };
        project.cli(&["setup", "claude"]);
        for key in ["F001", "F002", "F003"] {
            project.cli(&["tasks", "add", key, "--id", key]);
        }
        project
    }

    fn try_cli(&self, words: &[&str]) -> Ran {
        self.env.finish(self.env.process(words))
    }

    fn cli(&self, words: &[&str]) -> Ran {
        self.try_cli(words).exits(0)
    }

    fn session(&self, id: &str) -> Session<'_> {
        let folder = self.env.path("home/.claude/session-env").join(id);
        std::fs::create_dir_all(&folder).unwrap();
        Session { project: self, id: id.to_owned(), exports: folder.join("sessionstart-hook-0.sh") }
    }

    /// The commands of one event, exactly as they are written.
    fn hooks_of(&self, event: &str) -> Vec<String> {
        let settings: Value =
            serde_json::from_slice(&std::fs::read(self.env.path("work/.claude/settings.json")).unwrap())
                .unwrap();
        let groups = settings["hooks"][event].as_array().unwrap();
        let hooks = groups.iter().flat_map(|group| group["hooks"].as_array().unwrap());
        hooks.map(|hook| hook["command"].as_str().unwrap().to_owned()).collect()
    }

    fn holder(&self, key: &str) -> Option<String> {
        let lease = self.cli(&["--json", "tasks", "show", key]).data()["task"]["lease"].clone();
        lease["holder"]["id"].as_str().map(str::to_owned)
    }

    /// The remaining time of the lease, in whole minutes.
    fn minutes_left(&self, key: &str) -> i64 {
        (self.query(&format!("SELECT expires_at FROM leases WHERE {}", lease_of(key))) - now() + 30_000)
            / 60_000
    }

    /// Moves the expiry of a lease, as if time had passed.
    fn ends_in(&self, key: &str, minutes: i64) {
        let line = format!("UPDATE leases SET expires_at = ?1 WHERE {}", lease_of(key));
        assert_eq!(self.store().execute(&line, [now() + minutes * 60_000]).unwrap(), 1);
    }

    fn query(&self, sql: &str) -> i64 {
        self.store().query_row(sql, [], |row| row.get(0)).unwrap()
    }

    fn store(&self) -> rusqlite::Connection {
        let store = rusqlite::Connection::open(self.env.path("work/.tenure/tenure.db")).unwrap();
        store.busy_timeout(Duration::from_secs(30)).unwrap();
        store
    }
}

fn lease_of(key: &str) -> String {
    format!(
        "ended_at IS NULL AND resource_kind = 'task' AND resource_id = (SELECT id FROM tasks WHERE key = '{key}')"
    )
}

fn now() -> i64 {
    SystemClock.now().as_millis()
}

fn finish(mut child: Child, input: &[u8]) -> Done {
    // A hook need not read its input.
    let _ = child.stdin.take().unwrap().write_all(input);
    let output = child.wait_with_output().unwrap();
    let text = |bytes| String::from_utf8(bytes).unwrap();
    Done { code: output.status.code().unwrap(), out: text(output.stdout), err: text(output.stderr) }
}

struct Session<'p> {
    project: &'p Project,
    id: String,
    exports: PathBuf,
}

impl Session<'_> {
    fn agent(&self) -> String {
        format!("claude-{}", self.id)
    }

    fn hook_command(&self, line: &str, event: &str) -> Command {
        let env = &self.project.env;
        let mut command = Command::new("sh");
        command.args(["-c", line]).env_clear().envs(&env.env.vars).current_dir(env.path("work"));
        command.env("CLAUDE_PROJECT_DIR", env.path("work"));
        if event == "SessionStart" {
            command.env("CLAUDE_ENV_FILE", &self.exports);
        }
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        command
    }

    /// Runs the hooks of an event with the input that Claude Code gives them. Returns what they printed.
    fn hook(&self, event: &str, more: Value) -> String {
        let mut input = json!({
            "session_id": self.id,
            "transcript_path": "/home/ann/.claude/projects/shop/x.jsonl",
            "cwd": self.project.env.path("work"),
            "hook_event_name": event,
        });
        input.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        let mut printed = String::new();
        for line in self.project.hooks_of(event) {
            let child = self.hook_command(&line, event).spawn().unwrap();
            let done = finish(child, input.to_string().as_bytes());
            assert_eq!((done.code, done.err.as_str()), (0, ""), "{line}: {done:?}");
            printed.push_str(&done.out);
        }
        printed
    }

    fn start(&self, source: &str) -> String {
        self.hook("SessionStart", json!({"source": source}))
    }

    fn use_tool(&self) {
        let tool = json!({"tool_name": "Read", "tool_input": {}, "tool_response": "x".repeat(200_000)});
        assert_eq!(self.hook("PostToolUse", tool), "", "the hook after a tool prints nothing");
    }

    fn end(&self, reason: &str) {
        assert_eq!(self.hook("SessionEnd", json!({"reason": reason})), "");
    }

    /// One call of the shell tool: a separate shell without a terminal.
    fn shell(&self, line: &str) -> Done {
        let env = &self.project.env;
        let whole = format!("[ ! -e \"$EXPORTS\" ] || . \"$EXPORTS\"\n{line}");
        let mut command = Command::new("setsid");
        command
            .args(["-w", "bash", "-c", &whole])
            .env_clear()
            .envs(&env.env.vars)
            .env("EXPORTS", &self.exports);
        command
            .current_dir(env.path("work"))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        finish(command.spawn().unwrap(), b"")
    }

    fn shell_ok(&self, line: &str) -> String {
        let done = self.shell(line);
        assert_eq!(done.code, 0, "{line}: {done:?}");
        done.out
    }
}

const ONE: &str = "3f0c1a9e-0d5b-4c52-9d3e-0a1b2c3d4e5f";
const TWO: &str = "7b1d2c3e-1111-4222-8333-444455556666";

#[test]
fn a_session_claims_in_one_shell_call_and_finishes_in_another() {
    let project = Project::new();
    let session = project.session(ONE);
    let page = session.start("startup");
    assert!(page.contains(&format!("You are {}", session.agent())), "{page}");
    assert!(page.contains("- F001") && page.contains("tenure task claim F001"), "{page}");
    session.shell_ok("tenure task next --claim");
    assert_eq!(project.holder("F001"), Some(session.agent()));
    session.use_tool();
    session.shell_ok("tenure task check F001");
    session.shell_ok("tenure task done F001");
    session.use_tool();
    session.end("prompt_input_exit");
    assert_eq!(project.holder("F001"), None);
    assert_eq!(project.cli(&["--json", "tasks", "show", "F001"]).data()["task"]["status"], "completed");
}

#[test]
fn two_concurrent_sessions_are_two_holders() {
    let project = Project::new();
    let (one, two) = (project.session(ONE), project.session(TWO));
    one.start("startup");
    two.start("startup");
    one.shell_ok("tenure task claim F001");
    let refused = two.shell("tenure task claim F001");
    assert_eq!(refused.code, 6, "{refused:?}");
    assert!(refused.err.contains(&one.agent()), "{refused:?}");
    assert_eq!(two.shell("tenure task done F001").code, 8);
    two.shell_ok("tenure task next --claim");
    assert_eq!((project.holder("F001"), project.holder("F002")), (Some(one.agent()), Some(two.agent())));
    one.end("other");
    assert_eq!((project.holder("F001"), project.holder("F002")), (None, Some(two.agent())));
}

#[test]
fn a_lease_is_renewed_after_a_tool_call_only_when_half_of_its_time_is_over() {
    let project = Project::new();
    let session = project.session(ONE);
    session.start("startup");
    session.shell_ok("tenure task claim F001 --ttl 60m");
    session.shell_ok("tenure task claim F002 --ttl 60m");
    project.cli(&["tasks", "claim", "F003", "--agent", "bob", "--ttl", "60m"]);
    project.ends_in("F001", 40);
    project.ends_in("F002", 20);
    project.ends_in("F003", 20);
    session.use_tool();
    let left = ["F001", "F002", "F003"].map(|key| project.minutes_left(key));
    assert_eq!(left, [40, 60, 20], "not due, due, and held by another agent");
    // Nothing is written if no renewal is due.
    let beats = || project.query("SELECT sum(heartbeat_at) FROM leases");
    let before = beats();
    session.use_tool();
    assert_eq!(beats(), before);
}

#[test]
fn a_tool_call_that_fails_renews_as_well() {
    let project = Project::new();
    let session = project.session(ONE);
    session.start("startup");
    session.shell_ok("tenure task claim F001 --ttl 60m");
    project.ends_in("F001", 20);
    let failed = json!({"tool_name": "Bash", "tool_input": {}, "error": "exit 1"});
    assert_eq!(session.hook("PostToolUseFailure", failed), "");
    assert_eq!(project.minutes_left("F001"), 60);
}

#[test]
fn a_lease_that_expired_and_was_not_taken_over_is_renewed_and_released() {
    let project = Project::new();
    let session = project.session(ONE);
    session.start("startup");
    session.shell_ok("tenure task claim F001 --ttl 60m && tenure task claim F002 --ttl 60m");
    project.ends_in("F001", -5);
    session.use_tool();
    assert_eq!(project.minutes_left("F001"), 60);
    project.ends_in("F002", -5);
    session.end("other");
    assert_eq!(["F001", "F002"].map(|key| project.holder(key)), [None, None]);
    let open = project.query("SELECT count(*) FROM leases WHERE ended_at IS NULL AND resource_kind = 'task'");
    assert_eq!(open, 0, "the expired lease was closed, too");
}

#[test]
fn a_lease_that_a_clean_up_has_closed_is_renewed_unless_another_comes_first() {
    let project = Project::new();
    let session = project.session(ONE);
    session.start("startup");
    session.shell_ok("tenure task claim F001 --ttl 60m && tenure task claim F002 --ttl 60m");
    session.shell_ok("tenure task claim F003 --ttl 60m");
    let mut waiter = project.env.process(&["-q", "tasks", "claim", "F003", "--wait", "--agent", "carl"]);
    let mut waiter = waiter.spawn().unwrap();
    until("it waits", || project.query("SELECT count(*) FROM tickets") == 1);
    for key in ["F001", "F002", "F003"] {
        project.ends_in(key, -5);
    }
    project.cli(&["locks", "cleanup"]);
    assert_eq!(project.holder("F001"), None, "the clean-up has returned the task");
    project.cli(&["tasks", "claim", "F002", "--agent", "bob"]);
    // Whether the waiter has been granted F003 yet or not.
    session.use_tool();
    assert!(waiter.wait().unwrap().success());
    let holders = ["F001", "F002", "F003"].map(|key| project.holder(key));
    assert_eq!(holders, [Some(session.agent()), Some("bob".to_owned()), Some("carl".to_owned())]);
    assert_eq!(project.minutes_left("F001"), 60);
    // The session learns of it from the next command that uses the lost lease.
    let lost = session.shell("tenure task check F002");
    assert_eq!(lost.code, 8, "{lost:?}");
    assert!(lost.err.contains("bob"), "{lost:?}");
}

/// Claude Code ends the hooks of a session's end after 1.5 seconds, and waits longer for the others.
#[test]
fn the_end_of_a_session_waits_less_for_a_busy_store_than_a_tool_call() {
    let project = Project::new();
    let session = project.session(ONE);
    session.start("startup");
    session.shell_ok("tenure task claim F001 --ttl 60m");
    project.ends_in("F001", 20);
    let store = project.store();
    store.execute_batch("BEGIN IMMEDIATE").unwrap();
    let timed = |hook: &dyn Fn()| {
        let begun = Instant::now();
        hook();
        begun.elapsed()
    };
    let (tool, end) = (timed(&|| session.use_tool()), timed(&|| session.end("other")));
    store.execute_batch("ROLLBACK").unwrap();
    assert!(end * 3 / 2 < tool, "{end:?} at the end, {tool:?} after a tool call");
    assert!(project.holder("F001").is_some(), "what could not be released expires");
}

#[test]
fn the_end_of_a_session_releases_only_its_own_tasks() {
    for reason in ["clear", "resume", "logout", "prompt_input_exit", "other", "what; next\n"] {
        let project = Project::new();
        let session = project.session(ONE);
        session.start("startup");
        session.shell_ok("tenure task claim F001 && tenure task claim F002");
        project.cli(&["tasks", "claim", "F003", "--agent", "bob"]);
        session.end(reason);
        let holders = ["F001", "F002", "F003"].map(|key| project.holder(key));
        assert_eq!(holders, [None, None, Some("bob".to_owned())], "{reason}");
        let audit = project.cli(&["tasks", "audit", "F001"]).out;
        assert!(audit.contains("its Claude Code session ended"), "{audit}");
        assert_eq!(audit.contains(&format!("({reason})")), !reason.contains(';'), "{audit}");
        let agents = project.cli(&["agents", "list"]).out;
        assert!(
            agents.lines().any(|line| line.contains(&session.agent()) && line.contains("left")),
            "{agents}"
        );
        // A second end changes nothing.
        let events = project.query("SELECT count(*) FROM events WHERE kind LIKE '%status%'");
        session.end(reason);
        assert_eq!(project.query("SELECT count(*) FROM events WHERE kind LIKE '%status%'"), events);
    }
}

#[test]
fn the_lease_of_a_dead_session_expires() {
    let project = Project::new();
    let (dead, next) = (project.session(ONE), project.session(TWO));
    dead.start("startup");
    dead.shell_ok("tenure task claim F001");
    next.start("startup");
    assert_eq!(next.shell("tenure task claim F001").code, 6);
    project.ends_in("F001", -1);
    next.shell_ok("tenure task claim F001");
    // If the old session was only suspended and continues, it does not get the task back.
    dead.use_tool();
    dead.end("other");
    assert_eq!(project.holder("F001"), Some(next.agent()));
    assert_eq!(dead.shell("tenure task done F001").code, 8);
}

#[test]
fn a_resumed_session_keeps_its_agent_name_and_a_cleared_one_gets_another() {
    let project = Project::new();
    let session = project.session(ONE);
    session.start("startup");
    session.shell_ok("tenure task claim F001");
    let exports = || std::fs::read_to_string(&session.exports).unwrap();
    let first = exports();
    for source in ["compact", "resume", "compact"] {
        let page = session.start(source);
        assert!(page.contains("You hold:\n- F001"), "{page}");
    }
    assert_eq!(exports(), first, "nothing is exported twice");
    let again = session.shell_ok("tenure --json task claim F001");
    assert!(again.contains("\"reacquired\":true"), "{again}");
    // After `clear` it is another conversation, in older versions with the same exports file.
    session.end("clear");
    let cleared = Session { project: &project, id: TWO.to_owned(), exports: session.exports.clone() };
    cleared.start("clear");
    assert_eq!(cleared.shell_ok("printf %s \"$TENURE_AGENT\""), cleared.agent());
    cleared.shell_ok("tenure task claim F001");
    // Another program has written to the file without a final newline.
    std::fs::write(&session.exports, "export OTHER=1").unwrap();
    session.start("resume");
    assert_eq!(session.shell_ok("printf %s \"$TENURE_AGENT $OTHER\""), format!("{} 1", session.agent()));
}

#[test]
fn a_session_with_a_given_name_uses_it_and_does_not_release_its_other_leases() {
    let mut project = Project::new();
    project.env.set("TENURE_AGENT", "ann");
    project.cli(&["tasks", "claim", "F001", "--ttl", "60m"]);
    project.ends_in("F001", 20);
    let session = project.session(ONE);
    let page = session.start("startup");
    assert!(page.contains("You are ann") && page.contains("You hold:\n- F001"), "{page}");
    assert!(!session.exports.exists());
    session.use_tool();
    assert_eq!(project.minutes_left("F001"), 60);
    session.end("other");
    assert_eq!(project.holder("F001").as_deref(), Some("ann"));
}

#[test]
fn a_session_that_was_started_for_one_task_sees_no_other_task() {
    let project = Project::new();
    // As a runner does: the agent gets its task, its name and its lease from the environment.
    let line = format!(
        "echo '{{\"session_id\": \"{ONE}\"}}' | tenure claude-hook session-start; \
         echo '{{\"session_id\": \"{ONE}\"}}' | tenure claude-hook session-end; tenure task check F001"
    );
    let ran = project.cli(&["tasks", "run", "F001", "--agent", "bob", "--", "sh", "-c", &line]);
    assert!(!ran.out.contains("F002") && !ran.out.contains("tenure hands out"), "{ran}");
}

#[test]
fn the_end_of_a_session_keeps_leases_that_are_bound_to_a_process() {
    let project = Project::new();
    let session = project.session(ONE);
    session.start("startup");
    let mut process = Command::new("sleep").arg("120").spawn().unwrap();
    session.shell_ok(&format!("tenure task claim F001 --ttl 60m --while-pid {}", process.id()));
    session.end("other");
    let holder = project.holder("F001");
    process.kill().unwrap();
    process.wait().unwrap();
    assert_eq!(holder, Some(session.agent()));
}

#[test]
fn a_hook_never_fails_and_prints_nothing_without_a_usable_project() {
    let project = Project::new();
    let session = project.session(ONE);
    let good = json!({"session_id": ONE, "reason": "other"}).to_string();
    let elsewhere = project.env.path("elsewhere");
    std::fs::create_dir(&elsewhere).unwrap();
    let odd = json!({"session_id": "a b; touch x"}).to_string();
    let long = format!("{{\"session_id\": \"{ONE}\", \"tool_response\": \"{}\"}}", "x".repeat(17 << 20));
    let none = json!({"session_id": null}).to_string();
    let quiet = |what: &str, change: &dyn Fn(&mut Command), input: &str| {
        for event in ["SessionStart", "PostToolUse", "SessionEnd"] {
            for line in project.hooks_of(event) {
                let mut command = session.hook_command(&line, event);
                change(&mut command);
                let done = finish(command.spawn().unwrap(), input.as_bytes());
                assert_eq!((done.code, done.out.as_str(), done.err.as_str()), (0, "", ""), "{what}: {event}");
                if what == "no tenure" {
                    continue;
                }
                // The suffix is for machines without tenure. The command itself also prints nothing.
                let bare = line.strip_suffix(" 2>/dev/null || true").unwrap();
                let mut command = session.hook_command(bare, event);
                change(&mut command);
                let done = finish(command.spawn().unwrap(), input.as_bytes());
                assert_eq!((done.code, done.out.as_str(), done.err.as_str()), (0, "", ""), "{what}: {event}");
            }
        }
    };
    for (what, input) in
        [("nothing", ""), ("garbage", "{"), ("odd", &odd), ("long", &long), ("none", &none), ("list", "[]")]
    {
        quiet(what, &|_| {}, input);
    }
    assert!(!session.exports.exists());
    quiet("no project", &|command| _ = command.env("CLAUDE_PROJECT_DIR", &elsewhere), &good);
    quiet("no tenure", &|command| _ = command.env("PATH", "/usr/bin:/bin"), &good);
    quiet("no folder", &|command| _ = command.env("TENURE_PROJECT", "/nowhere"), &good);
    for log in ["work/.tenure/tenure.db-wal", "work/.tenure/tenure.db-shm"] {
        let _ = std::fs::remove_file(project.env.path(log));
    }
    std::fs::write(
        project.env.path("work/.tenure/tenure.db"),
        "not a database at all, but long enough to look",
    )
    .unwrap();
    quiet("broken store", &|_| {}, &good);
    std::fs::write(project.env.path("work/.tenure/config.yaml"), "lockng: {}").unwrap();
    quiet("broken configuration", &|_| {}, &good);
}

#[test]
fn the_page_is_printed_as_text_or_as_a_claude_code_object() {
    let mut project = Project::new();
    let session = project.session(ONE);
    let page = session.start("startup");
    project.env.set("TENURE_JSON", "1");
    let session = project.session(ONE);
    let object: Value = serde_json::from_str(&session.start("resume")).unwrap();
    assert_eq!(object["hookSpecificOutput"]["hookEventName"], "SessionStart");
    assert_eq!(object["hookSpecificOutput"]["additionalContext"], page);
    assert!(page.len() < 10_000, "Claude Code truncates more");
}
