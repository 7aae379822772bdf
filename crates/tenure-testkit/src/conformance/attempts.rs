//! Attempts: recorded before the start, ended with their lease, charged according to the rules.

use tenure_core::ErrorCode;
use tenure_core::event::EventKind;
use tenure_core::kernel::{self, Outcome};
use tenure_core::lease::{Attempt, AttemptState, Leader};
use tenure_core::outcome::AttemptResult;
use tenure_core::store::Durability;
use tenure_core::task::TaskStatus;

use crate::fixture::{Fixture, TTL, refused};

type Ending = fn(&Fixture);

/// Claims A for ann as process `pid`, and begins an attempt.
fn attempt(f: &Fixture, pid: u32) -> Attempt {
    let ann = f.worker("ann", pid);
    let lease = f.claim(&ann, "A").unwrap().lease;
    f.begin_attempt(&lease, &ann)
}

fn broken(why: &str) -> AttemptResult {
    AttemptResult::Broken { why: why.to_owned() }
}

fn stored(f: &Fixture, attempt: &Attempt) -> Attempt {
    f.read(|view| view.attempts(&attempt.resource)).into_iter().find(|a| a.id == attempt.id).unwrap()
}

fn leader() -> Leader {
    let cgroup = Some("/user.slice/a".to_owned());
    Leader { pid: 70, start_time: 4711, session: 60, cgroup, tmux_folder: None }
}

pub(super) fn an_attempt_is_recorded_and_its_leader_noted(fresh: &dyn Fn() -> Fixture) {
    let f = fresh();
    f.add_task("A");
    let attempt = attempt(&f, 7);
    assert_eq!(f.read(|view| kernel::leader_of(view, &attempt)), None);
    let started = f.write(|tx| kernel::note_leader(tx, attempt.id.as_str(), &leader())).unwrap().unwrap();
    assert_eq!(started, Attempt { leader: Some(leader()), ..attempt.clone() });
    assert_eq!(stored(&f, &attempt), started);
    assert_eq!(f.read(|view| kernel::leader_of(view, &attempt)), Some(leader()));
    assert_eq!(f.read(|view| view.open_attempts()), [started]);
}

pub(super) fn a_row_that_the_store_refuses_does_not_spoil_the_next_transaction(fresh: &dyn Fn() -> Fixture) {
    for durability in [Durability::Process, Durability::Power] {
        let f = fresh();
        f.add_task("A");
        let attempt = attempt(&f, 7);
        assert!(f.store.write(durability, |tx| tx.insert_attempt(&attempt)).is_err(), "its id is in use");
        f.store.write(durability, |tx| kernel::note_leader(tx, attempt.id.as_str(), &leader())).unwrap();
        assert_eq!(stored(&f, &attempt).leader, Some(leader()));
    }
}

pub(super) fn the_end_of_a_lease_sets_its_attempt_to_ending(fresh: &dyn Fn() -> Fixture) {
    let ends: [(&str, Ending); 5] = [
        ("expired", |f| {
            f.clock.advance(TTL);
            f.claim(&f.bare("bob"), "A").unwrap();
        }),
        ("holder_died", |f| {
            f.world.kill(7);
            f.cleanup();
        }),
        ("forced", |f| drop(f.force(&f.lease("A").unwrap()).unwrap())),
        ("completed", |f| drop(f.done(&f.worker("ann", 7), "A").unwrap())),
        ("released", |f| drop(f.release(&f.worker("ann", 7), "A").unwrap())),
    ];
    for (reason, end) in ends {
        let f = fresh();
        f.add_task("A");
        let attempt = attempt(&f, 7);
        end(&f);
        let now = stored(&f, &attempt);
        assert_eq!((now.state, now.reason.as_deref()), (AttemptState::Ending, Some(reason)));
        assert_eq!(f.read(|view| kernel::unfinished_attempts(view)).len(), 1);
        let lease = f.history(&attempt.resource).pop().unwrap();
        assert_eq!(f.read(|view| view.ending_attempts(&lease.resource)).len(), 1);
    }
}

pub(super) fn a_grant_brings_the_attempts_that_are_still_ending(fresh: &dyn Fn() -> Fixture) {
    let f = fresh();
    f.add_task("A");
    f.add_task("B");
    let old = attempt(&f, 7);
    assert!(f.claim(&f.bare("bob"), "B").unwrap().leftovers.is_empty());
    let ids = |attempts: &[Attempt]| attempts.iter().map(|a| a.id.clone()).collect::<Vec<_>>();
    // A takeover reports the attempt as a leftover, and marks it as ending in the same transaction.
    f.clock.advance(TTL);
    let bob = f.worker("bob", 8);
    let taken = f.claim(&bob, "A").unwrap();
    assert!(taken.taken_over.is_some());
    assert_eq!(ids(&taken.leftovers), std::slice::from_ref(&old.id));
    assert!(taken.leftovers.iter().all(|a| a.state == AttemptState::Ending));
    assert_eq!(
        ids(&f.claim(&bob, "A").unwrap().leftovers),
        std::slice::from_ref(&old.id),
        "also when it is the caller's already"
    );
    // Every later claim reports it too, until the end of its processes has been recorded.
    f.release(&bob, "A").unwrap();
    let next = f.next(&f.bare("cid")).unwrap();
    assert_eq!((next.task.key.as_str(), ids(&next.leftovers)), ("A", vec![old.id.clone()]));
    f.write(|tx| kernel::end_attempt(tx, &f.context(), &old, &Outcome::default(), "cid")).unwrap();
    f.release(&f.bare("cid"), "A").unwrap();
    assert!(f.next(&f.bare("dan")).unwrap().leftovers.is_empty());
}

pub(super) fn an_attempt_is_ended_once_and_keeps_the_reason_of_the_takeover(fresh: &dyn Fn() -> Fixture) {
    let f = fresh();
    f.add_task("A");
    let attempt = attempt(&f, 7);
    f.clock.advance(TTL);
    f.claim(&f.bare("bob"), "A").unwrap();
    let outcome = Outcome { exit_code: Some(137), reason: "killed".to_owned(), ..Outcome::default() };
    let end = || f.write(|tx| kernel::end_attempt(tx, &f.context(), &attempt, &outcome, "bob")).unwrap();
    end();
    f.clock.advance(TTL);
    end();
    let ended = stored(&f, &attempt);
    assert_eq!((ended.state, ended.reason.as_deref()), (AttemptState::Ended, Some("expired")));
    assert_eq!(ended.exit_code, Some(137));
    let events = f.events().into_iter().filter(|e| e.kind == EventKind::AttemptEnded).count();
    assert_eq!(events, 1);
    assert!(f.read(|view| view.open_attempts()).is_empty());
}

pub(super) fn only_a_supervisor_that_died_in_this_boot_charges_the_task(fresh: &dyn Fn() -> Fixture) {
    let ends: [(&str, u32, Ending); 5] = [
        ("death in this boot", 1, |f| f.world.kill(7)),
        ("reboot", 0, |f| f.world.reboot()),
        ("expiry", 0, |f| f.clock.advance(TTL)),
        ("force", 0, |f| drop(f.force(&f.lease("A").unwrap()).unwrap())),
        ("stop", 0, |f| drop(f.release(&f.worker("ann", 7), "A").unwrap())),
    ];
    for (end, charged, happens) in ends {
        let f = fresh();
        f.add_task("A");
        let attempt = attempt(&f, 7);
        happens(&f);
        f.cleanup();
        f.cleanup();
        assert_eq!(f.task("A").attempts, charged, "{end}");
        assert_eq!(stored(&f, &attempt).charged, charged > 0, "{end}");
        assert_eq!(f.status("A"), TaskStatus::Pending, "{end}");
    }
}

pub(super) fn a_holder_that_died_without_an_attempt_is_not_charged(fresh: &dyn Fn() -> Fixture) {
    let f = fresh();
    f.add_task("A");
    f.claim(&f.worker("ann", 7), "A").unwrap();
    f.world.kill(7);
    f.cleanup();
    assert_eq!((f.task("A").attempts, f.status("A")), (0, TaskStatus::Pending));
}

pub(super) fn a_task_fails_at_max_attempts_with_a_reason(fresh: &dyn Fn() -> Fixture) {
    let f = fresh();
    f.add_task("A");
    for pid in 1..=3 {
        assert_eq!(f.status("A"), TaskStatus::Pending);
        attempt(&f, pid);
        f.world.kill(pid);
        f.cleanup();
    }
    assert_eq!((f.status("A"), f.task("A").attempts), (TaskStatus::Failed, 3));
    let last = f.events().into_iter().rfind(|e| e.kind == EventKind::TaskStatus).unwrap();
    assert_eq!((last.from, last.to), (Some(TaskStatus::InProgress), Some(TaskStatus::Failed)));
    assert!(last.detail["message"].as_str().unwrap().contains('3'));
}

pub(super) fn a_claim_that_finds_the_last_allowed_attempt_dead_fails_the_task(fresh: &dyn Fn() -> Fixture) {
    let f = fresh();
    f.add_task("A");
    for pid in 1..=3 {
        attempt(&f, pid);
        f.world.kill(pid);
    }
    assert_eq!(refused(f.claim(&f.bare("bob"), "A")), ErrorCode::InvalidTransition);
    assert_eq!(
        (f.status("A"), f.lease("A")),
        (TaskStatus::Failed, None),
        "the refusal's change was committed"
    );
}

pub(super) fn next_skips_a_task_that_has_just_failed(fresh: &dyn Fn() -> Fixture) {
    let f = fresh();
    f.add_task("A");
    f.add_task("B");
    for pid in 1..=3 {
        attempt(&f, pid);
        f.world.kill(pid);
    }
    assert_eq!(f.next(&f.bare("bob")).unwrap().task.key, "B");
    assert_eq!(f.status("A"), TaskStatus::Failed);
}

pub(super) fn no_leader_is_recorded_for_an_attempt_that_is_ending(fresh: &dyn Fn() -> Fixture) {
    let f = fresh();
    f.add_task("A");
    let attempt = attempt(&f, 7);
    f.clock.advance(TTL);
    f.claim(&f.bare("bob"), "A").unwrap();
    let started = f.write(|tx| kernel::note_leader(tx, attempt.id.as_str(), &leader())).unwrap();
    assert_eq!(started, None);
    let now = stored(&f, &attempt);
    assert_eq!((now.state, now.reason.as_deref(), now.leader), (AttemptState::Ending, Some("expired"), None));
}

pub(super) fn a_failed_start_is_recorded_while_the_attempt_runs(fresh: &dyn Fn() -> Fixture) {
    let f = fresh();
    f.add_task("A");
    let attempt = attempt(&f, 7);
    assert_eq!(f.read(|view| kernel::failed_start(view, &attempt)), None);
    f.write(|tx| kernel::note_failed_start(tx, &attempt, "no such command")).unwrap();
    assert_eq!(f.read(|view| kernel::failed_start(view, &attempt)).as_deref(), Some("no such command"));
    f.force(&f.lease("A").unwrap()).unwrap();
    // A reason recorded by an eviction is not reported as a failed start, and is not overwritten by one.
    assert_eq!(f.read(|view| kernel::failed_start(view, &attempt)), None);
    f.write(|tx| kernel::note_failed_start(tx, &attempt, "too late")).unwrap();
    assert_eq!(stored(&f, &attempt).reason.as_deref(), Some("forced"));
}

pub(super) fn an_aborted_attempt_returns_the_task_with_a_charge_and_fails_it_at_the_limit(
    fresh: &dyn Fn() -> Fixture,
) {
    let f = fresh();
    f.add_task("A");
    for pid in 1..=3 {
        assert_eq!((f.status("A"), f.task("A").attempts), (TaskStatus::Pending, pid - 1));
        let attempt = attempt(&f, pid);
        let ann = f.worker("ann", pid);
        // Each report is late, but the task was not taken over: first the lease has expired, then a clean-up has closed
        // it.
        if pid > 1 {
            f.clock.advance(TTL);
        }
        if pid > 2 {
            f.cleanup();
        }
        let name = f.name("A");
        f.write(|tx| {
            kernel::conclude_attempt(tx, &f.context(), &ann, &name, &broken("killed by SIGSEGV"), false)
        })
        .unwrap();
        assert_eq!(f.lease("A"), None);
        let now = stored(&f, &attempt);
        assert_eq!(now.state, AttemptState::Ending);
    }
    assert_eq!((f.status("A"), f.task("A").attempts), (TaskStatus::Failed, 3));
    let last = f.events().into_iter().rfind(|e| e.kind == EventKind::TaskStatus).unwrap();
    assert_eq!(last.to, Some(TaskStatus::Failed));
    assert!(last.detail["message"].as_str().unwrap().contains("killed by SIGSEGV"));
}

pub(super) fn aborting_an_attempt_after_a_takeover_is_refused(fresh: &dyn Fn() -> Fixture) {
    let f = fresh();
    f.add_task("A");
    attempt(&f, 7);
    let fence = f.lease("A").unwrap().fence;
    f.clock.advance(TTL);
    f.claim(&f.bare("bob"), "A").unwrap();
    let ann = f.worker("ann", 7).with_fence(Some(fence));
    let name = f.name("A");
    let word =
        f.write(|tx| kernel::conclude_attempt(tx, &f.context(), &ann, &name, &broken("killed"), false));
    assert_eq!(refused(word), ErrorCode::LeaseLost);
    assert_eq!((f.status("A"), f.task("A").attempts), (TaskStatus::InProgress, 0));
}
