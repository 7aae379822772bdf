//! One connected client: its agent, its grants, and the leases that it has lost since its last call.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use tenure_core::ErrorCode;
use tenure_core::error::TaskName;
use tenure_core::id::{Fence, TaskId};
use tenure_core::lease::Lease;

use crate::answer::LostLeaseJson;
use crate::request_handler::{Refusal, RequestHandler};

/// How many calls of one client may wait at a time.
const MOST_WAITS: usize = 16;
/// How many losses are kept until the client calls again.
const MOST_LOSSES: usize = 100;

#[derive(Debug)]
pub struct Session {
    number: u64,
    agent: OnceLock<String>,
    /// The latest grant of each task. A lost grant stays here, so that a late call presents its fence and is refused.
    granted: Mutex<HashMap<String, Fence>>,
    lost: Mutex<Vec<Lost>>,
    waits: AtomicUsize,
    ended: AtomicBool,
}

/// A lease that the client has lost, to be reported with its next answer.
#[derive(Debug, Clone)]
pub(crate) struct Lost {
    task: TaskName,
    fence: Fence,
    message: String,
}

impl Lost {
    pub(crate) fn new(task: TaskName, fence: Fence, message: String) -> Self {
        Self { task, fence, message }
    }

    pub(crate) fn object(&self) -> LostLeaseJson<'_> {
        LostLeaseJson {
            code: ErrorCode::LeaseLost.as_str(),
            task: &self.task.key,
            task_id: &self.task.id,
            fence: self.fence,
            message: &self.message,
        }
    }

    pub(crate) fn sentence(&self) -> String {
        let mut letters = self.message.chars();
        let message: String =
            letters.next().map(|c| c.to_uppercase().chain(letters).collect()).unwrap_or_default();
        format!("{}: {message}. Stop working on it.", ErrorCode::LeaseLost.as_str())
    }

    pub(crate) fn is_of(&self, task_id: &str) -> bool {
        self.task.id == task_id
    }
}

impl Session {
    fn new(number: u64) -> Self {
        Self {
            number,
            agent: OnceLock::new(),
            granted: Mutex::default(),
            lost: Mutex::default(),
            waits: AtomicUsize::new(0),
            ended: AtomicBool::new(false),
        }
    }

    pub(crate) fn number(&self) -> u64 {
        self.number
    }

    /// The client's agent; `None` before its first call.
    pub fn agent(&self) -> Option<&str> {
        self.agent.get().map(String::as_str)
    }

    /// The fence of the client's latest claim of a task.
    pub fn fence_of(&self, task: &str) -> Option<Fence> {
        lock(&self.granted).get(task).copied()
    }

    /// The tasks that the client was granted and has not finished or released.
    pub fn granted(&self) -> Vec<TaskId> {
        lock(&self.granted).keys().map(TaskId::new).collect()
    }

    /// Registers the agent, if this is the first call.
    pub(crate) fn join(&self, handler: &mut dyn RequestHandler, client: &str) -> Result<(), Refusal> {
        if self.agent.get().is_none() {
            let id = handler.join(client)?;
            let _ = self.agent.set(id);
        }
        Ok(())
    }

    pub(crate) fn note_grant(&self, lease: &Lease) {
        lock(&self.granted).insert(lease.resource.id.clone(), lease.fence);
    }

    pub(crate) fn forget_grant(&self, fence: Fence) {
        lock(&self.granted).retain(|_, known| *known != fence);
    }

    pub(crate) fn note_loss(&self, loss: Lost) {
        let mut lost = lock(&self.lost);
        if lost.len() < MOST_LOSSES {
            lost.push(loss);
        }
    }

    /// The losses to report, each once.
    pub(crate) fn take_losses(&self) -> Vec<Lost> {
        std::mem::take(&mut lock(&self.lost))
    }

    /// Ends the session; `false` if it had ended before.
    pub(crate) fn end(&self) -> bool {
        !self.ended.swap(true, Ordering::SeqCst)
    }

    pub(crate) fn has_ended(&self) -> bool {
        self.ended.load(Ordering::SeqCst)
    }

    /// Counts a waiting call; `None` if the client has too many of them.
    pub(crate) fn begin_wait(&self) -> Option<WaitGuard<'_>> {
        let before = self.waits.fetch_add(1, Ordering::SeqCst);
        let waiting = WaitGuard(self);
        (before < MOST_WAITS).then_some(waiting)
    }
}

/// All connected sessions by number.
#[derive(Debug, Default)]
pub(crate) struct Roster(Mutex<HashMap<u64, Arc<Session>>>);

impl Roster {
    pub(crate) fn enter(&self, number: u64) -> Arc<Session> {
        let session = Arc::new(Session::new(number));
        lock(&self.0).insert(number, Arc::clone(&session));
        session
    }

    pub(crate) fn leave(&self, session: &Session) {
        lock(&self.0).remove(&session.number);
    }

    pub(crate) fn all(&self) -> Vec<Arc<Session>> {
        lock(&self.0).values().cloned().collect()
    }
}

/// Counts one waiting call until it is dropped.
#[derive(Debug)]
pub(crate) struct WaitGuard<'a>(&'a Session);

impl Drop for WaitGuard<'_> {
    fn drop(&mut self) {
        self.0.waits.fetch_sub(1, Ordering::SeqCst);
    }
}

/// Ignores poisoning: no critical section here can panic between two dependent changes.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
