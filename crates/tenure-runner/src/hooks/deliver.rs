//! Hooks that outlive the process that fired them.
//!
//! A command runs for only a few milliseconds, so `async` hooks are delivered by a helper process: the tenure binary in a
//! separate session, without a terminal or output and without the variables of the caller's lease. It reads a [`Delivery`]
//! from standard input, because any user can read the arguments of a process. The delivery holds the templates as configured:
//! the helper fills in variables from the same environment, and their values are never written anywhere.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::io::{self, Read, Write};
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};
use serde_json::Value;
use tenure_core::Clock;
use tenure_core::config::Hook;

use super::context::HookContext;
use super::log::HookLog;
use super::outcome::Outcome;
use super::run::run;
use super::wait::{PolledThread, WaitEnd, wait};
use super::{Helper, HookEnvironment, process_variables};
use crate::processes::children;
use crate::sys;

/// How long a helper may take to read its delivery.
const PATIENCE: Duration = Duration::from_secs(10);
/// More than any delivery needs; bounds the memory if standard input never ends.
const MAX_DELIVERY: u64 = 256 * 1024 * 1024;

#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Delivery {
    root: PathBuf,
    project: Value,
    log: Option<PathBuf>,
    hooks: Vec<HookDelivery>,
}

#[derive(Debug, Serialize, Deserialize)]
struct HookDelivery {
    hook: Hook,
    contexts: Vec<HookContext>,
}

impl Delivery {
    pub(super) fn new(environment: &HookEnvironment<'_>, pairs: &[(&Hook, &HookContext)]) -> Self {
        let mut hooks: Vec<HookDelivery> = Vec::new();
        for (hook, context) in pairs {
            match hooks.iter_mut().find(|delivery| delivery.hook.name == hook.name) {
                Some(delivery) => delivery.contexts.push((*context).clone()),
                None => {
                    hooks.push(HookDelivery { hook: (*hook).clone(), contexts: vec![(*context).clone()] });
                }
            }
        }
        let log = environment.log.folder().map(PathBuf::from);
        Self { root: environment.root.to_owned(), project: environment.project.clone(), log, hooks }
    }
}

/// Starts the helper and returns once the delivery is in its input.
pub(super) fn hand_over(
    helper: &Helper,
    environment: &HookEnvironment<'_>,
    delivery: &Delivery,
) -> io::Result<()> {
    let delivery = serde_json::to_vec(delivery)?;
    let mut command = Command::new(&helper.program);
    command.args(&helper.args).current_dir("/").env_clear().envs(process_variables(environment.vars));
    command.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null());
    let mut command = sys::in_own_session(command);
    let mut child = children::start(|| command.spawn(), |child| child.id())?.into_inner();
    let Some(mut input) = child.stdin().take() else { return Ok(()) };
    // A long-lived process must reap its helpers; a short-lived one exits before they do.
    let _ = std::thread::Builder::new().spawn(move || child.wait());
    // The write blocks when the pipe is full and the helper does not read, so it runs in a thread.
    let writing = PolledThread::begin(move || input.write_all(&delivery))?;
    match wait(Some(writing.fd()), None, Instant::now() + PATIENCE) {
        WaitEnd::Done => {
            writing.result().unwrap_or_else(|| Err(io::Error::other("the write was interrupted")))
        }
        WaitEnd::TimedOut | WaitEnd::Stopped => Err(io::ErrorKind::TimedOut.into()),
    }
}

/// The helper: runs every hook in a separate thread, so that no hook waits for another, and the events of each hook in their
/// order.
pub fn deliver(
    input: impl Read,
    vars: &BTreeMap<OsString, OsString>,
    clock: &dyn Clock,
) -> io::Result<Vec<Outcome>> {
    let mut text = Vec::new();
    input.take(MAX_DELIVERY).read_to_end(&mut text)?;
    let delivery: Delivery = serde_json::from_slice(&text)?;
    let log = delivery.log.as_ref().map_or_else(HookLog::nowhere, HookLog::in_folder);
    let environment = HookEnvironment {
        root: &delivery.root,
        project: &delivery.project,
        vars,
        clock,
        log: &log,
        stop: None,
    };
    let outcomes = std::thread::scope(|scope| {
        let run_all = |one: &HookDelivery| -> Vec<Outcome> {
            one.contexts.iter().map(|context| run(&one.hook, context, &environment)).collect()
        };
        let (mut threads, mut outcomes) = (Vec::new(), Vec::new());
        for one in &delivery.hooks {
            match std::thread::Builder::new().spawn_scoped(scope, move || run_all(one)) {
                Ok(thread) => threads.push(thread),
                Err(_) => outcomes.extend(run_all(one)),
            }
        }
        outcomes.extend(threads.into_iter().filter_map(|thread| thread.join().ok()).flatten());
        outcomes
    });
    Ok(outcomes)
}
