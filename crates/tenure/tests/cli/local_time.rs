//! Times in text are in the user's time zone; JSON and error messages have UTC.

use crate::story::steps;
use crate::support::TestEnv;

fn claimed() -> TestEnv {
    let env = TestEnv::project();
    steps(&env, &["tasks add One", "tasks claim T1 --agent bob", "msg send --task T1 --from bob -m Hello"]);
    env
}

#[test]
fn lists_show_the_local_time_and_with_a_flag_utc() {
    let mut env = claimed();
    env.set("TZ", "EST5EDT,M3.2.0,M11.1.0");
    for words in [&["locks", "show", "T1", "--history"][..], &["events"], &["msg"], &["tasks", "audit", "T1"]]
    {
        let local = env.ok(words).out;
        assert!(local.contains("2026-01-15 06:30:00"), "{local}");
        assert!(!local.contains("2026-01-15T"), "{local}");
        let utc = env.ok(&[words, &["--utc"]].concat()).out;
        assert!(utc.contains("2026-01-15T11:30:00Z"), "{utc}");
        assert!(env.json(words).out.contains("2026-01-15T11:30:00"));
    }
}

#[test]
fn an_error_shows_utc() {
    let mut env = claimed();
    env.set("TZ", "EST5EDT,M3.2.0,M11.1.0");
    let refused = env.run(&["tasks", "claim", "T1", "--agent", "ann"]).exits(6);
    assert!(refused.err.contains("Lock expires at: 2026-01-15T11:45:00Z"), "{refused}");
}

#[test]
fn a_zone_is_a_name_a_file_or_a_rule_and_otherwise_utc() {
    let mut env = claimed();
    env.write("zones/Test/Hour", zone_file());
    let file = env.path("zones/Test/Hour");
    env.set("TZDIR", env.path("zones"));
    let shown = |env: &TestEnv| {
        let line = env.ok(&["msg"]).out.lines().next().unwrap().to_owned();
        line.split("  ").nth(1).unwrap().to_owned()
    };
    let file = file.to_str().unwrap();
    for (zone, seen) in [
        ("Test/Hour", "2026-01-15 12:30:00"),
        (":Test/Hour", "2026-01-15 12:30:00"),
        (file, "2026-01-15 12:30:00"),
        ("<+05>-5", "2026-01-15 16:30:00"),
        ("UTC0", "2026-01-15T11:30:00Z"),
        ("", "2026-01-15T11:30:00Z"),
        ("No/Such", "2026-01-15T11:30:00Z"),
    ] {
        env.set("TZ", zone);
        assert_eq!(shown(&env), seen, "TZ={zone:?}");
    }
}

/// The rules of a zone one hour east of Greenwich, in the format of RFC 8536.
fn zone_file() -> Vec<u8> {
    let mut block = b"TZif2".to_vec();
    block.extend([0; 15]);
    for count in [0_u32, 0, 0, 0, 1, 4] {
        block.extend(count.to_be_bytes());
    }
    block.extend(3600_i32.to_be_bytes());
    block.extend([0, 0]);
    block.extend(b"CET\0");
    [block.clone(), block, b"\nCET-1\n".to_vec()].concat()
}
