//! What becomes of a task when its agent ends, and what is parked then.

use std::path::Path;
use std::sync::Mutex;
use std::time::{Duration, Instant};

use tenure_core::lease::AgentRun;
use tenure_core::outcome::AttemptResult;
use tenure_core::task::TaskStatus;
use tenure_core::{Clock, Ending, Usage};

use super::report::{self, AgentReport};
use super::resumption::{ResumeReason, Resumption, is_unreported};
use super::{AgentPreset, Purpose};
use crate::agents::{Agent, Conclusion, LocalNow, ProcessEnd, Summary};
use crate::supervise::OutputVerdict;

/// A reviewer of an unknown program that fails within this time may simply be unable to work.
const QUICK: Duration = Duration::from_secs(30);

/// Follows the output of an agent, and concludes from it how the attempt has ended.
pub(super) struct Diagnosis<'a> {
    agent: &'static Agent,
    purpose: Purpose,
    require_report: bool,
    resumed: Option<ResumeReason>,
    /// What earlier attempts have used in the same conversation.
    used_before: Usage,
    report_folder: &'a Path,
    clock: &'a dyn Clock,
    begun: Instant,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    summary: Summary,
    /// Since when the program waits for its provider.
    retrying_since: Option<Instant>,
    /// The attempt's id, once it has begun.
    attempt: Option<String>,
    /// Set once the agent has ended.
    found: Option<AttemptEnding>,
}

/// How an attempt has ended.
#[derive(Debug, Clone)]
pub(super) struct AttemptEnding {
    /// What was concluded from the output.
    pub(super) conclusion: Conclusion,
    /// The ending, with what the agent has reported taken into account.
    pub(super) ending: Ending,
    /// The agent has reported by a file or in its final message.
    pub(super) reported: bool,
    /// The agent is asked for its report next.
    asked_next: bool,
    /// A sentence for people.
    pub(super) reason: String,
}

impl AttemptEnding {
    /// The ending that counts when accounts, hosts and presets are parked. `reported` means that the agent has finished its
    /// task itself.
    pub(super) fn for_parking(&self, reported: bool) -> Ending {
        match self.conclusion.ending {
            _ if self.asked_next && !reported => Ending::Stopped,
            _ if !(reported || self.reported) => self.ending,
            ending @ (Ending::Limited
            | Ending::Overloaded
            | Ending::NoNetwork
            | Ending::NoCredit
            | Ending::NotLoggedIn) => ending,
            // An agent that has reported is able to work, even if its process ended badly.
            _ => Ending::Done,
        }
    }
}

impl<'a> Diagnosis<'a> {
    pub(super) fn new(
        preset: &AgentPreset,
        purpose: Purpose,
        resumption: Option<&Resumption>,
        report_folder: &'a Path,
        clock: &'a dyn Clock,
    ) -> Self {
        Self {
            agent: preset.agent,
            purpose,
            require_report: preset.require_report,
            resumed: resumption.map(|resumption| resumption.why),
            used_before: resumption.map(|resumption| resumption.used).unwrap_or_default(),
            report_folder,
            clock,
            begun: Instant::now(),
            state: Mutex::default(),
        }
    }

    pub(super) fn begun(&self, attempt: &str) {
        if let Ok(mut state) = self.state.lock() {
            state.attempt = Some(attempt.to_owned());
        }
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

    /// Must be called after all output was read. `why` says how the process ended, `last_line` what it printed
    /// last.
    pub(super) fn verdict(
        &self,
        end: ProcessEnd,
        why: &str,
        last_line: Option<String>,
    ) -> Option<OutputVerdict> {
        let mut state = self.state.lock().ok()?;
        let conclusion = self.agent.conclude(end, &state.summary, &LocalNow::read(self.clock));
        let file = state.attempt.as_ref().and_then(|attempt| report::take(self.report_folder, attempt));
        let said = if self.agent.is_known() { &state.summary.final_message } else { &last_line };
        let report = file.or_else(|| said.as_deref().and_then(report::in_message));
        let ending = self.ending(conclusion.ending, report.as_ref());
        let reason = match (ending, &report) {
            (Ending::GaveUp, Some(AgentReport::Failed(why))) => why.clone(),
            (Ending::Crashed | Ending::Unclassified | Ending::GaveUp, _) => {
                let said = conclusion.message.clone().or(last_line.filter(|line| !line.starts_with('{')));
                said.map_or_else(|| why.to_owned(), |said| format!("{why}: {said}"))
            }
            (Ending::Done | Ending::Hung | Ending::TimedOut | Ending::Stopped | Ending::LeaseLost, _) => {
                why.to_owned()
            }
            _ => Conclusion { ending, ..conclusion.clone() }.sentence(self.agent),
        };
        let asked_next = is_unreported(ending) && self.can_be_asked(&state.summary);
        // The conversation to be continued is lost, so the next attempt starts a new one.
        let lost = ending == Ending::Unclassified && self.resumed.is_some() && !state.summary.answered;
        let result = if asked_next || lost {
            AttemptResult::Returned { why: reason.clone() }
        } else {
            self.result(ending, &reason)
        };
        let reported = report.is_some();
        state.found =
            Some(AttemptEnding { conclusion, ending, reported, asked_next, reason: reason.clone() });
        Some(OutputVerdict { result, reason })
    }

    /// The agent's report takes precedence over how its process ended.
    fn ending(&self, concluded: Ending, report: Option<&AgentReport>) -> Ending {
        match (report, concluded) {
            (_, Ending::Stopped | Ending::LeaseLost) => concluded,
            (Some(AgentReport::Done), _) => Ending::Done,
            (Some(AgentReport::Failed(_)), _) => Ending::GaveUp,
            (None, Ending::Done) if self.require_report => Ending::Unreported,
            // The agent was already asked for its report. If it could not answer, the task must not start
            // over because of that.
            (
                None,
                Ending::Unclassified | Ending::Crashed | Ending::Hung | Ending::TimedOut | Ending::TaskError,
            ) if self.resumed == Some(ResumeReason::Unreported) => Ending::Unreported,
            (None, Ending::Unclassified) if self.is_judgement() => Ending::GaveUp,
            (None, _) => concluded,
        }
    }

    /// An agent is asked once, in its own conversation.
    fn can_be_asked(&self, summary: &Summary) -> bool {
        let asked = self.resumed == Some(ResumeReason::Unreported);
        self.purpose == Purpose::Work && !asked && self.agent.can_resume() && summary.conversation.is_some()
    }

    /// The program could not be started.
    pub(super) fn not_started(&self, why: &str) {
        if let Ok(mut state) = self.state.lock() {
            let conclusion =
                Conclusion { ending: Ending::Misconfigured, message: Some(why.to_owned()), resets_at: None };
            let (reported, asked_next, reason) = (false, false, why.to_owned());
            let ending = conclusion.ending;
            state.found = Some(AttemptEnding { conclusion, ending, reported, asked_next, reason });
        }
    }

    pub(super) fn found(&self) -> Option<AttemptEnding> {
        self.state.lock().ok()?.found.clone()
    }

    /// The run for the attempt's row. `reported` is the status of a task that the agent has finished itself.
    pub(super) fn run(&self, reported: Option<TaskStatus>) -> Option<AgentRun> {
        let state = self.state.lock().ok()?;
        let found = state.found.as_ref()?;
        let ending = match reported {
            Some(TaskStatus::Failed) => Ending::GaveUp,
            Some(_) => Ending::Done,
            None => found.ending,
        };
        Some(AgentRun {
            ending,
            conversation: state.summary.conversation.clone(),
            final_message: state.summary.final_message.clone(),
            usage: state.summary.usage().map(|used| used.of_this_run(self.used_before)),
        })
    }

    /// Whether the exit code is a reviewer's judgement. A reviewer that ends at once may simply have been unable
    /// to work.
    fn is_judgement(&self) -> bool {
        self.purpose == Purpose::Review && !self.agent.is_known() && self.begun.elapsed() >= QUICK
    }

    /// Maps each ending to what happens to the task.
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
            // A review that takes too long says nothing about the quality of the work.
            Ending::TimedOut if !review => AttemptResult::Failed { why, charged: false },
            // The exit code of an unknown reviewer program is its judgement.
            Ending::Unclassified if review && !self.agent.is_known() => {
                AttemptResult::Failed { why, charged: false }
            }
            Ending::Hung | Ending::TimedOut | Ending::Crashed | Ending::Unclassified => {
                AttemptResult::Broken { why }
            }
        }
    }
}
