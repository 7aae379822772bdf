//! Agents: whether each preset's program is on PATH, and its version.

use std::ffi::OsString;
use std::io::Read;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::json;
use tenure_runner::agents::Agent;
use tenure_runner::preset;

use super::Examination;
use super::finding::{Finding, Severity};
use crate::app::App;
use crate::project::Project;

const PATIENCE: Duration = Duration::from_secs(5);

pub(super) fn examine(app: &App<'_>, project: Option<&Project>, found: &mut Examination) {
    let config = project.map_or_else(|| app.config(None), |project| project.config.clone());
    let Ok(config) = config else { return };
    let root = project.map_or_else(|| app.env.cwd.clone(), |project| project.paths.root.clone());
    let path = app.env.vars.get(&OsString::from("PATH")).map(OsString::as_os_str);
    let reviewer = config.review.preset.clone().filter(|_| config.review.enabled);
    let wanted: Vec<String> = std::iter::once(config.runners.preset.clone()).chain(reviewer).collect();
    for name in preset::names(&config.presets) {
        let Ok(agent) = preset::resolve(name, &config.presets, &root, path) else { continue };
        let version = version_of(app, &agent.program);
        found.agents.push(json!({"preset": name, "program": agent.program, "version": version}));
        let shown = version.unwrap_or_else(|| agent.program.display().to_string());
        found.checks.push(("agents", format!("{name}: {shown}")));
    }
    // With a timer, a runner that cannot start its agent fails every minute. Without one, agents may not be in use at all.
    let unattended = found.checks.iter().any(|(check, _)| *check == "timer");
    for name in wanted {
        if let Err(error) = preset::resolve(&name, &config.presets, &root, path) {
            let severity = if unattended { Severity::Problem } else { Severity::Warning };
            let other = preset::any_runnable(&config.presets, &root, path);
            let command = other.map_or_else(
                || "tenure config edit".to_owned(),
                |other| format!("tenure config set runners.preset {}", crate::shell_quote::quote(other)),
            );
            found
                .findings
                .push(Finding { severity, ..Finding::problem("agents", error.to_string(), command) });
        }
    }
}

/// Only programs that were tested are run with `--version`: another one might ignore the flag and start working.
fn version_of(app: &App<'_>, program: &Path) -> Option<String> {
    let agent = Agent::of_program(program);
    if !(agent.is_known() && agent.tested) {
        return None;
    }
    let mut command = Command::new(program);
    command.arg("--version").env_clear().envs(&app.env.vars);
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null());
    let mut child = command.spawn().ok()?;
    let end = Instant::now() + PATIENCE;
    while child.try_wait().ok()?.is_none() {
        if Instant::now() >= end {
            let _ = child.kill();
            let _ = child.wait();
            return None;
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    let mut text = Vec::new();
    child.stdout.take()?.take(4096).read_to_end(&mut text).ok()?;
    let text = String::from_utf8_lossy(&text);
    text.lines().next().map(|line| line.trim().to_owned()).filter(|line| !line.is_empty())
}
