//! A thousand agents on ten machines that share one PostgreSQL server.
//!
//! ```text
//! cargo bench -p tenure-postgres --bench fleet -- rapid paced failover
//! ```
//!
//! Each machine has its own network and process namespaces and is connected to the server through a virtual bridge; that needs
//! root. An agent is a process with a connection, like a runner or an MCP server. In `rapid` agents claim and finish without a
//! pause, which shows the throughput of the server; in `paced` each works for a minute, which shows how long a claim takes;
//! `failover` is `paced` with a synchronous standby, which is promoted in the middle after the primary was killed. In each part,
//! some agents pass tasks to a waiting agent on another machine. At the end the journal of all agents is checked against the
//! rows: no task was granted twice at the same time, and no acknowledged finish was lost. `--agents N`, `--seconds N` and
//! `--work SECONDS`, the mean time that an agent works on a task, change the size of the run.

#![expect(
    clippy::unwrap_used,
    clippy::print_stdout,
    clippy::print_stderr,
    clippy::cast_precision_loss,
    reason = "a measurement prints, and stops where it fails; its rates are approximate"
)]

mod common;

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitCode};
use std::time::Duration;

use common::{TTL, context, fill, open, quantile};
use postgres::{Client, NoTls};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::time::{ClockId, clock_gettime};
use tenure_core::holder::{Caller, Holder, Incarnation};
use tenure_core::id::TaskId;
use tenure_core::kernel::{self, Finish, Grant, Terms, Verdict, Waiter};
use tenure_core::lease::Resource;
use tenure_core::store::{ClaimHint, ClaimTarget, Durability, Store, TaskLookup};
use tenure_postgres::{Doorbell, PostgresStore};
use tenure_testkit::fixture::fresh_project;
use tenure_testkit::fleet::{Action, Entry, violations};
use tenure_testkit::postgres::Cluster;

const MACHINES: u32 = 10;
/// The agents of a machine that pass tasks on: the first to the next machine, the second from the previous one.
const RELAYS: u32 = 2;
/// How long an agent holds a task before it passes it on.
const HOLD: Duration = Duration::from_millis(200);
const NETWORK: &str = "10.213.77";

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).filter(|arg| arg != "--bench").collect();
    match args.first().map(String::as_str) {
        Some("machine") => return machine(&args),
        Some("agent") => return agent(&args),
        _ => {}
    }
    let parts: Vec<&str> =
        args.iter().map(String::as_str).filter(|arg| ["rapid", "paced", "failover"].contains(arg)).collect();
    if parts.is_empty() {
        println!(
            "Nothing is measured without a name: rapid, paced, failover. It takes minutes and needs root."
        );
        return ExitCode::SUCCESS;
    }
    if !rustix::process::geteuid().is_root() {
        eprintln!(
            "Only root can make the network namespaces that stand for machines. Run the bench as root."
        );
        return ExitCode::FAILURE;
    }
    let option = |name: &str, default: u32| {
        let at = args.iter().position(|arg| arg == name);
        at.map_or(default, |at| args[at + 1].parse().unwrap())
    };
    let (agents, seconds) = (option("--agents", 1000), option("--seconds", 60));
    let work = Duration::from_secs(option("--work", 60).into());
    let mut broken = false;
    for part in parts {
        broken |= !measure(part, agents / MACHINES, u64::from(seconds), work);
    }
    ExitCode::from(u8::from(broken))
}

fn now() -> u64 {
    let time = clock_gettime(ClockId::Monotonic);
    u64::try_from(time.tv_sec).unwrap() * 1_000_000_000 + u64::try_from(time.tv_nsec).unwrap()
}

fn sleep_until(at: u64) {
    std::thread::sleep(Duration::from_nanos(at.saturating_sub(now())));
}

/// The machines' network: a bridge, and a namespace for each machine. Removed when dropped.
struct Network {
    bridge: String,
    machines: Vec<String>,
}

fn ip(args: &str) {
    let done = Command::new("ip").args(args.split(' ')).output().unwrap();
    assert!(done.status.success(), "ip {args}: {}", String::from_utf8_lossy(&done.stderr));
}

impl Network {
    fn new() -> Self {
        let id = std::process::id();
        let network = Self {
            bridge: format!("tb{id}"),
            machines: (0..MACHINES).map(|n| format!("tenure-fleet-{id}-{n}")).collect(),
        };
        let bridge = &network.bridge;
        ip(&format!("link add {bridge} type bridge"));
        ip(&format!("addr add {NETWORK}.1/24 dev {bridge}"));
        ip(&format!("link set {bridge} up"));
        for (n, machine) in network.machines.iter().enumerate() {
            let (near, far) = (format!("tv{id}-{n}"), format!("tw{id}-{n}"));
            ip(&format!("netns add {machine}"));
            ip(&format!("link add {near} type veth peer name {far}"));
            ip(&format!("link set {near} master {bridge} up"));
            ip(&format!("link set {far} netns {machine}"));
            ip(&format!("-n {machine} addr add {NETWORK}.{}/24 dev {far}", n + 10));
            ip(&format!("-n {machine} link set {far} up"));
        }
        network
    }
}

impl Drop for Network {
    fn drop(&mut self) {
        for machine in &self.machines {
            let _ = Command::new("ip").args(["netns", "del", machine]).output();
        }
        let _ = Command::new("ip").args(["link", "del", &self.bridge]).output();
    }
}

/// One run with `agents` agents on each machine, which work for `work` on a task unless the part is `rapid`. False if the journal contradicts
/// the rules.
fn measure(part: &str, agents: u32, seconds: u64, work: Duration) -> bool {
    let limit = format!("max_connections = {}", agents * MACHINES + 60);
    let settings = ["listen_addresses = '*'", "shared_buffers = 256MB", "max_wal_size = 4GB", &limit];
    let cluster = Cluster::private(&settings);
    cluster.trust_clients_from(&format!("{NETWORK}.0/24"));
    let standby = (part == "failover").then(|| {
        let standby = Cluster::standby_of(&cluster);
        cluster.sql("postgres", "ALTER SYSTEM SET synchronous_standby_names = '*'");
        cluster.reload();
        standby
    });
    let project = fresh_project();
    fill(&cluster.url(), &project, i64::from(agents) * 200 + 50_000);
    // The tasks that are passed on come last, so that no agent gets one as its next task.
    Client::connect(&cluster.url(), NoTls)
        .unwrap()
        .batch_execute(&format!(
            "INSERT INTO tenure.tasks (project, id, key, title, status, priority, position, created_at, updated_at)
             SELECT '{project}', 'relay' || n, 'R' || (n - 1), 'relay', 'pending', 1000, n, 0, 0
             FROM generate_series(1, {MACHINES}) AS n;
             UPDATE tenure.sections SET open_tasks = open_tasks + {MACHINES} WHERE project = '{project}' AND id = ''"
        ))
        .unwrap();
    let network = Network::new();
    let ports: Vec<u16> =
        [Some(&cluster), standby.as_ref()].into_iter().flatten().map(Cluster::port).collect();
    let hosts: Vec<String> = ports.iter().map(|port| format!("{NETWORK}.1:{port}")).collect();
    let url = format!("postgres://tenure@{}/postgres", hosts.join(","));
    let journal = tempfile::NamedTempFile::new().unwrap();
    // By then, all agents have been started and are connected.
    let start = now() + 1_000_000_000 * (5 + u64::from(agents * MACHINES) / 60);
    let end = start + 1_000_000_000 * seconds;
    let work_ms = if part == "rapid" { 0 } else { work.as_millis() };
    let mut machines: Vec<Child> = network
        .machines
        .iter()
        .enumerate()
        .map(|(n, machine)| {
            let own = std::env::current_exe().unwrap();
            let mut command = Command::new("ip");
            command.args(["netns", "exec", machine, "unshare", "--pid", "--fork", "--kill-child"]);
            command.args(["--mount-proc", "--"]).arg(own).args([
                "machine",
                &n.to_string(),
                &agents.to_string(),
            ]);
            command.args([&url, &project]).arg(journal.path());
            command.args([&start.to_string(), &end.to_string(), &work_ms.to_string()]).spawn().unwrap()
        })
        .collect();
    sleep_until(start + 1_000_000_000);
    let before = cluster.processor_times();
    let measured = now();
    if let Some(standby) = &standby {
        sleep_until(start + 1_000_000_000 * seconds / 2);
        report_load(&cluster, &before, measured);
        cluster.stop_immediately();
        standby.promote();
    }
    sleep_until(end);
    if standby.is_none() {
        report_load(&cluster, &before, measured);
    }
    for machine in &mut machines {
        assert!(machine.wait().unwrap().success(), "a machine failed");
    }
    let lines = fs::read_to_string(journal.path()).unwrap();
    let entries: Vec<Entry> = lines.lines().map(|line| line.parse().unwrap()).collect();
    let server = standby.as_ref().unwrap_or(&cluster);
    let completed = Client::connect(&server.url(), NoTls)
        .unwrap()
        .query("SELECT key FROM tenure.tasks WHERE status = 'completed'", &[])
        .unwrap();
    let completed: BTreeSet<String> = completed.iter().map(|row| row.get(0)).collect();
    println!("{part}: {} agents on {MACHINES} machines, {seconds} s", agents * MACHINES);
    report(&entries, start, end);
    let found = violations(&entries, &completed);
    println!(
        "  checked {} answers, {} completed tasks: {} violations",
        entries.len(),
        completed.len(),
        found.len()
    );
    for violation in found.iter().take(10) {
        println!("    {violation}");
    }
    found.is_empty()
}

fn report_load(cluster: &Cluster, before: &std::collections::HashMap<u32, u64>, since: u64) {
    let wall = Duration::from_nanos(now() - since);
    let share = cluster.used_since(before).as_secs_f64() / wall.as_secs_f64();
    println!("  server: {:.0} % of one processor", share * 100.0);
}

/// One lease of a task that is passed on.
#[derive(Default)]
struct Held<'a> {
    claimed: Option<&'a Entry>,
    released: Option<&'a Entry>,
}

fn report(entries: &[Entry], start: u64, end: u64) {
    let inside: Vec<&Entry> = entries.iter().filter(|e| e.sent >= start && e.answered <= end).collect();
    let is_relay = |entry: &Entry| entry.task.starts_with('R');
    let times = |action: Action| -> Vec<Duration> {
        let all = inside.iter().filter(|e| e.action == action && !is_relay(e));
        all.map(|e| Duration::from_nanos(e.answered - e.sent)).collect()
    };
    let wall = Duration::from_nanos(end - start).as_secs_f64();
    for (what, action) in [("claims", Action::Claimed), ("finishes", Action::Finished)] {
        let mut all = times(action);
        let rate = all.len() as f64 / wall;
        let (half, most, max) = (quantile(&mut all, 0.5), quantile(&mut all, 0.99), quantile(&mut all, 1.0));
        println!("  {what}: {rate:.0}/s, p50 {half:.2?}, p99 {most:.2?}, longest {max:.2?}");
    }
    // From the answer to a release to the answer of the next holder's claim.
    let mut relays: BTreeMap<&str, BTreeMap<i64, Held<'_>>> = BTreeMap::new();
    for entry in inside.iter().filter(|e| is_relay(e)) {
        let of = relays.entry(&entry.task).or_default().entry(entry.fence).or_default();
        match entry.action {
            Action::Claimed => of.claimed = Some(entry),
            _ => of.released = Some(entry),
        }
    }
    let mut hand_offs: Vec<Duration> = relays
        .values()
        .flat_map(|by_fence| by_fence.values().zip(by_fence.values().skip(1)))
        .filter_map(|(one, next)| Some((one.released?, next.claimed?)))
        .map(|(released, claimed)| Duration::from_nanos(claimed.answered.saturating_sub(released.answered)))
        .collect();
    let (half, most) = (quantile(&mut hand_offs, 0.5), quantile(&mut hand_offs, 0.99));
    println!("  hand-offs between machines: {}, p50 {half:.2?}, p99 {most:.2?}", hand_offs.len());
    let mut answers: Vec<u64> = inside.iter().map(|e| e.answered).collect();
    answers.sort_unstable();
    let gap = answers.windows(2).map(|pair| pair[1] - pair[0]).max().unwrap_or(0);
    let unsure = entries.iter().filter(|e| e.action == Action::Unsure).count();
    println!(
        "  longest time without an answer to anybody: {:.2?}; {unsure} ends of unknown success",
        Duration::from_nanos(gap)
    );
}

/// `machine N AGENTS URL PROJECT JOURNAL START END WORK`: starts the agents of one machine.
fn machine(args: &[String]) -> ExitCode {
    let agents: u32 = args[2].parse().unwrap();
    let own = std::env::current_exe().unwrap();
    let mut all: Vec<Child> = (0..agents)
        .map(|n| {
            let mut command = Command::new(&own);
            command.args(["agent", &args[1], &n.to_string()]).args(&args[3..]).spawn().unwrap()
        })
        .collect();
    let good = all.iter_mut().all(|agent| agent.wait().unwrap().success());
    ExitCode::from(u8::from(!good))
}

struct Agent {
    number: u32,
    me: Caller,
    store: PostgresStore,
    journal: File,
    end: u64,
}

/// `agent MACHINE N URL PROJECT JOURNAL START END WORK`
fn agent(args: &[String]) -> ExitCode {
    let number = |at: usize| args[at].parse::<u64>().unwrap();
    let (machine, n) = (u32::try_from(number(1)).unwrap(), u32::try_from(number(2)).unwrap());
    let (url, project, journal, start, end, work_ms) =
        (&args[3], &args[4], PathBuf::from(&args[5]), number(6), number(7), number(8));
    let id = machine * 1000 + n;
    let mut agent = Agent {
        number: id,
        me: Caller::new(Holder::agent(format!("a{id}"))).with_process(Incarnation::current()),
        store: connected(url, project, end),
        journal: append_to(&journal),
        end,
    };
    sleep_until(start);
    if n < RELAYS {
        // A ring of machines: each passes its task to the next.
        agent.relay((machine + n) % MACHINES);
    } else {
        // Spreads any number of agents evenly over the time of one task: multiples of the golden ratio.
        let share = u64::from(id.wrapping_mul(0x9E37_79B9));
        std::thread::sleep(Duration::from_millis((work_ms * share) >> 32));
        agent.work(work_ms);
    }
    ExitCode::SUCCESS
}

fn append_to(journal: &Path) -> File {
    File::options().append(true).open(journal).unwrap()
}

fn connected(url: &str, project: &str, end: u64) -> PostgresStore {
    loop {
        match open(url, project) {
            Ok(store) => return store,
            Err(error) => assert!(now() < end, "{error}"),
        }
    }
}

impl Agent {
    fn note(&mut self, action: Action, task: &str, fence: i64, sent: u64) {
        let entry = Entry { action, agent: self.number, task: task.to_owned(), fence, sent, answered: now() };
        // A single write of less than a page, which is appended as a whole.
        self.journal.write_all(format!("{entry}\n").as_bytes()).unwrap();
    }

    /// Claims the next task, works on it, finishes it, until the time is over.
    fn work(&mut self, work_ms: u64) {
        let mut round = u64::from(self.number);
        while now() < self.end {
            let sent = now();
            let store: &dyn Store = &self.store;
            let hint = ClaimHint { holder: &self.me.holder, wants: ClaimTarget::Next(None) };
            let claimed = store
                .claim(hint, |tx| kernel::acquire_next(tx, &context(), &self.me, None, &Terms::new(TTL)));
            match claimed {
                Ok(Some(grant)) => {
                    self.note(Action::Claimed, &grant.task.key, grant.lease.fence.number(), sent);
                    round =
                        round.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
                    std::thread::sleep(Duration::from_millis(work_ms / 2 + (round >> 33) % (work_ms + 1)));
                    self.give_up(&grant, Finish::Done, Action::Finished);
                }
                // A claim whose answer was lost may have been granted; the agent does not know.
                Ok(None) | Err(_) => std::thread::sleep(Duration::from_millis(20)),
            }
        }
    }

    /// Finishes or releases a task. The report is repeated while the server does not answer.
    fn give_up(&mut self, grant: &Grant, finish: Finish<'_>, action: Action) {
        let caller = Caller::holding(&grant.lease).with_process(Incarnation::current());
        let (name, fence) = (kernel::name_of(&grant.task), grant.lease.fence.number());
        let sent = now();
        let limit = self.end + 20_000_000_000;
        loop {
            let store: &dyn Store = &self.store;
            let done = store
                .write(Durability::Power, |tx| kernel::finish(tx, &context(), &caller, &name, finish, false));
            match done {
                Ok(_) => return self.note(action, &grant.task.key, fence, sent),
                Err(tenure_core::Error::Store { .. }) if now() < limit => {}
                Err(_) => return self.note(Action::Unsure, &grant.task.key, fence, sent),
            }
        }
    }

    /// Waits for the task, holds it for a moment, and releases it to the other agent, until the time is over.
    fn relay(&mut self, task: u32) {
        let store: &dyn Store = &self.store;
        let key = format!("R{task}");
        let id =
            TaskId::new(store.read(|view| view.find_tasks(TaskLookup::Key(&key), 1)).unwrap().remove(0).id);
        let resource = Resource::task(&id);
        let bell = self.store.doorbell();
        let (mut ticket, mut sent) = (None, now());
        while now() < self.end {
            if let Some(bell) = &bell {
                bell.silence();
            }
            match self.try_relay(&id, &resource, bell.as_ref(), ticket.clone()) {
                Ok(Ok(grant)) => {
                    self.note(Action::Claimed, &key, grant.lease.fence.number(), sent);
                    std::thread::sleep(HOLD);
                    self.give_up(&grant, Finish::Release(None), Action::Released);
                    (ticket, sent) = (None, now());
                }
                Ok(Err(number)) => {
                    ticket = Some((number, resource.clone()));
                    wait_for(bell.as_ref());
                }
                Err(_) => std::thread::sleep(Duration::from_millis(20)),
            }
        }
    }

    /// The grant, or the number of the ticket.
    fn try_relay(
        &self,
        id: &TaskId,
        resource: &Resource,
        bell: Option<&Doorbell>,
        ticket: Option<(i64, Resource)>,
    ) -> tenure_core::Result<Result<Box<Grant>, i64>> {
        let terms = Terms { ticket, ..Terms::new(TTL) };
        let (me, address) = (Incarnation::current(), bell.map(Doorbell::address));
        let hint = ClaimHint { holder: &self.me.holder, wants: ClaimTarget::Task(id.as_str()) };
        let store: &dyn Store = &self.store;
        store.claim(hint, |tx| {
            if let Verdict::Granted(grant) = kernel::acquire_task(tx, &context(), &self.me, id, &terms)? {
                return Ok(Ok(grant));
            }
            let waiter =
                Waiter { caller: &self.me, process: &me, doorbell: address.as_deref(), review: false };
            let held = terms.ticket.as_ref().map(|(number, of)| (*number, of));
            kernel::enqueue(tx, &context(), &waiter, resource, held).map(Err)
        })
    }
}

/// Sleeps until the doorbell rings, or for the default poll interval.
fn wait_for(bell: Option<&Doorbell>) {
    let limit = Timespec { tv_sec: 5, tv_nsec: 0 };
    let mut fds: Vec<PollFd<'_>> =
        bell.iter().map(|bell| PollFd::from_borrowed_fd(bell.fd(), PollFlags::IN)).collect();
    poll(&mut fds, Some(&limit)).unwrap();
}
