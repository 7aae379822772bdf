//! The project that every test of jobs and sessions begins with, and what these tests ask it.

use std::ops::Deref;

use serde_json::Value;
use tenure_testkit::cli::{self, Answer, HASTY, PATIENT, write_program};

use crate::SUITE;

/// In a sandbox of its own, with the pretend agent.
pub(crate) struct Project(cli::Project);

impl Deref for Project {
    type Target = cli::Project;

    fn deref(&self) -> &cli::Project {
        &self.0
    }
}

impl Project {
    /// Nothing expires by itself.
    pub(crate) fn new() -> Self {
        Self::with(PATIENT)
    }

    /// Leases expire after three seconds without a heartbeat.
    pub(crate) fn hasty() -> Self {
        Self::with(HASTY)
    }

    pub(crate) fn with(config: &str) -> Self {
        Self(cli::Project::with_agent(SUITE, config))
    }

    /// Writes a list of items, one per line.
    pub(crate) fn items(&self, name: &str, lines: impl IntoIterator<Item = String>) {
        let text: Vec<String> = lines.into_iter().collect();
        std::fs::write(self.root().join(name), text.join("\n") + "\n").unwrap();
    }

    pub(crate) fn numbers(&self, name: &str, count: u64) {
        self.items(name, (1..=count).map(|n| n.to_string()));
    }

    /// A script that the items run. `$PRETEND` is the folder that it shares with the test.
    pub(crate) fn script(&self, name: &str, text: &str) {
        let shared = self.path("agent");
        let text = format!("#!/bin/sh\nexport PRETEND='{}'\n{text}\n", shared.display());
        write_program(&self.root().join(name), &text);
    }

    /// Starts the job `a` over `items.txt` and waits for its end.
    pub(crate) fn start(&self, more: &[&str]) -> Answer {
        let mut args = vec!["--json", "jobs", "start", "a", "--items", "items.txt"];
        args.extend(more);
        self.run(&args)
    }

    pub(crate) fn job(&self, name: &str) -> Value {
        self.ok(&["jobs", "show", name])["job"].clone()
    }

    pub(crate) fn job_status(&self, name: &str) -> String {
        self.job(name)["status"].as_str().unwrap().to_owned()
    }

    /// The numbers of the items that have succeeded, according to the events; one entry per success.
    pub(crate) fn successes(&self) -> Vec<u64> {
        let done = |event: &&Value| event["kind"] == "item.status" && event["detail"]["to"] == "succeeded";
        let mut found: Vec<u64> =
            self.feed().iter().filter(done).map(|event| event["detail"]["item"].as_u64().unwrap()).collect();
        found.sort_unstable();
        found
    }
}
