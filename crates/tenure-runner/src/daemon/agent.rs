//! Runs one attempt by an agent: the prompt on standard input, the output in a log, the duration limited.

use std::process::Stdio;
use std::sync::{Arc, Mutex, OnceLock};
use std::time::{Duration, Instant};

use tenure_core::id::Fence;
use tenure_core::kernel::{self, Grant};
use tenure_core::lease::{Attempt, Lease};
use tenure_core::rules::{Step, checkpoint, release_claims_of_attempt, tasks_held_by};
use tenure_core::store::{Durability, Tx};
use tenure_core::task::Task;
use tenure_core::{Clock, Context, Ending, Error, Result, Timestamp};

use super::agent_output::{ReaderHandle, read_output};
use super::output::{AttemptLog, LastOutput};
use super::slot::RunnerSlot;
use super::{AgentStart, Purpose, RunnerContext, parking};
use crate::agents::{Agent, Conclusion, ProcessEnd, PromptInput, Summary};
use crate::heartbeat::OpenStore;
use crate::input::private_input;
use crate::supervise::{
    AttemptRecorder, CommandEnd, Exit, Explanation, LimitCheck, Limits, Supervision, pass_proof, supervise,
};

/// The result of an attempt, for the log and for the health of its preset.
pub(super) struct AttemptReport {
    pub(super) ended: CommandEnd,
    pub(super) took: Duration,
    /// The last line that the agent printed.
    pub(super) last_line: Option<String>,
    /// Why no task could have been worked on. The preset is already parked for it.
    pub(super) obstacle: Option<String>,
}

impl AttemptReport {
    pub(super) fn sentence(&self) -> String {
        match &self.ended {
            CommandEnd::Exited { reported: false, task, .. } | CommandEnd::Overdue { task, .. }
                if self.obstacle.is_some() =>
            {
                let why = self.obstacle.as_deref().unwrap_or_default();
                format!("{why}; the task is {} again", task.status)
            }
            CommandEnd::Exited { exit: Exit::Code(code), reported, task } => {
                let source = if *reported { "as the agent reported" } else { "by its exit code" };
                format!("{} {source} (exit {code})", task.status)
            }
            CommandEnd::Exited { exit: Exit::Signal(signal), task, .. } => {
                format!("killed by signal {signal}, the task is {}", task.status)
            }
            CommandEnd::NotStarted { why, task, .. } | CommandEnd::Overdue { why, task } => {
                format!("{why}; the task is {}", task.status)
            }
            CommandEnd::Interrupted { .. } | CommandEnd::NotBegun { .. } => "interrupted".to_owned(),
            CommandEnd::Lost(loss) => loss.to_string(),
            CommandEnd::Kept { why, .. } => why.to_string(),
        }
    }
}

pub(super) fn preset_for(cx: &RunnerContext<'_>, purpose: Purpose) -> String {
    match purpose {
        Purpose::Work => cx.options.preset.clone(),
        Purpose::Review => cx.options.reviewer.clone().unwrap_or_else(|| cx.options.preset.clone()),
    }
}

/// `conversation`: the id of the agent's conversation in which this task was interrupted.
pub(super) fn run_agent(
    cx: &RunnerContext<'_>,
    slot: &RunnerSlot,
    grant: &Grant,
    purpose: Purpose,
    conversation: Option<&str>,
) -> Result<AttemptReport> {
    let task = &grant.task;
    let name = kernel::name_of(task);
    let folder = cx.options.log_folder();
    let clock: Arc<dyn Clock> = Arc::new(tenure_core::SystemClock);
    let log = AttemptLog::create(&folder, &format!("{}-{}", task.key, grant.lease.fence), clock);
    let log_path = log.path().to_string_lossy().into_owned();
    cx.log.line(&format!("Log of {}: {log_path}", task.key));

    let prompt = match cx.persist(|| cx.callbacks.prompt(task, purpose))? {
        Ok(prompt) => prompt,
        Err(signal) => {
            let ended = CommandEnd::NotBegun { signal };
            return Ok(AttemptReport { ended, took: Duration::ZERO, last_line: None, obstacle: None });
        }
    };
    let input = private_input(&folder, &prompt).map_err(|e| broken("its prompt cannot be written", &e))?;
    let (reader, writer) = std::io::pipe().map_err(|e| broken("no pipe for its output", &e))?;
    let errors = writer.try_clone().map_err(|e| broken("no pipe for its output", &e))?;
    let preset = preset_for(cx, purpose);
    // A separate name: what the agent claims itself does not belong to the runner.
    let agent_name = format!("{}-{}", &slot.runner.id[..8.min(slot.runner.id.len())], grant.lease.fence);
    let AgentStart { mut command, agent } = cx.callbacks.agent(&preset, conversation)?;
    if agent.prompt == PromptInput::Argument {
        command.arg(&prompt);
    }
    command
        .current_dir(&cx.options.workdir)
        .stdin(Stdio::from(input))
        .stdout(Stdio::from(writer))
        .stderr(Stdio::from(errors))
        .env("TENURE_PROJECT", &cx.options.root)
        .env("TENURE_TASK_ID", task.id.as_str())
        .env("TENURE_AGENT", &agent_name)
        .env("TENURE_FENCE", grant.lease.fence.to_string());
    pass_proof(&mut command, grant);

    let (handle, reader) = read_output(reader).map_err(|e| broken("its output cannot be read", &e))?;
    let log = Mutex::new(log);
    let last = LastOutput::default();
    let diagnosis =
        Diagnosis { agent, clock: cx.exec.clock, summary: Mutex::default(), found: OnceLock::new() };
    let limits = Bounds {
        begun: Instant::now(),
        diagnosis: &diagnosis,
        last: &last,
        log: &log,
        handle: &handle,
        hang: cx.options.timing.hang,
        agent: cx.options.timing.agent,
    };
    let begun = Instant::now();
    let supervised = std::thread::scope(|scope| {
        let (log, last, handle, diagnosis) = (&log, &last, &handle, &diagnosis);
        let (open, ctx, session) = (cx.exec.open_store, cx.exec.ctx, &slot.session);
        let mut named = None;
        let mut on_line = move |line: &[u8]| {
            if let Some(name) = diagnosis.observe(line)
                && named.as_ref() != Some(&name)
                && note_conversation(open, &ctx, session, &name)
            {
                named = Some(name);
            }
        };
        std::thread::Builder::new()
            .name("output".into())
            .spawn_scoped(scope, move || reader.run(log, last, &mut on_line))
            .map_err(|e| broken("its output cannot be read", &e))?;
        let recorder = Checkpoints {
            ctx: cx.exec.ctx,
            session: &slot.session,
            fence: grant.lease.fence,
            preset: &preset,
            runner: &slot.runner.id,
            diagnosis,
        };
        let supervision = Supervision {
            store: cx.store,
            exec: cx.exec,
            task: &name,
            lease: &grant.lease,
            signals: cx.signals,
            interval: cx.options.timing.heartbeat,
            grace: cx.options.timing.grace,
            log_path: Some(log_path),
            section_ttl: Some(cx.options.timing.section_ttl),
            keep_section: true,
            limits: Some(&limits),
            recorder: Some(&recorder),
            outage: cx.outage,
        };
        let supervised = supervise(&supervision, &mut command);
        handle.finish();
        supervised
    })?;
    release_claims(cx, &agent_name);
    for survivor in &supervised.survivors {
        cx.log.line(&format!("Process {} ({}) survived SIGKILL", survivor.pid, survivor.command));
    }
    let last_line = log.lock().ok().and_then(|log| log.last_line());
    let obstacle = match &supervised.ended {
        CommandEnd::Exited { .. } | CommandEnd::Overdue { .. } => {
            diagnosis.obstacle().map(|found| found.reason.clone())
        }
        _ => None,
    };
    Ok(AttemptReport { ended: supervised.ended, took: begun.elapsed(), last_line, obstacle })
}

/// Releases what the agent still holds. If the store does not answer, those leases expire.
fn release_claims(cx: &RunnerContext<'_>, agent_name: &str) {
    let holds = cx.store.read(|view| Ok(!view.leases(&tasks_held_by(agent_name))?.is_empty()));
    if !holds.unwrap_or(true) {
        return;
    }
    let released = cx
        .store
        .write(Durability::Power, |tx| release_claims_of_attempt(tx, &cx.exec.ctx, agent_name))
        .unwrap_or_default();
    for lease in released {
        cx.log.line(&format!("Released {}, which the agent had claimed and not finished", lease.resource));
    }
}

/// Finds out from an agent's output whether something kept it from working on any task.
struct Diagnosis<'a> {
    agent: &'static Agent,
    clock: &'a dyn Clock,
    summary: Mutex<Summary>,
    /// Set once the agent has ended.
    found: OnceLock<Option<Obstacle>>,
}

struct Obstacle {
    reason: String,
    resets_at: Option<Timestamp>,
}

impl Diagnosis<'_> {
    /// Returns the name of the agent's conversation, if it is known.
    fn observe(&self, line: &[u8]) -> Option<String> {
        let mut summary = self.summary.lock().ok()?;
        for event in self.agent.parse(str::from_utf8(line).ok()?) {
            summary.add(event);
        }
        summary.conversation.clone()
    }

    /// To be called after all output was read.
    fn conclude(&self, end: ProcessEnd) -> Option<&Obstacle> {
        let found = self.found.get_or_init(|| {
            let conclusion = self.agent.conclude(end, &*self.summary.lock().ok()?);
            obstacle(&conclusion.with_plausible_reset(self.clock.now()), self.agent)
        });
        found.as_ref()
    }

    fn obstacle(&self) -> Option<&Obstacle> {
        self.found.get()?.as_ref()
    }
}

/// Why no task could have been worked on. `None` if the task itself may be the cause.
fn obstacle(conclusion: &Conclusion, agent: &Agent) -> Option<Obstacle> {
    let general = matches!(
        conclusion.ending,
        Ending::Limited | Ending::Overloaded | Ending::NoNetwork | Ending::NoCredit | Ending::NotLoggedIn
    );
    general.then(|| Obstacle { reason: conclusion.sentence(agent), resets_at: conclusion.resets_at })
}

/// Recorded with the attempt: the session's checkpoint and the parking of the preset.
struct Checkpoints<'a> {
    ctx: Context<'a>,
    session: &'a Lease,
    /// The fence of the task's lease.
    fence: Fence,
    preset: &'a str,
    runner: &'a str,
    diagnosis: &'a Diagnosis<'a>,
}

impl AttemptRecorder for Checkpoints<'_> {
    fn begun(&self, tx: &mut dyn Tx, attempt: &Attempt) -> Result<()> {
        if checkpoint(tx, &self.ctx, self.session, Step::Begun(attempt))? {
            return Ok(());
        }
        Err(Error::WorkLost { what: self.session.resource.to_string() })
    }

    /// The outcome is recorded even if another runner has taken the session.
    fn ended(&self, tx: &mut dyn Tx, task: &Task) -> Result<()> {
        if let Some(found) = self.diagnosis.obstacle() {
            parking::park(tx, self.preset, self.runner, &found.reason, found.resets_at)?;
        }
        checkpoint(tx, &self.ctx, self.session, Step::Released { task, fence: self.fence }).map(drop)
    }
}

/// Records the conversation's id through a separate handle, because the output is read on its own thread. Returns
/// false if it must be tried again.
fn note_conversation(open: OpenStore<'_>, ctx: &Context<'_>, session: &Lease, name: &str) -> bool {
    let noted = open().and_then(|store| {
        store.write(Durability::Power, |tx| checkpoint(tx, ctx, session, Step::Named(name)))
    });
    noted.is_ok()
}

/// Limits for silence and for the whole duration.
struct Bounds<'a> {
    begun: Instant,
    diagnosis: &'a Diagnosis<'a>,
    last: &'a LastOutput,
    log: &'a Mutex<AttemptLog>,
    handle: &'a ReaderHandle,
    hang: Duration,
    agent: Duration,
}

impl Limits for Bounds<'_> {
    fn check(&self) -> LimitCheck {
        let silence = self.last.silence();
        let whole = self.begun.elapsed();
        if whole >= self.agent {
            return LimitCheck::TooLong(self.agent);
        }
        if silence >= self.hang {
            return LimitCheck::Hung(self.hang);
        }
        LimitCheck::Within(self.hang.saturating_sub(silence).min(self.agent.saturating_sub(whole)))
    }

    fn explain(&self, exit: Option<i32>) -> Option<Explanation> {
        self.handle.finish();
        if let Some(found) = self.diagnosis.conclude(exit.map_or(ProcessEnd::Hung, ProcessEnd::Exited)) {
            return Some(Explanation::Obstacle(found.reason.clone()));
        }
        self.log.lock().ok()?.last_line().map(Explanation::LastLine)
    }
}

fn broken(what: &str, error: &std::io::Error) -> Error {
    Error::General(format!("the agent cannot be started: {what}: {error}"))
}
