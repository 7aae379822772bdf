use std::io::Write;
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

use serde_json::Value;
use tenure_core::config::{Hook, HookAction};
use tenure_runner::hooks::{Failure, HookEnvironment, run};

use super::{Project, hook, is_running, titled, wait_for};

#[test]
fn arguments_arrive_verbatim_because_there_is_no_shell() {
    let project = Project::new().var("TOKEN", "s3cret");
    let hook = project.script(
        "printf '%s\\0' \"$@\" > args",
        &["{{task.title}}", "--key={{task.key}}", "$HOME `id`", "${TOKEN}"],
    );
    let title = "it's \"quoted\" $(touch oops) `touch oops` ; touch oops\n${TOKEN} {{task.key}} * ü";
    let outcome = project.run(&hook, &titled(title));
    assert_eq!(outcome.failure(), None, "{outcome:?}");
    assert_eq!(project.read("args"), format!("{title}\0--key=F001\0$HOME `id`\0s3cret\0"));
    assert!(!project.path("oops").exists());
    assert!(!project.log_text().contains("s3cret"));
}

#[test]
fn a_script_gets_the_event_on_its_input_and_nothing_of_the_callers_lease() {
    let project = Project::new().var("TENURE_ATTEMPT", "mark").var("TENURE_FENCE", "7").var("KEPT", "yes");
    let hook = project.script("cat > payload; env > env; pwd -P > pwd; cat /dev/tty > /dev/null 2> tty", &[]);
    // The last command fails, because a hook has no terminal.
    assert!(matches!(project.run(&hook, &titled("a")).failure(), Some(Failure::Exit(_))));
    let payload: Value = serde_json::from_str(&project.read("payload")).unwrap();
    assert_eq!(payload["event"], "task.completed");
    assert_eq!(
        (&payload["at"], &payload["project"]["name"]),
        (&"1970-01-01T00:00:00.000Z".into(), &"sample".into())
    );
    assert_eq!(payload["task"]["title"], "a");
    let env = project.read("env");
    for expected in [
        "KEPT=yes\n",
        "TENURE_ATTEMPT=\n",
        "TENURE_NO_HOOKS=1\n",
        "TENURE_HOOK=sample\n",
        "TENURE_EVENT=task.completed\n",
    ] {
        assert!(env.contains(expected), "{expected}{env}");
    }
    assert!(!env.contains("TENURE_FENCE"));
    assert_eq!(
        project.read("pwd").trim_end(),
        project.folder.path().canonicalize().unwrap().to_str().unwrap()
    );
}

#[test]
fn a_script_need_not_read_its_input() {
    let project = Project::new();
    let hook = project.script("exit 0", &[]);
    assert_eq!(project.run(&hook, &titled(&"x".repeat(1_000_000))).failure(), None);
}

#[test]
fn a_script_that_exceeds_its_timeout_is_killed_with_all_its_processes() {
    let project = Project::new();
    let script = "trap '' TERM\n(trap '' TERM; sh -c 'echo $$ > grandchild; exec sleep 1000') &\necho $$ > child\nwhile :; do sleep 1; done";
    let hook = Hook { timeout: Duration::from_millis(500), ..project.script(script, &[]) };
    let begin = Instant::now();
    let outcome = project.run(&hook, &titled("a"));
    assert_eq!(outcome.failure(), Some(&Failure::TimedOut(Duration::from_millis(500))));
    assert!(begin.elapsed() < Duration::from_secs(15));
    for name in ["child", "grandchild"] {
        let pid = project.read(name).trim().to_owned();
        assert!(!pid.is_empty(), "{name} never started");
        wait_for(name, || !is_running(&pid));
    }
}

#[test]
fn a_failure_is_reported_with_its_exit_code_and_its_last_line() {
    let project = Project::new().var("TOKEN", "s3cret-value");
    let hook = project.script("echo first; echo \"no: $1 \u{1b}[31m\" >&2; exit 3", &["${TOKEN}"]);
    let outcome = project.run(&hook, &titled("a"));
    assert_eq!(outcome.failure(), Some(&Failure::Exit(3)));
    assert_eq!(outcome.said.as_deref(), Some("no: ${TOKEN} \\x1b[31m"));
    assert_eq!(
        outcome.warning().unwrap(),
        "hook sample on task.completed failed: it exited with 3; it said: no: ${TOKEN} \\x1b[31m"
    );
    let log: Value = serde_json::from_str(project.log_text().lines().next().unwrap()).unwrap();
    assert_eq!((&log["hook"], &log["outcome"]), (&"sample".into(), &"failed".into()));
    assert_eq!((&log["error"], &log["task"]), (&"it exited with 3".into(), &"F001".into()));
    assert!(!format!("{outcome:?}{}", project.log_text()).contains("s3cret-value"));
}

#[test]
fn a_script_that_floods_its_output_is_not_blocked_and_only_its_last_line_is_kept() {
    let project = Project::new();
    let hook = project.script("yes 0123456789 | head -c 20000000; echo; echo last words; kill -9 $$", &[]);
    let outcome = project.run(&hook, &titled("a"));
    assert_eq!(outcome.failure(), Some(&Failure::Signal(9)));
    assert_eq!(outcome.said.as_deref(), Some("last words"));
}

#[test]
fn a_background_process_of_a_script_is_not_waited_for() {
    let project = Project::new();
    let hook = project.script("sleep 1000 &\necho $! > left", &[]);
    let begin = Instant::now();
    assert_eq!(project.run(&hook, &titled("a")).failure(), None);
    assert!(begin.elapsed() < Duration::from_secs(15));
    let left = project.read("left");
    assert!(std::process::Command::new("kill").arg(left.trim()).status().unwrap().success());
}

#[test]
fn a_failing_script_is_retried() {
    let project = Project::new();
    let hook = Hook { retry: 2, ..project.script("echo x >> tries; test $(wc -l < tries) -ge 2", &[]) };
    let outcome = project.run(&hook, &titled("a"));
    assert_eq!((outcome.failure(), outcome.tries, project.read("tries").as_str()), (None, 2, "x\nx\n"));
}

#[test]
fn a_script_that_cannot_be_started_is_reported_and_not_retried() {
    let project = Project::new().var("PLACE", "s3cret/place");
    let script = |command: &str, arg: &str| Hook {
        retry: 5,
        ..hook(HookAction::Script { command: command.into(), args: vec![arg.into()] })
    };
    for (hook, message) in [
        (script("no-such-program", ""), "no-such-program was not found on PATH"),
        (script("./gone.sh", ""), "there is no "),
        (script("/${PLACE}/x", ""), "it could not be started: there is no /${PLACE}/x"),
        (script("true", "${UNSET}"), "args[0]: the variable UNSET is not set"),
        (script("true", "{{runner.id}}"), "args[0]: there is no {{runner.id}} for this event"),
        (script("./{{task.title}}", ""), "command: placeholders are not allowed here"),
    ] {
        let outcome = project.run(&hook, &titled("a"));
        let failure = outcome.failure().unwrap().to_string();
        assert!(failure.starts_with(message) && outcome.tries <= 1, "{failure}");
    }
    assert!(!project.log_text().contains("s3cret"));
}

#[test]
fn a_request_to_stop_ends_the_script() {
    let project = Project::new();
    let hook = project.script("echo $$ > child; exec sleep 1000", &[]);
    let (stop, mut asked) = UnixStream::pair().unwrap();
    let outcome = std::thread::scope(|scope| {
        scope.spawn(|| {
            wait_for("the script", || !project.read("child").is_empty());
            asked.write_all(b"x").unwrap();
        });
        let log = project.log();
        run(&hook, &titled("a"), &HookEnvironment { stop: Some(stop.as_fd()), ..project.environment(&log) })
    });
    assert_eq!(outcome.failure(), Some(&Failure::Stopped));
    assert!(!is_running(project.read("child").trim()));
}
