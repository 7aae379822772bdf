//! The queue for ready work (Q1): which waiter gets which task, and which one is woken.

use tenure_core::holder::Caller;
use tenure_core::id::SectionId;
use tenure_core::kernel::{self, Terms};
use tenure_core::lease::Resource;
use tenure_core::section::SectionMode;
use tenure_core::store::LeaseFilter;
use tenure_core::task::TaskStatus;
use tenure_core::{ErrorCode, rules};

use crate::fixture::{Fixture, TICKET_LIFE, TTL, refused, with_ticket};

/// A caller with a ticket in the queue.
struct Waiter {
    caller: Caller,
    ticket: (i64, Resource),
    bell: String,
}

impl Waiter {
    /// Waits for any task, or for any task of a section.
    fn new(f: &Fixture, name: &str, pid: u32, section: Option<&SectionId>) -> Self {
        Self::wanting(f, name, pid, &Resource::ready(section))
    }

    /// Waits for one task.
    fn named(f: &Fixture, name: &str, pid: u32, key: &str) -> Self {
        Self::wanting(f, name, pid, &Resource::task(&f.id(key)))
    }

    fn wanting(f: &Fixture, name: &str, pid: u32, wish: &Resource) -> Self {
        let (caller, bell) = (f.worker(name, pid), f.bell(name));
        let ticket = f.wait_for(&caller, wish, &bell);
        Self { caller, ticket, bell }
    }

    /// The key of the granted task.
    fn asks(&self, f: &Fixture) -> Option<String> {
        let terms = with_ticket(&self.ticket);
        match self.ticket.1.task_id() {
            Some(id) => {
                let claimed = f.write(|tx| kernel::acquire_task(tx, &f.context(), &self.caller, &id, &terms));
                claimed.unwrap().granted().ok().map(|grant| grant.task.key)
            }
            None => {
                let section = self.ticket.1.ready_section();
                f.next_in(&self.caller, section.as_ref(), &terms).map(|grant| grant.task.key)
            }
        }
    }

    fn leaves(&self, f: &Fixture) {
        f.leave_queue(&self.ticket);
    }
}

/// A claim of any task by a caller without a ticket.
fn newcomer(f: &Fixture, name: &str) -> Option<String> {
    f.next(&f.bare(name)).map(|grant| grant.task.key)
}

/// Makes a skipped task ready.
fn open(f: &Fixture, key: &str) {
    f.override_status(&f.bare("boss"), key, TaskStatus::Pending, false).unwrap();
}

fn closed_task(f: &Fixture, key: &str, section: Option<&SectionId>) {
    f.add_task_in(key, section);
    f.override_status(&f.bare("boss"), key, TaskStatus::Skipped, false).unwrap();
}

pub(super) fn a_waiter_for_an_empty_section_blocks_no_other_claim(fresh: &dyn Fn() -> Fixture) {
    let f = fresh();
    let empty = f.add_section("Empty", SectionMode::Parallel);
    let bob = Waiter::new(&f, "bob", 2, Some(&empty));
    let cid = Waiter::new(&f, "cid", 3, None);
    closed_task(&f, "A", None);
    f.add_task("B");
    open(&f, "A");
    assert!(f.heard(&cid.bell) && !f.heard(&bob.bell));
    assert_eq!(cid.asks(&f).as_deref(), Some("A"));
    assert_eq!(newcomer(&f, "dan").as_deref(), Some("B"));
    assert_eq!(bob.asks(&f), None);
}

pub(super) fn each_waiter_gets_the_first_task_not_reserved_for_an_earlier_one(fresh: &dyn Fn() -> Fixture) {
    let f = fresh();
    let section = f.add_section("S", SectionMode::Parallel);
    let bob = Waiter::new(&f, "bob", 2, None);
    let cid = Waiter::new(&f, "cid", 3, Some(&section));
    let dan = Waiter::new(&f, "dan", 4, None);
    for (key, section) in
        [("A", None), ("B", None), ("C", None), ("X", Some(&section)), ("Y", Some(&section))]
    {
        f.add_task_in(key, section);
    }
    // A is reserved for bob, X for cid and B for dan, regardless of the order in which they ask.
    assert_eq!(newcomer(&f, "eve").as_deref(), Some("C"));
    assert_eq!(newcomer(&f, "fay").as_deref(), Some("Y"));
    assert_eq!(newcomer(&f, "gus"), None);
    assert_eq!(dan.asks(&f).as_deref(), Some("B"));
    assert_eq!(cid.asks(&f).as_deref(), Some("X"));
    assert_eq!(bob.asks(&f).as_deref(), Some("A"));
    assert_eq!(f.read(|view| view.count_tickets()), 0);
}

pub(super) fn an_earlier_waiter_for_a_section_precedes_a_later_one_for_any_task(fresh: &dyn Fn() -> Fixture) {
    let f = fresh();
    let section = f.add_section("S", SectionMode::Parallel);
    let bob = Waiter::new(&f, "bob", 2, Some(&section));
    let cid = Waiter::new(&f, "cid", 3, None);
    closed_task(&f, "X", Some(&section));
    closed_task(&f, "Y", Some(&section));
    open(&f, "X");
    assert!(f.heard(&bob.bell) && !f.heard(&cid.bell));
    assert_eq!(cid.asks(&f), None);
    open(&f, "Y");
    assert!(f.heard(&cid.bell), "the second task goes to the second waiter");
    assert_eq!(cid.asks(&f).as_deref(), Some("Y"));
    assert_eq!(bob.asks(&f).as_deref(), Some("X"));
}

pub(super) fn the_first_task_of_a_serial_section_reserves_the_whole_section(fresh: &dyn Fn() -> Fixture) {
    let f = fresh();
    let section = f.add_section("S", SectionMode::Serial);
    let bob = Waiter::new(&f, "bob", 2, None);
    let cid = Waiter::new(&f, "cid", 3, Some(&section));
    f.add_task_in("X", Some(&section));
    f.add_task_in("Y", Some(&section));
    assert_eq!(newcomer(&f, "dan"), None, "claiming Y would take the section, and bob could not claim X");
    assert_eq!(cid.asks(&f), None);
    assert_eq!(bob.asks(&f).as_deref(), Some("X"));
    f.done(&bob.caller, "X").unwrap();
    assert!(f.heard(&cid.bell));
    assert_eq!(cid.asks(&f).as_deref(), Some("Y"));
}

pub(super) fn unclaimed_work_wakes_the_waiter_that_gets_it_next(fresh: &dyn Fn() -> Fixture) {
    let f = fresh();
    let waiters =
        ["bob", "cid", "dan"].map(|name| Waiter::new(&f, name, name.bytes().map(u32::from).sum(), None));
    let [bob, cid, dan] = &waiters;
    closed_task(&f, "A", None);
    open(&f, "A");
    assert!(f.heard(&bob.bell) && !f.heard(&cid.bell) && !f.heard(&dan.bell));
    bob.leaves(&f);
    assert!(f.heard(&cid.bell) && !f.heard(&dan.bell), "bob's task goes to cid");
    f.claim_on(&cid.caller, "A", &with_ticket(&cid.ticket)).unwrap();
    assert!(!f.heard(&dan.bell), "nothing is left for dan");
    f.release(&cid.caller, "A").unwrap();
    assert!(f.heard(&dan.bell));
    assert_eq!(dan.asks(&f).as_deref(), Some("A"));
}

pub(super) fn a_waiter_that_claims_another_task_leaves_its_reserved_one_to_the_next(
    fresh: &dyn Fn() -> Fixture,
) {
    let f = fresh();
    f.add_task("A");
    f.add_task("B");
    f.claim(&f.bare("ann"), "A").unwrap();
    f.claim(&f.bare("ann"), "B").unwrap();
    let (bob, cid) = (Waiter::new(&f, "bob", 2, None), Waiter::new(&f, "cid", 3, None));
    f.release(&f.bare("ann"), "A").unwrap();
    assert!(f.heard(&bob.bell) && !f.heard(&cid.bell));
    f.release(&f.bare("ann"), "B").unwrap();
    f.heard(&cid.bell);
    f.claim_on(&bob.caller, "B", &with_ticket(&bob.ticket)).unwrap();
    assert!(f.heard(&cid.bell), "A was reserved for bob and goes to cid");
    assert_eq!(cid.asks(&f).as_deref(), Some("A"));
}

pub(super) fn nothing_is_reserved_for_a_dead_or_silent_waiter(fresh: &dyn Fn() -> Fixture) {
    let f = fresh();
    Waiter::new(&f, "bob", 2, None);
    let cid = Waiter::new(&f, "cid", 3, None);
    f.add_task("A");
    assert_eq!(newcomer(&f, "dan"), None);
    assert_eq!(cid.asks(&f), None);
    f.world.kill(2);
    assert_eq!(newcomer(&f, "dan"), None, "it is reserved for cid now");
    f.clock.advance(TICKET_LIFE);
    assert_eq!(newcomer(&f, "dan").as_deref(), Some("A"), "cid's ticket has expired");
}

pub(super) fn a_reconcile_that_removes_a_dead_waiter_rings_the_next_one(fresh: &dyn Fn() -> Fixture) {
    let f = fresh();
    Waiter::new(&f, "bob", 2, None);
    let cid = Waiter::new(&f, "cid", 3, None);
    f.add_task("A");
    assert!(!f.heard(&cid.bell));
    f.world.kill(2);
    assert_eq!(f.write(|tx| kernel::reconcile(tx, &f.context(), "janitor")).unwrap().tickets, 1);
    assert!(f.heard(&cid.bell));
    assert_eq!(cid.asks(&f).as_deref(), Some("A"));
}

pub(super) fn new_work_in_a_serial_section_rings_its_waiting_holder(fresh: &dyn Fn() -> Fixture) {
    let f = fresh();
    let section = f.add_section("S", SectionMode::Serial);
    f.add_task_in("X", Some(&section));
    closed_task(&f, "Y", Some(&section));
    f.claim(&f.bare("cid"), "X").unwrap();
    let (bob, cid) = (Waiter::new(&f, "bob", 2, None), Waiter::new(&f, "cid", 3, None));
    open(&f, "Y");
    assert!(f.heard(&cid.bell) && !f.heard(&bob.bell), "no other holder may work in the section");
    assert_eq!(bob.asks(&f), None);
    assert_eq!(cid.asks(&f).as_deref(), Some("Y"));
}

pub(super) fn a_named_task_goes_to_the_waiter_that_came_first(fresh: &dyn Fn() -> Fixture) {
    let f = fresh();
    f.add_task("A");
    f.add_task("B");
    f.claim(&f.bare("ann"), "A").unwrap();
    f.claim(&f.bare("ann"), "B").unwrap();
    let bob = Waiter::named(&f, "bob", 2, "A");
    let cid = Waiter::new(&f, "cid", 3, None);
    let dan = Waiter::named(&f, "dan", 4, "B");
    f.release(&f.bare("ann"), "A").unwrap();
    assert!(f.heard(&bob.bell) && !f.heard(&cid.bell) && !f.heard(&dan.bell));
    assert_eq!(newcomer(&f, "eve"), None, "bob waits for A");
    assert_eq!(cid.asks(&f), None, "bob came first");
    f.release(&f.bare("ann"), "B").unwrap();
    assert!(f.heard(&cid.bell) && !f.heard(&dan.bell), "cid takes any task and came before dan");
    assert_eq!(refused(f.claim(&f.bare("eve"), "B")), ErrorCode::TaskLocked, "B is reserved for cid");
    assert_eq!(dan.asks(&f), None);
    assert_eq!(bob.asks(&f).as_deref(), Some("A"));
    assert_eq!(cid.asks(&f).as_deref(), Some("B"));
    f.release(&cid.caller, "B").unwrap();
    assert!(f.heard(&dan.bell));
    assert_eq!(dan.asks(&f).as_deref(), Some("B"));
}

pub(super) fn a_waiter_for_a_held_task_blocks_no_other_claim(fresh: &dyn Fn() -> Fixture) {
    let f = fresh();
    let section = f.add_section("S", SectionMode::Serial);
    f.add_task_in("X", Some(&section));
    f.add_task_in("Y", Some(&section));
    f.add_task("A");
    f.claim(&f.worker("ann", 1), "X").unwrap();
    let bob = Waiter::named(&f, "bob", 2, "X");
    let cid = Waiter::named(&f, "cid", 3, "Y");
    assert_eq!(newcomer(&f, "dan").as_deref(), Some("A"));
    assert!(f.claim(&f.worker("ann", 1), "Y").is_ok(), "the holder of a section continues in it");
    f.done(&f.worker("ann", 1), "X").unwrap();
    f.done(&f.worker("ann", 1), "Y").unwrap();
    assert!(f.heard(&bob.bell) && f.heard(&cid.bell), "their tasks can no longer be started");
}

pub(super) fn a_waiter_for_a_task_reserves_its_serial_section(fresh: &dyn Fn() -> Fixture) {
    let f = fresh();
    let section = f.add_section("S", SectionMode::Serial);
    f.add_task_in("X", Some(&section));
    f.add_task_in("Y", Some(&section));
    f.claim(&f.worker("ann", 1), "X").unwrap();
    let bob = Waiter::named(&f, "bob", 2, "Y");
    let cid = Waiter::new(&f, "cid", 3, Some(&section));
    f.release(&f.worker("ann", 1), "X").unwrap();
    assert!(f.heard(&bob.bell) && !f.heard(&cid.bell));
    assert_eq!(refused(f.claim(&f.bare("dan"), "X")), ErrorCode::SectionLocked);
    assert_eq!(refused(f.claim(&f.bare("dan"), "Y")), ErrorCode::TaskLocked);
    assert_eq!((newcomer(&f, "dan"), cid.asks(&f)), (None, None));
    assert_eq!(bob.asks(&f).as_deref(), Some("Y"));
    f.done(&bob.caller, "Y").unwrap();
    assert!(f.heard(&cid.bell));
    assert_eq!(cid.asks(&f).as_deref(), Some("X"));
}

pub(super) fn a_task_that_can_no_longer_be_started_rings_its_waiters(fresh: &dyn Fn() -> Fixture) {
    type Change = fn(&Fixture);
    let changes: [Change; 5] = [
        |f| drop(f.done(&f.worker("ann", 1), "A").unwrap()),
        |f| drop(f.override_status(&f.bare("boss"), "A", TaskStatus::Skipped, true).unwrap()),
        |f| {
            f.release(&f.worker("ann", 1), "A").unwrap();
            f.write(|tx| rules::depend(tx, &f.context(), &f.bare("boss"), "A", "B")).unwrap();
        },
        |f| {
            f.release(&f.worker("ann", 1), "A").unwrap();
            f.write(|tx| rules::delete_task(tx, &f.context(), &f.bare("boss"), "A", true)).unwrap();
        },
        |f| {
            f.release(&f.worker("ann", 1), "A").unwrap();
            f.write(|tx| rules::depend_section(tx, &f.context(), &f.bare("boss"), "S", "T")).unwrap();
        },
    ];
    for (number, change) in changes.into_iter().enumerate() {
        let f = fresh();
        for (key, section) in [("A", "S"), ("B", "T")] {
            let section = f.add_section(section, SectionMode::Parallel);
            f.add_task_in(key, Some(&section));
        }
        f.claim(&f.worker("ann", 1), "A").unwrap();
        let (bob, cid) = (Waiter::named(&f, "bob", 2, "A"), Waiter::named(&f, "cid", 3, "A"));
        let dan = Waiter::named(&f, "dan", 4, "B");
        f.heard(&dan.bell);
        change(&f);
        assert!(f.heard(&bob.bell) && f.heard(&cid.bell), "case {number}");
    }
}

pub(super) fn a_reviewer_takes_its_turn_among_all_waiters(fresh: &dyn Fn() -> Fixture) {
    let f = fresh();
    f.add_task("A");
    f.override_status(&f.bare("boss"), "A", TaskStatus::Review, false).unwrap();
    let (bob, bell) = (f.worker("bob", 2), f.bell("bob"));
    let process = bob.process.clone().unwrap();
    let waiter = kernel::Waiter { caller: &bob, process: &process, doorbell: Some(&bell), review: true };
    let wish = Resource::ready(None);
    let number = f.write(|tx| kernel::enqueue(tx, &f.context(), &waiter, &wish, None)).unwrap();
    let cid = Waiter::new(&f, "cid", 3, None);
    f.add_task("B");
    let review = |caller: &Caller, terms: &Terms| {
        f.write(|tx| kernel::acquire_next_review(tx, &f.context(), caller, None, terms)).unwrap()
    };
    assert!(review(&f.worker("dan", 4), &Terms::new(TTL)).is_none(), "bob came first");
    assert_eq!(newcomer(&f, "dan"), None, "B is reserved for cid, because bob gets the review");
    let grant = review(&bob, &with_ticket(&(number, wish.clone()))).unwrap();
    assert_eq!((grant.task.key.as_str(), grant.lease.claimed_from), ("A", Some(TaskStatus::Review)));
    assert_eq!(cid.asks(&f).as_deref(), Some("B"));
    assert_eq!(f.read(|view| view.count_tickets()), 0);
}

pub(super) fn the_life_of_a_ticket_is_what_its_waiter_decided(fresh: &dyn Fn() -> Fixture) {
    let f = fresh();
    f.add_task("A");
    f.claim(&f.bare("ann"), "A").unwrap();
    let bob = f.worker("bob", 2);
    let process = bob.process.clone().unwrap();
    let waiter = kernel::Waiter { caller: &bob, process: &process, doorbell: None, review: false };
    let mut patient = f.context();
    patient.policy.ticket_life = TICKET_LIFE * 4;
    let wish = Resource::task(&f.id("A"));
    let number = f.write(|tx| kernel::enqueue(tx, &patient, &waiter, &wish, None)).unwrap();
    f.release(&f.bare("ann"), "A").unwrap();
    f.clock.advance(TICKET_LIFE * 3);
    assert_eq!(refused(f.claim(&f.bare("dan"), "A")), ErrorCode::TaskLocked, "bob refreshes less often");
    assert!(f.store.refresh_ticket(number, &wish).unwrap().is_some());
    f.clock.advance(TICKET_LIFE * 3);
    assert_eq!(newcomer(&f, "dan"), None);
    assert_eq!(f.read(|view| view.all_tickets())[0].life, TICKET_LIFE * 4);
    f.clock.advance(TICKET_LIFE);
    assert!(f.store.refresh_ticket(number, &wish).unwrap().is_none());
    assert_eq!(newcomer(&f, "dan").as_deref(), Some("A"));
}

pub(super) fn at_most_32_different_wishes_are_looked_up(fresh: &dyn Fn() -> Fixture) {
    let f = fresh();
    f.add_task("Z");
    f.claim(&f.bare("ann"), "Z").unwrap();
    // Waiters with the same wish are looked up only once.
    for pid in 100..140 {
        Waiter::named(&f, &format!("crowd{pid}"), pid, "Z");
    }
    for at in 0..33_u32 {
        let key = format!("A{at:02}");
        f.add_task(&key);
        f.claim(&f.bare("ann"), &key).unwrap();
        Waiter::named(&f, &format!("w{at}"), 200 + at, &key);
    }
    for at in 0..33 {
        f.release(&f.bare("ann"), &format!("A{at:02}")).unwrap();
    }
    assert_eq!(refused(f.claim(&f.bare("eve"), "A30")), ErrorCode::TaskLocked);
    assert_eq!(newcomer(&f, "dan").as_deref(), Some("A31"), "the wish for Z was the first of 32");
}

pub(super) fn querying_what_blocks_a_task_changes_nothing(fresh: &dyn Fn() -> Fixture) {
    let f = fresh();
    let section = f.add_section("S", SectionMode::Serial);
    let held = f.add_task("held");
    let queued = f.add_task("queued");
    let free = f.add_task("free");
    f.add_task_in("X", Some(&section));
    let inside = f.add_task_in("Y", Some(&section));
    f.claim(&f.worker("ann", 1), "held").unwrap();
    f.claim(&f.worker("ann", 1), "X").unwrap();
    f.wait_for(&f.worker("bob", 2), &Resource::task(&queued), "no-bell");
    let dan = f.worker("dan", 4);
    let before = (f.events().len(), f.read(|view| view.leases(&LeaseFilter::default())));
    let in_the_way = |id| {
        f.write(|tx| {
            let viewer = f.viewer(tx, Some(&dan));
            let task = tx.task(id, &viewer)?.unwrap();
            kernel::in_the_way(tx, &f.context(), &dan, &task, &Terms::new(TTL))
        })
        .unwrap()
    };
    let locked = in_the_way(&held).unwrap();
    assert_eq!((locked.resource, locked.lease.unwrap().holder.id), (Resource::task(&held), "ann".to_owned()));
    let locked = in_the_way(&inside).unwrap();
    assert_eq!(locked.resource, Resource::section(&section));
    assert_eq!(locked.lease.unwrap().holder.id, "ann");
    let locked = in_the_way(&queued).unwrap();
    assert_eq!((locked.resource, locked.lease, locked.queue), (Resource::task(&queued), None, 1));
    assert!(in_the_way(&free).is_none());
    f.world.kill(1);
    assert!(in_the_way(&held).is_none(), "a lapsed lease blocks nothing");
    assert!(in_the_way(&inside).is_none());
    assert_eq!((f.events().len(), f.read(|view| view.leases(&LeaseFilter::default()))), before);
}
