//! Hooks that outlive the process that fired them.
//!
//! A command lives for some milliseconds, so `async` hooks are handed to a second run of our own binary, in a session of
//! its own and with no terminal, no output and none of the caller's lease. It gets its errand on standard input, because
//! arguments can be read by everybody. The errand holds templates as they were configured: variables are filled in by the
//! helper, from the same environment, and are never written anywhere.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::io::{self, Read, Write};
use std::os::fd::AsFd;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use process_wrap::std::{CommandWrap, ProcessSession};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use tenure_core::Clock;
use tenure_core::config::Hook;

use super::happening::Happening;
use super::log::HookLog;
use super::outcome::Outcome;
use super::run::run;
use super::wait::{Over, Work, wait};
use super::{Helper, Setting, environment};

/// How long a helper may take to read its errand.
const PATIENCE: Duration = Duration::from_secs(10);
/// More than any errand; a stream without end is none.
const MAX_ERRAND: u64 = 256 * 1024 * 1024;

#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Errand {
    root: PathBuf,
    project: Value,
    log: Option<PathBuf>,
    hooks: Vec<Listening>,
}

#[derive(Debug, Serialize, Deserialize)]
struct Listening {
    hook: Hook,
    happenings: Vec<Happening>,
}

impl Errand {
    pub(super) fn new(setting: &Setting<'_>, pairs: &[(&Hook, &Happening)]) -> Self {
        let mut hooks: Vec<Listening> = Vec::new();
        for (hook, happening) in pairs {
            match hooks.iter_mut().find(|listening| listening.hook.name == hook.name) {
                Some(listening) => listening.happenings.push((*happening).clone()),
                None => {
                    hooks.push(Listening { hook: (*hook).clone(), happenings: vec![(*happening).clone()] });
                }
            }
        }
        let log = setting.log.folder().map(PathBuf::from);
        Self { root: setting.root.to_owned(), project: setting.project.clone(), log, hooks }
    }
}

/// Returns once the helper has the errand, or will find it in its input.
pub(super) fn hand_over(helper: &Helper, setting: &Setting<'_>, errand: &Errand) -> io::Result<()> {
    let errand = serde_json::to_vec(errand)?;
    let mut command = Command::new(&helper.program);
    command.args(&helper.args).current_dir("/").env_clear().envs(environment(setting.vars));
    command.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null());
    let mut command = CommandWrap::from(command);
    command.wrap(ProcessSession);
    let mut child = command.spawn()?.into_inner();
    let Some(mut input) = child.stdin().take() else { return Ok(()) };
    // A process that lives for long has to bury its helpers; one that does not is gone before.
    let _ = std::thread::Builder::new().spawn(move || child.wait());
    // A pipe holds only so much, and a helper that was stopped reads nothing.
    let writing = Work::begin(move || input.write_all(&errand))?;
    match wait(Some(writing.as_fd()), None, Instant::now() + PATIENCE) {
        Over::Done => writing.result().unwrap_or_else(|| Err(io::Error::other("it broke off"))),
        Over::TimedOut | Over::Stopped => Err(io::ErrorKind::TimedOut.into()),
    }
}

/// What the helper does: every hook in a thread of its own, so that none waits for another, and each hook's happenings
/// in their order.
pub fn deliver(
    input: impl Read,
    vars: &BTreeMap<OsString, OsString>,
    clock: &dyn Clock,
) -> io::Result<Vec<Outcome>> {
    let mut text = Vec::new();
    input.take(MAX_ERRAND).read_to_end(&mut text)?;
    let errand: Errand = serde_json::from_slice(&text)?;
    let log = errand.log.as_ref().map_or_else(HookLog::nowhere, HookLog::in_folder);
    let setting =
        Setting { root: &errand.root, project: &errand.project, vars, clock, log: &log, stop: None };
    let outcomes = std::thread::scope(|scope| {
        let run_all = |listening: &Listening| -> Vec<Outcome> {
            listening.happenings.iter().map(|happening| run(&listening.hook, happening, &setting)).collect()
        };
        let (mut threads, mut outcomes) = (Vec::new(), Vec::new());
        for listening in &errand.hooks {
            match std::thread::Builder::new().spawn_scoped(scope, move || run_all(listening)) {
                Ok(thread) => threads.push(thread),
                Err(_) => outcomes.extend(run_all(listening)),
            }
        }
        outcomes.extend(threads.into_iter().filter_map(|thread| thread.join().ok()).flatten());
        outcomes
    });
    Ok(outcomes)
}
