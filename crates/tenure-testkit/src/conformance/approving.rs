//! A task is approved by any caller but the agent that has worked on it last (T2).

use tenure_core::ErrorCode;
use tenure_core::event::EventKind;
use tenure_core::holder::{Caller, Holder};
use tenure_core::kernel::{Finish, Terms};
use tenure_core::rules::{Change, change_status};
use tenure_core::task::TaskStatus;

use crate::fixture::{Fixture, Granted, TTL, refused};

fn change(f: &Fixture, caller: &Caller, change: Change) -> tenure_core::Result<TaskStatus> {
    f.write(|tx| change_status(tx, &f.context(), caller, "A", change, None, false))
        .map(|changed| changed.task.status)
}

/// Task A, which `worker` has worked on and sent to review.
fn reviewable(f: &Fixture, worker: &Caller) -> Granted {
    let grant = f.claim(worker, "A").unwrap();
    f.done(&worker.clone().with_fence(Some(grant.lease.fence)), "A").unwrap();
    assert_eq!(f.status("A"), TaskStatus::Review);
    grant
}

fn with_review(fresh: &dyn Fn() -> Fixture) -> Fixture {
    let mut f = fresh();
    f.policy.review = true;
    f.add_task("A");
    f
}

/// Asserts that every way to complete a task in review is refused.
fn cannot_approve(f: &Fixture, caller: &Caller) {
    let before = f.events().len();
    for way in [Change::Approve, Change::To(TaskStatus::Completed)] {
        assert_eq!(refused(change(f, caller, way)), ErrorCode::PermissionDenied, "{way:?} {caller:?}");
    }
    let terms = Terms { review: true, ..Terms::new(TTL) };
    assert_eq!(refused(f.claim_on(caller, "A", &terms)), ErrorCode::PermissionDenied, "{caller:?}");
    assert_eq!((f.status("A"), f.events().len()), (TaskStatus::Review, before));
}

pub(super) fn the_agent_that_worked_last_never_approves(fresh: &dyn Fn() -> Fixture) {
    let f = with_review(fresh);
    let (ann, bob) = (f.bare("ann"), f.bare("bob"));
    let grant = reviewable(&f, &ann);
    cannot_approve(&f, &ann);
    cannot_approve(&f, &ann.clone().with_fence(Some(grant.lease.fence)));
    cannot_approve(&f, &f.bare("another-name").with_proof(Some(grant.proof())));
    // Rejected and done again by another agent: the first one may approve that.
    change(&f, &bob, Change::Reject).unwrap();
    reviewable(&f, &bob);
    cannot_approve(&f, &bob);
    assert_eq!(change(&f, &ann, Change::Approve).unwrap(), TaskStatus::Completed);
    assert_eq!(refused(change(&f, &bob, Change::Approve)), ErrorCode::PermissionDenied, "completed already");
    let approvals = f.events().into_iter().filter(|event| {
        event.kind == EventKind::TaskStatus
            && event.from == Some(TaskStatus::Review)
            && event.to == Some(TaskStatus::Completed)
    });
    assert_eq!(approvals.map(|event| event.actor).collect::<Vec<_>>(), ["ann"]);
}

pub(super) fn the_agent_of_an_attempt_never_approves_under_another_name(fresh: &dyn Fn() -> Fixture) {
    let f = with_review(fresh);
    let runner = Caller { holder: Holder::runner("r"), ..f.worker("r", 7) };
    let grant = f.claim(&runner, "A").unwrap();
    let attempt = f.begin_attempt(&grant.lease, &runner);
    f.done(&f.bare("r-1").with_proof(Some(grant.proof())), "A").unwrap();
    cannot_approve(&f, &f.bare("r-1").with_attempt(Some(attempt.id.clone())));
    cannot_approve(&f, &f.bare("mallory").with_proof(Some(grant.proof())));
    // The same runner reviews it in another attempt.
    let review = f.claim_on(&runner, "A", &Terms { review: true, ..Terms::new(TTL) }).unwrap();
    let reviewer = f.bare("r-2").with_proof(Some(review.proof()));
    assert_eq!(change(&f, &reviewer, Change::Approve).unwrap(), TaskStatus::Completed);
}

pub(super) fn a_worker_does_not_complete_its_task_past_the_review(fresh: &dyn Fn() -> Fixture) {
    let f = with_review(fresh);
    let ann = f.bare("ann");
    let _ = f.claim(&ann, "A").unwrap();
    let past = change(&f, &ann, Change::To(TaskStatus::Completed));
    assert_eq!((refused(past), f.status("A")), (ErrorCode::PermissionDenied, TaskStatus::InProgress));
    f.finish(&ann, "A", Finish::Release(None)).unwrap();
    let f = fresh();
    f.add_task("A");
    let ann = f.bare("ann");
    let _ = f.claim(&ann, "A").unwrap();
    let without_review = change(&f, &ann, Change::To(TaskStatus::Completed));
    assert_eq!(without_review.unwrap(), TaskStatus::Completed);
}

pub(super) fn a_person_approves_what_the_person_did(fresh: &dyn Fn() -> Fixture) {
    let f = with_review(fresh);
    let person = Caller::new(Holder::person("ann@host:pts/3"));
    reviewable(&f, &person);
    assert_eq!(change(&f, &person, Change::Approve).unwrap(), TaskStatus::Completed);
}
