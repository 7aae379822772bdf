//! One user with a pretend agent, a pretend crontab, and as many projects as a test wants.

use std::collections::BTreeMap;
use std::ops::Deref;
use std::path::Path;
use std::sync::Arc;

use serde_json::Value;
use tenure_testkit::cli::{Project, Sandbox, write_program};

use crate::SUITE;

/// A `crontab` that keeps its text in a file beside it and otherwise behaves like Debian's. The user's own crontab is never read.
const CRONTAB: &str = r#"#!/bin/sh
file=$(dirname "$0")/../crontab
case $1 in
-l) [ -e "$file" ] || { echo "no crontab for tester" >&2; exit 1; }; cat "$file" ;;
-r) rm "$file" ;;
-) [ ! -e "$file.readonly" ] || { echo "$file: Permission denied" >&2; exit 1; }; cat >"$file" ;;
*) exit 2 ;;
esac
"#;

/// A runner is stale after three seconds without a heartbeat; everything else is patient.
pub(crate) const USUAL: &str = "runners: {preset: pretend, killGrace: 300ms, heartbeatInterval: 500ms, staleTimeout: 3s}\n\
     locking: {pollInterval: 500ms, taskTimeout: 10s, sectionTimeout: 10s}\ntasks: {maxAttempts: 1000}\n";

/// The same, with ten minutes between two heartbeats.
pub(crate) fn slow() -> String {
    USUAL
        .replace("heartbeatInterval: 500ms, staleTimeout: 3s", "heartbeatInterval: 10m, staleTimeout: 30m")
        .replace("taskTimeout: 10s", "taskTimeout: 60m")
}

pub(crate) struct Machine(Arc<Sandbox>);

impl Deref for Machine {
    type Target = Arc<Sandbox>;

    fn deref(&self) -> &Arc<Sandbox> {
        &self.0
    }
}

impl Machine {
    pub(crate) fn new() -> Self {
        Self::with(USUAL)
    }

    /// With this configuration of the user, which holds for every project.
    pub(crate) fn with(config: &str) -> Self {
        let sandbox = Sandbox::new(SUITE);
        write_program(&sandbox.path("bin/crontab"), CRONTAB);
        let presets = sandbox.agent_presets();
        sandbox.configure_user(&format!("{presets}{config}"));
        Self(sandbox)
    }

    /// Runs one wake-up. Its decision and reason for each project, by the name of the project's folder.
    pub(crate) fn wake_up(&self, more: &[&str]) -> BTreeMap<String, (String, String)> {
        let mut args = vec!["--json", "runners", "wakeup"];
        args.extend(more);
        let answer = self.run(&args);
        assert_eq!(answer.json()["success"], true, "{answer:?}");
        decisions(&answer.json()["data"])
    }

    pub(crate) fn wakeup_log(&self) -> String {
        std::fs::read_to_string(self.tenure_home().join("runners/logs/wakeup.log")).unwrap_or_default()
    }
}

/// As if every runner of the project had been silent for an hour.
pub(crate) fn make_silent(project: &Project) {
    project.sql(
        "UPDATE runners SET heartbeat_at = heartbeat_at - 3600000 WHERE completed_at IS NULL;
         UPDATE leases SET heartbeat_at = heartbeat_at - 3600000, expires_at = expires_at - 3600000
         WHERE ended_at IS NULL AND holder_kind = 'runner';",
    );
}

pub(crate) fn decisions(data: &Value) -> BTreeMap<String, (String, String)> {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let name = |path: &Value| Path::new(&text(path)).file_name().unwrap().to_string_lossy().into_owned();
    let results = data["results"].as_array().unwrap_or_else(|| panic!("{data}"));
    results.iter().map(|r| (name(&r["project"]), (text(&r["decision"]), text(&r["reason"])))).collect()
}
