//! Encryption, and the verification of the server's identity.

use std::net::Ipv4Addr;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use tenure_postgres::{OpenOptions, PostgresStore};
use tenure_testkit::fixture::fresh_project;
use tenure_testkit::postgres::Cluster;

use crate::passwords::other_address;
use crate::scene::address;

/// A root certificate, and one signed by it for `localhost`, `db.invalid` and this address.
fn certificates(folder: &Path, address: Ipv4Addr) {
    let script = r#"
        set -e
        openssl req -x509 -newkey rsa:2048 -nodes -days 2 -subj /CN=root -keyout root.key -out root.crt
        openssl req -newkey rsa:2048 -nodes -subj /CN=localhost -keyout server.key -out server.csr
        printf 'subjectAltName=DNS:localhost,DNS:db.invalid,IP:%s\n' "$0" > names
        openssl x509 -req -in server.csr -CA root.crt -CAkey root.key -CAcreateserial -days 2 -extfile names -out server.crt
        openssl req -x509 -newkey rsa:2048 -nodes -days 2 -subj /CN=other -keyout other.key -out other.crt
    "#;
    let made =
        Command::new("sh").args(["-c", script, &address.to_string()]).current_dir(folder).output().unwrap();
    assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
}

#[test]
fn each_sslmode_requires_exactly_what_it_promises() {
    let folder = tempfile::tempdir().unwrap();
    certificates(folder.path(), Ipv4Addr::new(192, 0, 2, 99));
    let cluster = Cluster::private(&["fsync=off"]);
    let project = fresh_project();
    let try_with = |host: &str, options: &str| {
        let url = format!("postgres://tenure@{host}:{}/postgres?{options}", cluster.port());
        let patient = OpenOptions { patience: Duration::from_secs(2), ..OpenOptions::default() };
        PostgresStore::create(address(&url), &project, "p", patient).map(drop).map_err(|e| e.to_string())
    };
    let says = |outcome: Result<(), String>, word: &str| {
        let error = outcome.unwrap_err();
        assert!(error.contains(word), "{error}");
    };
    try_with("127.0.0.1", "sslmode=prefer").unwrap();
    says(try_with("127.0.0.1", "sslmode=require"), "does not support TLS");

    cluster.install_certificate(&folder.path().join("server.crt"), &folder.path().join("server.key"));
    let hba = cluster.folder().join("data/pg_hba.conf");
    std::fs::write(&hba, "local all all trust\nhostssl all all 127.0.0.1/32 trust\n").unwrap();
    cluster.reload();
    let begun = std::time::Instant::now();
    while try_with("127.0.0.1", "sslmode=require").is_err() {
        assert!(begun.elapsed() < Duration::from_secs(30), "the server did not load its certificate");
    }
    let root = format!("sslrootcert={}", folder.path().join("root.crt").display());
    let other = format!("sslrootcert={}", folder.path().join("other.crt").display());
    try_with("127.0.0.1", "sslmode=prefer").unwrap();
    says(try_with("127.0.0.1", "sslmode=disable"), "pg_hba");
    try_with("127.0.0.1", &format!("sslmode=verify-ca&{root}")).unwrap();
    says(try_with("127.0.0.1", &format!("sslmode=verify-ca&{other}")), "no trusted connection");
    says(try_with("127.0.0.1", &format!("sslmode=require&{other}")), "no trusted connection");
    says(try_with("127.0.0.1", "sslmode=verify-full"), "no trusted connection");
    says(try_with("127.0.0.1", &format!("sslmode=verify-full&{root}")), "no trusted connection");
    try_with("localhost", &format!("sslmode=verify-full&{root}")).unwrap();
    says(try_with("localhost", "sslmode=verify-full&sslrootcert=/does/not/exist"), "sslrootcert");
}

/// The server asks for the password in clear text, from an address that is not loopback.
#[test]
fn a_password_in_clear_text_needs_a_verified_server() {
    let Some(other) = other_address() else {
        tenure_testkit::cli::skip("this machine has no address besides loopback");
        return;
    };
    let folder = tempfile::tempdir().unwrap();
    certificates(folder.path(), other);
    let cluster = Cluster::private(&["fsync=off", "listen_addresses='*'"]);
    cluster.sql("postgres", "CREATE ROLE ann LOGIN SUPERUSER PASSWORD 's3cret'");
    cluster.install_certificate(&folder.path().join("server.crt"), &folder.path().join("server.key"));
    let hba = cluster.folder().join("data/pg_hba.conf");
    std::fs::write(&hba, "local all all trust\nhostssl all ann all password\n").unwrap();
    cluster.reload();
    let project = fresh_project();
    let try_with = |host: &str, options: &str| {
        let url = format!("postgres://ann:s3cret@{host}:{}/postgres?{options}", cluster.port());
        let patient = OpenOptions { patience: Duration::from_secs(2), ..OpenOptions::default() };
        PostgresStore::create(address(&url), &project, "p", patient).map(drop).map_err(|e| e.to_string())
    };
    let root = format!("sslrootcert={}", folder.path().join("root.crt").display());
    let verified = format!("sslmode=verify-full&{root}");
    let begun = std::time::Instant::now();
    while let Err(error) = try_with(&other.to_string(), &verified) {
        assert!(begun.elapsed() < Duration::from_secs(30), "{error}");
    }
    // The name is verified, and the address is where to connect to.
    try_with("db.invalid", &format!("{verified}&hostaddr={other}")).unwrap();
    try_with(&other.to_string(), &format!("sslmode=verify-ca&{root}")).unwrap();
    for mode in ["prefer", "require"] {
        let error = try_with(&other.to_string(), &format!("sslmode={mode}")).unwrap_err();
        assert!(error.contains("clear text or as MD5"), "{mode}: {error}");
    }
}
