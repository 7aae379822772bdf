//! Schema migrations, one SQL file per released schema, applied under an advisory lock, so that many clients may open the
//! database at once.
//!
//! Until the first release the first file is edited in place. `tenure-testkit/tests/released_schemas.rs` opens a stored
//! database of every schema.

use tenure_core::Error;
use tenure_core::id::StoreId;
use tokio_postgres::error::SqlState;

use uuid::Uuid;

use crate::connection::{Connection, Sql};
use crate::error::Failure;

const MIGRATIONS: [&str; 1] = [include_str!("../schema/001.sql")];

const LATEST: i64 = 1;

/// The advisory lock of migrations, the same for all projects: `tenu`, `ladd`.
const LOCK: &str = "SELECT pg_advisory_xact_lock(1952804469, 1818322020)";

/// The schema version of the database, zero if it has none, and the id of the project's store if the project exists.
pub(crate) fn version(connection: &mut Connection, project: Uuid) -> Sql<(i64, Option<StoreId>)> {
    let sql = "SELECT max(version), (SELECT store_id FROM tenure.projects WHERE id = $1) FROM tenure.ladder";
    match connection.one(sql, &[&project]) {
        Ok(row) => {
            let found: i64 = row.try_get::<_, Option<i64>>(0)?.unwrap_or(0);
            if found > LATEST {
                return Err(Failure::Refused(Error::StoreTooNew { found, known: LATEST }));
            }
            Ok((found, row.try_get::<_, Option<String>>(1)?.map(StoreId::new)))
        }
        Err(failure) => match failure.state() {
            Some(state) if *state == SqlState::UNDEFINED_TABLE || *state == SqlState::INVALID_SCHEMA_NAME => {
                Ok((0, None))
            }
            _ => Err(failure),
        },
    }
}

pub(crate) fn is_latest(version: i64) -> bool {
    version == LATEST
}

/// Migrates the database to the latest schema.
pub(crate) fn migrate(connection: &mut Connection) -> Sql<()> {
    let encoding: String = connection.one("SELECT current_setting('server_encoding')", &[])?.try_get(0)?;
    if encoding != "UTF8" {
        return Err(Failure::Refused(Error::Store {
            message: format!("the database is encoded in {encoding}, which cannot hold every text"),
            hint: Some("createdb --encoding UTF8 --template template0 NAME".to_owned()),
        }));
    }
    let settings = connection.settings().to_owned();
    connection.batch(&format!("BEGIN; {settings} {LOCK}"))?;
    let outcome = migrate_inside(connection);
    let end = if outcome.is_ok() { "COMMIT" } else { "ROLLBACK" };
    let ended = connection.batch(end);
    outcome.and(ended)
}

fn migrate_inside(connection: &mut Connection) -> Sql<()> {
    let there: bool = connection.one("SELECT to_regclass('tenure.ladder') IS NOT NULL", &[])?.try_get(0)?;
    if !there {
        connection.batch(
            "CREATE SCHEMA IF NOT EXISTS tenure; CREATE TABLE tenure.ladder (version bigint NOT NULL)",
        )?;
    }
    let found: Option<i64> = connection.one("SELECT max(version) FROM tenure.ladder", &[])?.try_get(0)?;
    let from = usize::try_from(found.unwrap_or(0)).unwrap_or(0);
    for migration in MIGRATIONS.iter().skip(from) {
        connection.batch(migration)?;
    }
    connection.batch(&format!("DELETE FROM tenure.ladder; INSERT INTO tenure.ladder VALUES ({LATEST})"))
}
