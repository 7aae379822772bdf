//! Row access: every method reads what was written.

use std::time::Duration;

use tenure_core::event::{EventKind, NewEvent};
use tenure_core::holder::Holder;
use tenure_core::id::{Ids, TaskId};
use tenure_core::lease::{EndReason, Resource, ResourceKind};
use tenure_core::section::SectionMode;
use tenure_core::store::{
    Agent, LeaseBeat, LeaseFilter, MessageFilter, NewLease, NewTask, SectionEdit, TaskEdit, TaskFilter,
    TaskLookup,
};
use tenure_core::task::TaskStatus;
use tenure_core::{Clock, Error, ErrorCode, Result, reference};

use crate::fixture::{Fixture, TESTER, TTL, new_task, refused};

fn created<'a>() -> NewEvent<'a> {
    NewEvent::new(EventKind::TaskCreated, TESTER)
}

pub(super) fn every_store_has_an_id_of_its_own(fresh: &dyn Fn() -> Fixture) {
    let (f, other) = (fresh(), fresh());
    let id = f.store.id().unwrap();
    assert!(id.as_str().len() == 32 && id.as_str().bytes().all(|b| b.is_ascii_hexdigit()), "{id}");
    assert_ne!(id, other.store.id().unwrap());
    f.add_task("A");
    assert_eq!(id, f.store.id().unwrap());
}

pub(super) fn a_failed_transaction_changes_nothing(fresh: &dyn Fn() -> Fixture) {
    let f = fresh();
    let id = f.ids.task();
    let answer: Result<()> = f.write(|tx| {
        tx.insert_task(&new_task(&id, "A", None, 1), created())?;
        tx.take_task_number()?;
        Err(Error::General("no".to_owned()))
    });
    assert_eq!(refused(answer), ErrorCode::General);
    assert!(f.events().is_empty() && f.read(|view| view.count_tasks()).is_empty());
    assert_eq!(f.write(|tx| tx.take_task_number()).unwrap(), 1);
    assert_eq!(f.write(|tx| tx.take_task_number()).unwrap(), 2);
}

pub(super) fn a_task_is_read_as_it_was_written_and_edited(fresh: &dyn Fn() -> Fixture) {
    let f = fresh();
    let section = f.add_section("S", SectionMode::Serial);
    let id = f.ids.task();
    let new = NewTask {
        description: "long\ntext".to_owned(),
        section: Some(section.clone()),
        source_file: Some("PLAN.md#a".to_owned()),
        priority: 7,
        labels: vec!["x".to_owned(), "ü".to_owned()],
        ..new_task(&id, "A", None, 5)
    };
    f.write(|tx| tx.insert_task(&new, created().task(&id))).unwrap();
    let task = f.task("A");
    assert_eq!((&task.title, &task.description), (&new.title, &new.description));
    assert_eq!((task.priority, task.position, task.attempts, task.rejections), (7, 5, 0, 0));
    assert_eq!((&task.labels, &task.source_file), (&new.labels, &new.source_file));
    let section_of_task = task.section.unwrap();
    assert_eq!(
        (section_of_task.id, section_of_task.name.as_str(), section_of_task.serial),
        (section, "S", true)
    );
    assert_eq!((task.created_at, task.updated_at), (f.clock.now(), f.clock.now()));
    f.clock.advance(TTL);
    f.edit(
        "A",
        &TaskEdit {
            title: Some("Other".to_owned()),
            description: Some(String::new()),
            section: Some(None),
            source_file: Some(None),
            priority: Some(1),
            position: Some(2),
            labels: Some(Vec::new()),
            attempts: Some(3),
            rejections: Some(4),
        },
    );
    let edited = f.task("A");
    assert_eq!((edited.title.as_str(), edited.description.as_str()), ("Other", ""));
    assert_eq!((edited.section, edited.source_file, edited.labels.len()), (None, None, 0));
    assert_eq!((edited.priority, edited.position, edited.attempts, edited.rejections), (1, 2, 3, 4));
    assert_eq!((edited.created_at, edited.updated_at), (task.created_at, f.clock.now()));
    assert_eq!(edited.status, TaskStatus::Pending);
}

pub(super) fn a_key_is_unique(fresh: &dyn Fn() -> Fixture) {
    let f = fresh();
    f.add_task("A");
    let id = f.ids.task();
    assert_eq!(
        refused(f.write(|tx| tx.insert_task(&new_task(&id, "A", None, 1), created()))),
        ErrorCode::Store
    );
    let section = || f.add_section("S", SectionMode::Serial);
    section();
    assert_eq!(f.read(|view| view.sections()).len(), 1);
}

pub(super) fn tasks_are_found_by_id_key_prefix_and_title(fresh: &dyn Fn() -> Fixture) {
    let f = fresh();
    f.add_task("A");
    f.add_task("B");
    f.edit("B", &TaskEdit { title: Some("ÄRGER mit Über".to_owned()), ..TaskEdit::default() });
    let find = |lookup: TaskLookup<'_>| {
        let mut keys: Vec<_> =
            f.read(|view| view.find_tasks(lookup, 9)).into_iter().map(|name| name.key).collect();
        keys.sort();
        keys
    };
    let id = f.id("A");
    assert_eq!(find(TaskLookup::Id(id.as_str())), ["A"]);
    assert_eq!(find(TaskLookup::Ids(&[id.clone(), TaskId::new("none")])), ["A"]);
    assert_eq!(find(TaskLookup::Key("B")), ["B"]);
    assert_eq!(find(TaskLookup::IdPrefix(&id.as_str()[..8])), ["A"]);
    assert_eq!(find(TaskLookup::IdPrefix("0000")), ["A", "B"]);
    assert!(find(TaskLookup::Key("a")).is_empty());
    assert_eq!(find(TaskLookup::KeyIgnoringCase("a")), ["A"]);
    assert_eq!(find(TaskLookup::Title("Task A")), ["A"]);
    assert!(find(TaskLookup::Title("Task")).is_empty());
    assert_eq!(find(TaskLookup::Titles(&["Task", "Task A"])), ["A"]);
    assert_eq!(find(TaskLookup::TitlePart("tASK")), ["A"]);
    assert_eq!(find(TaskLookup::TitlePart("ÄRGER MIT")), ["B"], "found by its own spelling");
    assert_eq!(f.read(|view| view.find_tasks(TaskLookup::IdPrefix("0000"), 1)).len(), 1);
}

pub(super) fn a_key_in_another_case_names_a_task_if_only_one_has_it(fresh: &dyn Fn() -> Fixture) {
    let f = fresh();
    for key in ["AB-1", "Ab-1", "CD-1"] {
        f.add_task(key);
    }
    let find = |text: &str| f.store.read(|view| reference::task(view, text)).map(|name| name.key);
    assert_eq!(find("Ab-1").unwrap(), "Ab-1", "the exact key comes first");
    assert_eq!(find("cd-1").unwrap(), "CD-1");
    assert_eq!(refused(find("ab-1")), ErrorCode::Ambiguous);
}

pub(super) fn listings_filter_count_and_page(fresh: &dyn Fn() -> Fixture) {
    let f = fresh();
    let section = f.add_section("S", SectionMode::Parallel);
    for n in 0..5 {
        f.add_task(&format!("X{n}"));
    }
    f.add_task_in("S1", Some(&section));
    let ann = f.bare("ann");
    f.claim(&ann, "X1").unwrap();
    f.override_status(&ann, "X2", TaskStatus::Completed, false).unwrap();
    f.edit("X3", &TaskEdit { labels: Some(vec!["ui".to_owned()]), ..TaskEdit::default() });
    f.edit("X4", &TaskEdit { description: Some("Mind the ÜBERGANG".to_owned()), ..TaskEdit::default() });
    let all = TaskFilter { limit: 100, ..TaskFilter::default() };
    let list = |filter: &TaskFilter| {
        let (tasks, total) = f.read(|view| view.list_tasks(filter, &f.viewer(view, None)));
        (tasks.into_iter().map(|task| task.key).collect::<Vec<_>>(), total)
    };
    let only = |filter: TaskFilter, expected: &[&str]| {
        let (keys, total) = list(&filter);
        assert_eq!(
            (keys.iter().map(String::as_str).collect::<Vec<_>>(), total),
            (expected.to_vec(), expected.len() as u64),
            "{filter:?}"
        );
    };
    only(all.clone(), &["X0", "X1", "X2", "X3", "X4", "S1"]);
    only(
        TaskFilter { statuses: Some(vec![TaskStatus::Completed, TaskStatus::InProgress]), ..all.clone() },
        &["X1", "X2"],
    );
    only(TaskFilter { section: Some(section), ..all.clone() }, &["S1"]);
    only(TaskFilter { label: Some("ui".to_owned()), ..all.clone() }, &["X3"]);
    only(TaskFilter { search: Some("mind THE".to_owned()), ..all.clone() }, &["X4"]);
    only(TaskFilter { search: Some("ÜBERGANG".to_owned()), ..all.clone() }, &["X4"]);
    only(TaskFilter { search: Some("x0".to_owned()), ..all.clone() }, &["X0"]);
    only(TaskFilter { held_by: Some(Holder::agent("ann")), ..all.clone() }, &["X1"]);
    only(TaskFilter { held_by: Some(Holder::person("ann")), ..all.clone() }, &[]);
    assert_eq!(
        list(&TaskFilter { limit: 2, offset: 3, ..all.clone() }),
        (vec!["X3".to_owned(), "X4".to_owned()], 6)
    );
    assert_eq!(list(&TaskFilter { ready: true, limit: 1, ..all }).1, 4);
    let mut counts = f.read(|view| view.count_tasks());
    counts.sort();
    assert_eq!(counts, [(TaskStatus::Pending, 4), (TaskStatus::InProgress, 1), (TaskStatus::Completed, 1)]);
}

pub(super) fn dependencies_are_edges_that_can_be_walked_added_and_removed(fresh: &dyn Fn() -> Fixture) {
    let f = fresh();
    for key in ["A", "B", "C", "D"] {
        f.add_task(key);
    }
    f.depend("A", "B");
    f.depend("B", "C");
    f.depend("D", "C");
    let (a, b) = (f.id("A"), f.id("B"));
    assert!(!f.write(|tx| tx.add_dependency(&a, &b)).unwrap(), "it already exists");
    assert!(!f.write(|tx| tx.add_dependency(&a, &a)).unwrap());
    let edges = |from: &TaskId| {
        let mut edges: Vec<_> =
            f.read(|view| view.edges_from(from)).into_iter().map(|(x, y)| (x.key, y.key)).collect();
        edges.sort();
        edges
    };
    let edge = |x: &str, y: &str| (x.to_owned(), y.to_owned());
    assert_eq!(edges(&a), [edge("A", "B"), edge("B", "C")]);
    assert!(f.write(|tx| tx.remove_dependency(&a, &b)).unwrap());
    assert!(!f.write(|tx| tx.remove_dependency(&a, &b)).unwrap());
    assert!(edges(&a).is_empty());
    assert!(f.task("A").ready);
    f.write(|tx| tx.delete_task(&b, NewEvent::new(EventKind::TaskDeleted, TESTER).task(&b))).unwrap();
    assert!(f.read(|view| view.find_tasks(TaskLookup::Key("B"), 1)).is_empty());
    let ghost = TaskId::new("ghost");
    assert_eq!(refused(f.write(|tx| tx.add_dependency(&a, &ghost))), ErrorCode::Store);
}

pub(super) fn positions_have_a_last_a_next_and_can_be_spread(fresh: &dyn Fn() -> Fixture) {
    let f = fresh();
    let section = f.add_section("S", SectionMode::Serial);
    assert_eq!(f.read(|view| view.last_position(Some(&section))), None);
    for (key, position) in [("A", 3), ("B", 1), ("C", 2)] {
        f.add_task_in(key, Some(&section));
        f.edit(key, &TaskEdit { position: Some(position), ..TaskEdit::default() });
    }
    f.add_task("X");
    assert_eq!(f.read(|view| view.last_position(Some(&section))), Some(3));
    assert_eq!(f.read(|view| view.position_after(Some(&section), 1)), Some(2));
    assert_eq!(f.read(|view| view.position_after(Some(&section), 3)), None);
    let outside = f.task("X").position;
    f.write(|tx| tx.spread_positions(Some(&section))).unwrap();
    let (b, c, a) = (f.task("B").position, f.task("C").position, f.task("A").position);
    assert!(b + 1 < c && c + 1 < a, "gaps between {b}, {c} and {a}");
    assert_eq!(f.task("X").position, outside);
}

pub(super) fn a_section_is_read_as_it_was_written_edited_and_deleted(fresh: &dyn Fn() -> Fixture) {
    let f = fresh();
    let (s, t) = (f.add_section("S", SectionMode::Serial), f.add_section("T", SectionMode::Parallel));
    let updated = || NewEvent::new(EventKind::SectionUpdated, TESTER);
    let edit = SectionEdit {
        name: Some("U".to_owned()),
        mode: Some(SectionMode::Parallel),
        priority: Some(3),
        position: Some(9),
    };
    f.write(|tx| tx.edit_section(&s, &edit, updated())).unwrap();
    let section = f.read(|view| view.section(&s)).unwrap();
    assert_eq!((section.name.as_str(), section.mode), ("U", SectionMode::Parallel));
    assert_eq!((section.priority, section.position), (3, 9));
    assert!(f.write(|tx| tx.add_section_dependency(&t, &s)).unwrap());
    assert!(!f.write(|tx| tx.add_section_dependency(&t, &s)).unwrap());
    assert_eq!(f.section("T").depends_on, ["U"]);
    assert!(f.section("T").blocked_by.is_empty(), "an empty section is finished");
    f.add_task_in("A", Some(&s));
    assert_eq!(f.section("T").blocked_by, ["U"]);
    let deleted = || NewEvent::new(EventKind::SectionDeleted, TESTER);
    assert_eq!(refused(f.write(|tx| tx.delete_section(&s, deleted()))), ErrorCode::Store, "it has a task");
    assert!(f.write(|tx| tx.remove_section_dependency(&t, &s)).unwrap());
    f.write(|tx| tx.delete_section(&t, deleted())).unwrap();
    assert_eq!(
        f.read(|view| view.sections()).len(),
        1,
        "the implicit section of tasks without one is not listed"
    );
}

pub(super) fn a_lease_is_read_as_it_was_granted_moved_and_ended(fresh: &dyn Fn() -> Fixture) {
    let f = fresh();
    let resource = Resource::new(ResourceKind::Session, "s");
    let new = NewLease {
        id: f.ids.lease(),
        key: f.ids.lease_key(),
        resource: resource.clone(),
        holder: Holder::runner("r"),
        process: Some(f.world.process(7)),
        doorbell: Some("bell".to_owned()),
        ttl: TTL,
        expires_at: f.clock.now().after(TTL),
        claimed_from: None,
        messages_through: 7,
    };
    let lease = f.write(|tx| tx.grant(&new)).unwrap().unwrap();
    assert_eq!((&lease.id, &lease.process, &lease.doorbell), (&new.id, &new.process, &new.doorbell));
    assert_eq!((lease.acquired_at, lease.heartbeat_at, lease.ended), (f.clock.now(), f.clock.now(), None));
    let read = || f.read(|view| view.lease_by_fence(lease.fence)).unwrap();
    assert_eq!(read(), lease);
    assert_eq!(f.read(|view| view.open_lease(&resource)), Some(lease.clone()));
    assert_eq!(f.read(|view| view.lease_by_id(lease.id.as_str())), Some(lease.clone()));
    f.clock.advance(TTL);
    let beat = LeaseBeat {
        process: None,
        doorbell: None,
        ttl: TTL * 2,
        heartbeat_at: f.clock.now(),
        expires_at: f.clock.now().after(TTL * 2),
    };
    let change = |body: &mut dyn FnMut(&mut dyn tenure_core::store::Tx) -> Result<()>| {
        f.write(|tx| body(tx)).unwrap();
    };
    change(&mut |tx| tx.beat(lease.fence, &beat));
    assert_eq!((read().ttl, read().process, read().expires_at), (TTL * 2, None, beat.expires_at));
    change(&mut |tx| tx.end_lease(lease.fence, EndReason::Expired));
    let ended = (f.clock.now(), EndReason::Expired);
    f.clock.advance(TTL);
    change(&mut |tx| tx.end_lease(lease.fence, EndReason::Forced));
    assert_eq!(read().ended, Some(ended), "the first end is kept");
    assert_eq!(f.read(|view| view.open_lease(&resource)), None);
    assert_eq!(f.read(|view| view.latest_lease(&resource)).unwrap().fence, lease.fence);
    change(&mut |tx| tx.reopen_lease(lease.fence));
    assert_eq!(read().ended, None);
    change(&mut |tx| tx.end_lease(lease.fence, EndReason::Forced));
    change(&mut |tx| tx.reopen_lease(lease.fence));
    assert!(!read().is_open(), "only an expired lease is reopened");
}

pub(super) fn leases_are_listed_by_kind_resource_holder_and_age(fresh: &dyn Fn() -> Fixture) {
    let f = fresh();
    let section = f.add_section("S", SectionMode::Serial);
    f.add_task_in("A", Some(&section));
    f.add_task("B");
    let (ann, bob) = (f.worker("ann", 1), f.worker("bob", 2));
    f.claim(&ann, "A").unwrap();
    f.claim(&bob, "B").unwrap();
    f.release(&bob, "B").unwrap();
    f.claim(&ann, "B").unwrap();
    let count = |filter: LeaseFilter| f.read(|view| view.leases(&filter)).len();
    assert_eq!(count(LeaseFilter::default()), 3);
    assert_eq!(count(LeaseFilter { include_ended: true, ..LeaseFilter::default() }), 4);
    assert_eq!(count(LeaseFilter { kinds: Some(vec![ResourceKind::Section]), ..LeaseFilter::default() }), 1);
    assert_eq!(count(LeaseFilter { kinds: Some(Vec::new()), ..LeaseFilter::default() }), 0);
    assert_eq!(count(LeaseFilter { holder: Some(bob.holder.clone()), ..LeaseFilter::default() }), 0);
    let newest = LeaseFilter { newest_first: true, limit: Some(2), ..LeaseFilter::default() };
    let newest = f.read(|view| view.leases(&newest));
    assert_eq!((newest.len(), newest[0].resource.clone()), (2, Resource::task(&f.id("B"))));
    let inside = f.read(|view| view.task_leases_in_section(&section, &ann.holder));
    assert_eq!(inside.iter().map(|l| l.resource.clone()).collect::<Vec<_>>(), [Resource::task(&f.id("A"))]);
    assert_eq!(f.read(|view| view.recorded_processes()), [f.world.process(1)]);
    f.wait_for(&bob, &Resource::task(&f.id("A")), "no-bell");
    assert_eq!(f.read(|view| view.recorded_processes()).len(), 2, "of open leases and of tickets");
}

pub(super) fn agents_and_messages_are_read_as_they_were_written(fresh: &dyn Fn() -> Fixture) {
    let f = fresh();
    let id = f.add_task("A");
    let agent = Agent {
        id: "ann".to_owned(),
        name: Some("Ann".to_owned()),
        capabilities: vec!["rust".to_owned()],
        joined_at: f.clock.now(),
        last_seen_at: f.clock.now(),
        left_at: None,
        active_claims: 0,
    };
    f.write(|tx| tx.save_agent(&agent)).unwrap();
    assert_eq!(f.read(|view| view.agent("ann")), Some(agent.clone()));
    f.clock.advance(Duration::from_secs(1));
    let left = Agent { left_at: Some(f.clock.now()), joined_at: f.clock.now(), ..agent.clone() };
    f.write(|tx| tx.save_agent(&left)).unwrap();
    let saved = f.read(|view| view.agents()).remove(0);
    assert_eq!((saved.left_at, saved.joined_at), (left.left_at, agent.joined_at), "it joined once");
    f.clock.advance(Duration::from_secs(1));
    assert!(f.write(|tx| tx.see_agent("ann")).unwrap());
    let back = Agent { last_seen_at: f.clock.now(), ..agent.clone() };
    assert_eq!(f.read(|view| view.agent("ann")), Some(back), "it has rejoined, otherwise unchanged");
    assert!(!f.write(|tx| tx.see_agent("bob")).unwrap());
    assert_eq!(f.read(|view| view.agent("bob")), None);

    let first = f.write(|tx| tx.insert_message(Some(&id), "bob", None, "on the task")).unwrap();
    let second = f.write(|tx| tx.insert_message(None, "bob", Some("ann"), "to ann")).unwrap();
    let list = |filter: MessageFilter| f.read(|view| view.messages(&filter));
    let all = MessageFilter { limit: 10, ..MessageFilter::default() };
    let (messages, total) = list(all.clone());
    assert_eq!((total, messages[0].id, messages[1].id), (2, first, second));
    assert_eq!(
        (messages[0].task.as_ref().unwrap().key.as_str(), messages[1].to.as_deref()),
        ("A", Some("ann"))
    );
    assert_eq!(list(MessageFilter { to: Some("ann".to_owned()), ..all.clone() }).1, 1);
    assert_eq!(list(MessageFilter { task: Some(id.clone()), ..all.clone() }).1, 1);
    let (page, total) = list(MessageFilter { limit: 1, ..all.clone() });
    assert_eq!((page.len(), total), (1, 2));
    assert!(f.write(|tx| tx.acknowledge(first, "ann")).unwrap());
    assert!(!f.write(|tx| tx.acknowledge(first, "cid")).unwrap());
    assert!(!f.write(|tx| tx.acknowledge(99, "cid")).unwrap());
    assert_eq!(list(all.clone()).1, 1);
    let (every, _) = list(MessageFilter { include_acknowledged: true, ..all.clone() });
    assert_eq!(every[0].acknowledged_by.as_deref(), Some("ann"));
    f.write(|tx| tx.delete_task(&id, NewEvent::new(EventKind::TaskDeleted, TESTER).task(&id))).unwrap();
    assert_eq!(
        list(MessageFilter { include_acknowledged: true, ..all }).1,
        1,
        "a task's messages are deleted with it"
    );
}
