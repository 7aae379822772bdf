//! What the server needs from the binary: the projects of this machine, and a handler for each that reads and changes
//! it.

use std::path::PathBuf;
use std::sync::Arc;

use rustix::fd::{AsFd, BorrowedFd};
use tenure_core::Timestamp;
use tenure_core::board::{Board, EventLine, Query, TaskDetail};
use tenure_core::rules::Seen;

use super::hub::{Changes, JobReceiver};
use super::metrics::Metrics;
use crate::request_handler::Refusal;

/// The projects of this machine. Its methods run on separate threads and may block.
pub trait Projects: Send + Sync {
    /// All projects that this user has registered. None of them is opened.
    fn list(&self) -> Vec<ProjectRow>;

    /// Opens a project and serves its requests until there are no more, and opens it again if its settings or its trust have
    /// changed. If it cannot be opened, calls [`Requests::refuse`].
    fn serve(&self, project: &str, requests: Requests);

    /// Calls [`Following::changed`] for every change of a project's store, until [`Following::is_over`].
    fn follow(&self, project: &str, following: &Following);

    /// Starts or stops a runner, which takes longer than other requests may wait.
    fn act_apart(&self, project: &str, action: &Action) -> Result<String, Refusal>;
}

/// A project in the list of all projects.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProjectRow {
    /// Its name in URLs.
    pub slug: String,
    pub name: Option<String>,
    pub path: String,
    /// Why it is not opened: it is not trusted, missing, or another user's.
    pub closed: Option<String>,
    /// The command that solves this, if there is one.
    pub hint: Option<String>,
}

/// Reads and changes one project, with the functions behind the commands.
pub trait ProjectHandler {
    fn board(&mut self, query: &Query) -> Result<Board, Refusal>;
    /// The last `limit` events, newest first.
    fn events(&mut self, limit: u64) -> Result<Vec<EventLine>, Refusal>;
    fn task(&mut self, reference: &str) -> Result<TaskPage, Refusal>;
    /// The log of the task's running attempt, if that log is on this machine.
    fn live_log(&mut self, reference: &str) -> Result<Option<PathBuf>, Refusal>;
    /// Makes the change, and returns what was done as a sentence.
    fn act(&mut self, action: &Action) -> Result<String, Refusal>;
    fn metrics(&mut self) -> Result<Metrics, Refusal>;
}

/// Everything that the page of a task shows.
#[derive(Debug, Clone)]
pub struct TaskPage {
    pub now: Timestamp,
    pub project: String,
    pub detail: TaskDetail,
    /// Whether the person at the browser holds it.
    pub is_mine: bool,
    pub log: AttemptLog,
}

/// The log of a task's latest attempt.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AttemptLog {
    None,
    /// It cannot be shown: it is on another machine, or was removed.
    Unreadable(String),
    Lines {
        entries: Vec<LogEntry>,
        /// Earlier lines are not shown.
        is_cut: bool,
        /// The attempt is still running.
        is_live: bool,
    },
}

/// One entry of a transcript.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LogEntry {
    pub at: Option<Timestamp>,
    pub kind: &'static str,
    pub text: String,
}

/// A change that a person requests.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Action {
    Add {
        title: String,
        description: String,
        section: Option<String>,
        key: Option<String>,
    },
    /// A change of one task, which is refused if the task is no longer as the page showed it.
    Task {
        task: String,
        seen: Seen,
        change: TaskChange,
    },
    StartRunner {
        preset: Option<String>,
        section: Option<String>,
    },
    StopRunner {
        id: String,
    },
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TaskChange {
    Edit { title: String, description: String, section: Option<String>, priority: i64 },
    Claim,
    Release { remark: Option<String> },
    Evict,
    Retry { remark: Option<String> },
    Skip { remark: Option<String> },
    Approve { remark: Option<String> },
    Reject { remark: String },
}

impl Action {
    /// Whether it is run by [`Projects::act_apart`].
    pub(crate) fn is_apart(&self) -> bool {
        matches!(self, Self::StartRunner { .. } | Self::StopRunner { .. })
    }
}

pub(crate) type Job = Box<dyn FnOnce(&mut dyn ProjectHandler) + Send>;

/// The requests to one project, in the order of arrival.
pub struct Requests {
    queue: JobReceiver,
    /// The request that was received when the handler was no longer current.
    held_back: Option<Job>,
}

impl std::fmt::Debug for Requests {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Requests").field("queue", &self.queue).finish_non_exhaustive()
    }
}

/// Why [`Requests::serve`] has returned.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Served {
    /// There will be no more requests.
    All,
    /// The project has to be opened again for the next request.
    UntilStale,
}

impl Requests {
    pub(super) fn new(queue: JobReceiver) -> Self {
        Self { queue, held_back: None }
    }

    /// Answers requests until there are no more, or until the handler is no longer current, which is checked when a request is
    /// received.
    pub fn serve(&mut self, handler: &mut dyn ProjectHandler, is_current: &dyn Fn() -> bool) -> Served {
        // The handler was opened for this request.
        if let Some(job) = self.held_back.take() {
            job(handler);
        }
        while let Some(job) = self.queue.next() {
            if !is_current() {
                self.held_back = Some(job);
                return Served::UntilStale;
            }
            job(handler);
        }
        Served::All
    }

    /// Answers the waiting requests with the reason why the project cannot be opened. The next request tries again.
    pub fn refuse(mut self, refusal: &Refusal) {
        // Closed before the first answer is sent, because a request made after an answer must not get the
        // same refusal.
        self.queue.close();
        let mut closed = ClosedProject(refusal.clone());
        while let Some(job) = self.held_back.take().or_else(|| self.queue.next()) {
            job(&mut closed);
        }
    }
}

/// Refuses everything.
struct ClosedProject(Refusal);

impl ProjectHandler for ClosedProject {
    fn board(&mut self, _: &Query) -> Result<Board, Refusal> {
        Err(self.0.clone())
    }

    fn events(&mut self, _: u64) -> Result<Vec<EventLine>, Refusal> {
        Err(self.0.clone())
    }

    fn task(&mut self, _: &str) -> Result<TaskPage, Refusal> {
        Err(self.0.clone())
    }

    fn live_log(&mut self, _: &str) -> Result<Option<PathBuf>, Refusal> {
        Err(self.0.clone())
    }

    fn act(&mut self, _: &Action) -> Result<String, Refusal> {
        Err(self.0.clone())
    }

    fn metrics(&mut self) -> Result<Metrics, Refusal> {
        Err(self.0.clone())
    }
}

/// The side of a follower that reports changes.
#[derive(Debug)]
pub struct Following {
    pub(super) changes: Arc<Changes>,
}

impl Following {
    /// The store may have changed: every page reads it again.
    pub fn changed(&self) {
        self.changes.bump();
    }

    /// Readable when [`Following::is_over`] may have changed.
    pub fn fd(&self) -> BorrowedFd<'_> {
        self.changes.woken.as_fd()
    }

    /// Whether no page follows the project any more. Resets [`Following::fd`].
    pub fn is_over(&self) -> bool {
        self.changes.drain();
        !self.changes.is_watched()
    }
}
