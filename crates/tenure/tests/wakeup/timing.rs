//! Changes that no process writes: leases that expire, holders that die, presets whose pause is over.

use rustix::process::Signal;
use tenure_testkit::cli::until;

use crate::machine::{Machine, slow};

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
fn the_death_of_a_living_holder_is_noticed() {
    // With long heartbeat intervals: it is the death that is noticed, not the silence.
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
        // There is no other try before its time.
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
