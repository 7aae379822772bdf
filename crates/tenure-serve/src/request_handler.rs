//! Executes requests one after the other, on the thread that owns the store.
//!
//! Guaranteed: the store is never used on the executor's thread; at most [`QUEUE`] requests are queued, and a caller
//! that would add another waits for room.

use std::fmt;
use std::time::Duration;

use rustix::fd::OwnedFd;
use serde_json::Value;
use tenure_core::ErrorCode;
use tenure_core::error::TaskName;
use tenure_core::id::Fence;
use tenure_core::lease::Lease;
use tokio::sync::{mpsc, oneshot};

use crate::call::{Call, Claim};
use crate::pages::Page;
use crate::session::Session;

/// How many requests may be queued.
const QUEUE: usize = 32;

/// Executes requests. The binary implements it with the same functions as its commands.
pub trait RequestHandler {
    /// Registers an agent for a client that calls itself `client` and returns its id.
    fn join(&mut self, client: &str) -> Result<String, Refusal>;
    fn answer(&mut self, session: &Session, call: &Call) -> Result<Reply, Refusal>;
    /// Tries once to claim a task. `number` identifies the claim from one try to the next, so that it keeps its ticket.
    fn claim(&mut self, session: &Session, claim: &Claim, number: u64) -> Result<Step, Refusal>;
    /// Removes the ticket of a claim that has waited for `waited`, and returns the error for its caller.
    fn cancel_claim(&mut self, number: u64, waited: Duration) -> Refusal;
    /// Releases a lease that was just granted to a call that has been cancelled.
    fn release_grant(&mut self, lease: &Lease, task: &TaskName);
    fn read(&mut self, session: &Session, page: &Page) -> Result<String, Refusal>;
    /// The client has disconnected; `held` are the leases that were renewed for it.
    fn end(&mut self, session: &Session, held: Vec<Lease>);
}

/// An answer: the object that programs read, and a short text for the model.
#[derive(Debug, Clone)]
pub struct Reply {
    pub data: Value,
    pub text: String,
    pub effect: Effect,
}

/// What a request changed about the leases of its session.
#[derive(Debug, Clone)]
pub enum Effect {
    Nothing,
    /// The session holds this lease from now on, or holds it for longer.
    Holds {
        task: TaskName,
        lease: Box<Lease>,
        reacquired: bool,
    },
    /// The session finished or released the lease with this fence.
    Ended(Fence),
}

/// An error as a client sees it.
#[derive(Debug, Clone)]
pub struct Refusal {
    pub code: ErrorCode,
    pub message: String,
    /// Boxed to keep `Result<_, Refusal>` small.
    pub details: Box<Value>,
    /// Further lines of the text, below the message.
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

/// The result of one try to claim a task.
#[derive(Debug)]
pub enum Step {
    Granted(Reply),
    /// The claim is queued. Try again when one of these descriptors becomes readable, or after `nap`.
    Wait {
        wake: Vec<OwnedFd>,
        nap: Duration,
        /// What the claim waits for, as a sentence.
        why: String,
    },
}

type Request = Box<dyn FnOnce(&mut dyn RequestHandler) + Send>;

/// The executor's end of the queue.
#[derive(Clone)]
pub(crate) struct RequestQueue(mpsc::Sender<Request>);

impl fmt::Debug for RequestQueue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RequestQueue").finish_non_exhaustive()
    }
}

/// The handler's end of the queue.
pub(crate) struct RequestReceiver(mpsc::Receiver<Request>);

pub(crate) fn queue() -> (RequestQueue, RequestReceiver) {
    let (sender, receiver) = mpsc::channel(QUEUE);
    (RequestQueue(sender), RequestReceiver(receiver))
}

impl RequestQueue {
    /// Runs `request` on the handler's thread and waits for its result. `None` if the server is closing.
    ///
    /// The future may be dropped while it waits, so work that must always happen belongs in `request`.
    pub(crate) async fn ask<T: Send + 'static>(
        &self,
        request: impl FnOnce(&mut dyn RequestHandler) -> T + Send + 'static,
    ) -> Option<T> {
        let (answer, answered) = oneshot::channel();
        let request: Request = Box::new(move |handler| {
            let _ = answer.send(request(handler));
        });
        self.0.send(request).await.ok()?;
        answered.await.ok()
    }

    /// Runs `request` on the handler's thread, without waiting for it.
    pub(crate) fn post(&self, request: impl FnOnce(&mut dyn RequestHandler) + Send + 'static) {
        let sender = self.0.clone();
        if let Ok(runtime) = tokio::runtime::Handle::try_current() {
            runtime.spawn(async move {
                let _ = sender.send(Box::new(request)).await;
            });
        }
    }
}

impl RequestReceiver {
    /// Runs requests until every sender is gone.
    pub(crate) fn serve(mut self, handler: &mut dyn RequestHandler) {
        while let Some(request) = self.0.blocking_recv() {
            request(handler);
        }
    }
}
