//! Renewing (L7), and `check` for scripts.

use std::time::Duration;

use tenure_core::kernel::{self, Beat, Terms};
use tenure_core::lease::{AttemptState, EndReason, Resource, ResourceKind};
use tenure_core::task::TaskStatus;
use tenure_core::{Clock, ErrorCode};

use crate::fixture::{Fixture, TTL, refused};

pub(super) fn renewal_moves_expiry_and_heartbeat_together_from_now(fresh: &dyn Fn() -> Fixture) {
    let f = fresh();
    f.add_task("A");
    let first = f.claim(&f.bare("ann"), "A").unwrap().lease;
    f.clock.advance(Duration::from_secs(20));
    let lease = f.renew(&f.bare("ann"), "A").unwrap();
    assert_eq!((lease.heartbeat_at, lease.expires_at), (f.clock.now(), f.clock.now().after(TTL)));
    assert_eq!((lease.fence, lease.acquired_at), (first.fence, first.acquired_at));
    assert_eq!(f.lease("A"), Some(lease));
}

pub(super) fn a_new_ttl_counts_from_the_renewal(fresh: &dyn Fn() -> Fixture) {
    let f = fresh();
    f.add_task("A");
    f.claim(&f.bare("ann"), "A").unwrap();
    let hour = Duration::from_hours(1);
    f.beat(&f.bare("ann"), "A", Beat { ttl: Some(hour), ..Beat::default() }).unwrap();
    f.clock.advance(TTL * 2);
    assert_eq!(f.renew(&f.bare("ann"), "A").unwrap().expires_at, f.clock.now().after(hour));
}

pub(super) fn only_the_holder_renews(fresh: &dyn Fn() -> Fixture) {
    let f = fresh();
    f.add_task("A");
    let grant = f.claim(&f.worker("ann", 7), "A").unwrap();
    let (proof, first) = (grant.proof(), grant.lease);
    f.clock.advance(Duration::from_secs(1));
    assert_eq!(refused(f.renew(&f.bare("bob"), "A")), ErrorCode::NotHolder);
    assert_eq!(refused(f.renew(&f.worker("ann", 8), "A")), ErrorCode::NotHolder, "another process of ann");
    assert_eq!(f.lease("A").unwrap(), first);
    let credential = f.bare("bob").with_proof(Some(proof));
    assert_eq!(f.renew(&credential, "A").unwrap().holder, first.holder, "the key proves its holder");
}

pub(super) fn the_verb_renew_needs_an_unexpired_lease(fresh: &dyn Fn() -> Fixture) {
    let f = fresh();
    f.add_task("A");
    let lease = f.claim(&f.bare("ann"), "A").unwrap().lease;
    f.clock.set(lease.expires_at);
    assert_eq!(refused(f.renew(&f.bare("ann"), "A")), ErrorCode::LeaseLost);
    assert_eq!(f.lease("A").unwrap(), lease);
    f.cleanup();
    assert_eq!(refused(f.renew(&f.bare("ann"), "A")), ErrorCode::LeaseLost);
}

pub(super) fn a_supervisor_revives_its_own_expired_lease(fresh: &dyn Fn() -> Fixture) {
    let f = fresh();
    f.add_task("A");
    let ann = f.worker("ann", 7);
    let lease = f.claim(&ann, "A").unwrap().lease;
    f.clock.advance(TTL * 3);
    let revived = f.revive(&ann, "A").unwrap();
    assert_eq!((revived.fence, revived.expires_at), (lease.fence, f.clock.now().after(TTL)));
    assert_eq!(refused(f.claim(&f.bare("bob"), "A")), ErrorCode::TaskLocked);
}

pub(super) fn a_supervisor_revives_its_lease_after_a_cleanup_has_closed_it(fresh: &dyn Fn() -> Fixture) {
    let f = fresh();
    f.add_task("A");
    let ann = f.worker("ann", 7);
    let lease = f.claim(&ann, "A").unwrap().lease;
    let attempt = f.begin_attempt(&lease, &ann);
    f.clock.advance(TTL);
    f.cleanup();
    assert_eq!((f.status("A"), f.lease("A")), (TaskStatus::Pending, None));
    f.revive(&ann, "A").unwrap();
    assert_eq!(f.status("A"), TaskStatus::InProgress);
    assert_eq!(f.lease("A").unwrap().fence, lease.fence);
    let attempts = f.read(|view| view.attempts(&attempt.resource));
    assert_eq!(attempts[0].state, AttemptState::Running, "else the next clean-up would end a live attempt");
}

pub(super) fn nothing_is_revived_after_a_takeover(fresh: &dyn Fn() -> Fixture) {
    let f = fresh();
    f.add_task("A");
    let ann = f.worker("ann", 7);
    let fence = f.claim(&ann, "A").unwrap().lease.fence;
    let ann = ann.with_fence(Some(fence));
    f.clock.advance(TTL);
    f.claim(&f.bare("bob"), "A").unwrap();
    assert_eq!(refused(f.revive(&ann, "A")), ErrorCode::LeaseLost);
    f.release(&f.bare("bob"), "A").unwrap();
    assert_eq!(
        refused(f.revive(&ann, "A")),
        ErrorCode::LeaseLost,
        "also after the other holder has released it"
    );
}

pub(super) fn nothing_is_revived_after_the_status_was_changed(fresh: &dyn Fn() -> Fixture) {
    let f = fresh();
    f.add_task("A");
    let ann = f.worker("ann", 7);
    f.claim(&ann, "A").unwrap();
    f.clock.advance(TTL);
    f.override_status(&f.bare("bob"), "A", TaskStatus::Skipped, false).unwrap();
    assert_eq!(refused(f.revive(&ann, "A")), ErrorCode::LeaseLost);
    assert_eq!((f.status("A"), f.lease("A")), (TaskStatus::Skipped, None));
}

pub(super) fn a_released_or_evicted_lease_is_not_revived(fresh: &dyn Fn() -> Fixture) {
    let f = fresh();
    f.add_task("A");
    let ann = f.worker("ann", 7);
    f.claim(&ann, "A").unwrap();
    f.release(&ann, "A").unwrap();
    assert_eq!(refused(f.revive(&ann, "A")), ErrorCode::LeaseLost);
    let lease = f.claim(&ann, "A").unwrap().lease;
    f.force(&lease).unwrap();
    assert_eq!(refused(f.revive(&ann, "A")), ErrorCode::LeaseLost);
    f.claim(&ann, "A").unwrap();
    f.world.kill(7);
    assert_eq!(refused(f.revive(&ann, "A")), ErrorCode::LeaseLost, "a dead holder cannot revive");
    f.cleanup();
    assert_eq!(refused(f.revive(&ann, "A")), ErrorCode::LeaseLost);
}

pub(super) fn a_lease_without_a_process_is_renewed_after_a_cleanup_unless_a_waiter_comes_first(
    fresh: &dyn Fn() -> Fixture,
) {
    let f = fresh();
    for key in ["A", "B", "C", "D"] {
        f.add_task(key);
    }
    let (ann, bob) = (f.bare("ann"), f.worker("bob", 7));
    let renewable = || {
        let mut found = f.read(|view| kernel::renewable(view, &f.context(), &ann.holder));
        found.sort_by_key(|lease| lease.fence);
        found
    };
    let leases = ["A", "B", "C"].map(|key| f.claim(&ann, key).unwrap().lease);
    f.claim(&f.worker("ann", 9), "D").unwrap();
    assert_eq!(renewable(), leases, "not the one that a process supervises");
    f.clock.advance(TTL);
    f.cleanup();
    f.claim(&bob, "C").unwrap();
    let fences = || renewable().iter().map(|lease| lease.fence).collect::<Vec<_>>();
    assert_eq!(fences(), [leases[0].fence, leases[1].fence], "not the one that was granted since");
    // A waiter that has asked for B comes before its earlier holder.
    let (ticket, wish) = f.wait_for(&bob, &Resource::task(&f.id("B")), "bell");
    assert_eq!(f.revive(&ann, "A").unwrap().fence, leases[0].fence);
    assert_eq!((f.status("A"), f.status("B")), (TaskStatus::InProgress, TaskStatus::Pending));
    assert_eq!(refused(f.revive(&ann, "B")), ErrorCode::LeaseLost);
    assert_eq!(refused(f.revive(&ann, "C")), ErrorCode::NotHolder);
    f.write(|tx| kernel::dequeue(tx, &f.context(), ticket, &wish)).unwrap();
    assert_eq!(f.revive(&ann, "B").unwrap().fence, leases[1].fence);
    // Long after its end, a lease is not revived.
    f.clock.advance(TTL);
    f.cleanup();
    f.clock.advance(Duration::from_hours(25));
    assert_eq!(fences(), []);
}

pub(super) fn check_succeeds_only_for_a_live_lease(fresh: &dyn Fn() -> Fixture) {
    let f = fresh();
    f.add_task("A");
    let ann = f.bare("ann");
    assert_eq!(refused(f.check(&ann, "A")), ErrorCode::NotHolder);
    let grant = f.claim(&ann, "A").unwrap();
    let (proof, lease) = (grant.proof(), grant.lease);
    assert_eq!(f.check(&ann, "A").unwrap().fence, lease.fence);
    assert!(f.check(&f.bare("bob").with_proof(Some(proof)), "A").is_ok());
    assert_eq!(refused(f.check(&f.bare("bob"), "A")), ErrorCode::NotHolder);
    f.clock.set(lease.expires_at);
    assert_eq!(refused(f.check(&ann, "A")), ErrorCode::LeaseLost);
    f.claim(&f.bare("bob"), "A").unwrap();
    assert_eq!(refused(f.check(&ann.with_fence(Some(lease.fence)), "A")), ErrorCode::LeaseLost);
}

pub(super) fn a_fence_counts_only_for_its_own_task(fresh: &dyn Fn() -> Fixture) {
    let f = fresh();
    f.add_task("A");
    f.add_task("B");
    let fence = f.claim(&f.bare("ann"), "A").unwrap().lease.fence;
    f.claim(&f.bare("bob"), "B").unwrap();
    let ann = f.bare("ann").with_fence(Some(fence));
    assert_eq!(refused(f.renew(&ann, "B")), ErrorCode::NotHolder);
    assert_eq!(refused(f.done(&ann, "B")), ErrorCode::NotHolder);
    assert_eq!(f.status("B"), TaskStatus::InProgress);
}

pub(super) fn a_slot_is_renewed_revived_and_lost_like_a_task(fresh: &dyn Fn() -> Fixture) {
    let f = fresh();
    let slot = Resource::new(ResourceKind::Runner, "0");
    let (ann, bob) = (f.worker("ann", 7), f.worker("bob", 8));
    let renew = |held: &tenure_core::lease::Lease| {
        f.write(|tx| kernel::renew_resource(tx, &f.context(), held, None)).unwrap()
    };
    let first = f.take(&ann, &slot, &Terms::new(TTL)).unwrap();
    f.clock.advance(TTL);
    assert_eq!(renew(&first).unwrap().expires_at, f.clock.now().after(TTL));
    f.clock.advance(TTL);
    f.cleanup();
    assert_eq!(f.history(&slot)[0].ended.unwrap().1, EndReason::Expired);
    assert!(renew(&first).unwrap().is_open());
    f.clock.advance(TTL);
    f.take(&bob, &slot, &Terms::new(TTL)).unwrap();
    assert!(renew(&first).is_none());
    let second = f.history(&slot).pop().unwrap();
    f.write(|tx| kernel::release_resource(tx, &f.context(), &second, EndReason::Released)).unwrap();
    assert!(renew(&second).is_none());
}
