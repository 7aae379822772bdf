//! Eviction, and status changes without holding the task.

use tenure_core::ErrorCode;
use tenure_core::event::EventKind;
use tenure_core::kernel::Terms;
use tenure_core::lease::{EndReason, LeaseState, Resource};
use tenure_core::task::TaskStatus;

use crate::fixture::{Fixture, TESTER, TTL, refused};

pub(super) fn force_ends_the_given_lease_and_records_the_actor(fresh: &dyn Fn() -> Fixture) {
    let f = fresh();
    f.add_task("A");
    let lease = f.claim(&f.bare("ann"), "A").unwrap().lease;
    let forced = f.force(&lease).unwrap();
    assert_eq!(forced.ended.len(), 1);
    assert_eq!((f.status("A"), f.lease("A")), (TaskStatus::Pending, None));
    let ended: Vec<_> = f.events().into_iter().filter(|e| e.kind == EventKind::LeaseEnded).collect();
    assert_eq!(ended.len(), 1);
    assert_eq!((ended[0].actor.as_str(), ended[0].fence), (TESTER, Some(lease.fence)));
    assert_eq!(ended[0].detail["reason"], "forced");
}

pub(super) fn force_is_refused_if_the_lease_has_changed_since_it_was_read(fresh: &dyn Fn() -> Fixture) {
    let f = fresh();
    f.add_task("A");
    let shown = f.claim(&f.bare("ann"), "A").unwrap().lease;
    f.release(&f.bare("ann"), "A").unwrap();
    assert_eq!(refused(f.force(&shown)), ErrorCode::LockNotFound);
    f.claim(&f.bare("bob"), "A").unwrap();
    assert_eq!(refused(f.force(&shown)), ErrorCode::LockNotFound);
    assert_eq!(f.lease("A").unwrap().holder.id, "bob");
}

pub(super) fn force_rings_the_old_holder(fresh: &dyn Fn() -> Fixture) {
    let f = fresh();
    f.add_task("A");
    let bell = f.bell("ann");
    let terms = Terms { doorbell: Some(bell.clone()), ..Terms::new(TTL) };
    let lease = f.claim_on(&f.bare("ann"), "A", &terms).unwrap().lease;
    f.force(&lease).unwrap();
    assert!(f.heard(&bell));
}

pub(super) fn forcing_a_lapsed_lease_records_why_it_lapsed(fresh: &dyn Fn() -> Fixture) {
    let f = fresh();
    f.add_task("A");
    let lease = f.claim(&f.bare("ann"), "A").unwrap().lease;
    f.clock.advance(TTL);
    f.force(&lease).unwrap();
    assert_eq!(f.history(&Resource::task(&f.id("A")))[0].ended.unwrap().1, EndReason::Expired);
}

pub(super) fn cleanup_closes_lapsed_leases_only(fresh: &dyn Fn() -> Fixture) {
    let f = fresh();
    for key in ["A", "B", "C"] {
        f.add_task(key);
    }
    f.claim(&f.bare("ann"), "A").unwrap();
    f.clock.advance(TTL / 2);
    f.claim(&f.worker("bob", 7), "B").unwrap();
    f.claim(&f.bare("cid"), "C").unwrap();
    f.world.kill(7);
    f.clock.advance(TTL / 2);
    let closed = f.cleanup();
    let seen: Vec<_> = closed.iter().map(|(lease, how)| (lease.holder.id.as_str(), *how)).collect();
    assert_eq!(seen, [("ann", LeaseState::Expired), ("bob", LeaseState::HolderDead)]);
    assert_eq!((f.status("A"), f.status("B")), (TaskStatus::Pending, TaskStatus::Pending));
    assert_eq!((f.status("C"), f.lease("C").is_some()), (TaskStatus::InProgress, true));
    assert!(f.cleanup().is_empty());
}

pub(super) fn a_status_change_is_refused_under_another_holders_live_lease(fresh: &dyn Fn() -> Fixture) {
    let f = fresh();
    f.add_task("A");
    f.claim(&f.bare("ann"), "A").unwrap();
    for to in TaskStatus::ALL.into_iter().filter(|to| *to != TaskStatus::InProgress) {
        assert_eq!(refused(f.override_status(&f.bare("bob"), "A", to, false)), ErrorCode::TaskLocked);
    }
    assert_eq!(f.status("A"), TaskStatus::InProgress);
}

pub(super) fn with_force_the_other_lease_ends_and_its_holder_is_rung(fresh: &dyn Fn() -> Fixture) {
    let f = fresh();
    f.add_task("A");
    let bell = f.bell("ann");
    let terms = Terms { doorbell: Some(bell.clone()), ..Terms::new(TTL) };
    let lease = f.claim_on(&f.bare("ann"), "A", &terms).unwrap().lease;
    let evicted = f.override_status(&f.bare("bob"), "A", TaskStatus::Skipped, true).unwrap().unwrap();
    assert_eq!(evicted.fence, lease.fence);
    assert!(f.heard(&bell));
    assert_eq!((f.status("A"), f.lease("A")), (TaskStatus::Skipped, None));
    let late = f.bare("ann").with_fence(Some(lease.fence));
    assert_eq!(refused(f.done(&late, "A")), ErrorCode::LeaseLost);
}

pub(super) fn a_status_change_by_the_holder_releases_the_lease(fresh: &dyn Fn() -> Fixture) {
    for (to, reason) in [
        (TaskStatus::Completed, EndReason::Completed),
        (TaskStatus::Failed, EndReason::Completed),
        (TaskStatus::Pending, EndReason::Released),
        (TaskStatus::Skipped, EndReason::Released),
    ] {
        let f = fresh();
        f.add_task("A");
        f.claim(&f.bare("ann"), "A").unwrap();
        assert!(f.override_status(&f.bare("ann"), "A", to, false).unwrap().is_none());
        assert_eq!((f.status("A"), f.lease("A")), (to, None));
        assert_eq!(f.history(&Resource::task(&f.id("A")))[0].ended.unwrap().1, reason);
    }
}

pub(super) fn a_lapsed_lease_does_not_block_a_status_change(fresh: &dyn Fn() -> Fixture) {
    let f = fresh();
    f.add_task("A");
    f.claim(&f.bare("ann"), "A").unwrap();
    f.clock.advance(TTL);
    assert!(f.override_status(&f.bare("bob"), "A", TaskStatus::Skipped, false).unwrap().is_none());
    assert_eq!(f.history(&Resource::task(&f.id("A")))[0].ended.unwrap().1, EndReason::Forced);
}

pub(super) fn only_a_claim_sets_in_progress(fresh: &dyn Fn() -> Fixture) {
    let f = fresh();
    f.add_task("A");
    let answer = f.override_status(&f.bare("bob"), "A", TaskStatus::InProgress, false);
    assert_eq!(refused(answer), ErrorCode::InvalidTransition, "it would be in progress without a lease");
    assert_eq!(f.status("A"), TaskStatus::Pending);
}
