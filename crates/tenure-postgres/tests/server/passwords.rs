//! Passwords: where they come from, and that no message contains them.

use std::os::unix::fs::PermissionsExt;

use tenure_core::ErrorCode;
use tenure_postgres::{Address, OpenOptions, PostgresStore, Surroundings};
use tenure_testkit::fixture::fresh_project;
use tenure_testkit::postgres::Cluster;

#[test]
fn a_password_comes_from_the_url_the_environment_or_a_file_and_is_never_printed() {
    let cluster = Cluster::private(&["fsync=off"]);
    cluster.sql("postgres", "CREATE ROLE ann LOGIN SUPERUSER PASSWORD 'right-s3cret:\\'");
    let data = cluster.folder().join("data/pg_hba.conf");
    let before = std::fs::read_to_string(&data).unwrap();
    std::fs::write(&data, format!("host all ann 127.0.0.1/32 scram-sha-256\n{before}")).unwrap();
    cluster.reload();
    let project = fresh_project();
    let create = |url: &str, around: &Surroundings| {
        let address = Address::parse(url, around)?;
        PostgresStore::create(address, &project, "p", OpenOptions::default()).map(drop)
    };
    let bare = cluster.tcp_url("ann", cluster.port());
    let with = |password: &str| bare.replace("ann@", &format!("ann:{password}@"));
    let none = Surroundings::default();

    create(&with("right-s3cret%3A%5C"), &none).unwrap();
    let environment = Surroundings { password: Some("right-s3cret:\\".into()), ..Surroundings::default() };
    create(&bare, &environment).unwrap();
    let file = cluster.folder().join("pgpass");
    std::fs::write(&file, format!("127.0.0.1:{}:*:ann:right-s3cret\\:\\\\\n", cluster.port())).unwrap();
    std::fs::set_permissions(&file, PermissionsExt::from_mode(0o600)).unwrap();
    create(&bare, &Surroundings { password_file: Some(file), ..Surroundings::default() }).unwrap();

    let error = create(&with("wrong-s3cret"), &environment).unwrap_err();
    assert_eq!(error.code(), ErrorCode::PermissionDenied);
    assert!(error.to_string().contains("\"ann\""), "{error}");
    assert!(!format!("{error} {error:?}").contains("s3cret"), "{error:?}");
    let error = create(&bare, &none).unwrap_err();
    assert!(!format!("{error} {error:?}").contains("s3cret"), "{error:?}");
}
