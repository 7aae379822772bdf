//! What an agent did in an attempt whose supervisor died, from the log of the attempt.

use std::path::Path;

use tenure_core::Ending;
use tenure_core::lease::{AgentRun, Attempt};

use crate::agents::{Agent, ProcessEnd, Summary};
use crate::daemon::resumption::used_in;
use crate::log_reader::LogReader;
use crate::transcript::split_time;

/// The log of an attempt.
pub(crate) struct ReadLog {
    summary: Summary,
    ending: Ending,
}

impl ReadLog {
    /// Reads the log as far as the supervisor has written it. `None` if no agent worked in the attempt, or if there is no log.
    /// Memory is bounded, however long the log is.
    pub(crate) fn of(attempt: &Attempt) -> Option<Self> {
        let agent = Agent::named(attempt.agent.as_deref()?);
        let mut log = LogReader::open(Path::new(attempt.log_path.as_deref()?)).ok()?;
        let mut summary = Summary::default();
        while let Ok(Some(line)) = log.next_line() {
            for event in agent.parse(split_time(&line).1) {
                summary.add(event);
            }
        }
        // The exit code is known if the supervisor kept the outcome before it died.
        let ending = match attempt.exit_code {
            Some(code) => agent.ending(ProcessEnd::Exited(code), &summary),
            None => Ending::Stopped,
        };
        Some(Self { summary, ending })
    }

    /// The run for the attempt's row. `attempts`: all attempts at the same task. `None` if the log does not name the
    /// conversation; then the checkpoint of the session may still have it.
    pub(crate) fn run(&self, attempts: &[Attempt]) -> Option<AgentRun> {
        let conversation = self.summary.conversation.clone()?;
        let used = self.summary.usage().map(|used| used.of_this_run(used_in(attempts, &conversation)));
        Some(AgentRun {
            ending: self.ending,
            conversation: Some(conversation),
            final_message: self.summary.final_message.clone(),
            usage: used,
        })
    }
}
