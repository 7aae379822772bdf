//! Agents: whether each preset's program is on PATH, its version, and whether the configured ones can work.

use std::ffi::OsString;
use std::io::Read;
use std::path::Path;
use std::process::{Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use serde_json::json;
use tenure_core::config::Permissions;
use tenure_core::hints;
use tenure_runner::SYSTEM_HAS_SANDBOX;
use tenure_runner::agents::{AccessError, Agent};
use tenure_runner::preset::{self, AgentCommand, PresetError, PresetSource};

use super::Examination;
use super::finding::{Finding, Severity};
use crate::app::App;
use crate::project::Project;
use crate::trust;

const PATIENCE: Duration = Duration::from_secs(5);

pub(super) fn examine(app: &App<'_>, project: Option<&Project>, found: &mut Examination) {
    let config = project.map_or_else(|| app.config(None), |project| project.config.clone());
    let Ok(config) = config else { return };
    let root = project.map_or_else(|| app.env.cwd.clone(), |project| project.paths.root.clone());
    let path = app.env.vars.get(&OsString::from("PATH")).map(OsString::as_os_str);
    let reviewer = config.review.preset.clone().filter(|_| config.review.enabled);
    let mut wanted: Vec<String> = std::iter::once(config.runners.preset.clone()).chain(reviewer).collect();
    wanted.dedup();
    // An agent follows the settings of the folder in which it is run, so it is run only where it could be started.
    let trusted = project.is_some_and(|project| {
        trust::examine(app.env, &project.paths).is_ok_and(|examined| examined.allows_agents(app.env))
    });
    let source = PresetSource::of(&config, &root, path);
    // Checks only whether the agent is installed, not whether its permissions are possible.
    let any = PresetSource { permissions: Permissions::Full, ..source };
    for name in preset::names(&config.presets) {
        let Ok(agent) = preset::resolve(name, &any) else { continue };
        let version = version_of(app, &agent.program);
        found.agents.push(json!({"preset": name, "program": agent.program, "version": version}));
        let shown = version.unwrap_or_else(|| agent.program.display().to_string());
        found.checks.push(("agents", format!("{name}: {shown}")));
    }
    // With a timer, a runner that cannot start its agent fails every minute. Without one, agents may not be in use at all.
    let unattended = found.checks.iter().any(|(check, _)| *check == "timer");
    let severity = if unattended { Severity::Problem } else { Severity::Warning };
    for name in wanted {
        let finding = match preset::resolve(&name, &source) {
            Ok(agent) if trusted => {
                sandbox(app, &agent, found);
                login(app, &agent, found);
                continue;
            }
            Ok(_) => continue,
            Err(error) => {
                let hint = match error {
                    PresetError::Access { source, .. } => source.hint(),
                    _ => preset::any_runnable(&source).map_or_else(hints::define_preset, |other| {
                        hints::set_preset(crate::shell_quote::quote(other))
                    }),
                };
                Finding::problem("agents", error.to_string(), hint)
            }
        };
        found.findings.push(Finding { severity, ..finding });
    }
}

/// Checks whether the sandbox that claude would use can be started. In some containers it cannot.
fn sandbox(app: &App<'_>, agent: &AgentCommand, found: &mut Examination) {
    if let Some(sentence) = agent.unlimited() {
        found.checks.push(("agents", sentence));
    }
    let sandboxed = agent.granted.as_ref().is_some_and(|granted| {
        granted.permissions == Permissions::Work && granted.has_sandbox && agent.agent.name == "claude"
    });
    if !sandboxed || SYSTEM_HAS_SANDBOX {
        return;
    }
    let args = ["--ro-bind", "/", "/", "--unshare-net", "--unshare-pid", "--dev", "/dev", "true"];
    match run(app, Path::new("bwrap"), &args) {
        Some((status, _)) if status.success() => {
            found.checks.push(("agents", format!("{}: its sandbox works", agent.preset)));
        }
        _ => {
            let sentence = format!("{}: bwrap cannot start its sandbox on this machine", agent.preset);
            found.findings.push(Finding::warning("agents", sentence, AccessError::NoSandbox.hint()));
        }
    }
}

fn login(app: &App<'_>, agent: &AgentCommand, found: &mut Examination) {
    let Some(login) = &agent.agent.login else { return };
    // An agent that does not answer is not reported: it may be an older version.
    let Some((status, _)) = run(app, &agent.program, login.check) else { return };
    if status.success() {
        found.checks.push(("agents", format!("{}: it is logged in", agent.preset)));
    } else {
        let sentence = format!("{}: not logged in", agent.preset);
        found.findings.push(Finding::warning("agents", sentence, hints::log_in(login.command)));
    }
}

/// Only programs that were tested are run with `--version`: another one might ignore the flag and start working.
fn version_of(app: &App<'_>, program: &Path) -> Option<String> {
    let agent = Agent::of_program(program);
    if !(agent.is_known() && agent.tested) {
        return None;
    }
    let (_, text) = run(app, program, &["--version"])?;
    text.lines().next().map(|line| line.trim().to_owned()).filter(|line| !line.is_empty())
}

/// Runs a program for a short time. `None` if it cannot be run or does not end.
fn run(app: &App<'_>, program: &Path, args: &[&str]) -> Option<(ExitStatus, String)> {
    let mut command = Command::new(program);
    command.args(args).env_clear().envs(&app.env.vars);
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null());
    let mut child = command.spawn().ok()?;
    let end = Instant::now() + PATIENCE;
    let status = loop {
        if let Some(status) = child.try_wait().ok()? {
            break status;
        }
        if Instant::now() >= end {
            let _ = child.kill();
            let _ = child.wait();
            return None;
        }
        std::thread::sleep(Duration::from_millis(10));
    };
    let mut text = Vec::new();
    child.stdout.take()?.take(4096).read_to_end(&mut text).ok()?;
    Some((status, String::from_utf8_lossy(&text).into_owned()))
}
