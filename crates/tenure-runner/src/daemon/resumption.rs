//! Whether an agent goes on in the conversation of the last attempt at its task.

use tenure_core::id::TaskId;
use tenure_core::lease::{AgentRun, Attempt, Resource};
use tenure_core::store::View;
use tenure_core::{Ending, Result, Usage};

use crate::agents::Agent;

/// A conversation in which an agent goes on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Resumption {
    pub conversation: String,
    pub why: ResumeReason,
    /// What earlier attempts have used in it.
    pub used: Usage,
}

/// Why a conversation goes on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ResumeReason {
    /// The attempt was interrupted, or its agent could not work on any task.
    Interrupted,
    /// The agent did not report what became of the task.
    Unreported,
}

/// The conversation of the last attempt, if it ended for a reason that is not the task's. An agent that did not report is
/// asked once: after a second such ending the task starts afresh.
pub(super) fn of_last_attempt(view: &dyn View, task: &TaskId, agent: &Agent) -> Result<Option<Resumption>> {
    if !agent.can_resume() {
        return Ok(None);
    }
    let all = view.attempts(&Resource::task(task))?;
    let mut runs = all.iter().filter_map(|attempt| Some((attempt.agent.as_deref()?, attempt.run.as_ref()?)));
    let Some((_, last)) = runs.next().filter(|(name, _)| *name == agent.name) else { return Ok(None) };
    let Some(conversation) = last.conversation.clone() else { return Ok(None) };
    let why = match last.ending {
        Ending::Limited
        | Ending::Overloaded
        | Ending::NoNetwork
        | Ending::NoCredit
        | Ending::NotLoggedIn
        | Ending::Stopped => ResumeReason::Interrupted,
        ending if is_unreported(ending) => {
            let asked = |run: &AgentRun| is_unreported(run.ending) && run.conversation == last.conversation;
            if runs.next().is_some_and(|(_, run)| asked(run)) {
                return Ok(None);
            }
            ResumeReason::Unreported
        }
        _ => return Ok(None),
    };
    let used = used_in(&all, &conversation);
    Ok(Some(Resumption { conversation, why, used }))
}

/// The conversation of an attempt that was interrupted together with its runner.
pub(super) fn of_interrupted(view: &dyn View, task: &TaskId, conversation: &str) -> Result<Resumption> {
    let used = used_in(&view.attempts(&Resource::task(task))?, conversation);
    Ok(Resumption { conversation: conversation.to_owned(), why: ResumeReason::Interrupted, used })
}

/// What was recorded for a conversation so far. An agent that prints the total of its conversation prints this again.
fn used_in(attempts: &[Attempt], conversation: &str) -> Usage {
    let runs = attempts.iter().filter_map(|attempt| attempt.run.as_ref());
    let same = runs.filter(|run| run.conversation.as_deref() == Some(conversation));
    same.filter_map(|run| run.usage).fold(Usage::default(), Usage::plus)
}

pub(super) const fn is_unreported(ending: Ending) -> bool {
    matches!(ending, Ending::Unreported | Ending::PermissionDenied)
}
