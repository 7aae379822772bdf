//! The desk: where every call is answered, one after the other, by the thread that owns the store.
//!
//! Guaranteed: work on the store never runs on the executor; no more than [`QUEUE`] calls are waiting at a time, and
//! whoever would add another waits itself.

use std::fmt;
use std::os::fd::OwnedFd;
use std::time::Duration;

use serde_json::Value;
use tenure_core::ErrorCode;
use tenure_core::error::TaskName;
use tenure_core::id::Fence;
use tenure_core::lease::Lease;
use tokio::sync::{mpsc, oneshot};

use crate::call::{Call, Claim};
use crate::pages::Page;
use crate::session::Session;

/// How many calls may stand before the desk.
const QUEUE: usize = 32;

/// Answers calls. The binary is one, with the same functions as its commands.
pub trait Desk {
    /// Registers an agent for a client that calls itself `client`: its id.
    fn join(&mut self, client: &str) -> Result<String, Refusal>;
    fn answer(&mut self, session: &Session, call: &Call) -> Result<Reply, Refusal>;
    /// One try to take a task. `place` names the caller's place in line from one try to the next.
    fn claim(&mut self, session: &Session, claim: &Claim, place: u64) -> Result<Step, Refusal>;
    /// Gives the place in line up: what is to be said to somebody who has waited this long.
    fn give_up(&mut self, place: u64, waited: Duration) -> Refusal;
    /// Gives back what was just granted, because nobody is there to hear of it.
    fn give_back(&mut self, lease: &Lease, task: &TaskName);
    fn read(&mut self, session: &Session, page: &Page) -> Result<String, Refusal>;
    /// The client is gone; `held` is what was renewed for it.
    fn end(&mut self, session: &Session, held: Vec<Lease>);
}

/// An answer: the object that programs read, and a short text for people.
#[derive(Debug, Clone)]
pub struct Reply {
    pub data: Value,
    pub text: String,
    pub effect: Effect,
}

/// What an answer changes about what the session holds.
#[derive(Debug, Clone)]
pub enum Effect {
    Nothing,
    /// It holds this from now on, or holds it for longer.
    Holds {
        task: TaskName,
        lease: Box<Lease>,
        reacquired: bool,
    },
    /// Its word on this grant was said.
    Ended(Fence),
}

/// An error as a client is told it.
#[derive(Debug, Clone)]
pub struct Refusal {
    pub code: ErrorCode,
    pub message: String,
    /// Boxed, because every outcome carries the room for it.
    pub details: Box<Value>,
    /// Lines below the message, for people.
    pub context: Vec<String>,
}

impl Refusal {
    pub fn new(code: ErrorCode, message: impl Into<String>) -> Self {
        Self { code, message: message.into(), details: Box::new(Value::Null), context: Vec::new() }
    }

    pub fn invalid(message: impl Into<String>) -> Self {
        Self::new(ErrorCode::InvalidArguments, message)
    }
}

/// What came of one try.
#[derive(Debug)]
pub enum Step {
    Granted(Reply),
    /// Stands in line. Try again when one of these descriptors speaks, or after the nap.
    Wait {
        wake: Vec<OwnedFd>,
        nap: Duration,
        /// Who is in the way, in a sentence.
        why: String,
    },
}

type Job = Box<dyn FnOnce(&mut dyn Desk) + Send>;

/// The way to the desk.
#[derive(Clone)]
pub(crate) struct Queue(mpsc::Sender<Job>);

impl fmt::Debug for Queue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Queue").finish_non_exhaustive()
    }
}

/// The desk's side of it.
pub(crate) struct Jobs(mpsc::Receiver<Job>);

pub(crate) fn queue() -> (Queue, Jobs) {
    let (sender, receiver) = mpsc::channel(QUEUE);
    (Queue(sender), Jobs(receiver))
}

impl Queue {
    /// Has `job` done at the desk. None if the desk is closed.
    ///
    /// What must not be lost when the caller is gone meanwhile belongs into `job`.
    pub(crate) async fn ask<T: Send + 'static>(
        &self,
        job: impl FnOnce(&mut dyn Desk) -> T + Send + 'static,
    ) -> Option<T> {
        let (answer, answered) = oneshot::channel();
        let job: Job = Box::new(move |desk| {
            let _ = answer.send(job(desk));
        });
        self.0.send(job).await.ok()?;
        answered.await.ok()
    }

    /// Has it done some time, without anybody who waits for it.
    pub(crate) fn post(&self, job: impl FnOnce(&mut dyn Desk) + Send + 'static) {
        let sender = self.0.clone();
        if let Ok(runtime) = tokio::runtime::Handle::try_current() {
            runtime.spawn(async move {
                let _ = sender.send(Box::new(job)).await;
            });
        }
    }
}

impl Jobs {
    /// Serves until nobody can ask any more.
    pub(crate) fn serve(mut self, desk: &mut dyn Desk) {
        while let Some(job) = self.0.blocking_recv() {
            job(desk);
        }
    }
}
