//! Changes that no process writes: leases that expire, holders that die, presets whose pause is over.

use rustix::process::Signal;
use tenure_testkit::cli::{Running, until};

use crate::machine::{Machine, decisions, slow};

#[test]
fn a_claim_that_expires_is_noticed() {
    let machine = Machine::new();
    let project = machine.project("p");
    project.task("A", &["mark begun"]);
    project.ok(&["tasks", "claim", "A", "--agent", "bob", "--ttl", "3s"]);
    assert_eq!(machine.wake_up(&[])["p"].0, "idle");
    until("the claim has expired and the work begins", || machine.wake_up(&[])["p"].0 == "started");
    machine.wait_for("begun");
}

#[test]
fn the_death_of_a_holder_is_noticed() {
    // With long heartbeat intervals, so that wake-up reacts to the death and not to a missing heartbeat.
    let machine = Machine::with(&slow());
    let project = machine.project("p");
    project.task("A", &["mark begun"]);
    let holder = project.spawn(&["tasks", "run", "A", "--agent", "bob", "--", "sleep", "600"]);
    project.wait_until("A", "in_progress");
    assert_eq!(machine.wake_up(&[])["p"].0, "idle");
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
    let tried = || machine.marks("tried").len();
    let parked = || project.ok(&["status"])["parked"][0].clone();
    for round in 1..=3_u32 {
        // It is not tried again before the pause is over.
        if round > 1 {
            assert_eq!(machine.wake_up(&[])["p"].0, "parked");
            project.sql("UPDATE parkings SET next_try_at = parked_at");
        }
        assert_eq!(machine.wake_up(&[])["p"].0, "started");
        // Three tasks at first, then one each time.
        let want = usize::try_from(2 + round).unwrap();
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
fn after_a_usage_limit_wake_up_waits_for_the_reset_and_tries_one_task_first() {
    let machine = Machine::new();
    let project = machine.project("p");
    let (shared, limit) = (machine.path("agent"), machine.shared("limit"));
    project.configure("runners: {preset: pretend-claude}");
    let keys = ["A", "B", "C", "D"];
    for key in keys {
        let done = format!("tenure task done {key}");
        project.task(key, &["mark tried", "replay limit", "mark worked", &done]);
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
        assert_eq!(lines("tried"), usize::try_from(round).unwrap(), "one attempt per wake-up");
        let (decision, reason) = machine.wake_up(&[])["p"].clone();
        assert_eq!(decision, "parked");
        assert!(reason.contains("claude reports a usage limit until "), "{reason}");
        // A clock that is set does not end the pause.
        for skew in ["+2h", "-2h"] {
            let answer = Running::start(project.skewed(skew, &["--json", "runners", "wakeup"])).end();
            assert_eq!(decisions(&answer.data())["p"].0, "parked", "{skew}: {answer:?}");
        }
        // The time of the reset has come.
        project.sql("UPDATE parkings SET resets_at = 1000");
    }
    std::fs::remove_file(&limit).unwrap();
    assert_eq!(machine.wake_up(&[])["p"].0, "started");
    for key in keys {
        project.wait_until(key, "completed");
    }
    assert_eq!(lines("worked"), keys.len());
}
