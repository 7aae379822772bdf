//! What changes without anybody writing: leases that run out, holders that die, presets that may be tried again.

use rustix::process::Signal;

use crate::machine::{Machine, Project};
use crate::world::until;

/// Until the files are old enough to vouch for the project, and it is remembered.
fn remembered(machine: &Machine, project: &Project<'_>) {
    until("the project is remembered as idle", || {
        machine.wake_up(&[]);
        known(machine).contains(&project.root.to_string_lossy().into_owned())
    });
}

fn known(machine: &Machine) -> Vec<String> {
    let conn = rusqlite::Connection::open(machine.home().join("tenure.db")).unwrap();
    let mut rows = conn.prepare("SELECT path FROM idle_projects").unwrap();
    rows.query_map([], |row| row.get(0)).unwrap().map(Result::unwrap).collect()
}

#[test]
fn a_project_that_is_remembered_as_idle_is_served_as_soon_as_something_is_added() {
    let machine = Machine::new();
    let project = machine.project("p");
    remembered(&machine, &project);
    project.task("A", &["mark begun"]);
    // Long enough for the files to be trusted again: it is their difference that counts, not their age.
    std::thread::sleep(std::time::Duration::from_secs(4));
    assert_eq!(machine.wake_up(&[])["p"].0, "started");
    machine.wait_for("begun");
    project.wait_until("A", "completed");
}

#[test]
fn a_claim_that_runs_out_is_noticed_although_no_file_has_changed() {
    let machine = Machine::new();
    let project = machine.project("p");
    project.task("A", &["mark begun"]);
    project.ok(&["tasks", "claim", "A", "--agent", "bob", "--ttl", "8s"]);
    remembered(&machine, &project);
    assert_eq!(machine.wake_up(&[])["p"].0, "idle");
    until("it has run out, and the work begins", || machine.wake_up(&[])["p"].0 == "started");
    machine.wait_for("begun");
}

#[test]
fn a_project_with_a_living_holder_is_looked_at_each_time_and_its_death_is_noticed() {
    // With heartbeats that are far from each other, so that it is not they that change the files.
    let machine = Machine::with(&crate::machine::slow());
    let project = machine.project("p");
    project.task("A", &["mark begun"]);
    let holder =
        machine.start(project.command(&["tasks", "run", "A", "--agent", "bob", "--", "sleep", "600"]));
    until("bob has it", || project.status("A") == "in_progress");
    std::thread::sleep(std::time::Duration::from_secs(4));
    assert_eq!(machine.wake_up(&[])["p"].0, "idle");
    assert!(known(&machine).is_empty(), "a death is written nowhere");
    holder.signal(Signal::KILL);
    drop(holder);
    assert_eq!(machine.wake_up(&[])["p"].0, "started");
    machine.wait_for("begun");
    project.wait_until("A", "completed");
}

#[test]
fn a_parked_preset_is_tried_again_after_its_pause_which_doubles() {
    let machine = Machine::new();
    let project = machine.project("p");
    for n in 0..3 {
        project.task(&format!("P{n}"), &["mark tried", "exit 1"]);
    }
    let tried = || std::fs::read_to_string(machine.path("agent/tried")).unwrap_or_default().lines().count();
    let parked = || project.ok(&["status"])["parked"][0].clone();
    for round in 1..=3_u32 {
        // Not before its time is there another try.
        if round > 1 {
            assert_eq!(machine.wake_up(&[])["p"].0, "parked");
            project.sql("UPDATE preset_health SET next_try_at = parked_at");
        }
        assert_eq!(machine.wake_up(&[])["p"].0, "started");
        let want = usize::try_from(round * 3).unwrap();
        until("it is parked again", || parked()["timesParked"] == round && tried() == want);
        let pause = |field: &str| {
            let text = parked()[field].as_str().unwrap().to_owned();
            tenure_core::Timestamp::parse(&text).unwrap()
        };
        let minutes = pause("nextTryAt").since(pause("parkedAt")).as_secs() / 60;
        assert_eq!(minutes, 1 << (round - 1));
        until("its runner has ended", || project.runners().is_empty());
    }
}

#[test]
fn after_a_usage_limit_wake_up_waits_for_the_reset_then_tries_one_task_and_does_the_rest_when_it_works() {
    let machine = Machine::new();
    let project = machine.project("p");
    let (claude, limit) = (machine.path("agent/claude"), machine.path("agent/limit"));
    std::fs::copy(machine.path("agent/pretend-agent.sh"), &claude).unwrap();
    let shared = machine.path("agent");
    let config = project.root.join(".tenure/config.yaml");
    let before = std::fs::read_to_string(&config).unwrap();
    let (program, folder) = (claude.display(), shared.display());
    let preset = format!("presets: {{claude: {{command: ['{program}'], env: {{PRETEND: '{folder}'}}}}}}");
    std::fs::write(&config, format!("{before}{preset}\nrunners: {{preset: claude}}\n")).unwrap();
    let keys = ["A", "B", "C", "D"];
    for key in keys {
        project.task(key, &["mark tried", "replay limit", "mark worked"]);
    }
    let reset = tenure_core::Clock::now(&tenure_core::SystemClock).as_millis() / 1000 + 3600;
    let recorded = include_str!("../../../tenure-runner/tests/agent-recordings/claude-usage-5h.out");
    std::fs::write(&limit, recorded.replace("1794824450", &reset.to_string())).unwrap();
    let lines = |name: &str| std::fs::read_to_string(shared.join(name)).unwrap_or_default().lines().count();
    let parked = || project.ok(&["status"])["parked"][0].clone();

    for round in 1..=2_u32 {
        assert_eq!(machine.wake_up(&[])["p"].0, "started");
        until("it is parked", || parked()["timesParked"] == round);
        until("its runner has ended", || project.runners().is_empty());
        assert_eq!(lines("tried"), usize::try_from(round).unwrap(), "one try each time");
        let (decision, reason) = machine.wake_up(&[])["p"].clone();
        assert_eq!(decision, "parked");
        assert!(reason.contains("claude reports a usage limit until "), "{reason}");
        // The time of the reset comes.
        project.sql("UPDATE preset_health SET next_try_at = parked_at");
    }
    std::fs::remove_file(&limit).unwrap();
    assert_eq!(machine.wake_up(&[])["p"].0, "started");
    for key in keys {
        project.wait_until(key, "completed");
    }
    assert_eq!(lines("worked"), keys.len());
}
