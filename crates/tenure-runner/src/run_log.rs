//! What an agent has done in an attempt, from the log of the attempt.

use std::path::Path;

use tenure_core::Ending;
use tenure_core::ending::Usage;
use tenure_core::lease::{AgentRun, Attempt};

use crate::agents::{Agent, ProcessEnd, Summary};
use crate::daemon::resumption::used_in;
use crate::log_reader::LogReader;
use crate::transcript::split_time;

/// The log of an attempt. Memory is bounded, regardless of the length of the log.
#[derive(Debug)]
pub struct RunLog {
    agent: &'static Agent,
    log: LogReader,
    summary: Summary,
}

impl RunLog {
    /// Opens the log at `path`. `None` if no agent works in the attempt, or if there is no log.
    pub fn open(attempt: &Attempt, path: &Path) -> Option<Self> {
        let agent = Agent::named(attempt.agent.as_deref()?);
        let log = LogReader::open(path).ok()?;
        Some(Self { agent, log, summary: Summary::default() })
    }

    /// Reads the lines that the supervisor has written since the last call, at most `at_most` of them.
    pub fn read(&mut self, at_most: usize) {
        for _ in 0..at_most {
            let Ok(Some(line)) = self.log.next_line() else { break };
            for event in self.agent.parse(split_time(&line).1) {
                self.summary.add(event);
            }
        }
    }

    /// What the run has used, as far as the agent has printed it. `attempts`: all attempts at the same task.
    pub fn used(&self, attempts: &[Attempt]) -> Option<Usage> {
        let before = self.summary.conversation.as_deref().map(|conversation| used_in(attempts, conversation));
        self.summary.usage().map(|used| used.of_this_run(before.unwrap_or_default()))
    }

    /// The run for the row of an attempt whose supervisor has died. `None` if the log does not name the conversation; then
    /// the checkpoint of the session may still have it.
    pub(crate) fn run(&self, attempt: &Attempt, attempts: &[Attempt]) -> Option<AgentRun> {
        let conversation = self.summary.conversation.clone()?;
        // The exit code is known if the supervisor kept the outcome before it died.
        let ending = match attempt.exit_code {
            Some(code) => self.agent.ending(ProcessEnd::Exited(code), &self.summary),
            None => Ending::Stopped,
        };
        Some(AgentRun {
            ending,
            conversation: Some(conversation),
            final_message: self.summary.final_message.clone(),
            usage: self.used(attempts),
        })
    }
}
