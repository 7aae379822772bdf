//! Runs one attempt by an agent: the prompt on standard input, the output in a log, the duration limited.

use std::process::Stdio;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use tenure_core::holder::Caller;
use tenure_core::id::TaskId;
use tenure_core::kernel::{self, Grant};
use tenure_core::lease::{AgentRun, Attempt, Lease};
use tenure_core::outcome::AttemptResult;
use tenure_core::parking::{Cost, Parking, ParkingScope};
use tenure_core::rules::{
    EndedAttempt, Step, blames_preset, checkpoint, note_ending, release_claims_of_attempt, tasks_held_by,
};
use tenure_core::store::{Durability, Tx};
use tenure_core::supervised::{self, Role};
use tenure_core::task::{Task, TaskStatus};
use tenure_core::{Clock, Context, Ending, Error, Result};

use super::agent_output::{ReaderHandle, read_output};
use super::diagnosis::{AttemptEnding, Diagnosis};
use super::log::NamedLog;
use super::output::{AttemptLog, LastOutput};
use super::resumption::{self, Beginning, ResumeReason, Resumption, is_unreported};
use super::slot::RunnerSlot;
use super::{AgentPreset, Purpose, RunnerContext};
use crate::agents::{ProcessEnd, PromptInput};
use crate::heartbeat::OpenStore;
use crate::input::private_input;
use crate::preset::Conversation;
use crate::reap::reap_earlier_attempts;
use crate::supervise::{
    AttemptRecorder, CommandEnd, Exit, LimitCheck, Limits, OutputVerdict, Supervision, pass_proof, supervise,
};
use crate::transcript::Transcript;

/// The time limit of an agent that is only asked for its report.
const ASKED: Duration = Duration::from_mins(5);

/// The result of an attempt, for the log.
pub(super) struct AttemptReport {
    pub(super) ended: CommandEnd,
    /// How the agent ended; `None` if it did not run.
    found: Option<AttemptEnding>,
    /// What the ending has parked.
    pub(super) parked: Option<Parking>,
}

impl AttemptReport {
    fn not_begun(signal: i32) -> Self {
        Self { ended: CommandEnd::NotBegun { signal }, found: None, parked: None }
    }

    /// The attempt may be repeated, but another task should be tried first.
    pub(super) fn is_without_result(&self) -> bool {
        let ending = self.found.as_ref().map(|found| found.ending);
        matches!(ending, Some(Ending::Crashed | Ending::Unclassified))
    }

    /// The agent did not report. If the task is pending, the next attempt asks for the report.
    pub(super) fn is_unreported(&self) -> bool {
        let reported = matches!(self.ended, CommandEnd::Exited { reported: true, .. });
        !reported && self.found.as_ref().is_some_and(|found| is_unreported(found.ending))
    }

    pub(super) fn sentence(&self) -> String {
        match (&self.ended, &self.found) {
            (CommandEnd::Exited { exit: Exit::Code(code), reported: true, task }, _) => {
                format!("{} as the agent reported (exit {code})", task.status)
            }
            (CommandEnd::Exited { exit: Exit::Code(0), task, .. }, Some(found))
                if found.ending == Ending::Done =>
            {
                let source = if found.reported { "as the agent reported" } else { "by its exit code" };
                format!("{} {source} (exit 0)", task.status)
            }
            (CommandEnd::Exited { exit: Exit::Signal(signal), task, .. }, _) => {
                format!("killed by signal {signal}, the task is {}", task.status)
            }
            (
                CommandEnd::Exited { task, .. }
                | CommandEnd::NotStarted { task, .. }
                | CommandEnd::Overdue { task, .. },
                Some(found),
            ) => {
                let now = match task.status {
                    TaskStatus::Pending => "pending again",
                    TaskStatus::Review => "in review",
                    other => other.as_str(),
                };
                format!("{}; the task is {now}", found.reason)
            }
            (CommandEnd::Exited { task, .. }, None) => task.status.to_string(),
            (CommandEnd::NotStarted { why, task, .. } | CommandEnd::Overdue { why, task }, None) => {
                format!("{why}; the task is {}", task.status)
            }
            (CommandEnd::Interrupted { .. } | CommandEnd::NotBegun { .. }, _) => "interrupted".to_owned(),
            (CommandEnd::Lost(loss), _) => loss.to_string(),
            (CommandEnd::Kept { why, .. }, _) => why.to_string(),
        }
    }
}

pub(super) fn preset_for(cx: &RunnerContext<'_>, purpose: Purpose) -> String {
    match purpose {
        Purpose::Work => cx.options.preset.clone(),
        Purpose::Review => cx.options.reviewer.clone().unwrap_or_else(|| cx.options.preset.clone()),
    }
}

fn role_of(purpose: Purpose) -> Role {
    match purpose {
        Purpose::Work => Role::Work,
        Purpose::Review => Role::Review,
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
    let preset_name = preset_for(cx, purpose);
    let preset = cx.callbacks.preset(&preset_name)?;
    let (key, agent, path) = (task.key.clone(), preset.agent_name().to_owned(), log.path().to_path_buf());
    cx.log.line(&NamedLog { task: key, agent, path }.sentence());

    // Must come before the conversation is looked up: reaping a killed run records what it used in the
    // conversation.
    if let Err(signal) = cx.persist(|| reap_earlier_attempts(cx.store, &cx.exec.ctx, grant))? {
        return Ok(AttemptReport::not_begun(signal));
    }
    let found = match cx.persist(|| earlier_conversation(cx, task, purpose, &preset, conversation))? {
        Ok(found) => found,
        Err(signal) => return Ok(AttemptReport::not_begun(signal)),
    };
    let (resumption, beginning) = found;
    let resumed = resumption.as_ref().map(|resumption| resumption.why);
    match (&resumption, &beginning) {
        (Some(found), _) => cx.log.line(&format!("Resuming the agent's session {}", found.conversation)),
        (None, Beginning::Lost(_)) => cx.log.line("The agent's session is lost, so it starts afresh"),
        _ => {}
    }
    let prompt = match cx.persist(|| cx.callbacks.prompt(task, purpose, &beginning))? {
        Ok(prompt) => prompt,
        Err(signal) => return Ok(AttemptReport::not_begun(signal)),
    };
    let input = private_input(&folder, &prompt).map_err(|e| broken("its prompt cannot be written", &e))?;
    let (reader, writer) = std::io::pipe().map_err(|e| broken("no pipe for its output", &e))?;
    let errors = writer.try_clone().map_err(|e| broken("no pipe for its output", &e))?;
    // A separate name: what the agent claims itself does not belong to the runner.
    let agent_name = format!("{}-{}", &slot.runner.id[..8.min(slot.runner.id.len())], grant.lease.fence);
    let chosen = (resumption.is_none() && preset.can_begin).then(|| cx.exec.ctx.ids.uuid());
    let conversation = match (&resumption, &chosen) {
        (Some(resumption), _) => Some(Conversation::Resumed(&resumption.conversation)),
        (None, chosen) => chosen.as_deref().map(Conversation::New),
    };
    let mut command = cx.callbacks.agent(&preset_name, conversation)?;
    let report_folder = cx.options.report_folder();
    let diagnosis = Diagnosis::new(&preset, purpose, resumption.as_ref(), &report_folder, cx.exec.clock);
    if preset.agent.prompt == PromptInput::Argument {
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
        .env("TENURE_FENCE", grant.lease.fence.to_string())
        .env(supervised::VARIABLE, role_of(purpose).as_str());
    pass_proof(&mut command, grant);

    let (handle, reader) = read_output(reader).map_err(|e| broken("its output cannot be read", &e))?;
    let log = Mutex::new(log);
    let last = LastOutput::default();
    let limits = Bounds {
        begun: Instant::now(),
        diagnosis: &diagnosis,
        last: &last,
        log: &log,
        handle: &handle,
        hang: cx.options.timing.hang,
        agent: match resumed {
            Some(ResumeReason::Unreported) => cx.options.timing.agent.min(ASKED),
            _ => cx.options.timing.agent,
        },
    };
    let parked = Mutex::new(None);
    let supervised = std::thread::scope(|threads| {
        let (log, last, handle, diagnosis) = (&log, &last, &handle, &diagnosis);
        let (open, ctx, session) = (cx.exec.open_store, cx.exec.ctx, &slot.session);
        let mut named = None;
        let mut shown = cx.log.is_watched().then(|| Transcript::new(Some(preset.agent_name())));
        let (runner_log, key) = (cx.log, &task.key);
        let mut on_line = move |line: &[u8]| {
            if let Some(transcript) = &mut shown {
                for entry in transcript.read_printed(None, &String::from_utf8_lossy(line)) {
                    entry.lines().iter().for_each(|line| runner_log.show(&format!("{key}  {line}")));
                }
            }
            if let Some(name) = diagnosis.observe(line)
                && named.as_ref() != Some(&name)
                && note_conversation(open, &ctx, session, &name)
            {
                named = Some(name);
            }
        };
        std::thread::Builder::new()
            .name("output".into())
            .spawn_scoped(threads, move || reader.run(log, last, &mut on_line))
            .map_err(|e| broken("its output cannot be read", &e))?;
        let recorder = Checkpoints {
            ctx: cx.exec.ctx,
            session: &slot.session,
            lease: &grant.lease,
            task: &task.id,
            caller: &slot.caller,
            scope: &preset.scope,
            diagnosis,
            conversation: resumption
                .as_ref()
                .map(|found| found.conversation.as_str())
                .or(chosen.as_deref())
                .filter(|_| purpose == Purpose::Work),
            parked: &parked,
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
            agent: Some(preset.agent_name()),
            report_folder: Some(&report_folder),
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
    let parked = parked.into_inner().unwrap_or_default();
    Ok(AttemptReport { ended: supervised.ended, found: diagnosis.found(), parked })
}

/// The conversation that the agent continues, and how the agent begins. `interrupted` is the conversation in which
/// the session was interrupted.
fn earlier_conversation(
    cx: &RunnerContext<'_>,
    task: &Task,
    purpose: Purpose,
    preset: &AgentPreset,
    interrupted: Option<&str>,
) -> Result<(Option<Resumption>, Beginning)> {
    if purpose == Purpose::Review {
        return Ok((None, Beginning::Fresh));
    }
    cx.store.read(|view| {
        let Some(found) = resumption::find(view, &task.id, preset.agent, interrupted)? else {
            return Ok((None, Beginning::Fresh));
        };
        if cx.callbacks.has_conversation(&preset.scope.preset, &found.conversation) == Some(false) {
            return Ok((None, Beginning::Lost(resumption::last_message(view, &task.id)?)));
        }
        let beginning = Beginning::Resumed(found.why);
        Ok((Some(found), beginning))
    })
}

/// Releases the tasks that the agent has claimed itself and still holds. If the store does not answer, those
/// leases expire.
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

/// Writes the session's checkpoint and the parkings in the attempt's transactions.
struct Checkpoints<'a> {
    ctx: Context<'a>,
    session: &'a Lease,
    /// The lease of the task.
    lease: &'a Lease,
    task: &'a TaskId,
    caller: &'a Caller,
    scope: &'a ParkingScope,
    diagnosis: &'a Diagnosis<'a>,
    /// The agent's conversation, if its name is known before it starts.
    conversation: Option<&'a str>,
    parked: &'a Mutex<Option<Parking>>,
}

impl AttemptRecorder for Checkpoints<'_> {
    fn begun(&self, tx: &mut dyn Tx, attempt: &Attempt) -> Result<()> {
        self.diagnosis.begun(attempt.id.as_str());
        let lost = || Error::WorkLost { what: self.session.resource.to_string() };
        if !checkpoint(tx, &self.ctx, self.session, Step::Begun(attempt))? {
            return Err(lost());
        }
        // Recorded before the agent exists, so that it can be resumed however early it is killed.
        match self.conversation {
            Some(name) if !checkpoint(tx, &self.ctx, self.session, Step::Named(name))? => Err(lost()),
            _ => Ok(()),
        }
    }

    fn judge(&self, tx: &dyn Tx, result: AttemptResult, not_started: Option<&str>) -> Result<AttemptResult> {
        if let Some(why) = not_started {
            self.diagnosis.not_started(why);
            return Ok(AttemptResult::Returned { why: why.to_owned() });
        }
        let ending = self.diagnosis.found().map(|found| found.ending);
        match (result, ending) {
            (AttemptResult::Broken { why } | AttemptResult::Failed { why, .. }, Some(ending))
                if blames_preset(tx, self.scope, ending, self.task)? =>
            {
                Ok(AttemptResult::Returned { why })
            }
            (result, _) => Ok(result),
        }
    }

    fn run(&self, reported: Option<TaskStatus>) -> Option<AgentRun> {
        self.diagnosis.run(reported)
    }

    /// Records the outcome even if another runner has taken over the session.
    fn ended(&self, tx: &mut dyn Tx, task: &Task, cost: Cost, reported: bool) -> Result<()> {
        if let Some(found) = self.diagnosis.found() {
            let ending = found.for_parking(reported);
            let AttemptEnding { conclusion, reason, .. } = found;
            let (reason, resets_at, fence) = (reason.as_str(), conclusion.resets_at, self.lease.fence);
            let ended = EndedAttempt { ending, reason, resets_at, task: &task.id, fence, cost };
            let found = note_ending(tx, &self.ctx, self.scope, self.caller, &ended)?;
            if let Ok(mut parked) = self.parked.lock() {
                *parked = found;
            }
        }
        checkpoint(tx, &self.ctx, self.session, Step::Released { task, fence: self.lease.fence }).map(drop)
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
        let whole = self.begun.elapsed();
        if whole >= self.agent {
            return LimitCheck::TooLong(self.agent);
        }
        let silence = self.last.silence().max(self.diagnosis.retrying_for().unwrap_or_default());
        if silence >= self.hang {
            return LimitCheck::Hung(self.hang);
        }
        LimitCheck::Within(self.hang.saturating_sub(silence).min(self.agent.saturating_sub(whole)))
    }

    fn verdict(&self, end: ProcessEnd, why: &str) -> Option<OutputVerdict> {
        self.handle.finish();
        let last_line = self.log.lock().ok().and_then(|log| log.last_line());
        self.diagnosis.verdict(end, why, last_line)
    }
}

fn broken(what: &str, error: &std::io::Error) -> Error {
    Error::General(format!("the agent cannot be started: {what}: {error}"))
}
