//! Jobs: rows and counts; items are taken in order, finished once, retried when due, and returned when their holder
//! dies.

use tenure_core::event::EventKind;
use tenure_core::holder::Caller;
use tenure_core::id::Ids;
use tenure_core::job::{
    Backoff, Counts, Definition, Item, ItemSource, ItemState, Job, JobOptions, JobState, OnFailure,
};
use tenure_core::kernel::{self, ItemGrant, ItemOutcome, NextItem, Terms};
use tenure_core::lease::{EndReason, Lease};
use tenure_core::rules;
use tenure_core::store::{ItemFilter, JobLookup, NewJob};
use tenure_core::{Clock, ErrorCode, Result};

use crate::fixture::{Fixture, TESTER, TTL, refused};

pub(super) fn definition(items: u64) -> Definition {
    Definition {
        command: vec!["echo".to_owned(), "{item}".to_owned()],
        workdir: "/somewhere".to_owned(),
        source: ItemSource { file: Some("items.jsonl".to_owned()), ..ItemSource::default() },
        items_hash: format!("hash of {items}"),
        items,
        options: JobOptions {
            parallel: 2,
            retries: 1,
            backoff: Backoff::Exponential,
            item_timeout_ms: Some(5_000),
            on_failure: OnFailure::Dlq,
        },
    }
}

pub(super) fn stopping(items: u64, on_failure: OnFailure) -> Definition {
    let mut definition = definition(items);
    definition.options.on_failure = on_failure;
    definition.options.retries = 0;
    definition
}

/// A job that ann, process 7, has started and coordinates.
pub(super) fn start(f: &Fixture, definition: &Definition) -> (Job, Lease) {
    let ann = f.worker("ann", 7);
    let id = f.ids.uuid();
    let (_, lease) = f
        .write(|tx| rules::begin_job(tx, &f.context(), &ann, &id, "nightly", definition, &Terms::new(TTL)))
        .unwrap();
    let payloads: Vec<_> = (1..=definition.items).map(|n| format!("\"item {n}\"")).collect();
    f.write(|tx| rules::load_items(tx, &f.context(), &lease, 1, &payloads)).unwrap();
    (f.write(|tx| rules::publish_job(tx, &f.context(), &lease)).unwrap(), lease)
}

pub(super) fn job(f: &Fixture, id: &str) -> Job {
    f.read(|view| view.job(id)).unwrap()
}

pub(super) fn next(f: &Fixture, caller: &Caller, job: &Job) -> NextItem {
    f.write(|tx| kernel::take_item(tx, &f.context(), caller, &job.id, &Terms::new(TTL))).unwrap()
}

pub(super) fn take(f: &Fixture, caller: &Caller, job: &Job) -> ItemGrant {
    match next(f, caller, job) {
        NextItem::Granted(grant) => *grant,
        other => panic!("expected an item, got {other:?}"),
    }
}

pub(super) fn finish(
    f: &Fixture,
    grant: &ItemGrant,
    outcome: ItemOutcome<'_>,
) -> Result<kernel::FinishedItem> {
    f.write(|tx| kernel::finish_item(tx, &f.context(), &grant.lease, outcome))
}

pub(super) fn succeed(f: &Fixture, grant: &ItemGrant) -> kernel::FinishedItem {
    finish(f, grant, ItemOutcome::Succeeded).unwrap()
}

pub(super) const BROKEN: ItemOutcome<'static> = ItemOutcome::Failed { why: "exited with 3", for_good: false };

pub(super) fn item(f: &Fixture, job: &Job, number: u64) -> Item {
    f.read(|view| view.item(&job.id, number)).unwrap()
}

pub(super) fn a_job_is_read_as_it_was_written_and_its_items_are_counted(fresh: &dyn Fn() -> Fixture) {
    let f = fresh();
    let wanted = definition(3);
    let (made, lease) = start(&f, &wanted);
    assert_eq!((made.state, &made.definition, made.created_at), (JobState::Open, &wanted, f.clock.now()));
    assert_eq!(made.counts, Counts { total: 3, pending: 3, ..Counts::default() });
    assert_eq!(lease.resource, made.resource());
    let second = item(&f, &made, 2);
    assert_eq!(
        (second.payload.as_str(), second.state, second.failures),
        ("\"item 2\"", ItemState::Pending, 0)
    );
    let saved = Item {
        state: ItemState::Failed,
        failures: 2,
        due_at: f.clock.now().after(TTL),
        error: Some("no".to_owned()),
        payload: "ignored".to_owned(),
        ..second.clone()
    };
    f.write(|tx| tx.save_item(&saved)).unwrap();
    assert_eq!(item(&f, &made, 2), Item { payload: second.payload, ..saved });
    let counts = Counts { total: 3, pending: 2, failed: 1, ..Counts::default() };
    assert_eq!(job(&f, &made.id).counts, counts);
    let of = |state| ItemFilter { job: Some(made.id.clone()), state, after: 0, limit: 10 };
    let numbers = |filter: &ItemFilter| -> Vec<u64> {
        f.read(|view| view.items(filter)).iter().map(|item| item.number).collect()
    };
    assert_eq!(numbers(&of(None)), [1, 2, 3]);
    assert_eq!(numbers(&of(Some(ItemState::Failed))), [2]);
    assert_eq!(numbers(&ItemFilter { after: 1, limit: 1, ..of(None) }), [2]);
    assert_eq!(f.write(|tx| tx.requeue_items(&made.id, ItemState::Failed, tx.now())).unwrap(), 1);
    assert_eq!((item(&f, &made, 2).failures, job(&f, &made.id).counts.pending), (0, 3));
    f.write(|tx| tx.delete_items(&made.id, &[1, 3])).unwrap();
    assert_eq!(job(&f, &made.id).counts, Counts { total: 1, pending: 1, ..Counts::default() });
    f.write(|tx| tx.delete_job(&made.id)).unwrap();
    assert_eq!(f.read(|view| view.job(&made.id)), None);
    assert!(numbers(&of(None)).is_empty());
}

pub(super) fn jobs_are_found_by_name_and_by_the_beginning_of_their_id(fresh: &dyn Fn() -> Fixture) {
    let f = fresh();
    let (old, lease) = start(&f, &definition(0));
    assert_eq!(old.state, JobState::Completed, "a job without items is completed");
    f.write(|tx| kernel::release_resource(tx, &f.context(), &lease, EndReason::Released)).unwrap();
    f.clock.advance(TTL);
    let (new, _) = start(&f, &definition(1));
    let found = |lookup| -> Vec<String> {
        f.read(|view| view.find_jobs(lookup, 10)).into_iter().map(|job| job.id).collect()
    };
    assert_eq!(found(JobLookup::Name("nightly")), [new.id.clone(), old.id.clone()], "the open one first");
    assert_eq!(found(JobLookup::IdPrefix(&old.id)), std::slice::from_ref(&old.id));
    assert!(found(JobLookup::Name("night")).is_empty());
    let (all, total) = f.read(|view| view.jobs(1));
    assert_eq!((all[0].id.as_str(), total), (new.id.as_str(), 2), "newest first, with the total count");
}

pub(super) fn a_job_is_invisible_until_all_of_its_items_are_written(fresh: &dyn Fn() -> Fixture) {
    let f = fresh();
    let ann = f.worker("ann", 7);
    let begin = |id: &str, caller: &Caller| {
        f.write(|tx| {
            rules::begin_job(tx, &f.context(), caller, id, "nightly", &definition(2), &Terms::new(TTL))
        })
    };
    let (half, lease) = begin("aaaa-1", &ann).unwrap();
    f.write(|tx| rules::load_items(tx, &f.context(), &lease, 1, &["1".to_owned()])).unwrap();
    assert!(f.read(|view| view.find_jobs(JobLookup::Name("nightly"), 10)).is_empty());
    assert_eq!(f.read(|view| view.jobs(10)).1, 0);
    assert_eq!(f.read(|view| view.loading_jobs()).len(), 1);
    assert!(matches!(next(&f, &ann, &half), NextItem::Over(JobState::Loading)));
    let bob = f.worker("bob", 8);
    assert_eq!(refused(begin("bbbb-1", &bob)), ErrorCode::ResumeLocked, "its creator is alive");
    f.world.kill(7);
    let (_, lease) = begin("bbbb-1", &bob).unwrap();
    assert_eq!(f.read(|view| view.job("aaaa-1")), None, "the creator died before publishing it");
    f.world.kill(8);
    let repairs = f.write(|tx| kernel::reconcile(tx, &f.context(), TESTER)).unwrap();
    assert_eq!(repairs.abandoned_jobs, ["bbbb-1"]);
    assert_eq!(
        refused(f.write(|tx| rules::load_items(tx, &f.context(), &lease, 1, &[]))),
        ErrorCode::LeaseLost
    );
}

pub(super) fn the_name_of_an_unfinished_job_is_unique(fresh: &dyn Fn() -> Fixture) {
    let f = fresh();
    let (made, _) = start(&f, &definition(2));
    let bob = f.worker("bob", 8);
    let again = |definition: &Definition| {
        let id = f.ids.uuid();
        f.write(|tx| rules::begin_job(tx, &f.context(), &bob, &id, "nightly", definition, &Terms::new(TTL)))
    };
    assert_eq!(refused(again(&definition(2))), ErrorCode::ResumeLocked);
    f.world.kill(7);
    assert_eq!(refused(again(&definition(2))), ErrorCode::InvalidArguments, "an equal job has to be resumed");
    assert_eq!(refused(again(&definition(3))), ErrorCode::DefinitionChanged);
    let twice = NewJob { id: f.ids.uuid(), name: "nightly".to_owned(), definition: definition(1) };
    assert!(f.write(|tx| tx.insert_job(&twice)).is_err(), "the store itself refuses a second");
    assert_eq!(job(&f, &made.id).state, JobState::Open);
}

pub(super) fn items_are_taken_in_order_by_one_worker_each(fresh: &dyn Fn() -> Fixture) {
    let f = fresh();
    let (made, _) = start(&f, &definition(2));
    let (ann, bob) = (f.worker("ann", 7), f.worker("bob", 8));
    let first = take(&f, &ann, &made);
    let second = take(&f, &bob, &made);
    assert_eq!((first.item.number, second.item.number), (1, 2));
    assert_eq!(item(&f, &made, 1).state, ItemState::Running);
    assert_eq!(job(&f, &made.id).counts.running, 2);
    assert!(matches!(next(&f, &ann, &made), NextItem::Busy));
    succeed(&f, &first);
    let over = succeed(&f, &second).job;
    assert_eq!((over.state, over.counts.succeeded), (JobState::Completed, 2), "with the last of its items");
    assert!(matches!(next(&f, &ann, &made), NextItem::Over(JobState::Completed)));
    let events = f.events().into_iter().filter(|e| e.kind == EventKind::JobStatus).count();
    assert_eq!(events, 1);
}

pub(super) fn a_success_is_written_once_and_only_under_the_latest_grant(fresh: &dyn Fn() -> Fixture) {
    let f = fresh();
    let (made, _) = start(&f, &definition(2));
    let (ann, bob) = (f.worker("ann", 7), f.worker("bob", 8));
    let late = take(&f, &ann, &made);
    f.clock.advance(TTL);
    let other = take(&f, &bob, &made);
    assert_eq!(other.item.number, 2, "pending items come first");
    let taken = take(&f, &bob, &made);
    assert_eq!(taken.item.number, 1, "then items with a lapsed lease");
    assert_eq!(refused(finish(&f, &late, ItemOutcome::Succeeded)), ErrorCode::LeaseLost);
    assert!(succeed(&f, &taken).changed);
    let events = f.events().len();
    assert!(!succeed(&f, &taken).changed, "a repeated report changes nothing");
    assert_eq!(f.events().len(), events);
    assert_eq!(refused(finish(&f, &late, BROKEN)), ErrorCode::LeaseLost);
    assert_eq!(item(&f, &made, 1).state, ItemState::Succeeded);
    let successes = f.events().into_iter().filter(|e| {
        e.kind == EventKind::ItemStatus && e.detail["item"] == 1 && e.detail["to"] == "succeeded"
    });
    assert_eq!(successes.count(), 1);
}

pub(super) fn a_late_success_counts_unless_the_item_was_taken_over(fresh: &dyn Fn() -> Fixture) {
    let f = fresh();
    let (made, _) = start(&f, &definition(1));
    let late = take(&f, &f.worker("ann", 7), &made);
    f.clock.advance(TTL);
    f.cleanup();
    assert_eq!(item(&f, &made, 1).state, ItemState::Pending, "a reconcile has returned it");
    assert_eq!(succeed(&f, &late).job.state, JobState::Completed);
    assert_eq!(item(&f, &made, 1).state, ItemState::Succeeded);
}

pub(super) fn a_suspended_worker_resumes_its_item_unless_it_was_taken_over(fresh: &dyn Fn() -> Fixture) {
    let f = fresh();
    let (made, _) = start(&f, &definition(2));
    let (ann, bob) = (f.worker("ann", 7), f.worker("bob", 8));
    let grant = take(&f, &ann, &made);
    f.begin_attempt(&grant.lease, &ann);
    let renew = || f.write(|tx| kernel::renew_item(tx, &f.context(), &grant.lease)).unwrap();
    f.clock.advance(TTL);
    f.cleanup();
    assert!(renew());
    assert_eq!((item(&f, &made, 1).state, job(&f, &made.id).counts.running), (ItemState::Running, 1));
    assert!(f.read(|view| kernel::unfinished_attempts(view)).is_empty(), "its attempt continues");
    assert_eq!(take(&f, &bob, &made).item.number, 2);
    f.clock.advance(TTL);
    f.cleanup();
    assert_eq!(take(&f, &bob, &made).item.number, 1);
    assert!(!renew());
    assert_eq!(refused(finish(&f, &grant, ItemOutcome::Succeeded)), ErrorCode::LeaseLost);
}

pub(super) fn the_items_of_a_dead_worker_are_pending_again_and_its_attempt_is_ending(
    fresh: &dyn Fn() -> Fixture,
) {
    let f = fresh();
    let (made, _) = start(&f, &definition(1));
    let (ann, bob) = (f.worker("ann", 7), f.worker("bob", 8));
    let grant = take(&f, &ann, &made);
    f.begin_attempt(&grant.lease, &ann);
    assert!(matches!(next(&f, &bob, &made), NextItem::Busy));
    f.world.kill(7);
    let repairs = f.write(|tx| kernel::reconcile(tx, &f.context(), TESTER)).unwrap();
    assert_eq!(repairs.attempts.len(), 1, "its processes have to be reaped");
    let back = item(&f, &made, 1);
    assert_eq!((back.state, back.failures), (ItemState::Pending, 0), "no failure is counted");
    assert_eq!(job(&f, &made.id).counts.running, 0);
    assert_eq!(take(&f, &bob, &made).item.number, 1);
    assert_eq!(refused(finish(&f, &grant, ItemOutcome::Succeeded)), ErrorCode::LeaseLost);
}

pub(super) fn a_failed_item_is_retried_when_due_up_to_the_limit(fresh: &dyn Fn() -> Fixture) {
    let f = fresh();
    let (made, _) = start(&f, &definition(2));
    let ann = f.worker("ann", 7);
    let first = take(&f, &ann, &made);
    let tried = finish(&f, &first, BROKEN).unwrap().item;
    assert_eq!((tried.state, tried.failures), (ItemState::Pending, 1));
    assert_eq!(tried.due_at, f.clock.now().after(Backoff::Exponential.pause(1)));
    let other = take(&f, &ann, &made);
    assert_eq!(other.item.number, 2, "the others do not wait for it");
    succeed(&f, &other);
    assert!(matches!(next(&f, &ann, &made), NextItem::Later(due) if due == tried.due_at));
    f.clock.advance(Backoff::Exponential.pause(1));
    let again = take(&f, &ann, &made);
    let gone = finish(&f, &again, BROKEN).unwrap();
    assert_eq!((gone.item.state, gone.item.error.as_deref()), (ItemState::Failed, Some("exited with 3")));
    assert_eq!((gone.job.state, gone.job.counts.failed), (JobState::Failed, 1));
}

pub(super) fn a_permanent_failure_is_not_retried(fresh: &dyn Fn() -> Fixture) {
    let f = fresh();
    let (made, _) = start(&f, &definition(1));
    let grant = take(&f, &f.worker("ann", 7), &made);
    let outcome = ItemOutcome::Failed { why: "no field a", for_good: true };
    assert_eq!(finish(&f, &grant, outcome).unwrap().item.state, ItemState::Failed);
}

pub(super) fn a_failure_is_handled_by_the_jobs_policy(fresh: &dyn Fn() -> Fixture) {
    for (on_failure, state, over, counts) in [
        (OnFailure::Dlq, ItemState::Failed, JobState::Open, (1, 0)),
        (OnFailure::Skip, ItemState::Skipped, JobState::Open, (0, 1)),
        (OnFailure::Stop, ItemState::Failed, JobState::Failed, (1, 0)),
    ] {
        let f = fresh();
        let (made, _) = start(&f, &stopping(3, on_failure));
        let ann = f.worker("ann", 7);
        let (first, second) = (take(&f, &ann, &made), take(&f, &ann, &made));
        let ended = finish(&f, &first, BROKEN).unwrap();
        assert_eq!((ended.item.state, ended.job.state), (state, over), "{on_failure}");
        assert_eq!((ended.job.counts.failed, ended.job.counts.skipped), counts, "{on_failure}");
        // A running item may still succeed.
        assert_eq!(succeed(&f, &second).item.state, ItemState::Succeeded);
        match next(&f, &ann, &made) {
            NextItem::Over(state) => assert_eq!((on_failure, state), (OnFailure::Stop, JobState::Failed)),
            NextItem::Granted(third) if on_failure != OnFailure::Stop => {
                let over = succeed(&f, &third).job.state;
                let skipped = on_failure == OnFailure::Skip;
                assert_eq!(over, if skipped { JobState::Completed } else { JobState::Failed });
            }
            other => panic!("{on_failure}: {other:?}"),
        }
    }
}

pub(super) fn an_interrupted_item_comes_next_and_counts_no_failure(fresh: &dyn Fn() -> Fixture) {
    let f = fresh();
    let (made, _) = start(&f, &definition(2));
    let ann = f.worker("ann", 7);
    for _ in 0..5 {
        f.clock.advance(std::time::Duration::from_secs(1));
        let grant = take(&f, &ann, &made);
        assert_eq!(grant.item.number, 1, "before items that were never started");
        let back = finish(&f, &grant, ItemOutcome::Interrupted { why: "Ctrl+C" }).unwrap().item;
        assert_eq!((back.state, back.failures), (ItemState::Pending, 0));
    }
}
