//! What becomes of a task when its agent ends, and what is parked then.

use std::sync::Mutex;
use std::time::{Duration, Instant};

use tenure_core::lease::AgentRun;
use tenure_core::outcome::AttemptResult;
use tenure_core::task::TaskStatus;
use tenure_core::{Clock, Ending};

use super::{AgentStart, Purpose};
use crate::agents::{Agent, Conclusion, ProcessEnd, RunUsage, Summary};
use crate::supervise::Verdict;

/// A reviewer that is not known and fails within this time may be unable to work.
const QUICK: Duration = Duration::from_secs(30);

/// Follows the output of an agent, and concludes from it how the attempt has ended.
pub(super) struct Diagnosis<'a> {
    agent: &'static Agent,
    account: String,
    purpose: Purpose,
    clock: &'a dyn Clock,
    begun: Instant,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    summary: Summary,
    /// Since when the program waits for its provider.
    retrying_since: Option<Instant>,
    /// Set once the agent has ended.
    found: Option<Found>,
}

/// How an attempt has ended.
#[derive(Debug, Clone)]
pub(super) struct Found {
    pub(super) conclusion: Conclusion,
    /// A sentence for people.
    pub(super) reason: String,
}

impl<'a> Diagnosis<'a> {
    pub(super) fn new(start: &AgentStart, purpose: Purpose, clock: &'a dyn Clock) -> Self {
        let account = start.scope.account.clone();
        Self { agent: start.agent, account, purpose, clock, begun: Instant::now(), state: Mutex::default() }
    }

    /// Returns the name of the agent's conversation, if it is known.
    pub(super) fn observe(&self, line: &[u8]) -> Option<String> {
        let mut state = self.state.lock().ok()?;
        for event in self.agent.parse(str::from_utf8(line).ok()?) {
            state.summary.add(event);
        }
        if !state.summary.is_retrying() {
            state.retrying_since = None;
        } else if state.retrying_since.is_none() {
            state.retrying_since = Some(Instant::now());
        }
        state.summary.conversation.clone()
    }

    /// For how long the program has waited for its provider. A program that prints a line with every retry is never silent.
    pub(super) fn retrying_for(&self) -> Option<Duration> {
        self.state.lock().ok()?.retrying_since.map(|since| since.elapsed())
    }

    /// To be called after all output was read. `why` says how the process ended, `last_line` what it printed last.
    pub(super) fn verdict(&self, end: ProcessEnd, why: &str, last_line: Option<String>) -> Option<Verdict> {
        let mut state = self.state.lock().ok()?;
        let mut conclusion = self.agent.conclude(end, &state.summary).with_plausible_reset(self.clock.now());
        if conclusion.ending == Ending::Unclassified && self.is_judgement() {
            conclusion.ending = Ending::GaveUp;
        }
        let reason = match conclusion.ending {
            Ending::Crashed | Ending::Unclassified | Ending::GaveUp => {
                let said = conclusion.message.clone().or(last_line.filter(|line| !line.starts_with('{')));
                said.map_or_else(|| why.to_owned(), |said| format!("{why}: {said}"))
            }
            Ending::Done | Ending::Hung | Ending::TimedOut | Ending::Stopped | Ending::LeaseLost => {
                why.to_owned()
            }
            _ => conclusion.sentence(self.agent),
        };
        let result = self.result(conclusion.ending, &reason);
        state.found = Some(Found { conclusion, reason: reason.clone() });
        Some(Verdict { result, reason })
    }

    /// The program could not be started.
    pub(super) fn not_started(&self, why: &str) {
        if let Ok(mut state) = self.state.lock() {
            let conclusion =
                Conclusion { ending: Ending::Misconfigured, message: Some(why.to_owned()), resets_at: None };
            state.found = Some(Found { conclusion, reason: why.to_owned() });
        }
    }

    pub(super) fn found(&self) -> Option<Found> {
        self.state.lock().ok()?.found.clone()
    }

    /// The run for the attempt's row. `reported`: the status of a task that the agent has finished itself.
    pub(super) fn run(&self, reported: Option<TaskStatus>) -> Option<AgentRun> {
        let state = self.state.lock().ok()?;
        let found = state.found.as_ref()?;
        let ending = match reported {
            Some(TaskStatus::Failed) => Ending::GaveUp,
            Some(_) => Ending::Done,
            None => found.conclusion.ending,
        };
        Some(AgentRun {
            agent: if self.agent.is_known() { self.agent.name.to_owned() } else { self.account.clone() },
            ending,
            conversation: state.summary.conversation.clone(),
            final_message: state.summary.final_message.clone(),
            usage: match state.summary.usage() {
                Some(RunUsage::Run(usage) | RunUsage::Conversation(usage)) => Some(usage),
                None => None,
            },
        })
    }

    /// Whether an exit code is the judgement of a reviewer. One that ends at once could as well be unable to work.
    fn is_judgement(&self) -> bool {
        self.purpose == Purpose::Review && !self.agent.is_known() && self.begun.elapsed() >= QUICK
    }

    /// The table of endings: what becomes of the task.
    fn result(&self, ending: Ending, why: &str) -> AttemptResult {
        let why = why.to_owned();
        let review = self.purpose == Purpose::Review;
        match ending {
            Ending::Done => AttemptResult::Done,
            Ending::GaveUp => AttemptResult::Failed { why, charged: false },
            Ending::Unreported | Ending::PermissionDenied => AttemptResult::Unreported { why },
            Ending::Limited
            | Ending::Overloaded
            | Ending::NoNetwork
            | Ending::NoCredit
            | Ending::NotLoggedIn
            | Ending::Misconfigured
            | Ending::Stopped
            | Ending::LeaseLost => AttemptResult::Returned { why },
            Ending::TaskError => AttemptResult::Failed { why, charged: true },
            // A review that takes too long tells nothing about the work.
            Ending::TimedOut if !review => AttemptResult::Failed { why, charged: false },
            // The exit code of a reviewer that is not known is its judgement.
            Ending::Unclassified if review && !self.agent.is_known() => {
                AttemptResult::Failed { why, charged: false }
            }
            Ending::Hung | Ending::TimedOut | Ending::Crashed | Ending::Unclassified => {
                AttemptResult::Broken { why }
            }
        }
    }
}
