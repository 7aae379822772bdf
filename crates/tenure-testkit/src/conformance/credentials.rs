//! What proves that a caller is the holder of a lease: its key alone, or its name with the lease's fence.

use tenure_core::holder::Caller;
use tenure_core::id::{Ids, LeaseId, LeaseProof};
use tenure_core::kernel::{self, Finish, ItemOutcome, Terms};
use tenure_core::lease::{Lease, Resource, ResourceKind};
use tenure_core::task::TaskStatus;
use tenure_core::{Error, ErrorCode};

use super::jobs;
use crate::fixture::{Fixture, TTL, refused};

/// Tries everything that only the holder of A may do, and returns the codes of the refusals.
fn refusals(f: &Fixture, caller: &Caller) -> [ErrorCode; 7] {
    let before = (f.events().len(), f.lease("A"));
    let codes = [
        refused(f.check(caller, "A")),
        refused(f.renew(caller, "A")),
        refused(f.revive(caller, "A")),
        refused(f.done(caller, "A")),
        refused(f.finish(caller, "A", Finish::Fail("no"))),
        refused(f.finish(caller, "A", Finish::Release(None))),
        refused(f.override_status(caller, "A", TaskStatus::Completed, false)),
    ];
    assert_eq!((f.events().len(), f.lease("A")), before, "a refusal changes nothing");
    codes
}

/// Asserts that every verb of the holder is refused because the caller is not the holder, and an override
/// because A is held.
fn is_a_stranger(f: &Fixture, caller: &Caller) {
    let expected = [ErrorCode::NotHolder; 6];
    let codes = refusals(f, caller);
    assert_eq!((&codes[..6], codes[6]), (&expected[..], ErrorCode::TaskLocked), "{caller:?}");
}

pub(super) fn the_key_proves_the_holder_alone(fresh: &dyn Fn() -> Fixture) {
    let f = fresh();
    f.add_task("A");
    let grant = f.claim(&f.worker("ann", 7), "A").unwrap();
    let keyed = f.bare("child").with_proof(Some(grant.proof()));
    assert_eq!(f.check(&keyed, "A").unwrap(), grant.lease);
    assert_eq!(f.renew(&keyed, "A").unwrap().fence, grant.lease.fence);
    let fenced = keyed.clone().with_fence(Some(grant.lease.fence));
    assert_eq!(
        f.check(&fenced, "A").unwrap().fence,
        grant.lease.fence,
        "a fence that matches may be given too"
    );
    assert!(f.done(&keyed, "A").unwrap().changed);
    assert!(!f.done(&keyed, "A").unwrap().changed, "repeated");

    f.add_task("B");
    let grant = f.claim(&f.bare("ann"), "B").unwrap();
    let keyed = f.bare("child").with_proof(Some(grant.proof()));
    f.override_status(&keyed, "B", TaskStatus::Completed, false).unwrap();
    assert_eq!(f.status("B"), TaskStatus::Completed);
}

pub(super) fn a_fence_counts_only_under_the_holders_name(fresh: &dyn Fn() -> Fixture) {
    let f = fresh();
    f.add_task("A");
    let lease = f.claim(&f.bare("ann"), "A").unwrap().lease;
    is_a_stranger(&f, &f.bare("mallory").with_fence(Some(lease.fence)));
    let named = Caller { lease: Some(lease.id.clone()), ..f.bare("mallory").with_fence(Some(lease.fence)) };
    is_a_stranger(&f, &named);
    assert!(f.done(&f.bare("ann").with_fence(Some(lease.fence)), "A").unwrap().changed);
}

pub(super) fn a_credential_that_does_not_match_is_refused_under_any_name(fresh: &dyn Fn() -> Fixture) {
    let f = fresh();
    f.add_task("A");
    f.add_task("B");
    let grant = f.claim(&f.bare("ann"), "A").unwrap();
    let other = f.claim(&f.bare("ann"), "B").unwrap();
    let proof = grant.proof();
    for ann in ["ann", "bob"].map(|name| f.bare(name)) {
        let wrong_key = LeaseProof { key: f.ids.lease_key(), ..proof.clone() };
        assert_ne!(wrong_key, proof);
        is_a_stranger(&f, &ann.clone().with_proof(Some(wrong_key)));
        is_a_stranger(&f, &ann.clone().with_proof(Some(other.proof())));
        let swapped = LeaseProof { lease: proof.lease.clone(), key: other.proof().key };
        is_a_stranger(&f, &ann.clone().with_proof(Some(swapped)));
        let other_fence = ann.clone().with_proof(Some(proof.clone())).with_fence(Some(other.lease.fence));
        is_a_stranger(&f, &other_fence);
        is_a_stranger(&f, &ann.with_fence(Some(other.lease.fence)));
    }
}

/// A store that was restored or replaced grants fences that it has granted before. `old` is a lease of the earlier one.
pub(super) fn a_credential_of_a_replaced_store_is_refused(fresh: &dyn Fn() -> Fixture) {
    let before = fresh();
    before.add_task("A");
    let old = before.claim(&before.bare("ann"), "A").unwrap();
    for holder in ["bob", "ann"] {
        let f = fresh();
        f.add_task("A");
        let _ = f.ids.hex8();
        let new = f.claim(&f.bare(holder), "A").unwrap().lease;
        assert_ne!(new.id, old.lease.id);
        // The fences are equal on a restored store; here they are made equal on every store.
        let same_fence = Lease { fence: new.fence, ..old.lease.clone() };
        is_a_stranger(&f, &f.bare("ann").with_proof(Some(old.proof())));
        is_a_stranger(&f, &f.bare("ann").with_proof(Some(old.proof())).with_fence(Some(new.fence)));
        is_a_stranger(&f, &Caller::holding(&same_fence));
        if holder == "bob" {
            is_a_stranger(&f, &f.bare("ann").with_fence(Some(new.fence)));
        }
        let gone = f.write(|tx| kernel::release(tx, &f.context(), "ann", &same_fence));
        assert_eq!(refused(gone), ErrorCode::LockNotFound);
    }
}

pub(super) fn a_supervisors_lease_of_a_replaced_store_is_lost(fresh: &dyn Fn() -> Fixture) {
    let f = fresh();
    let slot = Resource::new(ResourceKind::Runner, "1");
    let caller = f.worker("r", 7);
    let lease = f
        .write(|tx| kernel::acquire_resource(tx, &f.context(), &caller, &slot, "1", &Terms::new(TTL)))
        .unwrap()
        .unwrap();
    let old = Lease { id: LeaseId::new("L0000FFFF"), ..lease.clone() };
    let held = |lease: &Lease| f.store.read(|view| kernel::must_hold(view, &f.context(), lease));
    let renewed =
        |lease: &Lease| f.write(|tx| kernel::renew_resource(tx, &f.context(), lease, None)).unwrap();
    assert!(matches!(held(&old), Err(Error::WorkLost { .. })));
    assert_eq!((renewed(&old), renewed(&lease).is_some(), held(&lease).is_ok()), (None, true, true));
}

/// A replaced store may have granted a lease with the same fence and the same id. It has another key.
pub(super) fn an_items_lease_of_a_replaced_store_is_lost(fresh: &dyn Fn() -> Fixture) {
    let f = fresh();
    let (job, coordinator) = jobs::start(&f, &jobs::definition(2));
    let held = jobs::take(&f, &f.worker("ann", 7), &job);
    let mut foreign = held.clone();
    foreign.lease.key_hash = "0".repeat(held.lease.key_hash.len());
    let before = f.events().len();
    let outcomes = [
        ItemOutcome::Succeeded,
        ItemOutcome::Failed { why: "late", for_good: true },
        ItemOutcome::Interrupted { why: "late" },
    ];
    for outcome in outcomes {
        assert_eq!(refused(jobs::finish(&f, &foreign, outcome)), ErrorCode::LeaseLost);
    }
    assert!(!f.write(|tx| kernel::renew_item(tx, &f.context(), &foreign.lease)).unwrap());
    let foreign = Lease { key_hash: foreign.lease.key_hash, ..coordinator };
    assert_eq!(refused(f.write(|tx| kernel::must_hold(tx, &f.context(), &foreign))), ErrorCode::LeaseLost);
    assert_eq!(f.events().len(), before, "a refusal changes nothing");
    assert!(jobs::succeed(&f, &held).changed);
}

pub(super) fn the_key_comes_with_the_grant_and_is_stored_as_a_hash(fresh: &dyn Fn() -> Fixture) {
    let f = fresh();
    f.add_task("A");
    let grant = f.claim(&f.bare("ann"), "A").unwrap();
    let proof = grant.proof();
    assert_eq!(f.lease("A").unwrap().key_hash, proof.hash());
    assert_eq!(f.claim(&f.bare("ann"), "A").unwrap().key, None, "held already, and proved by name");
    let again = f.claim(&f.bare("child").with_proof(Some(proof.clone())), "A").unwrap();
    assert!(again.reacquired && again.key.as_ref() == Some(&proof.key));
    f.done(&f.bare("ann"), "A").unwrap();
    let stored = format!("{:?} {:?}", f.history(&grant.lease.resource), f.events());
    assert!(!stored.contains(proof.key.reveal()), "{stored}");
}
