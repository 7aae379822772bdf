//! What a claim shows of earlier holders' messages and remarks, and which messages its finish acknowledges.

use tenure_core::id::TaskId;
use tenure_core::kernel::{Finish, Terms};
use tenure_core::store::{MESSAGES_SHOWN, MessageFilter};

use crate::fixture::{Fixture, Granted, TTL};

fn left_on(f: &Fixture, id: &TaskId) -> Vec<String> {
    let filter = MessageFilter { task: Some(id.clone()), limit: 100, ..MessageFilter::default() };
    f.read(|view| view.messages(&filter)).0.into_iter().map(|message| message.text).collect()
}

pub(super) fn finishing_acknowledges_the_messages_that_the_holder_was_shown(fresh: &dyn Fn() -> Fixture) {
    let f = fresh();
    f.add_task("A");
    let (ann, id) = (f.worker("ann", 1), f.id("A"));
    let send = |to: Option<&str>, text: &str| {
        f.write(|tx| tx.insert_message(Some(&id), "bob", to, text)).unwrap();
    };
    send(None, "mind the gap");
    send(Some("cid"), "for cid");
    send(Some("ann"), "for ann");
    let grant = f.claim(&ann, "A").unwrap();
    let shown: Vec<_> = grant.notes.messages.iter().map(|message| message.text.as_str()).collect();
    assert_eq!(shown, ["mind the gap", "for ann"]);
    assert_eq!(grant.notes.messages[0].task.as_ref().unwrap().key, "A");
    send(None, "after the claim");
    f.done(&ann, "A").unwrap();
    assert_eq!(left_on(&f, &id), ["for cid", "after the claim"]);
}

pub(super) fn a_holder_that_claims_again_is_shown_what_came_since(fresh: &dyn Fn() -> Fixture) {
    let f = fresh();
    f.add_task("A");
    let (ann, id) = (f.worker("ann", 1), f.id("A"));
    f.claim(&ann, "A").unwrap();
    f.write(|tx| tx.insert_message(Some(&id), "bob", None, "news")).unwrap();
    let again = f.claim(&ann, "A").unwrap();
    assert!(again.reacquired);
    assert_eq!(again.notes.messages.len(), 1);
    f.done(&ann, "A").unwrap();
    assert_eq!(left_on(&f, &id), Vec::<String>::new());
}

pub(super) fn a_holder_that_is_shown_nothing_acknowledges_nothing(fresh: &dyn Fn() -> Fixture) {
    let f = fresh();
    f.add_task("A");
    let (ann, id) = (f.worker("ann", 1), f.id("A"));
    f.write(|tx| tx.insert_message(Some(&id), "bob", None, "unseen")).unwrap();
    let grant = f.claim_on(&ann, "A", &Terms { shows_notes: false, ..Terms::new(TTL) }).unwrap();
    assert!(grant.notes.messages.is_empty());
    f.done(&ann, "A").unwrap();
    assert_eq!(left_on(&f, &id), ["unseen"]);
}

pub(super) fn only_the_messages_that_fit_are_shown_and_acknowledged(fresh: &dyn Fn() -> Fixture) {
    let f = fresh();
    f.add_task("A");
    let (ann, id) = (f.worker("ann", 1), f.id("A"));
    for number in 1..=25 {
        f.write(|tx| tx.insert_message(Some(&id), "bob", None, &number.to_string())).unwrap();
    }
    let grant = f.next_on(&ann, &Terms::new(TTL)).unwrap();
    assert_eq!((grant.notes.messages.len(), grant.notes.more_messages), (MESSAGES_SHOWN, true));
    f.done(&ann, "A").unwrap();
    assert_eq!(left_on(&f, &id), ["21", "22", "23", "24", "25"]);
}

pub(super) fn a_claim_has_the_last_remark_but_not_how_a_lease_lapsed(fresh: &dyn Fn() -> Fixture) {
    let f = fresh();
    f.add_task("A");
    let remark = |grant: &Granted| {
        grant
            .notes
            .last_remark
            .as_ref()
            .map(|remark| format!("{} by {}: {}", remark.kind.as_str(), remark.by, remark.text))
    };
    let (ann, bob) = (f.worker("ann", 1), f.worker("bob", 2));
    let first = f.claim(&ann, "A").unwrap();
    assert_eq!(remark(&first), None);
    f.finish(&ann, "A", Finish::Release(Some("blocked on credentials"))).unwrap();
    let second = f.claim(&bob, "A").unwrap();
    assert_eq!(remark(&second).unwrap(), "released by ann: blocked on credentials");
    f.clock.advance(TTL * 2);
    let third = f.claim(&f.worker("cid", 3), "A").unwrap();
    assert!(third.taken_over.is_some());
    assert_eq!(remark(&third).unwrap(), "released by ann: blocked on credentials");
}
