//! Where it is measured: a project in a temporary folder, processes in it, and the clock beside them.

use std::path::Path;
use std::process::{Child, Command};
use std::time::{Duration, Instant};

use rusqlite::Connection;
use rustix::process::{Pid, WaitId, WaitIdOptions, waitid};
use tenure_core::holder::{Caller, Holder, ThisMachine};
use tenure_core::id::{RandomIds, TaskId};
use tenure_core::kernel::{self, Finish, Terms, Verdict};
use tenure_core::store::{Durability, Store};
use tenure_core::{Context, Policy, reference};
use tenure_sqlite::OpenOptions;

use super::failed;
use crate::app::App;
use crate::report::Outcome;
use crate::scratch::{Scratch, cannot_run};

pub(super) struct Ground {
    pub(super) scratch: Scratch,
    options: OpenOptions,
}

impl Ground {
    pub(super) fn new(app: &App<'_>) -> Outcome<Self> {
        let scratch = Scratch::new(app.env, "bench")?;
        let made = scratch.command(&["init"]).status().map_err(cannot_run)?;
        if !made.success() {
            return Err(failed("tenure init made no project"));
        }
        Ok(Self { scratch, options: app.store_options() })
    }

    /// Puts tasks `F1` … into the store as in a project that has been worked on: every third is completed, and of the others
    /// every tenth waits for the one before it.
    pub(super) fn fill(&self, count: usize) -> Outcome<()> {
        let fill = |conn: &Connection| {
            conn.execute_batch("PRAGMA synchronous = OFF; PRAGMA cache_size = -200000; BEGIN")?;
            conn.execute(
                "WITH RECURSIVE n (i) AS (SELECT 1 WHERE ?1 > 0 UNION ALL SELECT i + 1 FROM n WHERE i < ?1)
                 INSERT INTO tasks (id, key, title, status, priority, position, created_at, updated_at)
                 SELECT printf('%08x-0000-4000-8000-%012x', i * 2654435761 % 4294967296, i), 'F' || i,
                        'task number ' || i, CASE WHEN i % 3 = 0 THEN 'completed' ELSE 'pending' END,
                        100, i * 1048576, 0, 0 FROM n",
                [i64::try_from(count).unwrap_or(i64::MAX)],
            )?;
            conn.execute_batch(
                "INSERT INTO task_deps (task_id, depends_on)
                 SELECT a.id, b.id FROM tasks a CROSS JOIN tasks b INDEXED BY tasks_position
                 ON b.section_id = '' AND b.position = a.position - 1048576
                 WHERE a.rowid % 10 = 0 AND a.status = 'pending';
                 UPDATE tasks SET open_deps = 1 WHERE id IN (
                     SELECT d.task_id FROM task_deps d JOIN tasks u ON u.id = d.depends_on WHERE u.status = 'pending');
                 UPDATE sections SET open_tasks = (SELECT count(*) FROM tasks WHERE status = 'pending') WHERE id = '';
                 COMMIT; PRAGMA wal_checkpoint(TRUNCATE); ANALYZE sqlite_schema;",
            )
        };
        Connection::open(self.scratch.database()).and_then(|conn| fill(&conn)).map_err(failed)
    }

    pub(super) fn store(&self) -> Outcome<Box<dyn Store>> {
        Ok(Box::new(self.scratch.store(self.options.clone())?))
    }
}

/// The keys of tasks that can be claimed: neither completed nor waiting.
pub(super) fn claimable() -> impl Iterator<Item = String> {
    (1_usize..).filter(|n| n % 3 != 0 && n % 10 != 0).map(|n| format!("F{n}"))
}

/// How many tasks there must be for so many to be claimable.
pub(super) fn tasks_for(claims: usize) -> usize {
    2 * claims + 10
}

fn context() -> Context<'static> {
    Context {
        judge: &ThisMachine,
        ids: &RandomIds,
        policy: Policy {
            ticket_life: Duration::from_secs(15),
            max_attempts: 1000,
            max_rejections: 5,
            review: false,
        },
    }
}

pub(super) fn agent(name: &str) -> Caller {
    Caller::new(Holder::agent(name))
}

pub(super) fn claim(store: &dyn Store, caller: &Caller, key: &str) -> Outcome<()> {
    let verdict = store.write(Durability::Power, |tx| {
        let id = TaskId::new(reference::task(tx, key)?.id);
        kernel::acquire_task(tx, &context(), caller, &id, &Terms::new(Duration::from_mins(15)))
    })?;
    match verdict {
        Verdict::Granted(_) => Ok(()),
        refused => Err(failed(format!("{key} was not granted: {refused:?}"))),
    }
}

pub(super) fn release(store: &dyn Store, caller: &Caller, key: &str) -> Outcome<()> {
    store.write(Durability::Power, |tx| {
        let name = reference::task(tx, key)?;
        kernel::finish(tx, &context(), caller, &name, Finish::Release(None), false)
    })?;
    Ok(())
}

/// A process that goes with the measurement.
pub(super) struct Running(pub(super) Child);

impl Running {
    pub(super) fn start(command: &mut Command) -> Outcome<Self> {
        command.spawn().map(Self).map_err(cannot_run)
    }

    pub(super) fn wait(&mut self) -> Outcome<()> {
        let status = self.0.wait().map_err(cannot_run)?;
        if status.success() { Ok(()) } else { Err(failed(format!("a command ended with {status}"))) }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Wall time from before the start to the end of a process, and its processor time, user and system, where that can be
/// known.
pub(super) fn times(mut command: Command) -> Outcome<(Duration, Option<Duration>)> {
    let begun = Instant::now();
    let mut child = Running::start(&mut command)?;
    waitid(WaitId::Pid(Pid::from_child(&child.0)), WaitIdOptions::EXITED | WaitIdOptions::NOWAIT)
        .map_err(failed)?;
    let wall = begun.elapsed();
    let used = on_processor(&Path::new("/proc").join(child.0.id().to_string()));
    child.wait()?;
    Ok((wall, used))
}

/// The processor time of a thread; of a process that has but one, `of` is the process's own folder.
pub(super) fn on_processor(of: &Path) -> Option<Duration> {
    let text = std::fs::read_to_string(of.join("schedstat")).ok()?;
    text.split_whitespace().next()?.parse().ok().map(Duration::from_nanos)
}

/// A line of `/proc/PID/status` that is in kilobytes, in megabytes.
pub(super) fn megabytes(pid: u32, name: &str) -> Option<f64> {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'))?;
    let kilobytes: f64 = line.split_whitespace().next()?.parse().ok()?;
    Some(kilobytes / 1000.0)
}

pub(super) fn percentile(times: &mut [Duration], percent: usize) -> Duration {
    times.sort_unstable();
    times.get(times.len().saturating_sub(1) * percent / 100).copied().unwrap_or_default()
}

pub(super) fn median(times: &mut [Duration]) -> f64 {
    percentile(times, 50).as_secs_f64()
}

pub(super) fn millis(time: Duration) -> f64 {
    time.as_secs_f64() * 1000.0
}
