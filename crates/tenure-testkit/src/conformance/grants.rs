//! Acquiring leases: L1 to L6.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use tenure_core::holder::{Caller, Holder, Incarnation, Judge, Liveness};
use tenure_core::id::{Ids, LeaseKey, RandomIds, TaskId};
use tenure_core::kernel::{self, Terms, same_holder};
use tenure_core::lease::{EndReason, LeaseState, Resource, ResourceKind};
use tenure_core::section::SectionMode;
use tenure_core::store::{ClaimHint, ClaimTarget, LeaseFilter, NewLease, Tx};
use tenure_core::task::TaskStatus;
use tenure_core::{Clock, Context, Error, ErrorCode, reference};

use crate::fixture::{Fixture, TTL, refused};

const MOMENT: Duration = Duration::from_millis(1);

pub(super) fn a_claim_grants_a_lease_and_sets_in_progress(fresh: &dyn Fn() -> Fixture) {
    let f = fresh();
    f.add_task("A");
    f.clock.advance(MOMENT);
    let grant = f.claim(&f.bare("ann"), "A").unwrap();
    assert!(!grant.reacquired && grant.taken_over.is_none());
    assert_eq!(grant.task.status, TaskStatus::InProgress);
    assert_eq!(grant.task, f.task("A"), "the result equals the stored task");
    assert_eq!(grant.lease.expires_at, f.clock.now().after(TTL));
    assert_eq!(grant.lease.claimed_from, Some(TaskStatus::Pending));
    assert_eq!(f.lease("A"), Some(grant.lease));
}

/// Counts the liveness checks.
#[derive(Debug)]
struct CountingJudge<'a> {
    judge: &'a dyn Judge,
    asked: AtomicU32,
}

impl Judge for CountingJudge<'_> {
    fn liveness(&self, process: &Incarnation) -> Liveness {
        self.asked.fetch_add(1, Ordering::Relaxed);
        self.judge.liveness(process)
    }

    fn is_this_boot(&self, process: &Incarnation) -> bool {
        self.judge.is_this_boot(process)
    }
}

pub(super) fn the_dead_are_looked_up_once_in_a_transaction(fresh: &dyn Fn() -> Fixture) {
    let f = fresh();
    for (key, pid) in [("A", 1), ("B", 2), ("C", 3)] {
        f.add_task(key);
        f.claim(&f.worker(key, pid), key).unwrap();
    }
    f.world.kill(2);
    let judge = CountingJudge { judge: f.context().judge, asked: AtomicU32::new(0) };
    let ctx = Context { judge: &judge, ..f.context() };
    let ann = Holder::agent("ann");
    let dead = f
        .write(|tx| {
            judge.asked.store(0, Ordering::Relaxed);
            let first = ctx.viewer(tx, None)?;
            let second = ctx.viewer(tx, Some(&ann))?;
            assert_eq!((first.me, second.me), (None, Some(ann.clone())), "each call names its own caller");
            assert_eq!(first.dead, second.dead);
            Ok(second.dead)
        })
        .unwrap();
    assert_eq!(dead, [f.world.process(2)]);
    assert_eq!(judge.asked.into_inner(), 3, "one question per recorded process");
}

pub(super) fn a_refusal_names_the_holder_and_the_expiry(fresh: &dyn Fn() -> Fixture) {
    let f = fresh();
    f.add_task("A");
    let grant = f.claim(&f.bare("ann"), "A").unwrap();
    f.clock.advance(Duration::from_secs(10));
    let Err(Error::Locked(locked)) = f.claim(&f.bare("bob"), "A") else { panic!("bob was granted the task") };
    assert_eq!(locked.lease, Some(grant.lease));
    assert_eq!(locked.age, Duration::from_secs(10));
    assert_eq!(locked.resource, Resource::task(&f.id("A")));
    assert_eq!(locked.task.unwrap().key, "A");
}

pub(super) fn two_open_leases_on_one_resource_are_impossible_in_the_store_itself(
    fresh: &dyn Fn() -> Fixture,
) {
    let f = fresh();
    let resource = Resource::new(ResourceKind::Job, "j");
    let grant = |name: &str| {
        let lease = NewLease {
            id: f.ids.lease(),
            key: f.ids.lease_key(),
            resource: resource.clone(),
            holder: Holder::agent(name),
            process: None,
            doorbell: None,
            ttl: TTL,
            expires_at: f.clock.now().after(TTL),
            claimed_from: None,
            messages_through: 0,
        };
        f.write(|tx| tx.grant(&lease))
    };
    let first = grant("ann").unwrap().unwrap();
    // A lapsed lease occupies the resource as well: a takeover must close it first (L4).
    f.clock.advance(TTL * 2);
    assert_eq!(refused(grant("bob")), ErrorCode::Store);
    f.write(|tx| tx.end_lease(first.fence, EndReason::Expired)).unwrap();
    assert!(grant("bob").unwrap().unwrap().fence > first.fence);
}

pub(super) fn fences_rise_with_every_grant_and_are_unique_in_the_store(fresh: &dyn Fn() -> Fixture) {
    let f = fresh();
    f.add_task("A");
    f.add_task("B");
    let mut last = 0;
    for round in 0..6 {
        let key = if round % 2 == 0 { "A" } else { "B" };
        let caller = f.bare(&format!("agent{round}"));
        let fence = f.claim(&caller, key).unwrap().lease.fence.number();
        assert!(fence > last, "{fence} after {last}");
        last = fence;
        if round % 3 == 0 {
            f.clock.advance(TTL);
        } else {
            f.release(&caller, key).unwrap();
        }
        if round == 3 {
            f.clock.step_back(TTL * 10);
            f.cleanup();
            f.force(&f.lease("B").unwrap()).unwrap();
        }
    }
}

pub(super) fn a_lease_blocks_until_the_last_millisecond_and_not_at_its_expiry(fresh: &dyn Fn() -> Fixture) {
    let f = fresh();
    f.add_task("A");
    let old = f.claim(&f.bare("ann"), "A").unwrap().lease;
    f.clock.set(old.expires_at.before(MOMENT));
    assert_eq!(refused(f.claim(&f.bare("bob"), "A")), ErrorCode::TaskLocked);
    assert!(f.next(&f.bare("bob")).is_none());
    f.clock.set(old.expires_at);
    assert!(f.task("A").ready, "expires_at == now is expired");
    let grant = f.claim(&f.bare("bob"), "A").unwrap();
    assert_eq!(
        grant.taken_over.map(|(lease, how)| (lease.fence, how)),
        Some((old.fence, LeaseState::Expired))
    );
}

pub(super) fn a_task_left_in_progress_by_an_expired_lease_is_offered_by_next(fresh: &dyn Fn() -> Fixture) {
    let f = fresh();
    f.add_task("A");
    f.claim(&f.bare("ann"), "A").unwrap();
    f.clock.advance(TTL);
    assert_eq!(f.status("A"), TaskStatus::InProgress, "no background process is needed");
    assert_eq!(f.next(&f.bare("bob")).unwrap().task.key, "A");
}

pub(super) fn a_takeover_closes_the_old_lease_with_its_reason_in_the_same_transaction(
    fresh: &dyn Fn() -> Fixture,
) {
    let f = fresh();
    f.add_task("A");
    f.claim(&f.bare("ann"), "A").unwrap();
    f.clock.advance(TTL);
    f.claim(&f.worker("bob", 7), "A").unwrap();
    f.world.kill(7);
    f.claim(&f.bare("cid"), "A").unwrap();
    let history = f.history(&Resource::task(&f.id("A")));
    let reasons: Vec<_> = history.iter().map(|lease| lease.ended.map(|(_, reason)| reason)).collect();
    assert_eq!(reasons, [Some(EndReason::Expired), Some(EndReason::HolderDied), None]);
    assert!(history.iter().all(|lease| lease.is_open() || lease.ended.unwrap().0 == f.clock.now()));
    assert_eq!(f.status("A"), TaskStatus::InProgress);
}

pub(super) fn of_many_takers_of_a_lapsed_lease_exactly_one_wins(fresh: &dyn Fn() -> Fixture) {
    let f = fresh();
    f.add_task("A");
    f.claim(&f.bare("ann"), "A").unwrap();
    f.clock.advance(TTL);
    let won = (0..8).filter(|n| f.claim(&f.bare(&format!("taker{n}")), "A").is_ok()).count();
    assert_eq!(won, 1);
}

pub(super) fn a_dead_holder_is_replaced_at_once_and_a_live_one_is_not(fresh: &dyn Fn() -> Fixture) {
    let f = fresh();
    f.add_task("A");
    f.claim(&f.worker("ann", 7), "A").unwrap();
    assert_eq!(refused(f.claim(&f.bare("bob"), "A")), ErrorCode::TaskLocked);
    f.world.kill(7);
    let grant = f.claim(&f.bare("bob"), "A").unwrap();
    assert_eq!(grant.taken_over.unwrap().1, LeaseState::HolderDead);
}

pub(super) fn a_reboot_ends_every_process(fresh: &dyn Fn() -> Fixture) {
    let f = fresh();
    f.add_task("A");
    f.claim(&f.worker("ann", 7), "A").unwrap();
    f.world.reboot();
    assert_eq!(f.next(&f.bare("bob")).unwrap().taken_over.unwrap().1, LeaseState::HolderDead);
}

pub(super) fn an_unknown_process_counts_as_alive_until_expiry(fresh: &dyn Fn() -> Fixture) {
    let f = fresh();
    f.add_task("A");
    let remote = f.bare("ann").with_process(f.world.remote_process(7));
    f.claim(&remote, "A").unwrap();
    f.world.kill(7);
    f.world.reboot();
    assert_eq!(refused(f.claim(&f.bare("bob"), "A")), ErrorCode::TaskLocked);
    assert!(!f.task("A").ready);
    f.clock.advance(TTL);
    assert_eq!(f.claim(&f.bare("bob"), "A").unwrap().taken_over.unwrap().1, LeaseState::Expired);
}

pub(super) fn acquiring_again_returns_the_same_lease_and_fence(fresh: &dyn Fn() -> Fixture) {
    let f = fresh();
    f.add_task("A");
    for caller in [f.bare("ann"), f.worker("bob", 7)] {
        let first = f.claim(&caller, "A").unwrap();
        f.clock.advance(Duration::from_secs(1));
        let again = f.claim(&caller, "A").unwrap();
        assert!(again.reacquired);
        assert_eq!(again.lease, first.lease, "a claim is not a renewal");
        f.release(&caller, "A").unwrap();
    }
}

pub(super) fn acquiring_again_after_expiry_is_a_new_grant(fresh: &dyn Fn() -> Fixture) {
    let f = fresh();
    f.add_task("A");
    let first = f.claim(&f.bare("ann"), "A").unwrap();
    f.clock.advance(TTL);
    let again = f.claim(&f.bare("ann"), "A").unwrap();
    assert!(!again.reacquired && again.lease.fence > first.lease.fence);
}

pub(super) fn the_same_holder_is_recognised_by_name_process_and_credential(fresh: &dyn Fn() -> Fixture) {
    let f = fresh();
    f.add_task("A");
    let ann = f.bare("ann");
    let here = f.worker("ann", 7);
    let other_window = f.worker("ann", 8);
    let bob = f.bare("bob");
    let namesake = Caller::new(Holder::person("ann"));
    let check = |holder: &Caller, expected: [(&Caller, bool, bool); 5]| {
        let grant = f.claim(holder, "A").unwrap();
        let (lease, proof) = (&grant.lease, grant.proof());
        for (caller, idle, running) in expected {
            assert_eq!(same_holder(lease, caller, false), idle, "{caller:?} on idle {lease:?}");
            assert_eq!(same_holder(lease, caller, true), running, "{caller:?} on busy {lease:?}");
            let keyed = caller.clone().with_proof(Some(proof.clone()));
            assert!(same_holder(lease, &keyed, true), "the key proves the holder");
            let fenced = caller.clone().with_fence(Some(lease.fence));
            let own_name = caller.holder.id == holder.holder.id;
            assert_eq!(same_holder(lease, &fenced, true), own_name, "a fence needs the holder's name");
        }
        f.release(holder, "A").unwrap();
    };
    // Without a recorded process the name decides.
    check(
        &ann,
        [
            (&ann, true, true),
            (&here, true, true),
            (&other_window, true, true),
            (&bob, false, false),
            (&namesake, false, false),
        ],
    );
    // With a recorded process, another process of the same name is another worker; the name alone matches while
    // nothing runs.
    check(
        &here,
        [
            (&ann, true, false),
            (&here, true, true),
            (&other_window, false, false),
            (&bob, false, false),
            (&namesake, false, false),
        ],
    );
}

pub(super) fn another_process_with_the_same_name_is_refused(fresh: &dyn Fn() -> Fixture) {
    let f = fresh();
    f.add_task("A");
    let grant = f.claim(&f.worker("ann", 7), "A").unwrap();
    assert_eq!(refused(f.claim(&f.worker("ann", 8), "A")), ErrorCode::TaskLocked);
    f.begin_attempt(&grant.lease, &f.worker("ann", 7));
    assert_eq!(refused(f.claim(&f.bare("ann"), "A")), ErrorCode::TaskLocked);
    assert!(f.claim(&f.worker("ann", 7), "A").unwrap().reacquired);
}

pub(super) fn a_process_that_resumes_a_plain_claim_of_its_name_is_recorded(fresh: &dyn Fn() -> Fixture) {
    let f = fresh();
    f.add_task("A");
    let first = f.claim(&f.bare("ann"), "A").unwrap();
    let again = f.claim(&f.worker("ann", 7), "A").unwrap();
    assert!(again.reacquired);
    assert_eq!(again.lease.fence, first.lease.fence);
    assert_eq!(f.lease("A").unwrap().process, Some(f.world.process(7)));
    f.world.kill(7);
    assert!(f.claim(&f.bare("bob"), "A").is_ok());
}

pub(super) fn a_finished_task_is_not_claimed(fresh: &dyn Fn() -> Fixture) {
    let f = fresh();
    f.add_task("A");
    for to in [TaskStatus::Completed, TaskStatus::Review, TaskStatus::Failed, TaskStatus::Skipped] {
        f.override_status(&f.bare("ann"), "A", to, false).unwrap();
        assert_eq!(refused(f.claim(&f.bare("ann"), "A")), ErrorCode::InvalidTransition);
        assert_eq!((f.status("A"), f.lease("A")), (to, None));
    }
}

pub(super) fn an_agent_is_registered_at_its_first_claim(fresh: &dyn Fn() -> Fixture) {
    let f = fresh();
    f.add_task("A");
    f.claim(&f.bare("ann"), "A").unwrap();
    f.claim(&Caller::new(Holder::person("bob@host:pts/3")), "A").unwrap_err();
    let agents = f.read(|view| view.agents());
    assert_eq!(agents.len(), 1);
    assert_eq!((agents[0].id.as_str(), agents[0].active_claims), ("ann", 1));
    f.release(&f.bare("ann"), "A").unwrap();
    assert_eq!(f.read(|view| view.agent("ann")).unwrap().active_claims, 0);
}

pub(super) fn a_slot_has_one_holder_and_is_taken_over_from_a_dead_one(fresh: &dyn Fn() -> Fixture) {
    let f = fresh();
    let slot = Resource::new(ResourceKind::Runner, "0");
    let terms = Terms::new(TTL);
    let (ann, bob) = (f.worker("ann", 7), f.worker("bob", 8));
    let first = f.take(&ann, &slot, &terms).unwrap();
    assert_eq!(f.take(&ann, &slot, &terms).unwrap().fence, first.fence);
    assert!(f.take(&bob, &slot, &terms).is_none());
    f.world.kill(7);
    let second = f.take(&bob, &slot, &terms).unwrap();
    assert!(second.fence > first.fence);
    assert_eq!(f.history(&slot)[0].ended.unwrap().1, EndReason::HolderDied);
}

pub(super) fn an_unknown_task_cannot_be_claimed(fresh: &dyn Fn() -> Fixture) {
    let f = fresh();
    let id = TaskId::new("nobody");
    let answer = f.write(|tx| kernel::acquire_task(tx, &f.context(), &f.bare("ann"), &id, &Terms::new(TTL)));
    assert_eq!(refused(answer), ErrorCode::TaskNotFound);
}

pub(super) fn an_id_or_a_key_is_resolved_in_the_transaction_of_the_claim(fresh: &dyn Fn() -> Fixture) {
    let f = fresh();
    for key in ["A", "B", "C"] {
        f.add_task(key);
    }
    let ann = f.bare("ann");
    let claim = |text: &str| {
        let hint = ClaimHint { holder: &ann.holder, wants: ClaimTarget::Task(text) };
        f.store.claim(hint, |tx| {
            let found = reference::task_by_id_or_key(tx, text)?;
            let found = found.ok_or_else(|| Error::TaskNotFound { reference: text.to_owned() })?;
            let id = TaskId::new(found.id);
            kernel::acquire_task(tx, &f.context(), &ann, &id, &Terms::new(TTL))?.granted()
        })
    };
    assert_eq!(claim("A").unwrap().task.key, "A");
    let id = f.id("B").to_string();
    assert_eq!(claim(&id.to_uppercase()).unwrap().task.key, "B");
    assert_eq!(refused(claim("a")), ErrorCode::TaskNotFound, "the case of a key counts");
    assert_eq!(refused(claim("task C")), ErrorCode::TaskNotFound, "a title is no key");
    // An id takes precedence over a key.
    let id = f.id("C").to_string();
    let again = |text: &str| f.store.read(|view| reference::task_again(view, &id, text));
    let title = f.task("C").title;
    for text in ["C", &id[..6], &title, &title.to_uppercase()] {
        assert_eq!(again(text).unwrap().key, "C", "{text} still names it");
    }
    assert_eq!(refused(again("another title")), ErrorCode::TaskNotFound);
    f.add_task(&id);
    assert_eq!(claim(&id).unwrap().task.key, "C");
    assert_eq!(claim(&id).unwrap().task.key, "C");
}

/// Returns each id several times before the next one.
#[derive(Debug)]
struct Stutter(AtomicU32);

impl Ids for Stutter {
    fn uuid(&self) -> String {
        RandomIds.uuid()
    }

    fn hex8(&self) -> String {
        format!("{:08X}", self.0.fetch_add(1, Ordering::Relaxed) / 3)
    }

    fn lease_key(&self) -> LeaseKey {
        RandomIds.lease_key()
    }
}

pub(super) fn an_id_that_is_in_use_is_generated_again(fresh: &dyn Fn() -> Fixture) {
    let f = fresh();
    let s = f.add_section("S", SectionMode::Serial);
    for key in ["A", "B", "C", "D"] {
        f.add_task(key);
    }
    f.add_task_in("X", Some(&s));
    let ids = Stutter(AtomicU32::new(0));
    let ctx = Context { ids: &ids, ..f.context() };
    let ann = f.bare("ann");
    for key in ["A", "X"] {
        let id = f.id(key);
        let claimed = f.write(|tx| kernel::acquire_task(tx, &ctx, &ann, &id, &Terms::new(TTL)));
        drop(claimed.unwrap().granted().unwrap());
    }
    for key in ["B", "C", "D"] {
        let hint = ClaimHint { holder: &ann.holder, wants: ClaimTarget::Next(None) };
        let next = f.store.claim(hint, |tx| kernel::acquire_next(tx, &ctx, &ann, None, &Terms::new(TTL)));
        assert_eq!(next.unwrap().unwrap().task.key, key);
    }
    let all = f.read(|view| view.leases(&LeaseFilter::default()));
    let ids: BTreeSet<_> = all.iter().map(|lease| lease.id.clone()).collect();
    assert_eq!((all.len(), ids.len()), (6, 6), "four tasks, and one in a section, which has a lease too");
}

pub(super) fn a_claim_hint_does_not_change_the_result(fresh: &dyn Fn() -> Fixture) {
    let f = fresh();
    let (a, b) = (f.add_task("A"), f.add_task("B"));
    let (ann, bob) = (f.bare("ann"), f.bare("bob"));
    let take = |holder, wants, caller: &Caller, id: &TaskId| {
        let hint = ClaimHint { holder, wants };
        let claim = |tx: &mut dyn Tx| kernel::acquire_task(tx, &f.context(), caller, id, &Terms::new(TTL));
        f.store.claim(hint, claim).unwrap().granted().unwrap()
    };
    let grant = take(&bob.holder, ClaimTarget::Task(b.as_str()), &ann, &a);
    assert_eq!((grant.task.key.as_str(), &grant.lease.holder), ("A", &ann.holder));
    f.release(&ann, "A").unwrap();
    let grant = take(&ann.holder, ClaimTarget::Next(None), &ann, &b);
    assert_eq!((grant.task.key.as_str(), &grant.lease.holder), ("B", &ann.holder));
    assert!(f.lease("A").is_none());
}
