//! The queue for a resource: live waiters are served in order of arrival, and the next one is woken.

use std::time::Duration;

use tenure_core::holder::Caller;
use tenure_core::kernel::{self, Terms};
use tenure_core::lease::{EndReason, Resource, ResourceKind};
use tenure_core::section::SectionMode;
use tenure_core::task::TaskStatus;
use tenure_core::{Clock, Error, ErrorCode};

use crate::fixture::{Fixture, TICKET_LIFE, TTL, refused, with_ticket};

/// Ann holds A; bob and cid queue for it, in this order.
struct Queue {
    f: Fixture,
    resource: Resource,
    ann: Caller,
    bob: (Caller, (i64, Resource), String),
    cid: (Caller, (i64, Resource), String),
}

fn queue(fresh: &dyn Fn() -> Fixture) -> Queue {
    let f = fresh();
    let resource = Resource::task(&f.add_task("A"));
    let ann = f.worker("ann", 1);
    f.claim(&ann, "A").unwrap();
    let wait = |name: &str, pid| {
        let (caller, bell) = (f.worker(name, pid), f.bell(name));
        let ticket = f.wait_for(&caller, &resource, &bell);
        (caller, ticket, bell)
    };
    let (bob, cid) = (wait("bob", 2), wait("cid", 3));
    Queue { f, resource, ann, bob, cid }
}

pub(super) fn a_refusal_reports_the_number_of_earlier_waiters(fresh: &dyn Fn() -> Fixture) {
    let Queue { f, bob, cid, .. } = queue(fresh);
    let queue = |caller: &Caller, terms: &Terms| match f.claim_on(caller, "A", terms) {
        Err(Error::Locked(locked)) => locked.queue,
        other => panic!("{other:?}"),
    };
    assert_eq!(queue(&f.bare("dan"), &Terms::new(TTL)), 2);
    assert_eq!(queue(&bob.0, &with_ticket(&bob.1)), 0);
    assert_eq!(queue(&cid.0, &with_ticket(&cid.1)), 1);
}

pub(super) fn a_release_rings_only_the_next_waiter(fresh: &dyn Fn() -> Fixture) {
    let Queue { f, ann, bob, cid, .. } = queue(fresh);
    f.release(&ann, "A").unwrap();
    assert!(f.heard(&bob.2) && !f.heard(&cid.2));
}

pub(super) fn everything_that_frees_a_resource_rings_the_next_waiter(fresh: &dyn Fn() -> Fixture) {
    let releases: [fn(&Queue); 8] = [
        |q| drop(q.f.done(&q.ann, "A").unwrap()),
        |q| drop(q.f.release(&q.ann, "A").unwrap()),
        |q| drop(q.f.force(&q.f.lease("A").unwrap()).unwrap()),
        |q| drop(q.f.override_status(&q.ann, "A", TaskStatus::Pending, false).unwrap()),
        |q| drop(q.f.override_status(&q.f.bare("dan"), "A", TaskStatus::Pending, true).unwrap()),
        |q| {
            q.f.world.kill(1);
            q.f.cleanup();
        },
        |q| {
            q.f.world.kill(1);
            assert_eq!(refused(q.f.claim(&q.f.bare("dan"), "A")), ErrorCode::TaskLocked);
        },
        |q| {
            q.f.world.kill(1);
            q.f.override_status(&q.f.bare("dan"), "A", TaskStatus::Pending, false).unwrap();
        },
    ];
    for (number, release) in releases.into_iter().enumerate() {
        let queue = queue(fresh);
        release(&queue);
        assert!(queue.f.heard(&queue.bob.2), "case {number}");
    }
}

pub(super) fn a_failed_transaction_rings_nothing(fresh: &dyn Fn() -> Fixture) {
    let Queue { f, bob, ann, .. } = queue(fresh);
    let name = f.name("A");
    let answer: tenure_core::Result<()> = f.write(|tx| {
        kernel::finish(tx, &f.context(), &ann, &name, kernel::Finish::Done, false)?;
        Err(Error::General("no".to_owned()))
    });
    assert_eq!(refused(answer), ErrorCode::General);
    assert!(!f.heard(&bob.2));
    assert_eq!(f.status("A"), TaskStatus::InProgress);
}

pub(super) fn a_newcomer_never_overtakes_a_live_ticket(fresh: &dyn Fn() -> Fixture) {
    let Queue { f, ann, bob, cid, .. } = queue(fresh);
    f.release(&ann, "A").unwrap();
    assert_eq!(refused(f.claim(&f.bare("dan"), "A")), ErrorCode::TaskLocked);
    assert!(f.next(&f.bare("dan")).is_none());
    assert_eq!(refused(f.claim_on(&cid.0, "A", &with_ticket(&cid.1))), ErrorCode::TaskLocked);
    assert!(f.claim_on(&bob.0, "A", &with_ticket(&bob.1)).is_ok());
}

pub(super) fn a_grant_removes_the_ticket(fresh: &dyn Fn() -> Fixture) {
    let Queue { f, resource, ann, bob, cid } = queue(fresh);
    f.release(&ann, "A").unwrap();
    f.claim_on(&bob.0, "A", &with_ticket(&bob.1)).unwrap();
    let left = f.read(|view| view.tickets(&resource));
    assert_eq!(left.iter().map(|ticket| ticket.number).collect::<Vec<_>>(), [cid.1.0]);
    f.release(&bob.0, "A").unwrap();
    assert!(f.heard(&cid.2));
    f.claim_on(&cid.0, "A", &with_ticket(&cid.1)).unwrap();
    assert_eq!(f.read(|view| view.count_tickets()), 0);
}

pub(super) fn the_ticket_of_a_dead_or_silent_waiter_expires(fresh: &dyn Fn() -> Fixture) {
    let Queue { f, ann, cid, .. } = queue(fresh);
    f.world.kill(2);
    f.release(&ann, "A").unwrap();
    assert!(f.heard(&cid.2), "the first live waiter");
    assert!(f.claim_on(&cid.0, "A", &with_ticket(&cid.1)).is_ok());

    let Queue { f, ann, bob, cid, .. } = queue(fresh);
    let moment = Duration::from_millis(1);
    f.clock.advance(TICKET_LIFE);
    f.clock.step_back(moment);
    assert!(f.write(|tx| tx.refresh_ticket(cid.1.0)).unwrap());
    f.release(&ann, "A").unwrap();
    assert_eq!(refused(f.claim_on(&cid.0, "A", &with_ticket(&cid.1))), ErrorCode::TaskLocked);
    f.clock.advance(moment);
    assert!(f.claim_on(&cid.0, "A", &with_ticket(&cid.1)).is_ok(), "bob's ticket has expired");
    assert_eq!(refused(f.claim_on(&bob.0, "A", &with_ticket(&bob.1))), ErrorCode::TaskLocked);
}

pub(super) fn a_waiter_whose_ticket_expired_is_a_newcomer(fresh: &dyn Fn() -> Fixture) {
    let Queue { f, resource, ann, bob, cid } = queue(fresh);
    f.clock.advance(TICKET_LIFE / 2);
    assert!(f.write(|tx| tx.refresh_ticket(cid.1.0)).unwrap());
    f.clock.advance(TICKET_LIFE / 2);
    f.release(&ann, "A").unwrap();
    assert_eq!(
        refused(f.claim_on(&bob.0, "A", &with_ticket(&bob.1))),
        ErrorCode::TaskLocked,
        "bob's ticket has expired"
    );
    assert!(!f.write(|tx| tx.refresh_ticket(bob.1.0)).unwrap());
    assert!(f.write(|tx| tx.refresh_ticket(cid.1.0)).unwrap());
    let again = f.wait_again(&bob.0, &resource, &bob.2, Some(&bob.1));
    assert!(again.0 > cid.1.0, "a returning waiter is at the end of the queue");
    assert_eq!(f.read(|view| view.count_tickets()), 2);
    let gone = (bob.1.0, resource);
    assert_eq!(
        refused(f.claim_on(&bob.0, "A", &with_ticket(&gone))),
        ErrorCode::TaskLocked,
        "that ticket is gone"
    );
    assert!(f.claim_on(&cid.0, "A", &with_ticket(&cid.1)).is_ok());
}

pub(super) fn a_waiter_of_another_machine_is_alive_while_it_refreshes(fresh: &dyn Fn() -> Fixture) {
    let f = fresh();
    let resource = Resource::task(&f.add_task("A"));
    let far = f.bare("far").with_process(f.world.remote_process(9));
    f.wait_for(&far, &resource, "no-bell");
    assert_eq!(refused(f.claim(&f.bare("ann"), "A")), ErrorCode::TaskLocked);
    f.clock.advance(TICKET_LIFE);
    assert!(f.claim(&f.bare("ann"), "A").is_ok());
}

pub(super) fn leaving_the_queue_wakes_the_next_waiter(fresh: &dyn Fn() -> Fixture) {
    let Queue { f, ann, bob, cid, .. } = queue(fresh);
    f.release(&ann, "A").unwrap();
    f.leave_queue(&bob.1);
    assert!(f.heard(&cid.2));
    assert!(f.claim_on(&cid.0, "A", &with_ticket(&cid.1)).is_ok());
}

pub(super) fn a_waiter_has_one_ticket_and_asking_again_refreshes_it(fresh: &dyn Fn() -> Fixture) {
    let Queue { f, resource, ann, bob, cid } = queue(fresh);
    let other = Resource::task(&f.add_task("B"));
    assert_eq!(f.wait_again(&bob.0, &resource, &bob.2, Some(&bob.1)), bob.1);
    f.release(&ann, "A").unwrap();
    assert!(!f.heard(&cid.2));
    let moved = f.wait_again(&bob.0, &other, &bob.2, Some(&bob.1));
    assert_eq!(f.read(|view| view.count_tickets()), 2);
    assert_eq!(f.read(|view| view.tickets(&other))[0].number, moved.0);
    assert!(f.heard(&cid.2), "bob no longer waits for A, so it goes to cid");
    let back = f.wait_again(&bob.0, &resource, &bob.2, Some(&moved));
    assert!(back.0 > cid.1.0, "the old position is lost");
    assert!(!f.write(|tx| tx.refresh_ticket(moved.0)).unwrap());
}

pub(super) fn a_grant_of_another_resource_removes_the_ticket_and_wakes_the_next_waiter(
    fresh: &dyn Fn() -> Fixture,
) {
    let Queue { f, ann, bob, cid, .. } = queue(fresh);
    f.add_task("B");
    f.release(&ann, "A").unwrap();
    assert!(f.heard(&bob.2));
    f.claim_on(&bob.0, "B", &with_ticket(&bob.1)).unwrap();
    assert!(f.heard(&cid.2), "bob no longer waits for A");
    assert!(f.claim_on(&cid.0, "A", &with_ticket(&cid.1)).is_ok());
}

pub(super) fn waiting_before_counts_live_tickets_only(fresh: &dyn Fn() -> Fixture) {
    let Queue { f, resource, cid, .. } = queue(fresh);
    let count = |mine| f.read(|view| kernel::count_before(view, &f.viewer(view, None), &resource, mine));
    assert_eq!((count(None), count(Some(cid.1.0))), (2, 1));
    f.world.kill(2);
    assert_eq!((count(None), count(Some(cid.1.0))), (1, 0));
}

pub(super) fn the_queue_for_a_section_is_served_in_order(fresh: &dyn Fn() -> Fixture) {
    let f = fresh();
    let section = f.add_section("S", SectionMode::Serial);
    f.add_task_in("A", Some(&section));
    f.add_task_in("B", Some(&section));
    let resource = Resource::ready(Some(&section));
    f.claim(&f.bare("ann"), "A").unwrap();
    let (bob, bell) = (f.worker("bob", 2), f.bell("bob"));
    let ticket = f.wait_for(&bob, &resource, &bell);
    let count =
        f.read(|view| kernel::count_before(view, &f.viewer(view, None), &Resource::section(&section), None));
    assert_eq!(count, 1);
    f.done(&f.bare("ann"), "A").unwrap();
    assert!(f.heard(&bell));
    assert_eq!(refused(f.claim(&f.bare("dan"), "B")), ErrorCode::TaskLocked);
    assert!(f.next(&f.bare("dan")).is_none());
    assert!(f.claim_on(&bob, "B", &with_ticket(&ticket)).is_ok());
}

pub(super) fn waiters_for_any_task_are_served_in_order(fresh: &dyn Fn() -> Fixture) {
    let f = fresh();
    let anything = Resource::new(ResourceKind::Ready, "");
    let (bob, cid) = (f.worker("bob", 2), f.worker("cid", 3));
    let bells = (f.bell("bob"), f.bell("cid"));
    let tickets = (f.wait_for(&bob, &anything, &bells.0), f.wait_for(&cid, &anything, &bells.1));
    for key in ["A", "B"] {
        f.add_task(key);
        f.override_status(&f.bare("ann"), key, TaskStatus::Skipped, false).unwrap();
    }
    f.override_status(&f.bare("ann"), "A", TaskStatus::Pending, false).unwrap();
    assert!(f.heard(&bells.0) && !f.heard(&bells.1));
    assert!(f.next(&f.bare("dan")).is_none());
    assert!(f.next_on(&cid, &with_ticket(&tickets.1)).is_none());
    assert_eq!(f.next_on(&bob, &with_ticket(&tickets.0)).unwrap().task.key, "A");
    assert!(!f.heard(&bells.1), "nothing is left for cid");
    f.override_status(&f.bare("ann"), "B", TaskStatus::Pending, false).unwrap();
    assert!(f.heard(&bells.1));
    assert_eq!(f.next_on(&cid, &with_ticket(&tickets.1)).unwrap().task.key, "B");
}

pub(super) fn the_holder_of_a_section_claims_its_next_task_before_waiters_for_any_task(
    fresh: &dyn Fn() -> Fixture,
) {
    let f = fresh();
    let section = f.add_section("S", SectionMode::Serial);
    f.add_task_in("A", Some(&section));
    f.add_task_in("B", Some(&section));
    let ann = f.worker("ann", 1);
    f.claim(&ann, "A").unwrap();
    let bob = f.worker("bob", 2);
    let ticket = f.wait_for(&bob, &Resource::new(ResourceKind::Ready, ""), "no-bell");
    f.finish_keeping(&ann, "A", kernel::Finish::Done, true).unwrap();
    assert!(f.next_on(&bob, &with_ticket(&ticket)).is_none(), "ann holds the section");
    assert_eq!(f.next(&ann).unwrap().task.key, "B", "bob cannot claim it");
    f.add_task("X");
    assert!(f.next(&ann).is_none(), "this one is reserved for bob");
    assert_eq!(f.next_on(&bob, &with_ticket(&ticket)).unwrap().task.key, "X");
}

pub(super) fn new_work_rings_waiting_runners(fresh: &dyn Fn() -> Fixture) {
    let f = fresh();
    f.add_task("A");
    let bell = f.bell("runner");
    let terms = Terms { doorbell: Some(bell.clone()), ..Terms::new(TTL) };
    let slot = Resource::new(ResourceKind::Runner, "0");
    f.take(&f.worker("runner", 9), &slot, &terms).unwrap();
    f.claim(&f.bare("ann"), "A").unwrap();
    assert!(!f.heard(&bell));
    f.release(&f.bare("ann"), "A").unwrap();
    assert!(f.heard(&bell));
}

pub(super) fn new_work_rings_no_lapsed_runner(fresh: &dyn Fn() -> Fixture) {
    let f = fresh();
    f.add_task("A");
    let (dead, expired) = (f.bell("dead"), f.bell("expired"));
    for (slot, pid, bell, ttl) in [("0", 8, &dead, TTL), ("1", 9, &expired, TTL / 2)] {
        let terms = Terms { doorbell: Some(bell.clone()), ..Terms::new(ttl) };
        f.take(&f.worker(slot, pid), &Resource::new(ResourceKind::Runner, slot), &terms).unwrap();
    }
    f.world.kill(8);
    f.clock.advance(TTL / 2);
    f.claim(&f.bare("ann"), "A").unwrap();
    f.release(&f.bare("ann"), "A").unwrap();
    assert!(!f.heard(&dead));
    assert!(!f.heard(&expired));
}

pub(super) fn a_doorbell_that_cannot_be_rung_fails_no_change(fresh: &dyn Fn() -> Fixture) {
    let f = fresh();
    f.add_task("A");
    for (slot, bell) in [("0", format!("/run/user/1000/tenure/{}", "x".repeat(100))), ("1", String::new())] {
        let terms = Terms { doorbell: Some(bell), ..Terms::new(TTL) };
        f.take(&f.bare(slot), &Resource::new(ResourceKind::Runner, slot), &terms).unwrap();
    }
    f.claim(&f.bare("ann"), "A").unwrap();
    f.release(&f.bare("ann"), "A").unwrap();
}

pub(super) fn a_freed_slot_rings_its_waiter(fresh: &dyn Fn() -> Fixture) {
    let f = fresh();
    let slot = Resource::new(ResourceKind::Runner, "0");
    let lease = f.take(&f.worker("ann", 1), &slot, &Terms::new(TTL)).unwrap();
    let (bob, bell) = (f.worker("bob", 2), f.bell("bob"));
    let ticket = f.wait_for(&bob, &slot, &bell);
    f.write(|tx| kernel::release_resource(tx, &f.context(), &lease, EndReason::Released)).unwrap();
    assert!(f.heard(&bell));
    assert!(f.take(&f.worker("dan", 4), &slot, &Terms::new(TTL)).is_none(), "it is reserved for bob");
    assert!(f.take(&bob, &slot, &with_ticket(&ticket)).is_some());
    assert_eq!(f.read(|view| view.count_tickets()), 0);
}

pub(super) fn a_refreshed_ticket_reports_the_lease_before_it(fresh: &dyn Fn() -> Fixture) {
    let f = fresh();
    let line = Resource::task(&f.add_task("A"));
    let held = f.claim(&f.bare("ann"), "A").unwrap().lease;
    let (ticket, _) = f.wait_for(&f.worker("bob", 2), &line, "no-bell");
    let keep = |ticket| f.store.refresh_ticket(ticket, &line).unwrap();
    let refreshed = || f.read(|view| view.all_tickets())[0].refreshed_at;
    for _ in 0..3 {
        f.clock.advance(TICKET_LIFE / 2);
        assert_eq!(keep(ticket), Some((f.clock.now(), Some(held.clone()))));
        assert_eq!(refreshed(), f.clock.now(), "the ticket was refreshed");
    }
    f.write(|tx| tx.end_lease(held.fence, EndReason::Expired)).unwrap();
    assert_eq!(keep(ticket), Some((f.clock.now(), None)));
    let last = refreshed();
    f.clock.advance(TICKET_LIFE);
    assert_eq!(keep(ticket), None, "the ticket has expired");
    assert_eq!(refreshed(), last);
    assert_eq!(keep(ticket + 1), None, "there is no such ticket");
}
