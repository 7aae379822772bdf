//! PostgreSQL servers for tests: made by `initdb` in a temporary folder, and never run as root.
//!
//! [`Cluster::shared`] is one per test run (of nextest, or of one `cargo test` process). The first process that needs
//! it starts it, under a lock file in a folder that all processes of the run know; the others use it. A background
//! process stops it a few seconds after the last user has ended. Tests share its database: rows belong to projects,
//! and each test has its own. [`Cluster::private`] belongs to one test, which may stop it at any time.

use std::collections::HashMap;
use std::fs::{self, File};
use std::io::{BufRead, BufReader, Write};
use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

/// The rows of a test need not survive a crash, so no commit waits for the disk.
const NOT_DURABLE: &[&str] = &["fsync=off", "full_page_writes=off", "autovacuum_naptime=10s"];
const START_LIMIT: Duration = Duration::from_mins(1);
const USER: &str = "tenure";

#[derive(Debug)]
pub struct Cluster {
    folder: PathBuf,
    port: u16,
    /// A shared file lock; the janitor stops the server when no process holds it.
    _users: Option<File>,
    owned: bool,
}

impl Cluster {
    /// The server of this test run.
    pub fn shared() -> &'static Self {
        static SHARED: OnceLock<Cluster> = OnceLock::new();
        SHARED.get_or_init(join)
    }

    /// A server for one test, with durable commits: a commit that it acknowledges survives
    /// `stop -m immediate`.
    pub fn private(settings: &[&str]) -> Self {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let name = format!("{}-{}", std::process::id(), COUNT.fetch_add(1, Ordering::Relaxed));
        let folder = base(&name);
        let _ = fs::remove_dir_all(&folder);
        make(&folder, settings);
        Self::owned(folder)
    }

    /// A server that is stopped when the value is dropped, or by the janitor if the test is killed.
    fn owned(folder: PathBuf) -> Self {
        let users = lock_file(&folder, "users");
        users.lock_shared().unwrap();
        let cluster = Self { port: port_of(&folder), folder, _users: Some(users), owned: true };
        cluster.start();
        begin_janitor(&cluster.folder);
        cluster
    }

    /// A server that follows `primary` and only reads.
    pub fn standby_of(primary: &Self) -> Self {
        let folder = base(&format!("{}-standby", std::process::id()));
        let _ = fs::remove_dir_all(&folder);
        give_folder(&folder);
        let port = free_port();
        let mut copy = as_server(&folder, "pg_basebackup");
        copy.arg("-D")
            .arg(folder.join("data"))
            .args(["-R", "-U", USER, "-c", "fast", "-h"])
            .arg(&primary.folder);
        let copied = copy.args(["-p", &primary.port.to_string()]).output().unwrap();
        assert!(copied.status.success(), "{}", String::from_utf8_lossy(&copied.stderr));
        let config = folder.join("data/postgresql.auto.conf");
        let before = fs::read_to_string(&config).unwrap();
        let text = format!("{before}\nport = {port}\nunix_socket_directories = '{}'\n", folder.display());
        fs::write(config, text).unwrap();
        fs::write(folder.join("port"), port.to_string()).unwrap();
        Self::owned(folder)
    }

    /// Enables TLS on the server with this certificate.
    pub fn install_certificate(&self, certificate: &Path, key: &Path) {
        for (from, name) in [(certificate, "server.crt"), (key, "server.key")] {
            let to = self.folder.join("data").join(name);
            fs::copy(from, &to).unwrap();
            fs::set_permissions(&to, PermissionsExt::from_mode(0o600)).unwrap();
            if let Some(user) = server_user() {
                assert!(Command::new("chown").arg(user).arg(&to).status().unwrap().success());
            }
        }
        self.sql("postgres", "ALTER SYSTEM SET ssl = on");
        self.reload();
    }

    /// A command for a program that refuses to run as root, run by another user if this process is root.
    pub fn unprivileged(program: &Path) -> Command {
        unprivileged(program)
    }

    pub fn port(&self) -> u16 {
        self.port
    }

    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// The URL of the database `postgres` through the Unix socket.
    pub fn url(&self) -> String {
        self.url_of("postgres")
    }

    pub fn url_of(&self, database: &str) -> String {
        let host = self.folder.to_string_lossy().replace('/', "%2F");
        format!("postgres://{USER}@{host}:{}/{database}", self.port)
    }

    pub fn tcp_url(&self, user: &str, port: u16) -> String {
        format!("postgres://{user}@127.0.0.1:{port}/postgres")
    }

    /// A new database, for tests that change the rows of more than one project.
    pub fn new_database(&self) -> String {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let name = format!("t{}_{}", std::process::id(), COUNT.fetch_add(1, Ordering::Relaxed));
        self.sql("postgres", &format!("CREATE DATABASE {name}"));
        name
    }

    /// Runs statements as the superuser and returns what they print.
    #[track_caller]
    pub fn sql(&self, database: &str, statements: &str) -> String {
        sql(&self.url_of(database), statements)
    }

    pub fn start(&self) {
        start(&self.folder);
    }

    /// Stops the server as a power cut would, without a checkpoint.
    pub fn stop_immediately(&self) {
        pg_ctl(&self.folder, &["stop", "-m", "immediate", "-w"]);
    }

    pub fn reload(&self) {
        pg_ctl(&self.folder, &["reload"]);
    }

    /// Accepts clients from these addresses too, such as `10.1.0.0/24`. The server has to listen there.
    pub fn trust_clients_from(&self, addresses: &str) {
        let rules = self.folder.join("data/pg_hba.conf");
        let before = fs::read_to_string(&rules).unwrap();
        fs::write(rules, format!("{before}host all all {addresses} trust\n")).unwrap();
        self.reload();
    }

    /// Makes a standby the primary.
    pub fn promote(&self) {
        pg_ctl(&self.folder, &["promote", "-w"]);
    }

    /// The processor time of each process of the server so far, in nanoseconds.
    pub fn processor_times(&self) -> HashMap<u32, u64> {
        let first = self.postmaster();
        let mut times = HashMap::new();
        for entry in fs::read_dir("/proc").unwrap().flatten() {
            let Ok(stat) = fs::read_to_string(entry.path().join("stat")) else { continue };
            let Some((_, rest)) = stat.rsplit_once(')') else { continue };
            let parent = rest.split_whitespace().nth(1).and_then(|text| text.parse().ok()).unwrap_or(0);
            let Ok(pid) = entry.file_name().to_string_lossy().parse::<u32>() else { continue };
            if parent == first || pid == first {
                let used = fs::read_to_string(entry.path().join("schedstat")).unwrap_or_default();
                let nanos = used.split_whitespace().next().and_then(|text| text.parse().ok());
                times.insert(pid, nanos.unwrap_or(0));
            }
        }
        times
    }

    /// The processor time since `before` of the server's processes that existed then.
    pub fn used_since(&self, before: &HashMap<u32, u64>) -> Duration {
        let now = self.processor_times();
        let used = now.iter().filter_map(|(pid, after)| Some(after.saturating_sub(*before.get(pid)?)));
        Duration::from_nanos(used.sum())
    }

    /// The processor time of all processes of the server that have ended.
    pub fn time_of_ended(&self) -> Duration {
        let stat = fs::read_to_string(format!("/proc/{}/stat", self.postmaster())).unwrap();
        let (_, rest) = stat.rsplit_once(')').unwrap();
        // The times in user and kernel mode, in hundredths of a second.
        let ticks = rest.split_whitespace().skip(13).take(2).map(|text| text.parse::<u64>().unwrap());
        Duration::from_millis(ticks.sum::<u64>() * 10)
    }

    /// The pid of the server's first process.
    pub fn postmaster(&self) -> u32 {
        let text = fs::read_to_string(self.folder.join("data/postmaster.pid")).unwrap();
        text.lines().next().unwrap().trim().parse().unwrap()
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        if self.owned {
            let _ = as_server(&self.folder, "pg_ctl").args(["stop", "-m", "immediate", "-s"]).status();
            let _ = fs::remove_dir_all(&self.folder);
            for what in ["users", "gate"] {
                let _ = fs::remove_file(self.folder.with_extension(what));
            }
        }
    }
}

/// Runs statements on the database at `url` and returns what they print.
#[track_caller]
pub fn sql(url: &str, statements: &str) -> String {
    let mut psql = Command::new(program("psql"));
    psql.args(["-X", "-q", "-A", "-t", "-v", "ON_ERROR_STOP=1", "-d", url, "-c", statements]);
    let ran = psql.output().unwrap();
    let errors = String::from_utf8_lossy(&ran.stderr);
    assert!(ran.status.success(), "{statements}: {errors}");
    String::from_utf8_lossy(&ran.stdout).trim().to_owned()
}

/// An open session. Its locks end when it is dropped.
#[derive(Debug)]
pub struct Session(Child);

impl Session {
    /// A session that has run `statement`.
    pub fn holding(url: &str, statement: &str) -> Self {
        let mut psql = Command::new(program("psql"));
        psql.args(["-X", "-q", "-A", "-t", "-v", "ON_ERROR_STOP=1", "-d", url]);
        let mut child = psql.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        writeln!(child.stdin.as_mut().unwrap(), "{statement} SELECT 'held';").unwrap();
        let answers = BufReader::new(child.stdout.take().unwrap()).lines();
        let held = answers.map_while(Result::ok).any(|line| line == "held");
        assert!(held, "{statement}");
        Self(child)
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn lock_file(folder: &Path, what: &str) -> File {
    File::options().create(true).append(true).open(folder.with_extension(what)).unwrap()
}

/// A folder with a short name, because a socket's path has at most 107 bytes.
fn base(name: &str) -> PathBuf {
    let folder = format!("tenure-pg-{}-{name}", rustix_uid());
    let temp = std::env::temp_dir();
    if temp.as_os_str().len() + folder.len() < 80 {
        temp.join(folder)
    } else {
        Path::new("/tmp").join(folder)
    }
}

fn rustix_uid() -> u32 {
    rustix::process::geteuid().as_raw()
}

/// Uses the cluster of this run, and makes it if this process is the first.
fn join() -> Cluster {
    let run = std::env::var("NEXTEST_RUN_ID").map_or_else(
        |_| std::os::unix::process::parent_id().to_string(),
        |id| id.chars().filter(char::is_ascii_alphanumeric).take(12).collect(),
    );
    let folder = base(&run);
    fs::create_dir_all(&folder).unwrap();
    let gate = lock_file(&folder, "gate");
    gate.lock().unwrap();
    let users = lock_file(&folder, "users");
    users.lock_shared().unwrap();
    if !folder.join("data/postmaster.pid").exists() {
        let _ = fs::remove_dir_all(&folder);
        make(&folder, NOT_DURABLE);
        start(&folder);
        begin_janitor(&folder);
    }
    Cluster { port: port_of(&folder), folder, _users: Some(users), owned: false }
}

fn port_of(folder: &Path) -> u16 {
    fs::read_to_string(folder.join("port")).unwrap().trim().parse().unwrap()
}

fn give_folder(folder: &Path) {
    fs::create_dir_all(folder).unwrap();
    if let Some(user) = server_user() {
        let chown = Command::new("chown").arg(user).arg(folder).status().unwrap();
        assert!(chown.success(), "the folder cannot be given to {user}");
    }
}

fn free_port() -> u16 {
    TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port()
}

fn make(folder: &Path, settings: &[&str]) {
    give_folder(folder);
    let port = free_port();
    let made = as_server(folder, "initdb")
        .args(["-U", USER, "-A", "trust", "-E", "UTF8", "--locale=C.UTF-8", "-N"])
        .output()
        .unwrap();
    assert!(made.status.success(), "initdb: {}", String::from_utf8_lossy(&made.stderr));
    let mut text = format!(
        "listen_addresses = '127.0.0.1'\nport = {port}\nunix_socket_directories = '{}'\nmax_connections = 500\n\
         shared_buffers = 64MB\nlog_min_messages = fatal\n",
        folder.display()
    );
    for setting in settings {
        text.push_str(setting);
        text.push('\n');
    }
    let config = folder.join("data/postgresql.auto.conf");
    fs::write(config, text).unwrap();
    fs::write(folder.join("port"), port.to_string()).unwrap();
}

fn start(folder: &Path) {
    pg_ctl(folder, &["start", "-w", "-l", &folder.join("log").to_string_lossy()]);
    let begun = Instant::now();
    let socket = folder.join(format!(".s.PGSQL.{}", port_of(folder)));
    while !socket.exists() {
        assert!(begun.elapsed() < START_LIMIT, "the server did not come up");
        std::thread::sleep(Duration::from_millis(20));
    }
}

fn pg_ctl(folder: &Path, arguments: &[&str]) {
    let mut command = as_server(folder, "pg_ctl");
    command.args(arguments).arg("-s").stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    let status = command.status().unwrap();
    assert!(
        status.success(),
        "pg_ctl {arguments:?}: {}",
        fs::read_to_string(folder.join("log")).unwrap_or_default()
    );
}

/// Starts a process that stops the server after a few seconds without users. Users hold file locks, which end with
/// their process.
fn begin_janitor(folder: &Path) {
    let script = r#"
        folder=$1; shift; idle=0
        while [ $idle -lt 6 ]; do
            sleep 2
            [ -d "$folder/data" ] || exit 0
            if flock -n -x "$folder.users" true; then idle=$((idle + 1)); else idle=0; fi
        done
        exec 9>>"$folder.gate"
        flock -x 9
        if flock -n -x "$folder.users" true; then
            "$@" stop -m immediate -s
            rm -rf "$folder" "$folder.users" "$folder.gate"
        else
            exec "$0" -c "$SCRIPT" "$0" "$folder" "$@"
        fi
    "#;
    let stop = as_server(folder, "pg_ctl");
    let mut janitor = Command::new("setsid");
    janitor.args(["--fork", "sh", "-c", script, "sh"]).arg(folder);
    janitor.arg(stop.get_program()).args(stop.get_args()).env("SCRIPT", script);
    for (name, value) in stop.get_envs() {
        if let Some(value) = value {
            janitor.env(name, value);
        }
    }
    janitor.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).current_dir("/");
    assert!(janitor.status().unwrap().success(), "the janitor cannot be started");
}

/// A program of the server, run on the data in `folder` by a user that is not root.
fn as_server(folder: &Path, name: &str) -> Command {
    let mut command = unprivileged(&program(name));
    command.env("PGDATA", folder.join("data")).env("LC_ALL", "C").env_remove("PGPORT").current_dir("/");
    command
}

fn unprivileged(program: &Path) -> Command {
    let Some(user) = server_user() else { return Command::new(program) };
    let mut command = Command::new("setpriv");
    command.args([&format!("--reuid={user}"), "--clear-groups", "--"]).arg(program);
    command
}

/// The user that runs the server if this process is root.
fn server_user() -> Option<&'static str> {
    if rustix_uid() != 0 {
        return None;
    }
    let users = fs::read_to_string("/etc/passwd").unwrap_or_default();
    let has = |name: &str| users.lines().any(|line| line.starts_with(&format!("{name}:")));
    Some(if has("postgres") { "postgres" } else { "nobody" })
}

/// The path of a program, on PATH or where Debian installs it.
pub fn program(name: &str) -> PathBuf {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let mut places: Vec<PathBuf> = std::env::split_paths(&path).collect();
    let mut versions: Vec<PathBuf> = fs::read_dir("/usr/lib/postgresql")
        .map(|found| found.flatten().map(|entry| entry.path().join("bin")).collect())
        .unwrap_or_default();
    versions.sort();
    places.extend(versions.into_iter().rev());
    let found = places.into_iter().map(|place| place.join(name)).find(|program| program.is_file());
    found.unwrap_or_else(|| {
        panic!("{name} is missing: these tests need PostgreSQL (Debian: postgresql, pgbouncer); ./test installs it")
    })
}
