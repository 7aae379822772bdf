//! Jobs and sessions in the state in which an interrupted process left them, written by the rules themselves.

use std::time::Duration;

use tenure_core::holder::{Caller, Holder, Incarnation};
use tenure_core::id::{AttemptId, Fence, TaskId};
use tenure_core::job::{Backoff, Definition, ItemSource, JobOptions, OnFailure};
use tenure_core::kernel::{self, ItemOutcome, NextItem, Outcome, Terms};
use tenure_core::lease::{EndReason, Resource};
use tenure_core::rules;
use tenure_core::session::{Current, DoneTask, Session, SessionOptions, SessionState};
use tenure_core::store::{Durability, LeaseFilter, Store};
use tenure_core::task::TaskStatus;
use tenure_core::{Context, Policy, reference};
use tenure_sqlite::{OpenOptions, SqliteStore};

use crate::support::TestEnv;

pub(crate) const SESSION: &str = "5e551010-0000-4000-8000-000000000000";

fn store(env: &TestEnv) -> Box<dyn Store> {
    let options = OpenOptions::new(env.env.clock.clone());
    Box::new(SqliteStore::open(&env.path("work/.tenure/tenure.db"), options).unwrap())
}

fn ctx(env: &TestEnv) -> Context<'_> {
    let policy =
        Policy { ticket_life: Duration::from_secs(15), max_attempts: 3, max_rejections: 5, review: false };
    Context::new(env.env.judge.as_ref(), env.env.ids.as_ref(), policy)
}

/// A job of three items without a coordinator. `outcomes` are those of its first items.
pub(crate) fn job(env: &TestEnv, name: &str, list: Option<&str>, outcomes: &[ItemOutcome<'_>]) {
    job_running(env, name, "true", list, outcomes);
}

/// [`job`], with this program.
pub(crate) fn job_running(
    env: &TestEnv,
    name: &str,
    program: &str,
    list: Option<&str>,
    outcomes: &[ItemOutcome<'_>],
) {
    let (store, ctx) = (store(env), ctx(env));
    let caller = Caller::new(Holder::runner("11111111-2222-4333-8444-555555555555"));
    let definition = Definition {
        command: vec![program.to_owned(), "{item.n}".to_owned()],
        workdir: env.path("work").to_string_lossy().into_owned(),
        source: ItemSource {
            file: list.map(|list| env.path(list).to_string_lossy().into_owned()),
            ..ItemSource::default()
        },
        items_hash: "00".to_owned(),
        items: 3,
        options: JobOptions {
            parallel: 1,
            retries: 0,
            backoff: Backoff::Exponential,
            item_timeout_ms: None,
            on_failure: OnFailure::Dlq,
        },
    };
    let id = env.env.ids.uuid();
    let terms = Terms::new(Duration::from_mins(5));
    let payloads: Vec<String> = (1..=3).map(|n| format!("{{\"n\":{n}}}")).collect();
    store
        .write(Durability::Process, |tx| {
            let (_, lease) = rules::begin_job(tx, &ctx, &caller, &id, name, &definition, &terms)?;
            rules::load_items(tx, &ctx, &lease, 1, &payloads)?;
            rules::publish_job(tx, &ctx, &lease)?;
            for outcome in outcomes {
                let NextItem::Granted(grant) = kernel::take_item(tx, &ctx, &caller, &id, &terms)? else {
                    panic!("an item is left");
                };
                let log = format!("/logs/{name}-{}.log", grant.item.number);
                // The process does not matter to any test, only that there was one.
                let owner = Incarnation { hostname: "box".to_owned(), ..Incarnation::current() };
                let attempt = kernel::begin_attempt(tx, &ctx, &grant.lease, &owner, Some(log), None, None)?;
                let exit_code = Some(if *outcome == ItemOutcome::Succeeded { 0 } else { 3 });
                let ended = Outcome { exit_code, reason: "exited".to_owned(), ..Outcome::default() };
                kernel::end_attempt(tx, &ctx, &attempt, &ended, "somebody")?;
                kernel::finish_item(tx, &ctx, &grant.lease, *outcome)?;
            }
            kernel::release_resource(tx, &ctx, &lease, EndReason::Released)
        })
        .unwrap();
}

/// A session that was interrupted at its second task.
pub(crate) fn session(env: &TestEnv) {
    let now = env.env.clock.now();
    let session = Session {
        id: SESSION.to_owned(),
        state: SessionState::Open,
        runner: "11111111-2222-4333-8444-555555555555".to_owned(),
        options: SessionOptions {
            preset: "mine".to_owned(),
            agent: vec!["true".to_owned()],
            workdir: env.path("work").to_string_lossy().into_owned(),
            ..SessionOptions::default()
        },
        current: Some(Current {
            task: TaskId::new("task-2"),
            key: "T2".to_owned(),
            fence: Fence::new(9),
            attempt: Some(AttemptId::new("attempt-2")),
            agent_session: Some("c0ffee".to_owned()),
        }),
        fence: Fence::new(7),
        error: None,
        started_at: now,
        updated_at: now,
    };
    let done = DoneTask {
        task: TaskId::new("task-1"),
        key: "T1".to_owned(),
        status: TaskStatus::Completed,
        fence: Fence::new(8),
        at: now,
    };
    store(env)
        .write(Durability::Process, |tx| {
            tx.save_session(&session)?;
            tx.insert_done_task(SESSION, &done)
        })
        .unwrap();
}

/// An attempt under the first lease of a task that has ended and left a log of one message.
pub(crate) fn logged_attempt(env: &TestEnv, key: &str) {
    let (store, ctx) = (store(env), ctx(env));
    let log = env.path(&format!("work/.tenure/logs/{key}-1.log"));
    store
        .write(Durability::Process, |tx| {
            let task = reference::task(tx, key)?;
            let resource = Some(Resource::task(&TaskId::new(&task.id)));
            let filter =
                LeaseFilter { resource, include_ended: true, limit: Some(1), ..LeaseFilter::default() };
            let lease = tx.leases(&filter)?.remove(0);
            let owner = Incarnation::current();
            let path = Some(log.to_string_lossy().into_owned());
            let attempt = kernel::begin_attempt(tx, &ctx, &lease, &owner, path, Some("claude"), None)?;
            let ended = Outcome { reason: "exited".to_owned(), ..Outcome::default() };
            kernel::end_attempt(tx, &ctx, &attempt, &ended, "somebody")
        })
        .unwrap();
    let line = r#"{"type":"assistant","message":{"content":[{"type":"text","text":"Hello"}]}}"#;
    env.write(&format!("work/.tenure/logs/{key}-1.log"), format!("[2026-01-02T03:04:05Z] {line}\n"));
}
