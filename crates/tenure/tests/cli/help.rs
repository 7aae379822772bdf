use crate::support::TestEnv;

#[test]
fn help_lists_every_command_and_the_exit_codes() {
    let env = TestEnv::new();
    insta::assert_snapshot!(env.run(&["--help"]));
    insta::assert_snapshot!("short", env.run(&["-h"]));
    insta::assert_snapshot!("of_a_verb", env.run(&["tasks", "claim", "--help"]));
    insta::assert_snapshot!("of_a_family", env.run(&["task", "-h"]));
    insta::assert_snapshot!("options", env.run(&["help", "options"]));
    assert_eq!(env.ok(&["help"]).out, env.ok(&["--help"]).out);
    assert_eq!(env.ok(&["help", "tasks", "claim"]).out, env.ok(&["tasks", "claim", "--help"]).out);
}

#[test]
fn usage_errors_say_what_is_wrong_and_show_the_usage() {
    let env = TestEnv::new();
    for (name, words) in [
        ("unknown_command", &["taks"][..]),
        ("unknown_flag", &["tasks", "list", "--redy"]),
        ("missing_argument", &["tasks", "add"]),
        ("bad_duration", &["tasks", "claim", "T1", "--ttl", "15"]),
        ("bad_status", &["tasks", "update", "T1", "--status", "finished"]),
        ("flag_before_list", &["tasks", "--ready", "show", "T1"]),
    ] {
        insta::assert_snapshot!(name, format!("{}\n{}", env.run(words), env.json(words)));
    }
}

#[test]
fn the_version_is_told() {
    let env = TestEnv::new();
    let version = concat!("tenure ", env!("CARGO_PKG_VERSION"), "\n");
    assert_eq!(env.ok(&["--version"]).out, version);
    assert_eq!(env.json(&["--version"]).data()["version"], version);
}

#[test]
fn help_lists_every_command_that_is_not_hidden_and_no_other() {
    let env = TestEnv::new();
    let (long, short) = (env.ok(&["--help"]).out, env.ok(&["-h"]).out);
    assert!(short.lines().count() <= 16, "{short}");
    for command in tenure::command().get_subcommands() {
        let name = command.get_name();
        assert_eq!(long.contains(&format!("\n  {name} ")), !command.is_hide_set(), "{name}: {long}");
        let is_named = short.split([' ', ',', '\n']).any(|word| word == name);
        assert_eq!(is_named, !command.is_hide_set(), "{name}: {short}");
    }
}

#[test]
fn the_global_options_are_named_and_not_repeated() {
    let env = TestEnv::new();
    for words in
        [&["tasks", "list", "--help"][..], &["runners", "cron", "install", "--help"], &["status", "-h"]]
    {
        let help = env.ok(words).out;
        assert!(help.contains("tenure help options"), "{help}");
        assert!(!help.contains("--no-hooks"), "{help}");
    }
    for (flag, tip) in [("--jsn", "--json"), ("--statsu", "--status")] {
        let ran = env.run(&["tasks", "list", flag]).exits(2);
        assert!(ran.err.contains(tip), "{ran}");
    }
}

#[test]
fn hidden_options_are_in_no_help() {
    let env = TestEnv::new();
    for words in [&["runners", "start"][..], &["runners", "wakeup"], &["resume"]] {
        for flag in ["-h", "--help"] {
            let help = env.ok(&[words, &[flag]].concat()).out;
            assert!(!help.contains("used internally"), "{help}");
        }
    }
}

#[test]
fn hidden_commands_are_never_suggested() {
    let env = TestEnv::new();
    for word in ["stats", "start", "start-attmpt", "keep-leese", "claude-hok"] {
        let ran = env.run(&[word]).exits(2);
        for hidden in ["start-attempt", "start-exclusive", "keep-lease", "claude-hook"] {
            assert!(!ran.err.contains(hidden), "{ran}");
        }
    }
}

#[test]
fn a_command_that_needs_a_subcommand_prints_its_help() {
    let env = TestEnv::new();
    let ran = env.run(&["store"]).exits(2);
    assert!(ran.err.contains("backup") && !ran.err.contains("Error:"), "{ran}");
    let ran = env.json(&["store"]).exits(2);
    assert_eq!(ran.error_code(), "INVALID_ARGUMENTS", "{ran}");
}
