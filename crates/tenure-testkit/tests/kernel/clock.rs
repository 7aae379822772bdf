//! A wall clock that jumps by an hour, forward or back, never leads to two valid holders.

use std::time::Duration;

use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};
use tenure_core::lease::Resource;
use tenure_core::task::TaskStatus;
use tenure_testkit::Fixture;
use tenure_testkit::conformance::check_feed;

const HOUR: Duration = Duration::from_hours(1);

#[derive(Debug, Clone, Copy)]
enum Step {
    Claim(usize),
    Next(usize),
    Renew(usize),
    Revive(usize),
    Done(usize),
    Release(usize),
    Cleanup,
    Forward,
    Back,
    Later(u64),
}

fn step() -> impl Strategy<Value = Step> {
    let actor = 0..3_usize;
    prop_oneof![
        3 => actor.clone().prop_map(Step::Claim),
        1 => actor.clone().prop_map(Step::Next),
        2 => actor.clone().prop_map(Step::Renew),
        2 => actor.clone().prop_map(Step::Revive),
        1 => actor.clone().prop_map(Step::Done),
        1 => actor.prop_map(Step::Release),
        1 => Just(Step::Cleanup),
        2 => Just(Step::Forward),
        2 => Just(Step::Back),
        2 => (1..90_u64).prop_map(Step::Later),
    ]
}

/// Each holder presents its last fence, like a process that was suspended during a jump.
fn run(f: &Fixture, steps: &[Step]) {
    f.add_task("A");
    let mut fences = [None; 3];
    let names = ["ann", "bob", "cid"];
    for step in steps {
        let caller = |actor: usize| {
            f.worker(names[actor], u32::try_from(actor).unwrap() + 1).with_fence(fences[actor])
        };
        let granted = |actor: usize, fence| Some((actor, fence));
        let news = match *step {
            Step::Claim(actor) => {
                f.claim(&caller(actor), "A").ok().and_then(|g| granted(actor, g.lease.fence))
            }
            Step::Next(actor) => f.next(&caller(actor)).and_then(|g| granted(actor, g.lease.fence)),
            Step::Renew(actor) => f.renew(&caller(actor), "A").ok().and_then(|l| granted(actor, l.fence)),
            Step::Revive(actor) => f.revive(&caller(actor), "A").ok().and_then(|l| granted(actor, l.fence)),
            Step::Done(actor) => {
                if f.done(&caller(actor), "A").is_ok() {
                    f.override_status(&f.bare("dan"), "A", TaskStatus::Pending, false).unwrap();
                }
                None
            }
            Step::Release(actor) => f.release(&caller(actor), "A").ok().and(None),
            Step::Cleanup => {
                f.cleanup();
                None
            }
            Step::Forward => {
                f.clock.advance(HOUR);
                None
            }
            Step::Back => {
                f.clock.step_back(HOUR);
                None
            }
            Step::Later(seconds) => {
                f.clock.advance(Duration::from_secs(seconds));
                None
            }
        };
        if let Some((actor, fence)) = news {
            fences[actor] = Some(fence);
        }
        let valid = (0..3).filter(|actor| {
            let caller =
                f.worker(names[*actor], u32::try_from(*actor).unwrap() + 1).with_fence(fences[*actor]);
            f.check(&caller, "A").is_ok()
        });
        assert!(valid.count() <= 1, "two valid holders after {step:?}");
    }
    let history = f.history(&Resource::task(&f.id("A")));
    assert!(history.windows(2).all(|pair| pair[0].fence < pair[1].fence));
    assert!(history.iter().rev().skip(1).all(|lease| !lease.is_open()), "only the latest lease may be open");
    check_feed(f);
}

#[test]
fn clock_jumps_of_an_hour_never_lead_to_two_valid_holders() {
    let cases = if crate::full() { 20_000 } else { 300 };
    let mut runner = TestRunner::new(Config { cases, failure_persistence: None, ..Config::default() });
    let steps = proptest::collection::vec(step(), 1..40);
    for fresh in [Fixture::memory, Fixture::sqlite] {
        // Creating databases is slow, so most cases run on the in-memory store.
        runner
            .run(&steps, |steps| {
                run(&fresh(), &steps);
                Ok(())
            })
            .unwrap();
    }
}
