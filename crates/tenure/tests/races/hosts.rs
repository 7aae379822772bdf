//! Two machines on one project: clones in two folders, each with its own machine id and its own connection to the server.

use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;

use tenure_testkit::postgres::Cluster;
use tenure_testkit::proxy::Proxy;

use tenure_testkit::cli::{Running, until};

use crate::harness::Project;

/// A machine: its name, its clone of the project, and its connection to the server.
struct Host {
    name: &'static str,
    clone: Project,
    network: Proxy,
    machine_id: PathBuf,
}

impl Host {
    fn new(name: &'static str, config: &str) -> Self {
        let cluster = Cluster::shared();
        let network = Proxy::to(cluster.port());
        let clone = Project::bare_on(Some(cluster.tcp_url("tenure", network.port())));
        std::fs::create_dir(clone.root().join(".tenure")).unwrap();
        std::fs::write(clone.root().join(".tenure/config.yaml"), config).unwrap();
        let machine_id = clone.root().join("machine-id");
        std::fs::write(&machine_id, format!("{:0>32}\n", name.len() + usize::from(name.as_bytes()[0])))
            .unwrap();
        Self { name, clone, network, machine_id }
    }

    /// The program on that machine, in namespaces that change the machine id and the host name.
    fn command(&self, args: &[&str]) -> Command {
        let ordinary = self.clone.command(args);
        let mut command = Command::new("unshare");
        command.args(["--mount", "--uts"]);
        if !rustix::process::geteuid().is_root() {
            command.args(["--user", "--map-root-user"]);
        }
        let set_identity = "mount --bind \"$1\" /etc/machine-id && hostname \"$2\" && shift 2 && exec \"$@\"";
        command.args(["sh", "-c", set_identity, "sh"]).arg(&self.machine_id).arg(self.name);
        command.arg(ordinary.get_program()).args(ordinary.get_args());
        command.env_clear().current_dir(self.clone.root());
        for (name, value) in ordinary.get_envs() {
            command.env(name, value.unwrap_or_default());
        }
        command.stdin(std::process::Stdio::null());
        command
    }

    fn start(&self, args: &[&str]) -> Running {
        Running::start(self.command(args))
    }

    fn ok(&self, args: &[&str]) -> serde_json::Value {
        self.start(&[&["--json"], args].concat()).end().data()
    }
}

/// Two machines with the same tracked configuration, and an agent that records its steps in `journal`.
fn two_hosts(agent: &str) -> (Host, Host, PathBuf) {
    let config = format!(
        "project: {{id: {}}}\nlocking: {{pollInterval: 1s}}\n\
         runners: {{maxConcurrent: 2, preset: mine, heartbeatInterval: 1s, staleTimeout: 3s, killGrace: 1s}}\n\
         presets: {{mine: {{command: [./agent.sh]}}}}\n",
        tenure_testkit::fixture::fresh_project()
    );
    let (a, b) = (Host::new("ash", &config), Host::new("birch", &config));
    let journal = a.clone.root().join("journal");
    for host in [&a, &b] {
        let path = host.clone.root().join("agent.sh");
        let script =
            format!("#!/bin/sh\nsay() {{ echo \"$(hostname) $1\" >> {}; }}\n{agent}\n", journal.display());
        std::fs::write(&path, script).unwrap();
        std::fs::set_permissions(&path, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    }
    a.ok(&["init"]);
    (a, b, journal)
}

fn read(journal: &std::path::Path) -> Vec<String> {
    std::fs::read_to_string(journal).unwrap_or_default().lines().map(str::to_owned).collect()
}

const START: &[&str] = &["--json", "runners", "start", "--foreground", "--ttl", "3s"];

#[test]
fn two_machines_share_the_work_but_never_a_serial_section() {
    let (a, b, journal) = two_hosts("say \"begin $TENURE_TASK_ID\"\nsleep 0.2\nsay \"end $TENURE_TASK_ID\"");
    a.ok(&["sections", "add", "Line"]);
    a.ok(&["sections", "add", "Crowd", "--parallel"]);
    for n in 0..10 {
        let section = if n % 2 == 0 { "Line" } else { "Crowd" };
        b.ok(&["tasks", "add", &format!("task {n}"), "--section", section]);
    }
    let listed = b.ok(&["tasks", "list"]);
    let in_line: Vec<String> = listed["tasks"]
        .as_array()
        .unwrap()
        .iter()
        .filter(|task| task["section"] == "Line")
        .map(|task| task["id"].as_str().unwrap().to_owned())
        .collect();
    let runners = [a.start(START), b.start(START)];
    until("both work", || a.ok(&["status"])["runners"].as_array().unwrap().len() == 2);
    let seen = a.ok(&["runners", "list"]);
    let hosts: Vec<&str> =
        seen["runners"].as_array().unwrap().iter().map(|r| r["host"].as_str().unwrap()).collect();
    assert!(hosts.contains(&"ash") && hosts.contains(&"birch"), "{seen}");
    let answers = runners.map(Running::end);
    for answer in &answers {
        assert_eq!(answer.code, Some(0), "{answer:?}");
    }
    assert_eq!(a.ok(&["tasks", "list", "--status", "completed"])["total"], 10);
    let lines = read(&journal);
    for host in ["ash", "birch"] {
        assert!(lines.iter().any(|line| line.starts_with(host)), "{host} did nothing: {lines:#?}");
    }
    let mut working = 0;
    for line in lines.iter().filter(|line| in_line.iter().any(|id| line.contains(id))) {
        working += if line.contains("begin") { 1 } else { -1 };
        assert!((0..=1).contains(&working), "two at once in the section: {lines:#?}");
    }
}

#[test]
fn a_machine_that_loses_the_server_stops_and_its_task_continues_elsewhere() {
    let (a, b, journal) = two_hosts(
        "say begun\n[ \"$(hostname)\" = birch ] && exit 0\nfor i in $(seq 600); do sleep 0.1; say tick; done",
    );
    b.ok(&["tasks", "add", "Long", "--id", "LONG"]);
    let first = a.start(START);
    until("the agent works", || read(&journal).len() > 1);
    let held = b.ok(&["locks", "show", "LONG"]);
    let fence = held["lock"]["fence"].to_string();
    let holder = held["lock"]["holder"]["id"].as_str().unwrap();
    assert_eq!(held["lock"]["holder"]["host"], "ash");
    let why = b.start(&["why", "LONG"]).end();
    assert!(why.out.contains("ash"), "{why:?}");
    let refused = b.start(&["--json", "tasks", "claim", "LONG", "--agent", "bob"]).end();
    assert_eq!(refused.code, Some(6), "an unknown machine counts as alive: {refused:?}");

    // The task is held elsewhere, so this runner neither works on it nor waits for it.
    let idle = b.start(START).end();
    assert_eq!(idle.code, Some(0), "{idle:?}");
    let said = format!("{idle:?}");
    assert!(
        said.contains("Nothing is ready: LONG is being worked on by") && said.contains("on ash"),
        "{said}"
    );

    a.network.close();
    // As wake-up does: repeated until there is work for it.
    until("the task continues on the other machine", || {
        b.start(START).end();
        read(&journal).iter().any(|line| line == "birch begun")
    });
    std::thread::sleep(Duration::from_millis(500));
    let lines = read(&journal);
    assert_eq!(lines.last().unwrap(), "birch begun", "two agents at once: {lines:#?}");

    a.network.open();
    // The refused write is recorded, and changes nothing else.
    let state = || {
        let mut shown = b.ok(&["tasks", "show", "LONG", "--history"]);
        let events = shown["events"].as_array_mut().unwrap();
        events.retain(|event| event["kind"] != "write.rejected");
        shown
    };
    let before = state();
    let late = a.start(&["--json", "tasks", "done", "LONG", "--agent", holder, "--fence", &fence]).end();
    assert_eq!(late.code, Some(8), "{late:?}");
    assert_eq!(state(), before, "a late finish changes nothing");
    assert_eq!(before["task"]["status"], "completed");
    first.signal(rustix::process::Signal::TERM);
    assert!(first.ends_within(Duration::from_mins(1)), "the runner stops on SIGTERM");
}
