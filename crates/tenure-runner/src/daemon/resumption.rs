//! Decides whether an agent continues the conversation of the last attempt at its task.

use tenure_core::id::TaskId;
use tenure_core::lease::{AgentRun, Attempt, Resource};
use tenure_core::store::View;
use tenure_core::{Ending, Result, Usage};

use crate::agents::Agent;

/// How many of the newest sessions are searched for the one that was killed during the last attempt.
const NEWEST_SESSIONS: u64 = 50;

/// A conversation that an agent continues.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Resumption {
    pub conversation: String,
    pub why: ResumeReason,
    /// What earlier attempts have used in it.
    pub used: Usage,
}

/// Why a conversation is continued.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ResumeReason {
    /// The attempt was interrupted, or its agent could not work on any task.
    Interrupted,
    /// The agent did not report what became of the task.
    Unreported,
}

/// How an agent begins.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Beginning {
    /// With a new conversation.
    Fresh,
    Resumed(ResumeReason),
    /// With a new conversation, because an earlier one is lost. Its last message, if it is known.
    Lost(Option<String>),
}

/// The conversation that an agent continues. `interrupted` is the conversation in which its session was
/// interrupted.
pub(super) fn find(
    view: &dyn View,
    task: &TaskId,
    agent: &Agent,
    interrupted: Option<&str>,
) -> Result<Option<Resumption>> {
    if !agent.can_resume() {
        return Ok(None);
    }
    let attempts = view.attempts(&Resource::task(task))?;
    let found = match interrupted {
        Some(name) => Some((name.to_owned(), ResumeReason::Interrupted)),
        None => of_last_attempt(view, &attempts, agent)?,
    };
    Ok(found.map(|(conversation, why)| {
        let used = used_in(&attempts, &conversation);
        Resumption { conversation, why, used }
    }))
}

/// The usage recorded for a conversation so far, which an agent that prints the total of its conversation prints again. If
/// the log of a killed run is gone, its usage is not known and is counted with the next run.
pub(crate) fn used_in(attempts: &[Attempt], conversation: &str) -> Usage {
    let runs = attempts.iter().filter_map(|attempt| attempt.run.as_ref());
    let same = runs.filter(|run| run.conversation.as_deref() == Some(conversation));
    same.filter_map(|run| run.usage).fold(Usage::default(), Usage::plus)
}

/// The conversation of the last attempt, if that did not end because of the task. An agent that did not report is asked
/// once; after a second such ending the task starts with a new conversation.
fn of_last_attempt(
    view: &dyn View,
    attempts: &[Attempt],
    agent: &Agent,
) -> Result<Option<(String, ResumeReason)>> {
    let last = attempts.first().filter(|attempt| attempt.agent.as_deref() == Some(agent.name));
    let Some(last) = last else { return Ok(None) };
    let Some(run) = &last.run else {
        let killed = of_killed_session(view, last)?;
        return Ok(killed.map(|conversation| (conversation, ResumeReason::Interrupted)));
    };
    let Some(conversation) = run.conversation.clone() else { return Ok(None) };
    let why = match run.ending {
        Ending::Limited
        | Ending::Overloaded
        | Ending::NoNetwork
        | Ending::NoCredit
        | Ending::NotLoggedIn
        | Ending::Stopped => ResumeReason::Interrupted,
        ending if is_unreported(ending) => {
            let asked = |run: &AgentRun| {
                is_unreported(run.ending) && run.conversation.as_ref() == Some(&conversation)
            };
            let before = attempts[1..].iter().find_map(|attempt| attempt.run.as_ref());
            if before.is_some_and(asked) {
                return Ok(None);
            }
            ResumeReason::Unreported
        }
        _ => return Ok(None),
    };
    Ok(Some((conversation, why)))
}

/// The conversation of a session whose runner was killed during this attempt. Its checkpoint names it.
fn of_killed_session(view: &dyn View, attempt: &Attempt) -> Result<Option<String>> {
    let (sessions, _) = view.sessions(NEWEST_SESSIONS)?;
    let mut current = sessions.into_iter().filter_map(|session| session.current);
    let found = current.find(|current| current.attempt.as_ref() == Some(&attempt.id));
    Ok(found.and_then(|current| current.agent_session))
}

/// The last message of an agent at this task.
pub(super) fn last_message(view: &dyn View, task: &TaskId) -> Result<Option<String>> {
    let attempts = view.attempts(&Resource::task(task))?;
    Ok(attempts.into_iter().find_map(|attempt| attempt.run?.final_message))
}

pub(super) const fn is_unreported(ending: Ending) -> bool {
    matches!(ending, Ending::Unreported | Ending::PermissionDenied)
}
