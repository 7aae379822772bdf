//! What is not supported on Windows yet, tested in a simulation that refuses the same commands.

use serde_json::Value;
use tenure_testkit::cli::skip;

use crate::support::TestEnv;

/// The exit code and the JSON of a command on a system that cannot supervise processes.
fn on_windows(env: &TestEnv, args: &[&str]) -> (i32, Value) {
    let output =
        env.process(args).env("TENURE_SIMULATE", "windows").env("TENURE_JSON", "1").output().unwrap();
    let text = if output.stdout.is_empty() { &output.stderr } else { &output.stdout };
    let answer = serde_json::from_slice(text).unwrap_or_else(|e| panic!("{args:?}: {e}: {text:?}"));
    (output.status.code().unwrap(), answer)
}

#[test]
fn what_needs_processes_is_refused_where_there_is_no_supervision() {
    let env = TestEnv::project();
    env.ok(&["tasks", "add", "One", "--id", "T1"]);
    if !cfg!(feature = "simulation") {
        skip("this binary was built without the feature `simulation`");
        return;
    }
    for (args, what) in [
        (&["tasks", "run", "T1", "--", "true"][..], "tenure tasks run"),
        (&["exclusive", "run", "--holder", "x", "--", "true"], "tenure exclusive run"),
        (&["board"], "tenure board"),
        (&["runners", "start"], "tenure runners start"),
        (&["runners", "wakeup"], "tenure runners wakeup"),
        (&["runners", "cron", "install"], "tenure runners cron"),
        (&["jobs", "start", "j", "--items", "items", "--", "true"], "tenure jobs start"),
        (&["resume", "j"], "tenure resume"),
        (&["tasks", "claim", "T1", "--while-pid", "1"], "--while-pid"),
    ] {
        let (code, answer) = on_windows(&env, args);
        assert_eq!((code, &answer["error"]["code"]), (1, &Value::from("UNSUPPORTED")), "{args:?}: {answer}");
        assert_eq!(answer["error"]["details"]["what"], what);
        assert_eq!(answer["error"]["message"], format!("{what} is not supported on Windows yet; use WSL"));
    }
    let (_, answer) = on_windows(&env, &["locks", "list"]);
    assert_eq!(answer["data"]["locks"], serde_json::json!([]), "nothing was claimed");
}

#[test]
fn tasks_locks_and_messages_need_no_processes() {
    let env = TestEnv::project();
    for args in [
        &["tasks", "add", "One", "--id", "T1"][..],
        &["tasks", "claim", "T1", "--agent", "ann"],
        &["locks", "list"],
        &["tasks", "done", "T1", "--agent", "ann"],
        &["msg", "send", "--task", "T1", "-m", "hello", "--agent", "ann"],
        &["exclusive", "acquire", "--holder", "x"],
        &["exclusive", "status"],
        &["exclusive", "release", "--force"],
        &["runners", "list"],
        &["jobs", "list"],
    ] {
        let (code, answer) = on_windows(&env, args);
        assert_eq!(code, 0, "{args:?}: {answer}");
    }
}
