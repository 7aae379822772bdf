//! Retention: what is removed once it is old, and what stays.

use std::time::Duration;

use tenure_core::event::EventKind;
use tenure_core::holder::Caller;
use tenure_core::job::JobState;
use tenure_core::kernel::{self, Terms};
use tenure_core::lease::{Resource, ResourceKind};
use tenure_core::rules;
use tenure_core::runner::{Runner, RunnerStatus};
use tenure_core::session::{SessionOptions, SessionState};
use tenure_core::store::{Agent, ItemFilter, MessageFilter, NewJob};
use tenure_core::task::TaskStatus;
use tenure_core::{Clock, Timestamp};

use super::{jobs, keeping};
use crate::fixture::{Fixture, TTL, refused};

const KEPT: Duration = Duration::from_hours(24);

/// Prunes until nothing is left to remove, and returns how many rows were removed.
fn prune(f: &Fixture) -> u64 {
    let mut rows = 0;
    for _ in 0..1000 {
        let step = f.write(|tx| rules::prune(tx, KEPT)).unwrap();
        rows += step.rows;
        if !step.more {
            return rows;
        }
    }
    panic!("pruning does not come to an end");
}

fn claim_and_release(f: &Fixture, caller: &Caller, key: &str) {
    f.claim(caller, key).unwrap();
    f.release(caller, key).unwrap();
}

pub(super) fn the_last_lease_and_the_last_status_event_of_each_task_stay(fresh: &dyn Fn() -> Fixture) {
    let f = fresh();
    let (ann, bob) = (f.bare("ann"), f.bare("bob"));
    for key in ["A", "B", "C"] {
        f.add_task(key);
    }
    for _ in 0..2 {
        claim_and_release(&f, &ann, "A");
    }
    let fence = f.claim(&bob, "B").unwrap().lease.fence;
    f.done(&bob, "B").unwrap();
    assert_eq!(prune(&f), 0, "nothing is old yet");
    f.clock.advance(KEPT + Duration::from_millis(1));
    assert!(prune(&f) > 0);

    let of = |key: &str| f.history(&Resource::task(&f.id(key)));
    assert_eq!((of("A").len(), of("B").len(), of("C").len()), (1, 1, 0));
    assert_eq!(of("B")[0].fence, fence);
    let left: Vec<_> = f.events().into_iter().map(|event| (event.task, event.kind, event.to)).collect();
    for (key, kind, status) in [
        ("A", EventKind::TaskStatus, TaskStatus::Pending),
        ("B", EventKind::TaskStatus, TaskStatus::Completed),
        ("C", EventKind::TaskCreated, TaskStatus::Pending),
    ] {
        let id = f.id(key);
        let own: Vec<_> = left.iter().filter(|(task, ..)| task.as_ref() == Some(&id)).collect();
        assert_eq!(own.len(), 1, "{key}: {own:?}");
        assert_eq!((own[0].1, own[0].2.unwrap_or(TaskStatus::Pending)), (kind, status));
    }
    // The rows that are left explain the tasks, and a repeated finish is still recognised.
    assert!(f.read(|view| kernel::check_invariants(view, &f.context())).is_empty());
    f.done(&bob, "B").unwrap();
    assert_eq!(prune(&f), 0, "pruning again removes nothing");
}

pub(super) fn what_was_kept_is_removed_when_something_newer_is_old(fresh: &dyn Fn() -> Fixture) {
    let f = fresh();
    let ann = f.bare("ann");
    f.add_task("A");
    for _ in 0..3 {
        claim_and_release(&f, &ann, "A");
        f.clock.advance(KEPT + Duration::from_millis(1));
        prune(&f);
        assert_eq!(f.history(&Resource::task(&f.id("A"))).len(), 1);
        let id = f.id("A");
        let own = f.events().into_iter().filter(|event| event.task.as_ref() == Some(&id));
        assert_eq!(own.count(), 1);
    }
    f.write(|tx| rules::delete_task(tx, &f.context(), &ann, "A", false)).unwrap();
    f.clock.advance(KEPT + Duration::from_millis(1));
    prune(&f);
    assert_eq!(f.events().len(), 0, "nothing is kept of a task that was deleted");
}

pub(super) fn an_open_lease_and_an_unfinished_attempt_are_never_pruned(fresh: &dyn Fn() -> Fixture) {
    let f = fresh();
    f.add_task("A");
    let runner = f.worker("run", 7);
    let grant = f.claim_on(&runner, "A", &Terms::new(Duration::from_hours(100))).unwrap();
    let attempt = f.begin_attempt(&grant.lease, &runner);
    let slot = f
        .take(&runner, &Resource::new(ResourceKind::Runner, "1"), &Terms::new(Duration::from_hours(100)))
        .unwrap();
    f.clock.advance(KEPT * 2);
    prune(&f);
    assert_eq!(f.lease("A").map(|lease| lease.fence), Some(grant.lease.fence));
    assert_eq!(f.read(|view| view.open_attempts()).len(), 1);
    // After the eviction its processes may still run: the attempt is `ending`, and its lease is kept as long
    // as the attempt.
    f.force(&grant.lease).unwrap();
    f.clock.advance(KEPT * 2);
    claim_and_release(&f, &f.bare("ann"), "A");
    f.clock.advance(KEPT * 2);
    prune(&f);
    assert_eq!(f.read(|view| view.open_attempts())[0].id, attempt.id);
    assert!(f.read(|view| view.lease_by_fence(grant.lease.fence)).is_some());
    assert!(f.read(|view| view.lease_by_fence(slot.fence)).is_some(), "it is still open");
}

pub(super) fn ended_sessions_jobs_runners_and_unseen_agents_are_removed(fresh: &dyn Fn() -> Fixture) {
    let f = fresh();
    f.add_task("A");
    let runner = f.worker("run", 7);
    let open = |id: &str| {
        let options = SessionOptions::default();
        f.write(|tx| rules::open_session(tx, &f.context(), &runner, id, &options, &Terms::new(TTL)))
            .unwrap()
            .unwrap()
            .1
    };
    let (ended, _unended) = (open("abcd-1"), open("abcd-2"));
    f.write(|tx| rules::close_session(tx, &f.context(), &ended, SessionState::Completed, None)).unwrap();
    f.write(|tx| {
        for (id, state) in [("j1", Some(JobState::Completed)), ("j2", None)] {
            let definition = jobs::definition(250);
            tx.insert_job(&NewJob { id: id.to_owned(), name: id.to_owned(), definition })?;
            tx.insert_items(id, 1, &vec!["x".to_owned(); 250])?;
            let event = || tenure_core::event::NewEvent::new(EventKind::JobStatus, "t");
            tx.set_job_state(id, JobState::Open, event())?;
            if let Some(state) = state {
                tx.set_job_state(id, state, event())?;
            }
        }
        for (id, status) in [("r1", RunnerStatus::Completed), ("r2", RunnerStatus::Idle)] {
            tx.save_runner(&a_runner(&f, id, status))?;
        }
        tx.save_agent(&an_agent("gone", f.clock.now()))?;
        tx.save_agent(&an_agent("holds", f.clock.now()))
    })
    .unwrap();
    f.claim_on(&f.bare("holds"), "A", &Terms::new(Duration::from_hours(100))).unwrap();
    f.clock.advance(KEPT + Duration::from_millis(1));
    prune(&f);
    assert_eq!(f.read(|view| view.sessions(9)).0.len(), 1);
    assert!(f.read(|view| view.job("j1")).is_none());
    assert_eq!(f.read(|view| view.job("j2")).unwrap().counts.total, 250);
    let of_job = |id: &str| ItemFilter { job: Some(id.to_owned()), state: None, after: 0, limit: 999 };
    assert_eq!(f.read(|view| view.items(&of_job("j1"))).len(), 0);
    assert_eq!(f.read(|view| view.runners(9)).iter().map(|r| r.id.as_str()).collect::<Vec<_>>(), ["r2"]);
    assert_eq!(f.read(|view| view.agents()).iter().map(|a| a.id.as_str()).collect::<Vec<_>>(), ["holds"]);
}

pub(super) fn an_unread_message_for_an_unfinished_task_stays(fresh: &dyn Fn() -> Fixture) {
    let f = fresh();
    f.add_task("A");
    f.add_task("B");
    let ann = f.bare("ann");
    let send = |task: Option<&str>, text: &str| {
        let task = task.map(|key| f.id(key));
        f.write(|tx| tx.insert_message(task.as_ref(), "ann", None, text)).unwrap()
    };
    send(Some("A"), "unread, unfinished");
    let read = send(Some("A"), "read");
    send(Some("B"), "unread, finished");
    send(None, "unread, of no task");
    f.write(|tx| tx.acknowledge(read, "bob").map(drop)).unwrap();
    // A status change by another caller. A finish by the holder would acknowledge the messages.
    f.override_status(&ann, "B", TaskStatus::Skipped, false).unwrap();
    f.clock.advance(KEPT + Duration::from_millis(1));
    send(None, "recent");
    prune(&f);
    let filter = MessageFilter { include_acknowledged: true, limit: 9, ..MessageFilter::default() };
    let left: Vec<_> = f.read(|view| view.messages(&filter)).0.into_iter().map(|m| m.text).collect();
    assert_eq!(left, ["unread, unfinished", "recent"]);
}

pub(super) fn a_late_write_is_rejected_although_its_lease_was_pruned(fresh: &dyn Fn() -> Fixture) {
    let f = fresh();
    f.add_task("A");
    let ann = f.bare("ann");
    let fence = f.claim(&ann, "A").unwrap().lease.fence;
    f.clock.advance(TTL);
    claim_and_release(&f, &f.bare("bob"), "A");
    f.clock.advance(KEPT * 2);
    prune(&f);
    assert!(f.read(|view| view.lease_by_fence(fence)).is_none());
    let late = ann.with_fence(Some(fence));
    assert_eq!(refused(f.done(&late, "A")).exit_code(), 8);
    assert!(f.claim(&f.bare("cid"), "A").unwrap().lease.fence > fence, "fences still rise");
}

fn a_runner(f: &Fixture, id: &str, status: RunnerStatus) -> Runner {
    let ended = matches!(status, RunnerStatus::Completed | RunnerStatus::Failed);
    Runner { status, id: id.to_owned(), completed_at: ended.then(|| f.clock.now()), ..keeping::runner(f, 9) }
}

fn an_agent(id: &str, seen: Timestamp) -> Agent {
    Agent {
        id: id.to_owned(),
        name: None,
        capabilities: Vec::new(),
        joined_at: seen,
        last_seen_at: seen,
        left_at: None,
        active_claims: 0,
    }
}
