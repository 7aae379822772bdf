//! What waits for a person.

use super::model::{JobLine, TaskLine};
use super::read::{EndedTask, Surroundings};
use crate::clock::Timestamp;
use crate::ending::Ending;
use crate::event_text;
use crate::hints::{self, Hint};
use crate::holder::Judge;
use crate::job::JobStatus;
use crate::parking::Parking;
use crate::shell_quote::last_arg;
use crate::store::Message;
use crate::task::TaskStatus;

/// The kinds in the order of their urgency.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum AttentionKind {
    /// No agent is started, because no person has trusted the project.
    Untrusted,
    /// An agent program is not logged in.
    NotLoggedIn,
    /// Something is parked until a person acts.
    Parked,
    /// A message to the viewer.
    Message,
    /// An agent ended without saying what became of its task, which is in review.
    Unreported,
    Review,
    Failed,
    /// A job is interrupted, or has dead letters.
    Job,
}

impl AttentionKind {
    pub const fn label(self) -> &'static str {
        match self {
            Self::Untrusted => "untrusted",
            Self::NotLoggedIn => "not logged in",
            Self::Parked => "parked",
            Self::Message => "message",
            Self::Unreported => "unreported",
            Self::Review => "review",
            Self::Failed => "failed",
            Self::Job => "job",
        }
    }
}

/// Something that waits for a person.
#[derive(Debug, Clone, PartialEq)]
pub struct Attention {
    pub kind: AttentionKind,
    pub task: Option<TaskLine>,
    pub sentence: String,
    pub since: Option<Timestamp>,
    /// The commands that resolve it.
    pub hints: Vec<Hint>,
}

/// The entry for a task that is in review or has failed.
pub(super) fn of_task(ended: EndedTask, now: Timestamp, judge: &dyn Judge) -> Attention {
    let EndedTask { task, attempt, last_event } = ended;
    let key = &task.key;
    let ending = attempt.as_ref().and_then(|attempt| attempt.run.as_ref()).map(|run| run.ending);
    let kind = match (task.status, ending) {
        (TaskStatus::Failed, _) => AttentionKind::Failed,
        (_, Some(Ending::Unreported | Ending::PermissionDenied)) => AttentionKind::Unreported,
        _ => AttentionKind::Review,
    };
    let hints = if kind == AttentionKind::Failed {
        vec![hints::retry(key), hints::skip(key)]
    } else {
        vec![hints::approve(key), hints::reject(key)]
    };
    // What was said with the change to this status; how an earlier attempt has ended is not why.
    let change = last_event.filter(|event| event.to == Some(task.status));
    let said = match &change {
        Some(event) => event_text::remark(event).map(str::to_owned).filter(|text| !text.trim().is_empty()),
        None => attempt.and_then(|attempt| attempt.reason),
    };
    let sentence = said.unwrap_or_else(|| match kind {
        AttentionKind::Failed => "it has failed".to_owned(),
        _ => "it is waiting for review".to_owned(),
    });
    let since = Some(task.updated_at);
    Attention { kind, sentence, since, hints, task: Some(TaskLine::of(&task, now, judge)) }
}

/// The entry for something parked, if a person has to act.
pub(super) fn of_parking(parking: &Parking, now: Timestamp) -> Option<Attention> {
    let logged_out = parking.ending == Some(Ending::NotLoggedIn);
    if !logged_out && parking.tries_at().is_some() {
        return None;
    }
    Some(Attention {
        kind: if logged_out { AttentionKind::NotLoggedIn } else { AttentionKind::Parked },
        task: None,
        sentence: parking.sentence(now),
        since: parking.parked_at,
        hints: vec![hints::probe_parked()],
    })
}

pub(super) fn of_message(message: &Message) -> Attention {
    let about = message.task.as_ref().map(|task| format!(" about {}", task.key)).unwrap_or_default();
    Attention {
        kind: AttentionKind::Message,
        task: None,
        sentence: format!("{}{about}: {}", message.from, message.text),
        since: Some(message.sent_at),
        hints: vec![hints::acknowledge(message.id)],
    }
}

/// The entry for a job, if it does not continue by itself.
pub(super) fn of_job(job: &JobLine) -> Option<Attention> {
    let name = last_arg(&job.name);
    let (sentence, hint) = match job.status {
        JobStatus::Interrupted => (format!("job {} is interrupted", job.name), hints::resume(name)),
        JobStatus::Failed if job.counts.failed > 0 => (
            format!("job {} has {} dead letters", job.name, job.counts.failed),
            hints::retry_dead_letters(name),
        ),
        _ => return None,
    };
    let since = Some(job.created_at);
    Some(Attention { kind: AttentionKind::Job, task: None, sentence, since, hints: vec![hint] })
}

pub(super) fn of_surroundings(around: &Surroundings) -> Option<Attention> {
    let sentence = around.untrusted.clone()?;
    Some(Attention {
        kind: AttentionKind::Untrusted,
        task: None,
        sentence,
        since: None,
        hints: vec![hints::trust_settings()],
    })
}
