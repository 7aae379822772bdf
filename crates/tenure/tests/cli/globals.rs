//! Global flags, the environment, and their precedence.

use std::ffi::OsString;

use crate::story::steps;
use crate::support::TestEnv;

#[test]
fn global_flags_work_before_between_and_after_the_words() {
    let env = TestEnv::project();
    steps(&env, &["tasks add One"]);
    let wanted = env.run(&["--json", "tasks", "list"]).out;
    assert_eq!(env.run(&["tasks", "--json", "list"]).out, wanted);
    assert_eq!(env.run(&["tasks", "list", "--json"]).out, wanted);
    assert_eq!(env.run(&["tasks", "-j", "list", "--quiet"]).out, wanted);
    assert_eq!(env.run(&["-qj", "tasks", "list"]).out, wanted);
    let work = env.path("work");
    let work = work.to_str().unwrap();
    let mut env = env;
    env.cd("elsewhere");
    for words in [
        ["-C", work, "tasks", "list", "-j"],
        ["tasks", "-C", work, "list", "-j"],
        ["tasks", "list", "-C", work, "-j"],
        ["tasks", "list", "-j", "--project", work],
    ] {
        assert_eq!(env.run(&words).out, wanted, "{words:?}");
    }
}

#[test]
fn every_global_flag_is_taken_by_every_command_on_both_sides() {
    let globals: [&[&str]; 12] = [
        &["--json"],
        &["--quiet"],
        &["--verbose"],
        &["--no-color"],
        &["--no-pager"],
        &["--utc"],
        &["--config", "x.yaml"],
        &["--dry-run"],
        &["--timeout", "1s"],
        &["--no-hooks"],
        &["--no-wait"],
        &["--project", "x"],
    ];
    for flag in globals {
        for words in
            [&["status"][..], &["tasks", "show", "T1"], &["config", "get", "locking"], &["msg", "wait"]]
        {
            let before: Vec<&str> = ["tenure"].iter().chain(flag).chain(words).copied().collect();
            let after: Vec<&str> = ["tenure"].iter().chain(words).chain(flag).copied().collect();
            for args in [before, after] {
                tenure::command().try_get_matches_from(&args).unwrap_or_else(|e| panic!("{args:?}: {e}"));
            }
        }
    }
}

#[test]
fn json_anywhere_before_the_dashes_also_governs_usage_errors() {
    let env = TestEnv::new();
    for words in [
        &["--json", "tasks", "add"][..],
        &["tasks", "--json", "add"],
        &["tasks", "add", "--json"],
        &["tasks", "add", "-j"],
        &["-vj", "tasks", "add"],
        &["tasks", "add", "--wrong", "--json"],
    ] {
        let ran = env.run(words).exits(2);
        assert_eq!(ran.error_code(), "INVALID_ARGUMENTS", "{ran}");
        assert_eq!(ran.envelope()["command"], "tasks", "{ran}");
        assert_eq!(ran.envelope()["subcommand"], "add", "{ran}");
        assert!(ran.err.is_empty(), "{ran}");
    }
    let ran = env.run(&["tasks", "show", "--", "--json", "T1"]).exits(2);
    assert!(ran.out.is_empty(), "after the dashes it is an ordinary argument: {ran}");
}

#[test]
fn a_usage_error_names_the_command_and_not_the_value_of_a_flag() {
    let env = TestEnv::new();
    let ran = env.run(&["-j", "-C", "tasks", "--timeout", "1s", "task", "clam"]).exits(2);
    assert_eq!((&ran.envelope()["command"], &ran.envelope()["subcommand"]), (&"tasks".into(), &().into()));
    let ran = env.run(&["-j", "nothing"]).exits(2);
    assert_eq!(ran.envelope()["command"], "tenure");
}

#[test]
fn a_verb_without_its_command_and_a_key_without_a_verb_are_understood() {
    let env = TestEnv::new();
    for (line, meant) in [
        ("claim F001 --agent ann", Some("tenure tasks claim F001 --agent ann")),
        ("-q next --claim", Some("tenure -q tasks next --claim")),
        ("list", Some("tenure tasks list")),
        ("run F001 -- make test -j 2", Some("tenure tasks run F001 -- make test -j 2")),
        ("wakeup", Some("tenure runners wakeup")),
        ("task F001", Some("tenure task show F001")),
        ("jobs 5e9711db --json", Some("tenure jobs show 5e9711db --json")),
        // What the parser would reject is not suggested, nor is a hidden verb, nor what is hardly a key.
        ("claim", None),
        ("claim F001 --nothing", None),
        ("deliver", None),
        ("tasks nothing", None),
        ("nothing", None),
    ] {
        let mut words: Vec<&str> = line.split(' ').collect();
        if !words.contains(&"--json") {
            words.insert(0, "--json");
        }
        let envelope = env.run(&words).exits(2).envelope();
        let shown = envelope["hints"][0]["command"].as_str().map(|hint| hint.replace(" --json ", " "));
        let meant = meant.map(str::to_owned);
        assert_eq!(shown, meant, "{line}");
    }
}

#[test]
fn words_that_are_not_text_are_a_usage_error() {
    use std::os::unix::ffi::OsStringExt;
    let env = TestEnv::project();
    let odd = OsString::from_vec(vec![b'a', 0xff]);
    let ran = env.run_os(&["tenure".into(), "tasks".into(), "add".into(), odd, "--json".into()]);
    assert_eq!((ran.code, ran.error_code().as_str()), (2, "INVALID_ARGUMENTS"), "{ran}");
}

#[test]
fn the_two_words_of_a_command_are_the_same_one() {
    let env = TestEnv::project();
    for (one, other) in [
        ("tasks", "task"),
        ("sections", "section"),
        ("locks", "lock"),
        ("agents", "agent"),
        ("msg", "messages"),
    ] {
        assert_eq!(env.json(&[one, "list"]).out, env.json(&[other, "list"]).out);
    }
}

#[test]
fn every_word_for_a_remark_means_the_same() {
    for flag in ["-m", "--message", "--text", "--notes", "--reason"] {
        let env = TestEnv::project();
        steps(&env, &["tasks add One", "tasks claim T1 --agent bob"]);
        for verb in ["release", "skip"] {
            env.ok(&["tasks", verb, "T1", "--agent", "bob", flag, "-why-"]);
        }
        let events = env.json(&["tasks", "audit", "T1"]).data();
        let said = events["events"].as_array().unwrap().iter().filter(|e| e["detail"]["message"] == "-why-");
        assert!(said.count() >= 2, "{flag}: {events}");
        for verb in ["fail", "reject"] {
            let line = ["tenure", "tasks", verb, "T1", flag, "why"];
            assert!(tenure::command().try_get_matches_from(line).is_ok(), "{verb} {flag}");
        }
        env.ok(&["msg", "send", "--task", "T1", flag, "why"]);
    }
}

fn ttl(env: &TestEnv, words: &[&str]) -> u64 {
    let mut line = vec!["tasks", "claim", "T1", "--agent", "bob", "--dry-run"];
    line.extend(words);
    env.json(&line).exits(0).data()["lease"]["ttlMs"].as_u64().unwrap() / 60_000
}

#[test]
fn flags_beat_the_environment_that_the_project_that_the_user_that_the_defaults() {
    let mut env = TestEnv::project();
    steps(&env, &["tasks add One"]);
    assert_eq!(ttl(&env, &[]), 15, "the default");
    env.write("home/.tenure/config.yaml", "locking: {leaseTtl: 16m}\n");
    assert_eq!(ttl(&env, &[]), 16, "the user");
    env.ok(&["config", "set", "locking.leaseTtl", "17m"]);
    assert_eq!(ttl(&env, &[]), 17, "the project");
    env.set("TENURE_LEASE_TTL", "18m");
    assert_eq!(ttl(&env, &[]), 18, "the environment");
    assert_eq!(ttl(&env, &["--ttl", "19m"]), 19, "the flag");
}

#[test]
fn another_file_can_stand_in_for_the_users() {
    let env = TestEnv::project();
    steps(&env, &["tasks add One"]);
    env.write("home/.tenure/config.yaml", "locking: {leaseTtl: 16m}\n");
    env.write("work/other.yaml", "locking: {leaseTtl: 20m}\n");
    assert_eq!(ttl(&env, &["--config", "other.yaml"]), 20);
    let ran = env.run(&["tasks", "--config", "nowhere.yaml"]).exits(3);
    assert!(ran.err.contains("$DIR/work/nowhere.yaml"), "{ran}");
}

#[test]
fn a_bad_value_in_the_environment_names_the_variable() {
    let mut env = TestEnv::project();
    env.set("TENURE_LEASE_TTL", "soon");
    let ran = env.run(&["tasks"]).exits(2);
    assert!(ran.err.contains("TENURE_LEASE_TTL") && ran.err.contains("15m"), "{ran}");
}

#[test]
fn switches_in_the_environment_work_like_their_flags() {
    let mut env = TestEnv::project();
    steps(&env, &["tasks add One", "tasks claim T1 --agent bob"]);
    env.set("TENURE_JSON", "1");
    assert_eq!(env.run(&["status"]).envelope()["success"], true);
    assert_eq!(env.run(&["tasks", "add"]).exits(2).error_code(), "INVALID_ARGUMENTS");
    env.set("TENURE_JSON", "0");
    assert!(env.run(&["status"]).out.starts_with("shop"));
    env.set("TENURE_NO_WAIT", "1");
    env.run(&["tasks", "update", "T1", "--status", "in_progress", "--agent", "eve"]).exits(6);
    env.run(&["msg", "wait"]).exits(9);
    env.run(&["tasks", "claim", "T1", "--agent", "eve", "--wait", "0s"]).exits(9);
}

#[test]
fn the_agent_and_the_lease_come_from_the_flag_before_the_environment() {
    let mut env = TestEnv::project();
    steps(&env, &["tasks add One", "tasks claim T1 --agent bob"]);
    env.set("TENURE_AGENT", "eve");
    env.run(&["tasks", "check", "T1"]).exits(8);
    env.run(&["tasks", "check", "T1", "--agent", "bob"]).exits(0);
    let proof = "L00000004-C0FFEE0000000004";
    env.run(&["tasks", "check", "T1", "--lease", proof]).exits(0);
    env.set("TENURE_FENCE", "1");
    env.run(&["tasks", "check", "T1"]).exits(8);
    env.run(&["tasks", "check", "T1", "--agent", "bob"]).exits(0);
    env.run(&["tasks", "check", "T1", "--agent", "bob", "--fence", "2"]).exits(8);
    env.set("TENURE_LEASE", proof);
    env.run(&["tasks", "check", "T1"]).exits(0);
    env.run(&["tasks", "check", "T1", "--fence", "2"]).exits(8);
    env.run(&["tasks", "check", "T1", "--lease", "L00000004-0123456789ABCDEF"]).exits(8);
    env.set("TENURE_FENCE", "2");
    env.run(&["tasks", "check", "T1"]).exits(8);
    env.run(&["tasks", "check", "T1", "--lease", proof]).exits(0);
    env.set("TENURE_FENCE", "1");
    env.set("TENURE_TASK_ID", "some-other-task");
    env.run(&["tasks", "check", "T1"]).exits(8);
    env.run(&["tasks", "check", "T1", "--lease", proof]).exits(0);
}

#[test]
fn colours_are_for_terminals_only_and_can_be_switched_off() {
    let mut env = TestEnv::project();
    steps(&env, &["tasks add One"]);
    let coloured = |env: &TestEnv, words: &[&str]| env.run(words).out.contains('\u{1b}');
    assert!(!coloured(&env, &["tasks"]));
    env.on_terminal = true;
    assert!(coloured(&env, &["tasks"]));
    assert!(!coloured(&env, &["tasks", "--no-color"]));
    assert!(!coloured(&env, &["tasks", "--json"]));
    for (name, value) in [("NO_COLOR", ""), ("NO_COLOR", "1"), ("CI", "true")] {
        env.set(name, value);
        assert!(!coloured(&env, &["tasks"]), "{name}={value}");
        env.unset(name);
    }
}

#[test]
fn verbose_says_what_is_used_and_very_verbose_how_long_it_took() {
    let env = TestEnv::project();
    let ran = env.ok(&["-v", "tasks"]);
    insta::assert_snapshot!(ran);
    let ran = env.json(&["-vv", "tasks"]);
    assert!(ran.envelope()["success"].as_bool().unwrap(), "standard output stays one object");
    assert!(ran.err.lines().last().unwrap().starts_with("tenure: took "), "{ran}");
    assert!(env.ok(&["tasks"]).err.is_empty());
}

#[test]
fn quiet_leaves_out_what_to_do_next() {
    let env = TestEnv::project();
    assert!(env.ok(&["status"]).out.contains("tenure tasks add"));
    assert!(!env.ok(&["status", "-q"]).out.contains("tenure tasks add"));
}

#[test]
fn a_default_verb_takes_its_options_without_its_name() {
    let env = TestEnv::project();
    steps(&env, &["tasks add One", "tasks claim T1 --agent bob", "msg send --task T1 --from bob -m Hello"]);
    for (short, long) in [
        ("tasks --status all", "tasks list --status all"),
        ("tasks --json", "tasks list --json"),
        ("locks --type task", "locks list --type task"),
        ("locks --json", "locks list --json"),
        ("msg --task T1", "msg list --task T1"),
        ("jobs --limit 3 --json", "jobs list --limit 3 --json"),
        ("sessions --limit 3", "sessions list --limit 3"),
        ("runners --ended 2 --json", "runners list --ended 2 --json"),
        ("sections --json", "sections list --json"),
        ("agents --json", "agents list --json"),
        ("projects --json", "projects list --json"),
        ("hooks --json", "hooks list --json"),
        ("config --json", "config show --json"),
    ] {
        let run = |line: &str| env.ok(&line.split(' ').collect::<Vec<_>>()).out;
        assert_eq!(run(short), run(long), "{short}");
    }
    env.run(&["locks", "--type", "task", "show", "T1"]).exits(2);
}

#[test]
fn quiet_prints_the_key_alone() {
    let env = TestEnv::project();
    for (line, key) in [
        ("-q tasks add One", "T1"),
        ("tasks add Two -q", "T2"),
        ("-q sections add Backend", "Backend"),
        ("-q tasks next", "T1"),
        ("-q tasks claim T2 --agent bob", "T2"),
        ("-q tasks next --claim --agent bob", "T1"),
        ("-q msg send --task T1 --from bob -m Hello", "1"),
    ] {
        let ran = env.ok(&line.split(' ').collect::<Vec<_>>());
        assert_eq!((ran.out.as_str(), ran.err.as_str()), (format!("{key}\n").as_str(), ""), "{line}");
    }
}
