//! A project with many tasks, and claims in this process.

use std::time::{Duration, Instant};

use serde_json::json;
use tenure_core::event::{EventKind, NewEvent};
use tenure_core::holder::{Caller, Holder, ThisMachine};
use tenure_core::id::{RandomIds, TaskId};
use tenure_core::kernel::{self, Finish, Terms, Verdict as ClaimVerdict};
use tenure_core::store::{Durability, NewTask, Store, Tx};
use tenure_core::task::TaskStatus;
use tenure_core::{Context, Policy, reference};

use crate::temp_project::TempProject;
use crate::{Error, Program, Result};

/// The number of tasks that one transaction adds.
const BATCH: usize = 10_000;
/// Has no factor in common with `BATCH`, so that multiplying by it permutes the numbers of a batch.
const SCATTER: usize = 6_197;
/// The distance between the positions of neighbours.
const GAP: i64 = 1 << 20;

pub(super) struct Fixture {
    pub(super) project: TempProject,
}

impl Fixture {
    pub(super) fn new(program: &Program) -> Result<Self> {
        let fixture = Self { project: TempProject::new(program, "bench")? };
        fixture.run(&["init"])?;
        Ok(fixture)
    }

    /// Runs a command, which has to succeed.
    pub(super) fn run(&self, args: &[&str]) -> Result<()> {
        let status = self.project.command(args).status().map_err(Error::Spawn)?;
        if status.success() { Ok(()) } else { Err(Error::bench(format!("tenure {} failed", args.join(" ")))) }
    }

    pub(super) fn store(&self) -> Result<Box<dyn Store>> {
        Ok(Box::new(self.project.store()?))
    }

    /// Adds the tasks `F1`, `F2` … Every third is completed; of the others, every tenth depends on the task before it.
    pub(super) fn add_tasks(&self, count: usize) -> Result<()> {
        let store = self.store()?;
        let mut first = 1;
        while first <= count {
            let last = count.min(first + BATCH - 1);
            store.write(Durability::Process, |tx| {
                (first..=last).try_for_each(|number| add_task(tx, number))
            })?;
            first = last + 1;
        }
        Ok(())
    }
}

fn add_task(tx: &mut dyn Tx, number: usize) -> tenure_core::Result<()> {
    let task = NewTask {
        status: if is_completed(number) { TaskStatus::Completed } else { TaskStatus::Pending },
        position: task_position(number),
        ..NewTask::new(task_id(number), task_key(number), task_title(number))
    };
    let mut event = NewEvent::new(EventKind::TaskCreated, "bench")
        .task(&task.id)
        .detail(json!({"key": task.key, "title": task.title}));
    event.to = Some(task.status);
    tx.insert_task(&task, event)?;
    if has_dependency(number) && !is_completed(number) {
        tx.add_dependency(&task.id, &task_id(number - 1))?;
    }
    Ok(())
}

/// Ids are in no order within a batch, like the random ids of real tasks. The batches are in order, so that SQLite finds the
/// pages it needs for the next rows in its cache, and adds a million tasks in seconds.
pub(super) fn task_id(number: usize) -> TaskId {
    let scattered = number / BATCH * BATCH + number % BATCH * SCATTER % BATCH;
    TaskId::new(format!("{scattered:08x}-0000-4000-8000-{number:012x}"))
}

pub(super) fn task_key(number: usize) -> String {
    format!("F{number}")
}

pub(super) fn task_title(number: usize) -> String {
    format!("task number {number}")
}

pub(super) fn task_position(number: usize) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX).saturating_mul(GAP)
}

fn is_completed(number: usize) -> bool {
    number.is_multiple_of(3)
}

fn has_dependency(number: usize) -> bool {
    number.is_multiple_of(10)
}

/// The keys of the tasks that can be claimed.
pub(super) fn claimable_keys() -> impl Iterator<Item = String> {
    (1_usize..).filter(|n| !is_completed(*n) && !has_dependency(*n)).map(task_key)
}

/// How many tasks to add so that at least `claims` of them can be claimed.
pub(super) fn tasks_for(claims: usize) -> usize {
    2 * claims + 10
}

pub(super) fn context() -> Context<'static> {
    Context::new(
        &ThisMachine,
        &RandomIds,
        Policy {
            ticket_life: Duration::from_secs(15),
            max_attempts: u32::MAX,
            max_rejections: 5,
            review: false,
        },
    )
}

pub(super) fn agent(name: &str) -> Caller {
    Caller::new(Holder::agent(name))
}

pub(super) fn claim(store: &dyn Store, caller: &Caller, key: &str) -> Result<()> {
    let verdict = store.write(Durability::Power, |tx| {
        let id = TaskId::new(reference::task(tx, key)?.id);
        kernel::acquire_task(tx, &context(), caller, &id, &Terms::new(Duration::from_mins(15)))
    })?;
    match verdict {
        ClaimVerdict::Granted(_) => Ok(()),
        refused => Err(Error::bench(format!("{key} was not granted: {refused:?}"))),
    }
}

/// The time at which the commit began. Waiters are woken before this returns.
pub(super) fn release(store: &dyn Store, caller: &Caller, key: &str) -> Result<Instant> {
    Ok(store.write(Durability::Power, |tx| {
        let name = reference::task(tx, key)?;
        kernel::finish(tx, &context(), caller, &name, Finish::Release(None), false)?;
        Ok(Instant::now())
    })?)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use tenure_core::SystemClock;
    use tenure_core::store::{TaskFilter, Viewer};
    use tenure_sqlite::{OpenOptions, SqliteStore};

    use super::*;

    fn ready_keys(store: &dyn Store) -> Vec<String> {
        let filter = TaskFilter { ready: true, limit: 1000, ..TaskFilter::default() };
        let (tasks, _) = store.read(|view| view.list_tasks(&filter, &Viewer::default())).unwrap();
        tasks.into_iter().map(|task| task.key).collect()
    }

    #[test]
    fn the_keys_that_can_be_claimed_are_those_of_the_ready_tasks() {
        let folder = tempfile::tempdir().unwrap();
        let options = OpenOptions::new(Arc::new(SystemClock));
        let store = SqliteStore::create(&folder.path().join("tenure.db"), options).unwrap();
        let store: Box<dyn Store> = Box::new(store);
        let count = tasks_for(50);
        store.write(Durability::Process, |tx| (1..=count).try_for_each(|n| add_task(tx, n))).unwrap();

        // Task 10 depends on task 9, which is completed; task 20 on task 19, which is not.
        let ready = ready_keys(store.as_ref());
        assert!(ready.contains(&"F10".to_owned()) && !ready.contains(&"F20".to_owned()));
        let expected: Vec<String> = claimable_keys().take(50).collect();
        assert!(expected.iter().all(|key| ready.contains(key)), "{expected:?} in {ready:?}");
        claim(store.as_ref(), &agent("a"), &expected[49]).unwrap();
        assert_eq!(store.check(false).unwrap(), []);
    }
}
