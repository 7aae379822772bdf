//! The error for a missing right names the right.

use std::time::Duration;

use tenure_core::ErrorCode;
use tenure_core::store::{Durability, Store};
use tenure_postgres::{OpenOptions, PostgresStore};
use tenure_testkit::fixture::fresh_project;
use tenure_testkit::postgres::Cluster;

use crate::scene::{address, claim_next};

#[test]
fn each_missing_right_is_reported_with_the_statement_that_grants_it() {
    let cluster = Cluster::shared();
    let database = cluster.new_database();
    let role = format!("r{}", std::process::id());
    cluster.sql(
        &database,
        &format!("CREATE ROLE {role} LOGIN; REVOKE CREATE ON DATABASE {database} FROM PUBLIC"),
    );
    let url = cluster.url_of(&database).replace("tenure@", &format!("{role}@"));
    let project = fresh_project();
    let create = |url: &str| PostgresStore::create(address(url), &project, "p", OpenOptions::default());

    let refused = |error: tenure_core::Error, grant: &str| {
        assert_eq!(error.code(), ErrorCode::PermissionDenied, "{error}");
        assert!(error.to_string().contains(grant), "{error}");
        cluster.sql(&database, grant);
    };
    refused(create(&url).unwrap_err(), &format!("GRANT CREATE ON DATABASE \"{database}\" TO \"{role}\""));
    cluster.sql(&database, &format!("REVOKE CREATE ON DATABASE {database} FROM {role}"));

    let owner = create(&cluster.url_of(&database)).unwrap();
    crate::scene::add_tasks(&owner, 1);
    let open = || PostgresStore::open(address(&url), &project, OpenOptions::default());
    refused(open().unwrap_err(), &format!("GRANT USAGE ON SCHEMA tenure TO \"{role}\""));
    refused(
        open().unwrap_err(),
        &format!("GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA tenure TO \"{role}\""),
    );
    let store = open().unwrap();
    refused(
        claim_next(&store, "a").unwrap_err(),
        &format!("GRANT USAGE ON ALL SEQUENCES IN SCHEMA tenure TO \"{role}\""),
    );
    assert!(claim_next(&store, "a").unwrap().is_some(), "with all of them it works");

    cluster.sql(&database, &format!("REVOKE INSERT ON tenure.events FROM {role}"));
    let store: &dyn Store = &store;
    let error = store.write(Durability::Power, |tx| {
        tx.append(tenure_core::event::NewEvent::new(tenure_core::event::EventKind::AgentJoined, "a"))
    });
    assert_eq!(error.unwrap_err().code(), ErrorCode::PermissionDenied, "also when the commit fails");
}

#[test]
fn a_server_without_a_free_connection_is_reported_as_such_and_waited_for() {
    let cluster = Cluster::shared();
    let database = cluster.new_database();
    let role = format!("one{}", std::process::id());
    let project = fresh_project();
    let owner =
        PostgresStore::create(address(&cluster.url_of(&database)), &project, "p", OpenOptions::default());
    crate::scene::add_tasks(&owner.unwrap(), 1);
    cluster.sql(
        &database,
        &format!(
            "CREATE ROLE {role} LOGIN CONNECTION LIMIT 1; GRANT USAGE ON SCHEMA tenure TO {role};
             GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA tenure TO {role};
             GRANT USAGE ON ALL SEQUENCES IN SCHEMA tenure TO {role}"
        ),
    );
    let url = cluster.url_of(&database).replace("tenure@", &format!("{role}@"));
    let open = |patience| {
        let options = OpenOptions { patience, ..OpenOptions::default() };
        PostgresStore::open(address(&url), &project, options)
    };
    let first = open(Duration::from_secs(10)).unwrap();
    let view: &dyn Store = &first;
    view.read(|view| view.count_tickets()).unwrap();
    let error = open(Duration::from_millis(200)).unwrap_err();
    assert!(error.to_string().contains("has no free connection: too many connections for role"), "{error}");
    assert!(
        matches!(&error, tenure_core::Error::Store { advice: Some(advice), .. } if advice.note.as_ref().is_some_and(|note| note.contains("max_connections"))),
        "{error:?}"
    );
    let waiting = std::thread::scope(|scope| {
        let (project, url) = (&project, &url);
        let waiting =
            scope.spawn(move || PostgresStore::open(address(url), project, OpenOptions::default()).map(drop));
        drop(first);
        waiting.join().unwrap()
    });
    waiting.unwrap();
}
