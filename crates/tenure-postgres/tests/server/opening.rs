//! Opening a database for the first time, and one of another version of tenure.

use std::collections::HashSet;

use postgres::{Client, NoTls};
use tenure_core::ErrorCode;
use tenure_core::id::StoreId;
use tenure_core::store::Store;
use tenure_postgres::{OpenOptions, PostgresStore};
use tenure_testkit::fixture::fresh_project;
use tenure_testkit::postgres::Cluster;

use crate::scene::{add_tasks, address, create};

#[test]
fn forty_concurrent_first_opens_all_succeed() {
    let cluster = Cluster::shared();
    let database = cluster.new_database();
    let url = cluster.url_of(&database);
    let project = fresh_project();
    std::thread::scope(|scope| {
        let workers: Vec<_> = (0..40)
            .map(|_| {
                scope.spawn(|| {
                    PostgresStore::create(address(&url), &project, "p", OpenOptions::default())?.id()
                })
            })
            .collect();
        let ids: HashSet<StoreId> =
            workers.into_iter().map(|worker| worker.join().unwrap().unwrap()).collect();
        assert_eq!(ids.len(), 1, "{ids:?}");
    });
    assert_eq!(cluster.sql(&database, "SELECT count(*) FROM tenure.projects"), "1");
    assert_eq!(cluster.sql(&database, "SELECT count(*) FROM tenure.ladder"), "1");
}

#[test]
fn a_database_of_a_newer_version_is_refused_and_not_changed() {
    let cluster = Cluster::shared();
    let database = cluster.new_database();
    let url = cluster.url_of(&database);
    PostgresStore::create(address(&url), &fresh_project(), "p", OpenOptions::default()).unwrap();
    cluster.sql(&database, "UPDATE tenure.ladder SET version = 99");
    for open in [
        PostgresStore::open(address(&url), &fresh_project(), OpenOptions::default()).map(drop),
        PostgresStore::create(address(&url), &fresh_project(), "p", OpenOptions::default()).map(drop),
    ] {
        assert_eq!(open.unwrap_err().code(), ErrorCode::StoreTooNew);
    }
    assert_eq!(cluster.sql(&database, "SELECT version FROM tenure.ladder"), "99");
}

#[test]
fn a_database_without_the_project_can_be_opened_and_reports_that() {
    let cluster = Cluster::shared();
    let empty = cluster.url_of(&cluster.new_database());
    let store = PostgresStore::open(address(&empty), &fresh_project(), OpenOptions::default()).unwrap();
    assert!(!store.knows_project());
}

#[test]
fn a_database_that_is_not_in_utf8_is_refused() {
    let cluster = Cluster::shared();
    let name = format!("latin{}", std::process::id());
    cluster
        .sql("postgres", &format!("CREATE DATABASE {name} ENCODING 'LATIN1' LOCALE 'C' TEMPLATE template0"));
    let url = cluster.url_of(&name);
    let error =
        PostgresStore::create(address(&url), &fresh_project(), "p", OpenOptions::default()).unwrap_err();
    assert!(error.to_string().contains("LATIN1"), "{error}");
}

#[test]
fn a_wrong_counter_is_found_and_repaired() {
    let cluster = Cluster::shared();
    let (store, project) = create(&cluster.url());
    add_tasks(&store, 3);
    assert_eq!(store.check(false).unwrap(), []);
    let mut client = Client::connect(&cluster.url(), NoTls).unwrap();
    let corrupt = format!("UPDATE tenure.tasks SET open_deps = 2 WHERE project = '{project}' AND key = 'K1'");
    client.batch_execute(&corrupt).unwrap();
    let found = store.check(false).unwrap();
    assert!(found.len() == 1 && found[0].mendable && found[0].what.contains("K1"), "{found:?}");
    assert_eq!(store.check(true).unwrap(), found, "it reports what it has repaired");
    assert_eq!(store.check(false).unwrap(), []);
    // The counters of a job are kept by triggers.
    let job = format!(
        "INSERT INTO tenure.jobs (project, id, name, state, definition, created_at, updated_at, total, failed)
         VALUES ('{project}', 'j1', 'nightly', 'open', '{{}}', 0, 0, 3, 1)"
    );
    client.batch_execute(&job).unwrap();
    let found: Vec<String> = store.check(false).unwrap().into_iter().map(|defect| defect.what).collect();
    let wrong = |column: &str| format!("jobs.{column} of \"nightly\" is not what it should be");
    assert_eq!(found, [wrong("total"), wrong("failed")]);
    store.check(true).unwrap();
    assert_eq!(store.check(false).unwrap(), []);
}
