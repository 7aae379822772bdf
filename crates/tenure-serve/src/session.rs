//! One connected client: who it is, what it was granted, and what it has lost since it last called.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use serde_json::{Value, json};
use tenure_core::ErrorCode;
use tenure_core::error::TaskName;
use tenure_core::id::{Fence, TaskId};
use tenure_core::lease::Lease;

use crate::desk::{Desk, Refusal};

/// A client may stand in this many lines at a time.
const MOST_WAITS: usize = 16;
/// Losses that are kept until the client calls again.
const MOST_LOSSES: usize = 100;

#[derive(Debug)]
pub struct Session {
    number: u64,
    agent: OnceLock<String>,
    /// The latest grant of each task. A lost one stays, so that its late holder is told by its own fence.
    granted: Mutex<HashMap<String, Fence>>,
    lost: Mutex<Vec<Lost>>,
    waits: AtomicUsize,
    ended: AtomicBool,
}

/// A lease that is no longer the client's, of which it was not told yet.
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

    pub(crate) fn object(&self) -> Value {
        json!({
            "code": ErrorCode::LeaseLost.as_str(),
            "task": self.task.key,
            "taskId": self.task.id,
            "fence": self.fence,
            "message": self.message,
        })
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

    /// The agent that this client is, once it has called.
    pub fn agent(&self) -> Option<&str> {
        self.agent.get().map(String::as_str)
    }

    /// The fence of its latest claim of a task.
    pub fn fence_of(&self, task: &str) -> Option<Fence> {
        lock(&self.granted).get(task).copied()
    }

    /// The tasks that it was granted and has not spoken its last word on.
    pub fn granted(&self) -> Vec<TaskId> {
        lock(&self.granted).keys().map(TaskId::new).collect()
    }

    /// The first call joins.
    pub(crate) fn join(&self, desk: &mut dyn Desk, client: &str) -> Result<(), Refusal> {
        if self.agent.get().is_none() {
            let id = desk.join(client)?;
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

    /// What it has to be told, once.
    pub(crate) fn take_losses(&self) -> Vec<Lost> {
        std::mem::take(&mut lock(&self.lost))
    }

    /// True the first time.
    pub(crate) fn end(&self) -> bool {
        !self.ended.swap(true, Ordering::SeqCst)
    }

    pub(crate) fn has_ended(&self) -> bool {
        self.ended.load(Ordering::SeqCst)
    }

    /// A place among its waiting calls, unless it has too many.
    pub(crate) fn begin_wait(&self) -> Option<Waiting<'_>> {
        let before = self.waits.fetch_add(1, Ordering::SeqCst);
        let waiting = Waiting(self);
        (before < MOST_WAITS).then_some(waiting)
    }
}

/// Everybody who is connected.
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

/// One of a client's waiting calls.
#[derive(Debug)]
pub(crate) struct Waiting<'a>(&'a Session);

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        self.0.waits.fetch_sub(1, Ordering::SeqCst);
    }
}

/// Nothing here can be left half done, so what another thread left is good.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
