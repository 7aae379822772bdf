//! Which attempts are reaped on this machine, even after a reboot.

#![expect(clippy::unwrap_used, reason = "a failed expectation is a failed test")]

use tenure_core::holder::{Caller, Holder};
use tenure_core::lease::{Attempt, AttemptState};
use tenure_runner::{Scope, reap_attempts};
use tenure_testkit::fixture::{Fixture, TESTER, TTL};

fn attempt(f: &Fixture, remote: bool) -> Attempt {
    f.add_task("A");
    let process = if remote { f.world.remote_process(7) } else { f.world.process(7) };
    let ann = Caller::new(Holder::agent("ann")).with_process(process);
    let lease = f.claim(&ann, "A").unwrap().lease;
    f.begin_attempt(&lease, &ann)
}

fn state(f: &Fixture, attempt: &Attempt) -> AttemptState {
    let rows = f.read(|view| view.attempts(&attempt.resource));
    rows.into_iter().find(|row| row.id == attempt.id).unwrap().state
}

#[test]
fn an_attempt_of_an_earlier_boot_is_ended_without_searching_for_processes() {
    for scope_of_resource in [true, false] {
        let f = Fixture::memory();
        let attempt = attempt(&f, false);
        f.world.reboot();
        f.cleanup();
        assert_eq!(state(&f, &attempt), AttemptState::Ending);
        let scope = if scope_of_resource { Scope::Of(&attempt.resource) } else { Scope::Abandoned };
        let reaped = reap_attempts(f.store.as_ref(), &f.context(), scope, TESTER).unwrap();
        assert_eq!(reaped.ended.len(), 1);
        assert_eq!(state(&f, &attempt), AttemptState::Ended);
    }
}

#[test]
fn an_attempt_of_another_machine_is_left_to_it_and_blocks_nothing_here() {
    let f = Fixture::memory();
    let attempt = attempt(&f, true);
    f.clock.advance(TTL);
    f.claim(&f.bare("bob"), "A").unwrap();
    assert_eq!(state(&f, &attempt), AttemptState::Ending);
    let scope = Scope::Of(&attempt.resource);
    let reaped = reap_attempts(f.store.as_ref(), &f.context(), scope, TESTER).unwrap();
    assert!(reaped.ended.is_empty() && reaped.survivors.is_empty());
    assert_eq!(state(&f, &attempt), AttemptState::Ending);
}

#[test]
fn reaping_twice_has_the_same_effect_as_once() {
    let f = Fixture::memory();
    let attempt = attempt(&f, false);
    f.world.reboot();
    f.cleanup();
    for ended in [1, 0] {
        let reaped = reap_attempts(f.store.as_ref(), &f.context(), Scope::Abandoned, TESTER).unwrap();
        assert_eq!(reaped.ended.len(), ended);
    }
    assert_eq!(state(&f, &attempt), AttemptState::Ended);
}
