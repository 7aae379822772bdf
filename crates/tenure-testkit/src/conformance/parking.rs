//! Parking: what an ending parks, for how long, and that one task is tried first.

use std::time::Duration;

use tenure_core::id::{Fence, TaskId};
use tenure_core::kernel::Finish;
use tenure_core::parking::{Cost, ParkingScope, Subject};
use tenure_core::rules::{EndedAttempt, Gate, begin_probe, gate, note_ending, request_try};
use tenure_core::{Clock, Ending, Timestamp};

use crate::fixture::Fixture;

const MINUTE: Duration = Duration::from_mins(1);

fn scope() -> ParkingScope {
    let [preset, account, host, fingerprint] = ["mine", "claude", "h1", "f1"].map(str::to_owned);
    ParkingScope { preset, account, host, fingerprint }
}

fn note(f: &Fixture, ending: Ending, resets_at: Option<Timestamp>, task: &TaskId, cost: Cost) {
    let (fence, reason) = (Fence::new(1), "because");
    let ended = EndedAttempt { ending, reason, resets_at, task, fence, cost };
    f.write(|tx| note_ending(tx, &f.context(), &scope(), &f.bare("runner"), &ended)).unwrap();
}

fn gate_of(f: &Fixture, scope: &ParkingScope) -> Gate {
    f.read(|view| gate(view, &f.world, scope))
}

/// For how long the gate stays closed; `None` if only a person opens it.
fn closed_for(f: &Fixture) -> Option<Duration> {
    match gate_of(f, &scope()) {
        Gate::Closed(parking) => parking.tries_at().map(|at| at.since(f.clock.now())),
        open => panic!("{open:?}"),
    }
}

pub(super) fn the_pause_depends_on_the_ending_and_doubles(fresh: &dyn Fn() -> Fixture) {
    let minutes = |all: [u64; 6]| all.map(|n| MINUTE * u32::try_from(n).unwrap());
    for (ending, pauses) in [
        (Ending::Limited, minutes([1, 2, 4, 8, 16, 32])),
        (Ending::Overloaded, minutes([1, 2, 4, 8, 15, 15])),
        (Ending::NoNetwork, [30, 60, 120, 240, 480, 900].map(Duration::from_secs)),
        (Ending::NoCredit, minutes([60; 6])),
        (Ending::NotLoggedIn, minutes([60; 6])),
    ] {
        let f = fresh();
        let task = f.add_task("A");
        for pause in pauses {
            note(&f, ending, None, &task, Cost::Nothing);
            assert_eq!(closed_for(&f), Some(pause), "{ending}");
            f.clock.advance(pause);
            assert!(matches!(gate_of(&f, &scope()), Gate::Probe(_)), "{ending}");
        }
        note(&f, Ending::Done, None, &task, Cost::Nothing);
        assert_eq!(gate_of(&f, &scope()), Gate::Open, "{ending}");
        note(&f, ending, None, &task, Cost::Nothing);
        assert_eq!(closed_for(&f), Some(pauses[0]), "the pause begins anew: {ending}");
    }
}

pub(super) fn a_known_reset_decides_when_a_limit_is_tried_again(fresh: &dyn Fn() -> Fixture) {
    let f = fresh();
    let task = f.add_task("A");
    let reset = f.clock.now().after(MINUTE * 300);
    note(&f, Ending::Limited, Some(reset), &task, Cost::Nothing);
    let wait = closed_for(&f).unwrap();
    assert!(wait >= MINUTE * 300 && wait <= MINUTE * 301, "{wait:?}");
    f.clock.advance(wait);
    assert!(matches!(gate_of(&f, &scope()), Gate::Probe(_)));
}

pub(super) fn one_task_is_tried_at_a_time(fresh: &dyn Fn() -> Fixture) {
    let f = fresh();
    let task = f.add_task("A");
    note(&f, Ending::Overloaded, None, &task, Cost::Nothing);
    f.clock.advance(MINUTE);
    let Gate::Probe(due) = gate_of(&f, &scope()) else { panic!("not due") };
    let runner = f.worker("r1", 7);
    let lease = f.claim(&runner, "A").unwrap().lease;
    f.write(|tx| begin_probe(tx, &due, lease.fence)).unwrap();
    assert!(matches!(gate_of(&f, &scope()), Gate::Closed(_)), "it is being tried");
    // When the runner has released its task, the next runner can begin the probe.
    f.finish(&runner, "A", Finish::Release(None)).unwrap();
    assert!(matches!(gate_of(&f, &scope()), Gate::Probe(_)));
}

pub(super) fn other_accounts_and_presets_are_not_affected(fresh: &dyn Fn() -> Fixture) {
    let f = fresh();
    let task = f.add_task("A");
    note(&f, Ending::Limited, None, &task, Cost::Nothing);
    note(&f, Ending::Misconfigured, None, &task, Cost::Nothing);
    let parked: Vec<Subject> = f.read(|view| view.parked()).into_iter().map(|row| row.subject).collect();
    assert_eq!(parked, [Subject::Account("claude".into()), Subject::Preset("mine".into())]);
    let another = ParkingScope { preset: "other".into(), account: "codex".into(), ..scope() };
    assert_eq!(gate_of(&f, &another), Gate::Open);
    let same_account = ParkingScope { preset: "other".into(), ..scope() };
    assert!(matches!(gate_of(&f, &same_account), Gate::Closed(_)));
}

pub(super) fn a_wrong_configuration_is_tried_again_when_it_changes_or_on_request(
    fresh: &dyn Fn() -> Fixture,
) {
    let f = fresh();
    let task = f.add_task("A");
    note(&f, Ending::Misconfigured, None, &task, Cost::Nothing);
    f.clock.advance(MINUTE * 100_000);
    assert_eq!(closed_for(&f), None, "no time opens it");
    let changed = ParkingScope { fingerprint: "f2".into(), ..scope() };
    assert!(matches!(gate_of(&f, &changed), Gate::Probe(_)));
    f.write(|tx| request_try(tx, &scope())).unwrap();
    assert!(matches!(gate_of(&f, &scope()), Gate::Probe(_)));
}

pub(super) fn three_endings_without_a_result_park_the_preset_only_at_different_tasks(
    fresh: &dyn Fn() -> Fixture,
) {
    let f = fresh();
    let [a, b] = ["A", "B"].map(|key| f.add_task(key));
    for _ in 0..5 {
        note(&f, Ending::Unclassified, None, &a, Cost::Nothing);
        assert_eq!(gate_of(&f, &scope()), Gate::Open, "one task may be to blame itself");
    }
    note(&f, Ending::Crashed, None, &b, Cost::Nothing);
    assert_eq!(closed_for(&f), Some(MINUTE));
    f.clock.advance(MINUTE);
    // The probe fails as well.
    note(&f, Ending::Unclassified, None, &b, Cost::Nothing);
    assert_eq!(closed_for(&f), Some(MINUTE * 2));
    note(&f, Ending::Done, None, &a, Cost::Nothing);
    note(&f, Ending::Unclassified, None, &a, Cost::Nothing);
    note(&f, Ending::Unclassified, None, &b, Cost::Nothing);
    assert_eq!(gate_of(&f, &scope()), Gate::Open, "two in a row");
}
