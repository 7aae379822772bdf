//! The output of agents is bounded in memory and on disk, and harmless to display.

use std::time::Duration;

use tenure_testkit::cli::full_or;
use tenure_testkit::cli::processes::memory;

use crate::project::Project;

#[test]
fn a_flood_of_output_is_bounded_in_memory_and_on_disk_and_heartbeats_continue() {
    let project = Project::hasty();
    let size = full_or(1_000_000_000_u64, 64_000_000);
    project.task("A", &["print calm", "mark begun", &format!("flood {size}"), "mark flooded", "wait go"]);
    let runner = project.runner(&[]);
    project.wait_for("begun");
    let (mut renewals, mut last, mut peak) = (0, serde_json::Value::Null, 0);
    let begun = std::time::Instant::now();
    while !project.shared("flooded").exists() {
        let lock = project.ok(&["locks", "show", "A"])["lock"].clone();
        assert_eq!(lock["expired"], false, "{lock}");
        if lock["heartbeatAt"] != last {
            (renewals, last) = (renewals + 1, lock["heartbeatAt"].clone());
        }
        peak = peak.max(memory(runner.pid(), "VmHWM"));
        assert!(begun.elapsed() < Duration::from_mins(10), "the flood does not end");
    }
    let took = begun.elapsed();
    let peak = peak.max(memory(runner.pid(), "VmHWM"));
    project.give("go");
    assert_eq!(runner.end().code, Some(0));
    assert_eq!(project.status("A"), "completed");
    let sizes: Vec<u64> = project.attempt_logs().iter().map(|path| path.metadata().unwrap().len()).collect();
    eprintln!("flood of {size} bytes: {took:?}, {renewals} renewals, peak {peak} kB, logs {sizes:?}");
    assert!(sizes.len() <= 2 && sizes.iter().sum::<u64>() <= 16 * 1024 * 1024, "{sizes:?}");
    assert!(peak < 64 * 1024, "{peak} kB");
}

#[test]
fn long_lines_invalid_text_and_escapes_are_harmless_in_the_log() {
    let project = Project::new();
    project.task("A", &["line 3000000", "bytes", "print \u{202e}evil", "print fin"]);
    assert_eq!(project.work(&[]).code, Some(0));
    let logs = project.attempt_logs();
    let text = std::fs::read_to_string(&logs[0]).unwrap();
    assert!(text.chars().all(|c| c == '\n' || !c.is_control()), "control characters");
    assert!(!text.contains('\u{202e}'));
    assert!(text.lines().all(|line| line.starts_with("[20") && line.len() < 1_100_000));
    assert!(text.contains("before") && text.contains("after"), "the text itself is there");
    assert!(text.trim_end().ends_with("fin"));
    let whole: usize = text.lines().map(|line| line.matches('x').count()).sum();
    assert!(whole >= 3_000_000, "nothing of the long line is lost: {whole}");
}

#[test]
fn every_line_is_in_the_log_as_soon_as_it_is_printed() {
    let project = Project::new();
    project.task("A", &["print early", "mark begun", "wait go"]);
    let runner = project.runner(&[]);
    project.wait_for("begun");
    tenure_testkit::cli::until("the line is in the log", || {
        std::fs::read_to_string(&project.attempt_logs()[0]).unwrap().contains("] early\n")
    });
    project.give("go");
    assert_eq!(runner.end().code, Some(0));
}

#[test]
fn a_foreign_process_that_keeps_the_output_open_does_not_delay_the_runner() {
    let project = Project::new();
    project.task("A", &["print before", "escape", "print after"]);
    project.task("B", &[]);
    let begun = std::time::Instant::now();
    let ran = project.work(&[]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert_eq!((project.status("A").as_str(), project.status("B").as_str()), ("completed", "completed"));
    let text = std::fs::read_to_string(&project.attempt_logs()[0]).unwrap();
    assert!(text.contains("] before\n") && text.contains("] after\n"), "{text}");
    assert!(begun.elapsed() < Duration::from_secs(50), "it waited for a process that is not its own");
}

#[test]
fn a_limit_of_the_file_size_does_not_kill_the_runner() {
    let project = Project::new();
    project.task("A", &["flood 3000000", "print after"]);
    // In blocks of 512 bytes: less than the output, more than the database.
    let line = format!("ulimit -f 4000; exec {} runners start --foreground --once", project.suite().binary);
    let mut command = std::process::Command::new("sh");
    command.args(["-c", &line]);
    project.surround(&mut command);
    let ended = tenure_testkit::cli::Running::start(command).end();
    assert_eq!((ended.code, ended.signal), (Some(0), None), "{ended:?}");
    assert_eq!(project.status("A"), "completed");
}

#[test]
fn a_link_in_place_of_a_log_is_neither_truncated_nor_written() {
    let project = Project::new();
    project.task("A", &["print at work"]);
    let victim = project.root().join("victim");
    std::fs::write(&victim, "kept").unwrap();
    let logs = project.root().join(".tenure/logs");
    std::fs::create_dir_all(&logs).unwrap();
    // Fences are easy to guess.
    for fence in 1..200 {
        std::os::unix::fs::symlink(&victim, logs.join(format!("A-{fence}.log"))).unwrap();
    }
    std::os::unix::fs::symlink(&victim, logs.join("hooks.log")).unwrap();
    project.configure("hooks: [{name: tell, event: task.completed, type: script, command: /bin/false}]");
    assert_eq!(project.work(&[]).code, Some(0));
    assert_eq!(project.status("A"), "completed");
    assert_eq!(std::fs::read_to_string(&victim).unwrap(), "kept");
}

#[test]
fn the_retention_of_a_project_does_not_apply_to_the_logs_of_the_home() {
    let project = Project::with("runners: {preset: pretend, killGrace: 300ms, logRetention: 1h}");
    let logs = project.tenure_home().join("runners/logs");
    std::fs::create_dir_all(&logs).unwrap();
    let another = logs.join(format!("daemon-{}.log", i32::MAX));
    let make_old = || {
        let file = std::fs::File::create(&another).unwrap();
        let now = file.metadata().unwrap().modified().unwrap();
        file.set_modified(now - Duration::from_hours(2)).unwrap();
    };
    make_old();
    assert_eq!(project.work(&[]).code, Some(0));
    assert!(another.exists(), "another project's runner wrote it");
    project.sandbox().configure_user("runners: {logRetention: 1h}");
    assert_eq!(project.work(&[]).code, Some(0));
    assert!(!another.exists());
}

#[test]
fn a_template_of_the_project_that_is_outside_of_it_is_not_read() {
    let project = Project::with("runners: {preset: pretend, killGrace: 300ms, promptTemplate: ../secret.md}");
    project.task("A", &["mark begun"]);
    let secret = project.root().parent().unwrap().join("secret.md");
    std::fs::write(&secret, "{{task.description}} and my secret").unwrap();
    let ran = project.work(&["--once"]);
    assert!(project.marks("begun").is_empty(), "{ran:?}");
    assert!(ran.err.contains("is not inside the project"), "{ran:?}");
}
