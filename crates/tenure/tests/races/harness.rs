//! The project that every race begins with, and how processes are made to race.

use std::ops::{Deref, DerefMut};
use std::process::Command;

use serde_json::Value;
use tenure_core::store::EventFilter;
use tenure_core::wire;
use tenure_testkit::cli::{self, Answer, Running, Sandbox, full_or, until};
use tenure_testkit::postgres::Cluster;

use crate::SUITE;

/// How often a race is run: on a server, where each takes longer, fewer times unless all are asked for.
pub(crate) fn rounds(long: usize, short: usize) -> usize {
    full_or(long, if SUITE.is_on_postgres() { short.div_ceil(4) } else { short })
}

/// In a sandbox of its own; a server is given by `TENURE_STORE`.
#[derive(Debug)]
pub(crate) struct Project(cli::Project);

impl Deref for Project {
    type Target = cli::Project;

    fn deref(&self) -> &cli::Project {
        &self.0
    }
}

impl DerefMut for Project {
    fn deref_mut(&mut self) -> &mut cli::Project {
        &mut self.0
    }
}

impl Project {
    /// A folder in which `init` has not run yet.
    pub(crate) fn bare() -> Self {
        Self::bare_on(SUITE.is_on_postgres().then(|| Cluster::shared().url()))
    }

    /// [`Project::bare`] on this server, or on SQLite.
    pub(crate) fn bare_on(url: Option<String>) -> Self {
        let mut project = Sandbox::on(SUITE, None).bare_project("p");
        project.store_variable = url;
        Self(project)
    }

    pub(crate) fn new() -> Self {
        let project = Self::bare();
        project.init(&[]);
        project
    }

    pub(crate) fn with_config(config: &str) -> Self {
        Self::new().configured(config)
    }

    pub(crate) fn configured(self, config: &str) -> Self {
        self.configure(config);
        self
    }

    /// A command without a controlling terminal, so that it cannot be attributed to the person at the terminal.
    pub(crate) fn anonymous(&self, args: &[&str]) -> Command {
        let plain = self.command(args);
        if !has_terminal() {
            return plain;
        }
        let mut command = Command::new("setsid");
        self.surround(&mut command);
        command.arg(plain.get_program()).args(plain.get_args());
        command
    }

    /// Adds `count` tasks with the keys `PREFIX1` … and returns those keys.
    pub(crate) fn add(&self, prefix: &str, count: usize) -> Vec<String> {
        let keys: Vec<String> = (1..=count).map(|n| format!("{prefix}{n}")).collect();
        let rows: Vec<Value> =
            keys.iter().map(|key| serde_json::json!({"id": key, "title": format!("task {key}")})).collect();
        let file = self.root().join(format!("{prefix}.json"));
        std::fs::write(&file, serde_json::to_string(&rows).unwrap()).unwrap();
        self.ok(&["tasks", "import", file.to_str().unwrap()]);
        keys
    }

    /// All events, as the command line would print them.
    pub(crate) fn feed(&self) -> Vec<Value> {
        let filter = EventFilter { limit: u64::from(u32::MAX), ..EventFilter::default() };
        let events = self.store().read(|view| view.events(&filter)).unwrap();
        events.iter().map(|event| serde_json::json!(wire::event(event))).collect()
    }

    /// The length of the queue for `task`.
    pub(crate) fn queue(&self, task: &str) -> u64 {
        self.ok(&["locks", "show", task])["queue"].as_u64().unwrap()
    }

    pub(crate) fn wait_for_queue(&self, task: &str, length: u64) {
        until(&format!("{length} are queued for {task}"), || self.queue(task) == length);
    }
}

fn has_terminal() -> bool {
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap_or_default();
    let number = stat.rsplit_once(')').and_then(|(_, rest)| rest.split_whitespace().nth(4)).unwrap_or("0");
    number != "0"
}

/// Starts all commands while no process can write, then lets them write; their answers, in order.
pub(crate) fn contest(project: &Project, commands: Vec<Command>) -> Vec<Answer> {
    let held = project.hold_queue();
    let running: Vec<Running> = commands.into_iter().map(Running::start).collect();
    drop(held);
    running.into_iter().map(Running::end).collect()
}
