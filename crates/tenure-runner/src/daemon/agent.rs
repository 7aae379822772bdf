//! One attempt by an agent: its prompt on standard input, its output into a log, its time bounded.

use std::process::Stdio;
use std::sync::{Arc, Mutex, OnceLock};
use std::time::{Duration, Instant};

use tenure_core::id::Fence;
use tenure_core::kernel::{self, Grant};
use tenure_core::lease::{Attempt, Lease};
use tenure_core::rules::{Step, checkpoint};
use tenure_core::store::{Durability, Tx};
use tenure_core::task::Task;
use tenure_core::{Clock, Context, Error, Result, Timestamp};

use super::listening::{Ear, listen};
use super::output::{AttemptLog, LastWord};
use super::place::Seat;
use super::{AgentStart, Purpose, Site, conversation, parking};
use crate::agents::{AgentKind, Observed};
use crate::heartbeat::OpenStore;
use crate::input::private_input;
use crate::supervise::{Ended, Exit, Explanation, Limits, Look, Steps, Supervision, supervise};

/// How an attempt went, for the log and for the health of its preset.
pub(super) struct Report {
    pub(super) ended: Ended,
    pub(super) took: Duration,
    /// The last thing that the agent printed.
    pub(super) said: Option<String>,
    /// Why no task could have been worked on. The preset is parked for it already.
    pub(super) obstacle: Option<String>,
}

impl Report {
    pub(super) fn sentence(&self) -> String {
        match &self.ended {
            Ended::Exited { spoken: false, task, .. } | Ended::Overdue { task, .. }
                if self.obstacle.is_some() =>
            {
                let why = self.obstacle.as_deref().unwrap_or_default();
                format!("{why}; the task is {} again", task.status)
            }
            Ended::Exited { exit: Exit::Code(code), spoken, task } => {
                let whose = if *spoken { "as it said itself" } else { "by its exit code" };
                format!("{} {whose} (exit {code})", task.status)
            }
            Ended::Exited { exit: Exit::Signal(signal), task, .. } => {
                format!("killed by signal {signal}, the task is {}", task.status)
            }
            Ended::NotStarted { why, task, .. } | Ended::Overdue { why, task } => {
                format!("{why}; the task is {}", task.status)
            }
            Ended::Interrupted { .. } => "interrupted".to_owned(),
            Ended::Lost(loss) => loss.to_string(),
        }
    }
}

pub(super) fn preset_for(site: &Site<'_>, purpose: Purpose) -> String {
    match purpose {
        Purpose::Work => site.orders.preset.clone(),
        Purpose::Review => site.orders.reviewer.clone().unwrap_or_else(|| site.orders.preset.clone()),
    }
}

/// `conversation`: the agent's own name for the one in which this task was interrupted.
pub(super) fn attempt(
    site: &Site<'_>,
    seat: &Seat,
    grant: &Grant,
    purpose: Purpose,
    conversation: Option<&str>,
) -> Result<Report> {
    let task = &grant.task;
    let name = kernel::name_of(task);
    let folder = site.orders.root.join(".tenure").join("logs");
    let clock: Arc<dyn Clock> = Arc::new(tenure_core::SystemClock);
    let log = AttemptLog::create(&folder, &format!("{}-{}", task.key, grant.lease.fence), clock);
    let log_path = log.path().to_string_lossy().into_owned();
    site.log.line(&format!("Log of {}: {log_path}", task.key));

    let prompt = site.outside.prompt(task, purpose)?;
    let input = private_input(&folder, &prompt).map_err(|e| broken("its prompt cannot be written", &e))?;
    let (reader, writer) = std::io::pipe().map_err(|e| broken("no pipe for its output", &e))?;
    let errors = writer.try_clone().map_err(|e| broken("no pipe for its output", &e))?;
    let preset = preset_for(site, purpose);
    let AgentStart { mut command, kind } = site.outside.agent(&preset, conversation)?;
    command
        .current_dir(&site.orders.workdir)
        .stdin(Stdio::from(input))
        .stdout(Stdio::from(writer))
        .stderr(Stdio::from(errors))
        .env("TENURE_PROJECT", &site.orders.root)
        .env("TENURE_TASK_ID", task.id.as_str())
        // A name of its own: what it claims besides is not the runner's.
        .env(
            "TENURE_AGENT",
            format!("{}-{}", &seat.runner.id[..8.min(seat.runner.id.len())], grant.lease.fence),
        )
        .env("TENURE_LEASE", grant.lease.id.as_str())
        .env("TENURE_FENCE", grant.lease.fence.to_string());

    let (ear, listener) = listen(reader).map_err(|e| broken("its output cannot be read", &e))?;
    let log = Mutex::new(log);
    let last = LastWord::default();
    let diagnosis = Diagnosis { kind, clock: site.clock, observed: Mutex::default(), found: OnceLock::new() };
    let limits = Bounds {
        begun: Instant::now(),
        diagnosis: &diagnosis,
        last: &last,
        log: &log,
        ear: &ear,
        hang: site.orders.timing.hang,
        agent: site.orders.timing.agent,
    };
    let begun = Instant::now();
    let supervised = std::thread::scope(|scope| {
        let (log, last, ear, diagnosis) = (&log, &last, &ear, &diagnosis);
        let (open, ctx, session) = (site.open, site.ctx, &seat.session);
        let mut named = None;
        let mut scribe = move |line: &[u8]| {
            diagnosis.hear(line);
            if let Some(name) = conversation::name_in(line)
                && named.as_ref() != Some(&name)
                && note_conversation(open, &ctx, session, &name)
            {
                named = Some(name);
            }
        };
        std::thread::Builder::new()
            .name("output".into())
            .spawn_scoped(scope, move || listener.run(log, last, &mut scribe))
            .map_err(|e| broken("its output cannot be read", &e))?;
        let steps = Checkpoints {
            ctx: site.ctx,
            session: &seat.session,
            fence: grant.lease.fence,
            preset: &preset,
            runner: &seat.runner.id,
            diagnosis,
        };
        let supervision = Supervision {
            store: site.store,
            open: site.open,
            ctx: site.ctx,
            task: &name,
            lease: &grant.lease,
            me: site.me,
            signals: site.signals,
            doorbell: site.doorbell.map(|bell| bell.fd),
            database: site.database,
            interval: site.orders.timing.heartbeat,
            grace: site.orders.timing.grace,
            log_path: Some(log_path),
            section_ttl: Some(site.orders.timing.section_ttl),
            keep_section: true,
            limits: Some(&limits),
            steps: Some(&steps),
        };
        let supervised = supervise(&supervision, &mut command);
        ear.close();
        supervised
    })?;
    for survivor in &supervised.survivors {
        site.log.line(&format!("Could not be ended: process {} ({})", survivor.pid, survivor.command));
    }
    let said = log.lock().ok().and_then(|log| log.last_words());
    let obstacle = match &supervised.ended {
        Ended::Exited { .. } | Ended::Overdue { .. } => {
            diagnosis.obstacle().map(|found| found.reason.clone())
        }
        Ended::NotStarted { .. } | Ended::Interrupted { .. } | Ended::Lost(_) => None,
    };
    Ok(Report { ended: supervised.ended, took: begun.elapsed(), said, obstacle })
}

/// Finds out from an agent's output whether something kept it from working on any task.
struct Diagnosis<'a> {
    /// None for a program whose output is not understood.
    kind: Option<AgentKind>,
    clock: &'a dyn Clock,
    observed: Mutex<Observed>,
    /// Set once the agent has ended.
    found: OnceLock<Option<Obstacle>>,
}

struct Obstacle {
    reason: String,
    resets_at: Option<Timestamp>,
}

impl Diagnosis<'_> {
    fn hear(&self, line: &[u8]) {
        if let (Some(kind), Ok(line), Ok(mut observed)) =
            (self.kind, str::from_utf8(line), self.observed.lock())
        {
            observed.add(kind.parse(line));
        }
    }

    /// To be called when all of the output has been heard.
    fn conclude(&self, exit: Option<i32>) -> Option<&Obstacle> {
        let found = self.found.get_or_init(|| {
            let kind = self.kind?;
            let observed = *self.observed.lock().ok()?;
            let ending = kind.conclude(exit, &observed).with_plausible_reset(self.clock.now());
            Some(Obstacle { reason: ending.obstacle(kind)?, resets_at: ending.resets_at() })
        });
        found.as_ref()
    }

    fn obstacle(&self) -> Option<&Obstacle> {
        self.found.get()?.as_ref()
    }
}

/// What is written with the steps of the attempt: the session's checkpoint, and the parking of the preset.
struct Checkpoints<'a> {
    ctx: Context<'a>,
    session: &'a Lease,
    /// Of the task.
    fence: Fence,
    preset: &'a str,
    runner: &'a str,
    diagnosis: &'a Diagnosis<'a>,
}

impl Steps for Checkpoints<'_> {
    fn begun(&self, tx: &mut dyn Tx, attempt: &Attempt) -> Result<()> {
        if checkpoint(tx, &self.ctx, self.session, Step::Begun(attempt))? {
            return Ok(());
        }
        Err(Error::WorkLost { what: self.session.resource.to_string() })
    }

    /// What was done is done, also when the session is another's by now.
    fn ended(&self, tx: &mut dyn Tx, task: &Task) -> Result<()> {
        if let Some(found) = self.diagnosis.obstacle() {
            parking::park(tx, self.preset, self.runner, &found.reason, found.resets_at)?;
        }
        checkpoint(tx, &self.ctx, self.session, Step::LetGo { task, fence: self.fence }).map(drop)
    }
}

/// With a handle of its own: whoever listens to the agent is a thread of its own. False if it is to be tried again.
fn note_conversation(open: OpenStore<'_>, ctx: &Context<'_>, session: &Lease, name: &str) -> bool {
    let noted = open().and_then(|store| {
        store.write(Durability::Power, |tx| checkpoint(tx, ctx, session, Step::Named(name)))
    });
    noted.is_ok()
}

/// Silence and the whole duration, both bounded.
struct Bounds<'a> {
    begun: Instant,
    diagnosis: &'a Diagnosis<'a>,
    last: &'a LastWord,
    log: &'a Mutex<AttemptLog>,
    ear: &'a Ear,
    hang: Duration,
    agent: Duration,
}

impl Limits for Bounds<'_> {
    fn look(&self) -> Look {
        let silence = self.last.silence();
        let whole = self.begun.elapsed();
        if whole >= self.agent {
            return Look::TooLong(self.agent);
        }
        if silence >= self.hang {
            return Look::Hung(self.hang);
        }
        Look::GoOn(self.hang.saturating_sub(silence).min(self.agent.saturating_sub(whole)))
    }

    fn explain(&self, exit: Option<i32>) -> Option<Explanation> {
        self.ear.close();
        if let Some(found) = self.diagnosis.conclude(exit) {
            return Some(Explanation::Obstacle(found.reason.clone()));
        }
        self.log.lock().ok()?.last_words().map(Explanation::LastLine)
    }
}

fn broken(what: &str, error: &std::io::Error) -> Error {
    Error::General(format!("the agent cannot be started: {what}: {error}"))
}
