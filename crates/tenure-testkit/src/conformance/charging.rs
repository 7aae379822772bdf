//! Charging: a task that its agents return again and again fails in the end, no matter which verb they use.

use std::time::Duration;

use tenure_core::holder::Caller;
use tenure_core::kernel::{self, Finish, Outcome};
use tenure_core::lease::Attempt;
use tenure_core::rules::{self, Change};
use tenure_core::task::TaskStatus;

use crate::fixture::Fixture;

/// A runner, process `pid`, begins an attempt at A.
fn begin(f: &Fixture, pid: u32) -> Attempt {
    let runner = f.worker("runner", pid);
    let lease = f.claim(&runner, "A").unwrap().lease;
    f.begin_attempt(&lease, &runner)
}

/// The agent of the attempt: it acts for the runner, and has the mark in its environment.
fn agent(f: &Fixture, attempt: &Attempt) -> Caller {
    f.bare("runner").with_fence(Some(attempt.fence)).with_attempt(Some(attempt.id.clone()))
}

/// A caller with another name and the same attempt in its environment.
fn disguised(f: &Fixture, attempt: &Attempt) -> Caller {
    f.bare("mallory").with_attempt(Some(attempt.id.clone()))
}

fn end(f: &Fixture, attempt: &Attempt) {
    f.write(|tx| kernel::end_attempt(tx, &f.context(), attempt, &Outcome::default(), "runner")).unwrap();
}

fn change(f: &Fixture, caller: &Caller, change: Change, force: bool) {
    f.write(|tx| rules::change_status(tx, &f.context(), caller, "A", change, Some("because"), force))
        .unwrap();
}

pub(super) fn a_return_from_within_an_attempt_is_charged_once_whatever_the_verb(fresh: &dyn Fn() -> Fixture) {
    type Verb = fn(&Fixture, &Attempt);
    let verbs: [(&str, Verb); 8] = [
        ("release", |f, a| drop(f.release(&agent(f, a), "A").unwrap())),
        ("locks release", |f, a| {
            f.write(|tx| rules::release_lock(tx, &f.context(), &agent(f, a), "A", false)).unwrap();
        }),
        ("locks release --force", |f, a| {
            f.write(|tx| rules::release_lock(tx, &f.context(), &disguised(f, a), "A", true)).unwrap();
        }),
        ("update", |f, a| change(f, &agent(f, a), Change::To(TaskStatus::Pending), false)),
        ("update --force", |f, a| change(f, &disguised(f, a), Change::To(TaskStatus::Pending), true)),
        ("fail, retry", |f, a| {
            f.finish(&agent(f, a), "A", Finish::Fail("no")).unwrap();
            change(f, &agent(f, a), Change::Retry, false);
        }),
        ("done, update", |f, a| {
            f.done(&agent(f, a), "A").unwrap();
            change(f, &agent(f, a), Change::To(TaskStatus::Pending), false);
        }),
        ("skip, retry, update", |f, a| {
            change(f, &agent(f, a), Change::Skip, false);
            change(f, &agent(f, a), Change::Retry, false);
            if f.status("A") == TaskStatus::Pending {
                change(f, &agent(f, a), Change::To(TaskStatus::Completed), false);
                change(f, &agent(f, a), Change::To(TaskStatus::Pending), false);
            }
        }),
    ];
    for (verb, give_back) in verbs {
        let f = fresh();
        f.add_task("A");
        for count in 1..=3 {
            assert_eq!((f.status("A"), f.task("A").attempts), (TaskStatus::Pending, count - 1), "{verb}");
            let attempt = begin(&f, count);
            give_back(&f, &attempt);
            end(&f, &attempt);
        }
        assert_eq!((f.status("A"), f.task("A").attempts), (TaskStatus::Failed, 3), "{verb}");
    }
}

pub(super) fn a_person_and_the_supervisor_return_a_task_without_a_charge(fresh: &dyn Fn() -> Fixture) {
    let f = fresh();
    f.add_task("A");
    let attempt = begin(&f, 1);
    f.force(&f.lease("A").unwrap()).unwrap();
    end(&f, &attempt);
    let attempt = begin(&f, 2);
    // A supervisor ends the attempt before the lease.
    end(&f, &attempt);
    f.release(&f.worker("runner", 2), "A").unwrap();
    let attempt = begin(&f, 3);
    change(&f, &f.bare("ann"), Change::To(TaskStatus::Pending), true);
    end(&f, &attempt);
    assert_eq!((f.status("A"), f.task("A").attempts), (TaskStatus::Pending, 0));
    // A person that retries a failed task resets the count.
    let attempt = begin(&f, 4);
    f.release(&agent(&f, &attempt), "A").unwrap();
    end(&f, &attempt);
    let attempt = begin(&f, 5);
    f.finish(&agent(&f, &attempt), "A", Finish::Fail("no")).unwrap();
    end(&f, &attempt);
    change(&f, &f.bare("ann"), Change::Retry, false);
    assert_eq!((f.status("A"), f.task("A").attempts), (TaskStatus::Pending, 0));
}

pub(super) fn three_quick_returns_in_a_row_are_charged(fresh: &dyn Fn() -> Fixture) {
    // How long each attempt lasts, and whether the task fails after the last.
    let rows: [(&[u64], bool); 4] =
        [(&[1, 29, 30], true), (&[1, 1], false), (&[1, 31, 1], false), (&[31, 1, 1], false)];
    for (seconds, fails) in rows {
        let f = fresh();
        f.add_task("A");
        for (pid, seconds) in (1..).zip(seconds) {
            let attempt = begin(&f, pid);
            f.clock.advance(Duration::from_secs(*seconds));
            // By an agent that has removed the mark and the fence from its environment.
            f.write(|tx| rules::release_lock(tx, &f.context(), &f.bare("mallory"), "A", true)).unwrap();
            end(&f, &attempt);
        }
        let expected = if fails { (TaskStatus::Failed, 3) } else { (TaskStatus::Pending, 0) };
        assert_eq!((f.status("A"), f.task("A").attempts), expected, "{seconds:?}");
    }
}
