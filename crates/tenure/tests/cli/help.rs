use crate::support::TestEnv;

#[test]
fn help_lists_every_command_and_the_exit_codes() {
    let env = TestEnv::new();
    insta::assert_snapshot!(env.run(&["--help"]));
    insta::assert_snapshot!("short", env.run(&["-h"]));
    insta::assert_snapshot!("of_a_verb", env.run(&["tasks", "claim", "--help"]));
    insta::assert_snapshot!("of_a_family", env.run(&["task", "-h"]));
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
