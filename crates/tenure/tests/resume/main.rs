//! Jobs, sessions and their resume, as real processes: what is interrupted goes on, once.
//!
//! Nothing asserts an absolute time: deadlines only turn a hang into a failure. `TENURE_TEST_FULL=1` runs the long counts;
//! `TENURE_TEST_SEED` repeats a random run.

#![expect(
    clippy::unwrap_used,
    clippy::panic,
    clippy::print_stderr,
    reason = "a test stops where it fails, and says what it measured"
)]

mod changes;
mod concurrent;
mod crew;
mod failures;
mod full_disk;
mod hostile;
mod kills;
mod many;
#[path = "../runners/processes.rs"]
mod processes;
mod sessions;
mod stopping;
mod store_away;
#[path = "../runners/world.rs"]
#[expect(dead_code, reason = "the tests of runners need more of it")]
mod world;

use serde_json::Value;
use world::Project;

impl Project {
    /// A list of items, line by line.
    fn items(&self, name: &str, lines: impl IntoIterator<Item = String>) {
        let text: Vec<String> = lines.into_iter().collect();
        std::fs::write(self.root().join(name), text.join("\n") + "\n").unwrap();
    }

    fn numbers(&self, name: &str, count: u64) {
        self.items(name, (1..=count).map(|n| n.to_string()));
    }

    /// A script that the items run, with the folder that it shares with the test as `$PRETEND`.
    fn script(&self, name: &str, text: &str) {
        use std::os::unix::fs::PermissionsExt;
        let path = self.root().join(name);
        let inside = self.shared("x");
        let shared = inside.parent().unwrap();
        std::fs::write(&path, format!("#!/bin/sh\nexport PRETEND='{}'\n{text}\n", shared.display())).unwrap();
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
    }

    /// Starts the job `a` over `items.txt`, and waits for its end.
    fn start(&self, more: &[&str]) -> world::Answer {
        let mut args = vec!["--json", "jobs", "start", "a", "--items", "items.txt"];
        args.extend(more);
        self.run(&args)
    }

    fn job(&self, name: &str) -> Value {
        self.ok(&["jobs", "show", name])["job"].clone()
    }

    fn job_status(&self, name: &str) -> String {
        self.job(name)["status"].as_str().unwrap().to_owned()
    }

    /// The numbers of the items that have succeeded, from the feed: each as often as it has.
    fn successes(&self) -> Vec<u64> {
        let done = |event: &&Value| event["kind"] == "item.status" && event["detail"]["to"] == "succeeded";
        let mut found: Vec<u64> =
            self.feed().iter().filter(done).map(|event| event["detail"]["item"].as_u64().unwrap()).collect();
        found.sort_unstable();
        found
    }
}
