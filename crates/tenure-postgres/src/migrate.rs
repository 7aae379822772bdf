//! Schema migrations, one SQL file per released schema, applied under an advisory lock, so that many clients may open the
//! database at once.
//!
//! Until the first release the first file is edited in place. `tenure-testkit/tests/released_schemas.rs` opens a stored
//! database of every schema.

use tenure_core::Error;
use tenure_core::id::StoreId;
use tokio_postgres::Row;
use tokio_postgres::error::SqlState;
use uuid::Uuid;

use crate::connection::{Connection, Sql, only_row};
use crate::error::Failure;
use crate::readiness::MayExist;

const MIGRATIONS: [&str; 1] = [include_str!("../schema/001.sql")];

pub(crate) const LATEST: i64 = 1;

/// The advisory lock of migrations, the same for all projects: `tenu`, `ladd`.
const LOCK: &str = "SELECT pg_advisory_xact_lock(1952804469, 1818322020)";

/// What a client reads when it opens a project.
pub(crate) struct ProjectRow {
    /// The schema version of the database, zero if it has none.
    pub(crate) version: i64,
    /// The id of the project's store, if the project exists.
    pub(crate) id: Option<StoreId>,
    /// Which dependencies exist. Nothing else is known.
    pub(crate) may_exist: MayExist,
}

/// Returns what the connection's first round trip has read, or reads it now.
pub(crate) fn read_project(connection: &mut Connection, project: Uuid) -> Sql<ProjectRow> {
    match connection.prefetched_project.take() {
        Some(opened) => opened,
        None => parse_project(connection.rows(PROJECT_QUERY, &[&project]).map(Some)),
    }
}

/// The query for what [`parse_project`] reads; `$1` is the project.
pub(crate) const PROJECT_QUERY: &str =
    "SELECT l.version, p.store_id, coalesce(p.section_deps, true), coalesce(p.task_deps, true)
     FROM (SELECT max(version) AS version FROM tenure.ladder) l LEFT JOIN tenure.projects p ON p.id = $1";

pub(crate) fn parse_project(outcome: Result<Option<Vec<Row>>, impl Into<Failure>>) -> Sql<ProjectRow> {
    match outcome.map_err(Into::into).and_then(only_row) {
        Ok(row) => {
            let found: i64 = row.try_get::<_, Option<i64>>(0)?.unwrap_or(0);
            check_version(found).map_err(Failure::Refused)?;
            let id = row.try_get::<_, Option<String>>(1)?;
            let id = id.map(|id| StoreId::stored(&id)).transpose().map_err(Failure::Refused)?;
            let (section_deps, task_deps) = (row.try_get(2)?, row.try_get(3)?);
            Ok(ProjectRow {
                version: found,
                id,
                may_exist: MayExist { section_deps, task_deps, ..MayExist::UNKNOWN },
            })
        }
        Err(failure) => match failure.state() {
            Some(state) if *state == SqlState::UNDEFINED_TABLE || *state == SqlState::INVALID_SCHEMA_NAME => {
                Ok(ProjectRow { version: 0, id: None, may_exist: MayExist::UNKNOWN })
            }
            _ => Err(failure),
        },
    }
}

pub(crate) fn check_version(found: i64) -> tenure_core::Result<()> {
    if found > LATEST { Err(Error::StoreTooNew { found, known: LATEST }) } else { Ok(()) }
}

pub(crate) fn is_latest(version: i64) -> bool {
    version == LATEST
}

/// Migrates the database to the latest schema. Waits for a client that is doing so already.
pub(crate) fn migrate(connection: &mut Connection) -> Sql<()> {
    let encoding: String = connection.one("SELECT current_setting('server_encoding')", &[])?.try_get(0)?;
    if encoding != "UTF8" {
        return Err(Failure::Encoding(encoding));
    }
    migrate_with(connection, &MIGRATIONS)
}

fn migrate_with(connection: &mut Connection, migrations: &[&str]) -> Sql<()> {
    connection.at_length(|connection, settings| {
        let of_pooler = connection.settings().to_owned();
        connection.batch(&format!("BEGIN; {of_pooler} {settings} {LOCK}"))?;
        let outcome = migrate_inside(connection, migrations);
        let end = if outcome.is_ok() { "COMMIT" } else { "ROLLBACK" };
        let ended = connection.batch(end);
        outcome.and(ended)
    })
}

fn migrate_inside(connection: &mut Connection, migrations: &[&str]) -> Sql<()> {
    let there: bool = connection.one("SELECT to_regclass('tenure.ladder') IS NOT NULL", &[])?.try_get(0)?;
    if !there {
        connection.batch(
            "CREATE SCHEMA IF NOT EXISTS tenure; CREATE TABLE tenure.ladder (version bigint NOT NULL)",
        )?;
    }
    let found: Option<i64> = connection.one("SELECT max(version) FROM tenure.ladder", &[])?.try_get(0)?;
    let from = usize::try_from(found.unwrap_or(0)).unwrap_or(0);
    if (1..migrations.len()).contains(&from) {
        // Every transaction reads this table first. So those that have begun end before the schema changes, and those
        // that begin later find the new version.
        connection.batch("LOCK TABLE tenure.projects IN ACCESS EXCLUSIVE MODE")?;
    }
    for migration in migrations.iter().skip(from) {
        connection.batch(migration)?;
    }
    let latest = migrations.len();
    connection.batch(&format!(
        "DELETE FROM tenure.ladder; INSERT INTO tenure.ladder VALUES ({latest});
         ALTER TABLE tenure.projects ALTER COLUMN schema SET DEFAULT {latest};
         UPDATE tenure.projects SET schema = {latest} WHERE schema <> {latest}"
    ))
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicBool, Ordering};
    use std::sync::mpsc;
    use std::time::Duration;

    use tenure_core::ErrorCode;
    use tenure_core::holder::Holder;
    use tenure_core::store::{ClaimHint, ClaimTarget, Durability, Store};
    use tenure_testkit::postgres::Cluster;

    use super::*;
    use crate::{Address, OpenOptions, PostgresStore, Surroundings};

    const PROJECT: &str = "0b3e7a52-1111-4222-8333-444455556666";

    /// A client with this patience, in a new database or in the one of another client.
    fn client(url: &str, patience: Duration) -> PostgresStore {
        let address = Address::parse(url, &Surroundings::default()).unwrap();
        let options = OpenOptions { patience, ..OpenOptions::default() };
        PostgresStore::create(address, PROJECT, "migrations", options).unwrap()
    }

    fn new_database() -> String {
        let cluster = Cluster::shared();
        cluster.url_of(&cluster.new_database())
    }

    fn migrate_to_a_later_schema(client: &PostgresStore, statements: &str) {
        client.with_connection(|connection| migrate_with(connection, &[MIGRATIONS[0], statements])).unwrap();
    }

    #[test]
    fn a_migration_may_take_longer_than_the_patience_of_its_client() {
        let client = client(&new_database(), Duration::from_millis(200));
        migrate_to_a_later_schema(&client, "SELECT pg_sleep(0.6)");
    }

    #[test]
    fn a_client_of_an_older_schema_is_refused_at_its_next_transaction() {
        let url = new_database();
        let (old, new) = (client(&url, Duration::from_secs(10)), client(&url, Duration::from_secs(10)));
        let old: &dyn Store = &old;
        old.write(Durability::Process, |tx| tx.count_tasks()).unwrap();
        migrate_to_a_later_schema(&new, "CREATE TABLE tenure.later (one bigint)");
        let holder = Holder::agent("ann");
        let hint = ClaimHint { holder: &holder, wants: ClaimTarget::Next(None) };
        let refusals = [
            old.write(Durability::Process, |tx| tx.count_tasks()).unwrap_err(),
            old.claim(hint, |tx| tx.count_tasks()).unwrap_err(),
            old.read(|view| view.count_tasks()).unwrap_err(),
        ];
        for refusal in refusals {
            assert_eq!(refusal.code(), ErrorCode::StoreTooNew);
        }
    }

    #[test]
    fn a_migration_waits_for_transactions_that_have_begun() {
        let url = new_database();
        let (old, new) = (client(&url, Duration::from_secs(10)), client(&url, Duration::from_secs(10)));
        let (began, begun) = mpsc::channel();
        let ended = AtomicBool::new(false);
        std::thread::scope(|scope| {
            let ended = &ended;
            scope.spawn(move || {
                let old: &dyn Store = &old;
                let body = |tx: &mut dyn tenure_core::store::Tx| {
                    began.send(()).unwrap();
                    std::thread::sleep(Duration::from_millis(300));
                    ended.store(true, Ordering::SeqCst);
                    tx.count_tasks()
                };
                old.write(Durability::Process, body).unwrap();
            });
            begun.recv().unwrap();
            migrate_to_a_later_schema(&new, "SELECT 1");
            assert!(ended.load(Ordering::SeqCst));
        });
    }
}
