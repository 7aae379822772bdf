//! A wall clock that jumps by an hour, forward or back, never gives two valid holders.

use std::time::Duration;

use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};
use tenure_core::lease::Resource;
use tenure_core::task::TaskStatus;
use tenure_testkit::Fixture;
use tenure_testkit::conformance::check_the_feed;

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
    let who = 0..3_usize;
    prop_oneof![
        3 => who.clone().prop_map(Step::Claim),
        1 => who.clone().prop_map(Step::Next),
        2 => who.clone().prop_map(Step::Renew),
        2 => who.clone().prop_map(Step::Revive),
        1 => who.clone().prop_map(Step::Done),
        1 => who.prop_map(Step::Release),
        1 => Just(Step::Cleanup),
        2 => Just(Step::Forward),
        2 => Just(Step::Back),
        2 => (1..90_u64).prop_map(Step::Later),
    ]
}

/// Each holder shows the last fence that it was given, as one that has slept through a jump would.
fn run(f: &Fixture, steps: &[Step]) {
    f.add_task("A");
    let mut fences = [None; 3];
    let names = ["ann", "bob", "cid"];
    for step in steps {
        let caller =
            |who: usize| f.worker(names[who], u32::try_from(who).unwrap() + 1).with_fence(fences[who]);
        let granted = |who: usize, fence| Some((who, fence));
        let news = match *step {
            Step::Claim(who) => f.claim(&caller(who), "A").ok().and_then(|g| granted(who, g.lease.fence)),
            Step::Next(who) => f.next(&caller(who)).and_then(|g| granted(who, g.lease.fence)),
            Step::Renew(who) => f.renew(&caller(who), "A").ok().and_then(|l| granted(who, l.fence)),
            Step::Revive(who) => f.revive(&caller(who), "A").ok().and_then(|l| granted(who, l.fence)),
            Step::Done(who) => {
                if f.done(&caller(who), "A").is_ok() {
                    f.settle(&f.bare("dan"), "A", TaskStatus::Pending, false).unwrap();
                }
                None
            }
            Step::Release(who) => f.release(&caller(who), "A").ok().and(None),
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
        if let Some((who, fence)) = news {
            fences[who] = Some(fence);
        }
        let valid = (0..3).filter(|who| {
            let caller = f.worker(names[*who], u32::try_from(*who).unwrap() + 1).with_fence(fences[*who]);
            f.check(&caller, "A").is_ok()
        });
        assert!(valid.count() <= 1, "two valid holders after {step:?}");
    }
    let history = f.history(&Resource::task(&f.id("A")));
    assert!(history.windows(2).all(|pair| pair[0].fence < pair[1].fence));
    assert!(history.iter().rev().skip(1).all(|lease| !lease.is_open()), "only the latest may be open");
    check_the_feed(f);
}

#[test]
fn jumps_by_an_hour_never_give_two_valid_holders() {
    let cases = if crate::full() { 20_000 } else { 300 };
    let mut runner = TestRunner::new(Config { cases, failure_persistence: None, ..Config::default() });
    let steps = proptest::collection::vec(step(), 1..40);
    for fresh in [Fixture::memory, Fixture::sqlite] {
        // A fresh database each time is slow; the store in memory does most of the work.
        runner
            .run(&steps, |steps| {
                run(&fresh(), &steps);
                Ok(())
            })
            .unwrap();
    }
}
