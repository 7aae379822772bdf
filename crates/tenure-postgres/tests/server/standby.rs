//! A server in recovery is refused.

use std::time::Duration;

use tenure_postgres::{OpenOptions, PostgresStore};
use tenure_testkit::fixture::fresh_project;
use tenure_testkit::postgres::Cluster;

use crate::scene::{address, create};

#[test]
fn a_standby_is_refused_and_skipped_for_a_primary() {
    let primary = Cluster::private(&["fsync=off"]);
    let (_, project) = create(&primary.url());
    let standby = Cluster::standby_of(&primary);
    let options = OpenOptions { patience: Duration::from_secs(1), ..OpenOptions::default() };
    let error = PostgresStore::open(address(&standby.url()), &project, options.clone()).unwrap_err();
    assert!(error.to_string().contains("is a standby"), "{error}");
    let error =
        PostgresStore::create(address(&standby.url()), &fresh_project(), "p", options.clone()).unwrap_err();
    assert!(error.to_string().contains("is a standby"), "{error}");
    let both =
        format!("postgres://tenure@127.0.0.1:{},127.0.0.1:{}/postgres", standby.port(), primary.port());
    assert!(PostgresStore::open(address(&both), &project, options).unwrap().knows_project());
}
