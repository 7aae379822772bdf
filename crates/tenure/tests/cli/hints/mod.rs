//! Hints work where they are given: every hint of the table in `tenure_core::hints` has a scenario here. A scenario is a few lines of
//! shell in a fresh project. The last line makes the program print the hint. The suggested command is then run in the same
//! folder, with the same variables.

mod scenarios;

use std::collections::BTreeSet;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use rustix::process::Signal;
use serde_json::Value;
use tenure_core::hints::{HINTS, HintTemplate};
use tenure_testkit::cli::{Answer, Project, Running, StoreKind, Suite, skip, until, write_program};
use tenure_testkit::postgres::Cluster;

use scenarios::{GROUPS, Scenario};

const SUITE: Suite = Suite { binary: env!("CARGO_BIN_EXE_tenure"), store: StoreKind::Sqlite };

/// The beginning of each part of a scenario. `$HERE` is a folder for files that are kept between the parts.
const PRELUDE: &str = r#"
# Writes a program: its name and its text.
program() { printf '#!/bin/sh\n%s\n' "$2" >"$HERE/../bin/$1"; chmod +x "$HERE/../bin/$1"; }
# Keeps trying a command until it succeeds.
until_ok() { n=0; until "$@" >/dev/null 2>&1; do n=$((n + 1)); [ $n -lt 1000 ] || exit 99; sleep 0.02; done; }
"#;

/// A `crontab` that keeps its text in a file beside it.
const CRONTAB: &str = r#"#!/bin/sh
file=$(dirname "$0")/../run/crontab
case $1 in
-l) [ -e "$file" ] || { echo "no crontab for tester" >&2; exit 1; }; cat "$file" ;;
-) cat >"$file" ;;
esac
"#;

/// Settings that `config set` can change: it leaves flow mappings alone.
const CONFIG: &str = "runners:\n  preset: pretend\n  killGrace: 300ms\nlocking:\n  pollInterval: 1s";

/// A project in which a scenario is played.
struct Stage {
    project: Project,
    /// An empty database on a PostgreSQL server, if the scenario names it.
    server: Option<String>,
}

impl Stage {
    fn for_scenario(scenario: &Scenario) -> Self {
        let project = Project::with_agent(SUITE, CONFIG);
        project.put_tenure_on_path();
        write_program(&project.path("bin/crontab"), CRONTAB);
        let names_server = scenario.before.contains("$SERVER") || scenario.gives.contains("$SERVER");
        let server = names_server.then(|| Cluster::shared().url_of(&Cluster::shared().new_database()));
        Self { project, server }
    }

    /// Runs a part of a scenario, with the folder and the variables as the previous parts left them.
    fn shell(&self, program: &str, args: &[&str]) -> Command {
        let mut command = Command::new(program);
        self.project.surround(&mut command);
        let here = self.project.path("run");
        command.args(args).env("HERE", &here);
        if let Some(server) = &self.server {
            command.env("SERVER", server);
        }
        if let Ok(state) = std::fs::read_to_string(here.join("cwd")) {
            // The variables are in a file, which does not have those that were unset.
            command.env_clear().env("HERE", &here).current_dir(state.trim_end());
        }
        command
    }

    fn line(text: &str) -> String {
        format!("{PRELUDE}[ ! -e \"$HERE/vars\" ] || . \"$HERE/vars\"\n{text}\n")
    }

    fn run(&self, text: &str) -> Answer {
        Running::start(self.shell("sh", &["-c", &Self::line(text)])).end()
    }

    fn prepare(&self, text: &str) -> Result<(), String> {
        let answer =
            self.run(&format!("set -e\n{text}\nset +e\nexport -p >\"$HERE/vars\"\npwd >\"$HERE/cwd\""));
        if answer.code == Some(0) { Ok(()) } else { Err(format!("`{text}` failed: {answer:?}")) }
    }

    /// The hint that the last line gives.
    fn hint(&self, gives: &str, wanted: &HintTemplate) -> Result<String, String> {
        let answer = self.run(&format!("export TENURE_JSON=1\n{gives}"));
        let found = hints_in(&answer)
            .into_iter()
            .find(|(why, command)| (why.is_empty() || why == wanted.why) && matches(command, wanted.command));
        found
            .map(|(_, command)| command)
            .ok_or_else(|| format!("`{gives}` does not give {wanted:?}: {answer:?}"))
    }

    /// Runs the suggested command as the scenario says.
    fn paste(&self, scenario: &Scenario, command: &str) -> Answer {
        let text = if scenario.then.is_empty() {
            command.to_owned()
        } else {
            format!("{command}\n{}", scenario.then)
        };
        if scenario.is_endless {
            let running = Running::start(self.shell("sh", &["-c", &Self::line(&format!("exec {text}"))]));
            until(&format!("`{text}` shows something"), || {
                !running.output_so_far().is_empty() || !running.so_far().is_empty()
            });
            running.signal(Signal::INT);
            return running.end();
        }
        let Some(keys) = scenario.keys else { return self.run(&text) };
        let file = self.project.path("run/pasted");
        std::fs::write(&file, Self::line(&text)).unwrap();
        let mut command = self.shell("script", &["-qefc", &format!("sh '{}'", file.display()), "/dev/null"]);
        let (reader, mut writer) = std::io::pipe().unwrap();
        command.stdin(reader);
        let running = Running::start(command);
        writer.write_all(keys.as_bytes()).unwrap();
        running.end()
    }

    fn play(&self, scenario: &Scenario) -> Result<(), String> {
        let wanted = HINTS.iter().find(|hint| hint.name == scenario.hint);
        let wanted = wanted.ok_or_else(|| "there is no such hint".to_owned())?;
        self.prepare(scenario.before)?;
        let command = match scenario.gives.strip_prefix("board: ") {
            Some(command) if matches(command, wanted.command) => command.to_owned(),
            Some(command) => return Err(format!("`{command}` is not {wanted:?}")),
            None => self.hint(scenario.gives, wanted)?,
        };
        let answer = self.paste(scenario, &command);
        let works = if scenario.is_endless {
            [0, 130].contains(&answer.shell_code())
        } else {
            answer.shell_code() == scenario.exit
        };
        if works { Ok(()) } else { Err(format!("`{command}` does not work: {answer:?}")) }
    }
}

/// The hints in JSON, or in a text if the command was run without JSON.
fn hints_in(answer: &Answer) -> Vec<(String, String)> {
    let text = answer.out.trim();
    let Ok(envelope) = serde_json::from_str::<Value>(text)
        .or_else(|_| serde_json::from_str(text.lines().last().unwrap_or_default()))
    else {
        let line = |line: &str| {
            let (why, command) = line.strip_prefix("  ")?.split_once(": ")?;
            Some((why.to_owned(), command.to_owned()))
        };
        return answer.err.lines().chain(answer.out.lines()).filter_map(line).collect();
    };
    let list = |at: &Value| at.as_array().cloned().unwrap_or_default();
    let word = |hint: &Value, name: &str| hint[name].as_str().unwrap_or_default().to_owned();
    let hints = list(&envelope["hints"]);
    let mut found: Vec<_> = hints.iter().map(|hint| (word(hint, "why"), word(hint, "command"))).collect();
    // A finding of `doctor` has a sentence in place of the reason.
    for findings in [&envelope["data"]["findings"], &envelope["error"]["details"]["findings"]] {
        found.extend(list(findings).iter().map(|finding| (String::new(), word(finding, "command"))));
    }
    found
}

/// Whether a command is made from this template.
fn matches(command: &str, template: &str) -> bool {
    let mut rest = command;
    let mut parts = template.split(['{', '}']).step_by(2);
    let Some(after) = rest.strip_prefix(parts.next().unwrap_or_default()) else { return false };
    rest = after;
    for part in parts {
        match rest.find(part) {
            Some(at) => rest = &rest[at + part.len()..],
            None => return false,
        }
    }
    rest.is_empty() || template.ends_with('}')
}

#[track_caller]
fn play(group: &[Scenario]) {
    let mut wrong = Vec::new();
    for scenario in group {
        if scenario.needs_root && !rustix::process::geteuid().is_root() {
            skip(&format!("{} needs root; it was not tried", scenario.hint));
            continue;
        }
        if let Err(why) = Stage::for_scenario(scenario).play(scenario) {
            wrong.push(format!("{} after `{}`: {why}", scenario.hint, scenario.before));
        }
    }
    assert!(wrong.is_empty(), "{} of {} do not work:\n\n{}", wrong.len(), group.len(), wrong.join("\n\n"));
}

#[test]
fn every_hint_has_a_scenario() {
    let played: BTreeSet<&str> = GROUPS.iter().copied().flatten().map(|scenario| scenario.hint).collect();
    let missing: Vec<&str> =
        HINTS.iter().map(|hint| hint.name).filter(|name| !played.contains(name)).collect();
    assert!(missing.is_empty(), "hints without a scenario in tests/cli/hints/scenarios.rs: {missing:?}");
}

/// The crates whose errors reach users, and `doctor`, suggest commands only through the table.
#[test]
fn no_message_of_the_stores_names_a_command_beside_the_table() {
    /// Not suggestions: what an exported file says about itself, and a state that comes with a hint.
    const ALLOWED: [&str; 3] = ["export/markdown.rs", "export/tests.rs", "parking.rs"];
    let crates = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    let mut folders: Vec<PathBuf> =
        ["tenure-core/src", "tenure-sqlite/src", "tenure-postgres/src", "tenure/src/commands/doctor"]
            .map(|folder| crates.join(folder))
            .to_vec();
    let mut found = Vec::new();
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
                continue;
            }
            if path.ends_with("tenure-core/src/hints.rs") || ALLOWED.iter().any(|end| path.ends_with(end)) {
                continue;
            }
            let text = std::fs::read_to_string(&path).unwrap();
            let named = text.lines().map(str::trim_start).filter(|line| !line.starts_with("//"));
            let named = named.filter(|line| line.contains("`tenure ") || line.contains("run: tenure "));
            found.extend(named.map(|line| format!("{}: {line}", path.display())));
        }
    }
    assert!(found.is_empty(), "{found:#?}");
}

#[test]
fn a_command_is_compared_with_its_template() {
    assert!(matches("tenure tasks show T1", "tenure tasks show {key}"));
    assert!(matches("tenure task renew T1 --agent ann", "tenure task renew {key} --agent {agent}"));
    assert!(matches("tenure init", "tenure init"));
    assert!(!matches("tenure init -C x", "tenure init"));
    assert!(!matches("tenure tasks claim T1", "tenure tasks claim {key} --wait"));
}

macro_rules! groups {
    ($($name:ident: $group:ident;)*) => {
        $(#[test]
        fn $name() {
            play(scenarios::$group);
        })*
    };
}

groups! {
    hints_about_projects_work: PROJECTS;
    hints_about_tasks_work: TASKS;
    hints_about_claims_work: CLAIMS;
    hints_about_sections_and_agents_work: SECTIONS;
    hints_about_runners_work: RUNNERS;
    hints_about_timers_work: TIMERS;
    hints_about_jobs_work: JOBS;
    hints_about_the_exclusive_lock_work: EXCLUSIVE;
    hints_about_trust_and_configuration_work: CONFIGURATION;
    hints_about_stores_work: STORES;
    hints_about_servers_work: SERVERS;
    hints_of_doctor_work: DOCTOR;
    hints_about_clients_work: CLIENTS;
    hints_about_the_program_work: PROGRAM;
    hints_to_the_demo_work: DEMO;
}
