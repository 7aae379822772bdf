//! The queue for ready work (Q1): which waiter gets which task, and which one is woken.

use tenure_core::holder::Caller;
use tenure_core::id::SectionId;
use tenure_core::kernel::{self, Terms};
use tenure_core::lease::Resource;
use tenure_core::section::SectionMode;
use tenure_core::store::{LeaseFilter, TaskEdit};
use tenure_core::task::TaskStatus;

use crate::fixture::{Fixture, TICKET_LIFE, TTL, with_ticket};

/// A caller with a ticket in the queue.
struct Waiter {
    caller: Caller,
    section: Option<SectionId>,
    ticket: (i64, Resource),
    bell: String,
}

impl Waiter {
    fn new(f: &Fixture, name: &str, pid: u32, section: Option<&SectionId>) -> Self {
        let (caller, bell) = (f.worker(name, pid), f.bell(name));
        let ticket = f.wait_for(&caller, &Resource::ready(section), &bell);
        Self { caller, section: section.cloned(), ticket, bell }
    }

    /// The key of the granted task.
    fn asks(&self, f: &Fixture) -> Option<String> {
        let granted = f.next_in(&self.caller, self.section.as_ref(), &with_ticket(&self.ticket));
        granted.map(|grant| grant.task.key)
    }

    fn leaves(&self, f: &Fixture) {
        f.write(|tx| {
            let viewer = f.viewer(tx, None);
            kernel::dequeue(tx, &viewer, self.ticket.0, &self.ticket.1)
        })
        .unwrap();
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
    // A is reserved for bob, X for cid and B for dan, in whatever order they ask.
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
    let (bob, cid) = (Waiter::new(&f, "bob", 2, None), Waiter::new(&f, "cid", 3, None));
    f.add_task("A");
    f.add_task("B");
    f.edit("B", &TaskEdit { priority: Some(900), ..TaskEdit::default() });
    f.claim(&f.bare("ann"), "B").unwrap();
    f.claim(&f.bare("ann"), "A").unwrap();
    f.release(&f.bare("ann"), "A").unwrap();
    f.heard(&bob.bell);
    assert!(!f.heard(&cid.bell));
    f.release(&f.bare("ann"), "B").unwrap();
    assert!(f.heard(&cid.bell));
    f.claim(&f.bare("ann"), "B").unwrap();
    assert_eq!(cid.asks(&f), None);
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
            kernel::in_the_way(tx, &f.context(), &viewer, &dan, &task, &Terms::new(TTL))
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
