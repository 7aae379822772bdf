//! Helpers that the tests here share: a project on a server, and a claim.

use std::time::Duration;

use tenure_core::event::{EventKind, NewEvent};
use tenure_core::holder::{Caller, Holder};
use tenure_core::id::{RandomIds, TaskId};
use tenure_core::kernel::{self, Finish, Grant, Terms};
use tenure_core::store::{ClaimHint, ClaimTarget, Durability, LeaseFilter, Store};
use tenure_core::{Context, Policy, Result};
use tenure_postgres::{Address, OpenOptions, PostgresStore, Surroundings};
use tenure_testkit::FakeProcesses;
use tenure_testkit::fixture::{fresh_project, new_task};

pub(crate) const POLICY: Policy =
    Policy { ticket_life: Duration::from_secs(15), max_attempts: 3, max_rejections: 5, review: false };
pub(crate) const TTL: Duration = Duration::from_mins(5);

pub(crate) fn address(url: &str) -> Address {
    Address::parse(url, &Surroundings::default()).unwrap()
}

/// A new project.
pub(crate) fn create(url: &str) -> (PostgresStore, String) {
    let project = fresh_project();
    (PostgresStore::create(address(url), &project, "scene", OpenOptions::default()).unwrap(), project)
}

pub(crate) fn open(url: &str, project: &str) -> PostgresStore {
    open_with(url, project, OpenOptions::default().patience)
}

pub(crate) fn open_with(url: &str, project: &str, patience: Duration) -> PostgresStore {
    let options = OpenOptions { patience, ..OpenOptions::default() };
    PostgresStore::open(address(url), project, options).unwrap()
}

pub(crate) fn add_tasks(store: &dyn Store, count: usize) {
    store
        .write(Durability::Power, |tx| {
            for n in 0..count {
                let id = TaskId::new(format!("{n:08x}-0000-4000-8000-000000000000"));
                let task = new_task(&id, &format!("K{n}"), None, i64::try_from(n).unwrap());
                tx.insert_task(&task, NewEvent::new(EventKind::TaskCreated, "scene").task(&id))?;
            }
            Ok(())
        })
        .unwrap();
}

pub(crate) fn claim_next(store: &dyn Store, name: &str) -> Result<Option<Grant>> {
    claim_next_and(store, name, |_| {})
}

/// `before_commit` is called in every run of the transaction that grants something.
pub(crate) fn claim_next_and(
    store: &dyn Store,
    name: &str,
    before_commit: impl Fn(&Grant),
) -> Result<Option<Grant>> {
    let judge = FakeProcesses::default();
    let ctx = Context::new(&judge, &RandomIds, POLICY);
    let caller = Caller::new(Holder::agent(name));
    store.claim(ClaimHint { holder: &caller.holder, wants: ClaimTarget::Next(None) }, |tx| {
        let grant = kernel::acquire_next(tx, &ctx, &caller, None, &Terms::new(TTL))?;
        grant.iter().for_each(&before_commit);
        Ok(grant)
    })
}

/// The holder reports its task as done.
pub(crate) fn finish(store: &dyn Store, grant: &Grant) -> Result<()> {
    let judge = FakeProcesses::default();
    let ctx = Context::new(&judge, &RandomIds, POLICY);
    let caller = Caller::new(grant.lease.holder.clone());
    let name = kernel::name_of(&grant.task);
    let finished =
        store.write(Durability::Power, |tx| kernel::finish(tx, &ctx, &caller, &name, Finish::Done, false))?;
    assert!(finished.changed);
    Ok(())
}

/// The fences of all leases that were ever granted.
pub(crate) fn granted(store: &dyn Store) -> Vec<i64> {
    let filter = LeaseFilter { include_ended: true, ..LeaseFilter::default() };
    store.read(|view| view.leases(&filter)).unwrap().iter().map(|lease| lease.fence.number()).collect()
}
