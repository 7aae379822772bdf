//! What is concluded from the output of agents: recorded endings of real programs, normal runs in which error messages are
//! only quoted, and damaged output.

#![expect(clippy::unwrap_used, clippy::panic, reason = "a failed expectation is a failed test")]

mod alarming;
mod damaged;
mod recorded;

use std::fs;
use std::path::{Path, PathBuf};

use jiff::tz::TimeZone;
use serde_json::Value;
use tenure_core::Timestamp;
use tenure_runner::agents::{Agent, BUILT_IN, CUSTOM, Conclusion, LocalNow, ProcessEnd, Summary};

fn summary_of(agent: &Agent, output: &str) -> Summary {
    let mut summary = Summary::default();
    for line in output.lines() {
        for event in agent.parse(line) {
            summary.add(event);
        }
    }
    summary
}

/// Before every reset in the recordings.
const NOW: Timestamp = Timestamp::from_millis(1_794_819_600_000);

fn concluded(agent: &Agent, output: &str, end: ProcessEnd) -> Conclusion {
    concluded_in(TimeZone::UTC, agent, output, end)
}

fn concluded_in(zone: TimeZone, agent: &Agent, output: &str, end: ProcessEnd) -> Conclusion {
    agent.conclude(end, &summary_of(agent, output), &LocalNow { at: NOW, zone })
}

fn agent_named(name: &str) -> &'static Agent {
    BUILT_IN.iter().find(|agent| agent.name == name).unwrap_or_else(|| panic!("{name} is not a known agent"))
}

/// One recorded run.
struct Recording {
    name: String,
    agent: &'static Agent,
    output: String,
    end: ProcessEnd,
    expect: String,
}

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/agent-recordings")
}

fn recordings() -> Vec<Recording> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder()).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_none_or(|extension| extension != "json") {
            continue;
        }
        let about: Value = serde_json::from_str(&fs::read_to_string(&path).unwrap()).unwrap();
        let exit = about["exit"].as_i64().map(|code| i32::try_from(code).unwrap());
        found.push(Recording {
            name: path.file_stem().unwrap().to_string_lossy().into_owned(),
            agent: agent_named(about["agent"].as_str().unwrap()),
            output: fs::read_to_string(path.with_extension("out")).unwrap(),
            end: exit.map_or(ProcessEnd::Hung, ProcessEnd::Exited),
            expect: about["expect"].as_str().unwrap().to_owned(),
        });
    }
    found.sort_by(|a, b| a.name.cmp(&b.name));
    found
}

#[test]
fn an_agent_is_recognised_only_by_its_exact_program_name() {
    assert_eq!(Agent::of_program(Path::new("/usr/bin/claude")).name, "claude");
    assert_eq!(Agent::of_program(Path::new("cursor-agent")).name, "cursor");
    for other in ["claude.sh", "my-codex", "sh", "/", "cursor"] {
        assert_eq!(Agent::of_program(Path::new(other)).name, CUSTOM.name, "{other}");
    }
}
