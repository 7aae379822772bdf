//! Behind PgBouncer in transaction mode everything works except doorbells.

use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use tenure_core::store::Store;
use tenure_postgres::PostgresStore;
use tenure_testkit::postgres::{Cluster, program};

use crate::scene::{add_tasks, claim_next, create, granted, open};

struct Pooler {
    child: Child,
    port: u16,
    folder: tempfile::TempDir,
}

impl Pooler {
    fn before(cluster: &Cluster) -> Self {
        use std::os::unix::fs::PermissionsExt;
        let folder = tempfile::tempdir().unwrap();
        std::fs::set_permissions(folder.path(), PermissionsExt::from_mode(0o755)).unwrap();
        let port = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let config = folder.path().join("pgbouncer.ini");
        let text = format!(
            "[databases]\npostgres = host=127.0.0.1 port={} user=tenure\n[pgbouncer]\nlisten_addr = 127.0.0.1\n\
             listen_port = {port}\nunix_socket_dir =\nauth_type = any\npool_mode = transaction\n\
             default_pool_size = 3\n",
            cluster.port()
        );
        std::fs::write(&config, text).unwrap();
        let mut command = Cluster::unprivileged(&program("pgbouncer"));
        let child = command.arg(&config).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        let begun = Instant::now();
        while std::net::TcpStream::connect(("127.0.0.1", port)).is_err() {
            assert!(begun.elapsed() < Duration::from_secs(30), "the pooler did not come up");
            std::thread::sleep(Duration::from_millis(20));
        }
        Self { child, port, folder }
    }
}

impl Drop for Pooler {
    fn drop(&mut self) {
        // `setpriv` changes the user and then execs the pooler, so this is the pooler's pid.
        let _ = Command::new("kill").arg(self.child.id().to_string()).status();
        let _ = self.child.wait();
        assert!(self.folder.path().exists());
    }
}

#[test]
fn behind_a_pooler_transactions_work_and_there_is_no_doorbell() {
    let cluster = Cluster::shared();
    let pooler = Pooler::before(cluster);
    let (direct, project) = create(&cluster.url());
    add_tasks(&direct, 60);
    let url = cluster.tcp_url("tenure", pooler.port);
    let waiter: PostgresStore = open(&url, &project);
    assert!(waiter.doorbell().is_none(), "a ring would not arrive");
    assert!(direct.doorbell().is_some());
    std::thread::scope(|scope| {
        for worker in 0..6 {
            let (url, project) = (&url, &project);
            scope.spawn(move || {
                let store = open(url, project);
                for _ in 0..10 {
                    assert!(claim_next(&store, &format!("w{worker}")).unwrap().is_some());
                }
            });
        }
    });
    let fences = granted(&direct);
    assert_eq!(fences.len(), 60);
    let direct: &dyn Store = &direct;
    assert!(claim_next(direct, "late").unwrap().is_none(), "each was claimed once");
}
