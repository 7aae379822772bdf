use crate::support::TestEnv;

#[test]
fn the_demo_plays_on_real_processes_and_checks_itself() {
    let env = TestEnv::new();
    let ran = env.finish(env.process(&["demo"]));
    assert_eq!(ran.code, 0, "{ran}");
    let checks: Vec<&str> = ran.out.lines().filter(|line| line.starts_with("ok  ")).collect();
    assert_eq!(checks.len(), 12, "{ran}");
    assert!(!ran.out.contains("FAIL") && !ran.out.contains('\u{1b}') && ran.err.is_empty(), "{ran}");
    for line in
        ["$ tenure task claim N1 --agent bob --wait &", "kill -9", "taken over from runner", "exit 8: "]
    {
        assert!(ran.out.contains(line), "no {line:?} in\n{ran}");
    }
    assert!(!env.path("home/.tenure").exists(), "the demo keeps out of the user's home");
}

#[test]
fn a_program_reads_the_checks_and_the_numbers() {
    let env = TestEnv::new();
    let ran = env.finish(env.process(&["demo", "--json", "--keep"])).exits(0);
    let data = ran.data();
    assert!(data["checks"].as_array().unwrap().iter().all(|check| check["ok"] == true), "{data}");
    assert!(data["handOffMs"].is_u64() && data["takeoverMs"].is_u64(), "{data}");
    let folder = std::path::Path::new(data["folder"].as_str().unwrap());
    assert!(folder.join(".tenure/tenure.db").exists());
    std::fs::remove_dir_all(folder.parent().unwrap()).unwrap();
}

#[test]
fn the_demo_cannot_play_without_writing() {
    let env = TestEnv::new();
    insta::assert_snapshot!(env.run(&["demo", "--dry-run"]));
}
