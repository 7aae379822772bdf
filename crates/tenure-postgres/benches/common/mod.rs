//! What the benches share: a project on a server, and its tasks.

use std::time::Duration;

use postgres::{Client, NoTls};
use tenure_core::holder::ThisMachine;
use tenure_core::id::RandomIds;
use tenure_core::{Context, Policy};
use tenure_postgres::{Address, OpenOptions, PostgresStore, RosterOptions, Surroundings};

pub(crate) const TTL: Duration = Duration::from_mins(15);
const POLICY: Policy =
    Policy { ticket_life: Duration::from_secs(15), max_attempts: 3, max_rejections: 5, review: false };

pub(crate) fn context() -> Context<'static> {
    Context::new(&ThisMachine, &RandomIds, POLICY)
}

pub(crate) fn open(url: &str, project: &str) -> tenure_core::Result<PostgresStore> {
    open_as(url, project, None)
}

/// Opens a project as a waiter of the machine that has this roster.
pub(crate) fn open_as(
    url: &str,
    project: &str,
    roster: Option<RosterOptions>,
) -> tenure_core::Result<PostgresStore> {
    let address = Address::parse(url, &Surroundings::default())?;
    let options = OpenOptions { judges_this_boot: true, roster, ..OpenOptions::default() };
    PostgresStore::create(address, project, "bench", options)
}

/// Inserts tasks `K1` and so on in bulk, as a large import would.
pub(crate) fn fill(url: &str, project: &str, count: i64) {
    drop(open(url, project).unwrap());
    Client::connect(url, NoTls)
        .unwrap()
        .batch_execute(&format!(
            "INSERT INTO tenure.tasks (project, id, key, title, status, priority, position, created_at, updated_at)
             SELECT '{project}', lpad(to_hex(n), 32, '0'), 'K' || n, 'task ' || n, 'pending', 100, n, 0, 0
             FROM generate_series(1, {count}) AS n;
             UPDATE tenure.sections SET open_tasks = open_tasks + {count} WHERE project = '{project}' AND id = '';
             ANALYZE tenure.tasks;"
        ))
        .unwrap();
}

/// The time below which this share of `times` lies.
pub(crate) fn quantile(times: &mut [Duration], share: f64) -> Duration {
    times.sort();
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        clippy::cast_precision_loss,
        reason = "an index into a short list"
    )]
    let at = (times.len() as f64 * share) as usize;
    times.get(at.min(times.len().saturating_sub(1))).copied().unwrap_or_default()
}
