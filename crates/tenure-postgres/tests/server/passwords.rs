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

/// A server that asks for the password with this request, and returns what it was sent.
fn asking(request: &'static [u8], local: std::net::Ipv4Addr) -> (u16, std::thread::JoinHandle<Vec<u8>>) {
    use std::io::{Read, Write};
    let listener = std::net::TcpListener::bind((local, 0)).unwrap();
    let port = listener.local_addr().unwrap().port();
    let server = std::thread::spawn(move || {
        let (mut client, _) = listener.accept().unwrap();
        client.set_read_timeout(Some(std::time::Duration::from_secs(10))).unwrap();
        let mut length = [0; 4];
        client.read_exact(&mut length).unwrap();
        let mut startup = vec![0; usize::try_from(u32::from_be_bytes(length)).unwrap() - 4];
        client.read_exact(&mut startup).unwrap();
        client.write_all(request).unwrap();
        let mut answer = [0; 256];
        let count = client.read(&mut answer).unwrap_or(0);
        answer[..count].to_vec()
    });
    (port, server)
}

/// An address of this machine that is not loopback.
pub(crate) fn other_address() -> Option<std::net::Ipv4Addr> {
    let socket = std::net::UdpSocket::bind("0.0.0.0:0").ok()?;
    // Nothing is sent: this only asks for the route.
    socket.connect("192.0.2.1:9").ok()?;
    match socket.local_addr().ok()?.ip() {
        std::net::IpAddr::V4(address) if !address.is_loopback() => Some(address),
        _ => None,
    }
}

#[test]
fn a_password_that_a_server_could_read_is_sent_only_where_that_is_safe() {
    const CLEAR_TEXT: &[u8] = b"R\0\0\0\x08\0\0\0\x03";
    const MD5: &[u8] = b"R\0\0\0\x0c\0\0\0\x05salt";
    let sent = |request, address| {
        let (port, server) = asking(request, address);
        let url = format!("postgres://ann:s3cret@{address}:{port}/work?sslmode=disable");
        let options = OpenOptions { patience: std::time::Duration::from_secs(2), ..OpenOptions::default() };
        let opened = PostgresStore::open(
            Address::parse(&url, &Surroundings::default()).unwrap(),
            &fresh_project(),
            options,
        );
        (server.join().unwrap(), opened.map(drop).unwrap_err().to_string())
    };
    let (local, _) = sent(CLEAR_TEXT, std::net::Ipv4Addr::LOCALHOST);
    assert!(local.ends_with(b"s3cret\0"), "on this machine: {local:?}");
    let Some(other) = other_address() else {
        tenure_testkit::cli::skip("this machine has no address besides loopback");
        return;
    };
    for request in [CLEAR_TEXT, MD5] {
        let (answer, error) = sent(request, other);
        assert_eq!(answer, b"", "{error}");
        assert!(error.contains("clear text or as MD5") && !error.contains("s3cret"), "{error}");
    }
}
