//! Waiting for a task: sleeps on the executor and tries again on the request handler's thread.
//!
//! A wake-up is only a hint to try again. A call that is cancelled, or whose client disconnects, leaves the queue; a lease
//! that it was granted at the same moment is released.

use std::sync::Arc;
use std::time::{Duration, Instant};

use futures::future::{pending, select_all};
use rmcp::RoleServer;
use rmcp::model::{ProgressNotificationParam, ProgressToken};
use rmcp::service::RequestContext;
use rustix::fd::OwnedFd;
use tenure_core::ErrorCode;
use tenure_lock::BootTime;

use crate::call::Claim;
use crate::connection::{Connection, apply_effect, client_of, join};
use crate::request_handler::{Effect, Refusal, Reply, RequestHandler, RequestQueue, Step};
use crate::sys::Watched;

/// How often a waiting client gets a progress notification.
const PROGRESS: Duration = Duration::from_secs(5);

/// A claim that may have a ticket. Dropping it removes the ticket.
#[derive(Debug)]
struct QueuedClaim {
    number: u64,
    queue: RequestQueue,
    has_ticket: bool,
}

impl Drop for QueuedClaim {
    fn drop(&mut self) {
        if self.has_ticket {
            let number = self.number;
            self.queue.post(move |handler| {
                handler.cancel_claim(number, Duration::ZERO);
            });
        }
    }
}

impl Connection {
    /// `None` if the server is closing.
    pub(crate) async fn claim(
        &self,
        claim: Claim,
        context: &RequestContext<RoleServer>,
    ) -> Option<Result<Reply, Refusal>> {
        let Some(_waiting) = self.session.begin_wait() else {
            return Some(Err(Refusal::new(ErrorCode::General, "too many of your calls are waiting already")));
        };
        let begun = Instant::now();
        let deadline = begun + claim.wait;
        let mut queued =
            QueuedClaim { number: self.shared.number(), queue: self.shared.queue.clone(), has_ticket: false };
        let client = client_of(context);
        loop {
            let step = match self.try_once(&claim, &client, queued.number).await? {
                Ok(step) => step,
                Err(refusal) => return Some(Err(refusal)),
            };
            let (wake, nap, why) = match step {
                Step::Granted(reply) => {
                    queued.has_ticket = false;
                    if context.ct.is_cancelled() {
                        self.release_grant(&reply).await;
                    }
                    return Some(Ok(reply));
                }
                Step::Wait { wake, nap, why } => (wake, nap, why),
            };
            queued.has_ticket = true;
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return self.give_up(queued, claim.wait).await;
            }
            let over = Instant::now() + nap.min(left);
            let wake = WakeSources::new(wake);
            loop {
                report_progress(context, begun, claim.wait, &why).await;
                let left = over.saturating_duration_since(Instant::now());
                let woken = tokio::select! {
                    () = wake.readable() => true,
                    () = tokio::time::sleep(left.min(PROGRESS)) => false,
                    () = context.ct.cancelled() => return self.give_up(queued, begun.elapsed()).await,
                    () = self.shared.shutdown.cancelled() => return self.give_up(queued, begun.elapsed()).await,
                };
                if woken || Instant::now() >= over {
                    break;
                }
            }
        }
    }

    async fn try_once(&self, claim: &Claim, client: &str, number: u64) -> Option<Result<Step, Refusal>> {
        let (leases, session) = (Arc::clone(&self.shared.leases), Arc::clone(&self.session));
        let (claim, client) = (claim.clone(), client.to_owned());
        let request = move |handler: &mut dyn RequestHandler| {
            let _span = tracing::debug_span!("claim", ?claim, client).entered();
            join(handler, &session, &client, false)?;
            let asked = BootTime::now();
            let step = handler.claim(&session, &claim, number)?;
            if let Step::Granted(reply) = &step {
                apply_effect(&leases, &session, &reply.effect, asked);
            }
            Ok(step)
        };
        self.shared.queue.ask(request).await
    }

    async fn give_up(&self, mut queued: QueuedClaim, waited: Duration) -> Option<Result<Reply, Refusal>> {
        queued.has_ticket = false;
        let number = queued.number;
        self.shared.queue.ask(move |handler| Err(handler.cancel_claim(number, waited))).await
    }

    /// Releases the lease of a call that was cancelled at the moment of its grant.
    async fn release_grant(&self, reply: &Reply) {
        let Effect::Holds { task, lease, reacquired: false } = reply.effect.clone() else { return };
        let (leases, session) = (Arc::clone(&self.shared.leases), Arc::clone(&self.session));
        let request = move |handler: &mut dyn RequestHandler| {
            apply_effect(&leases, &session, &Effect::Ended(lease.fence), BootTime::now());
            handler.release_grant(&lease, &task);
        };
        self.shared.queue.ask(request).await;
    }
}

/// Descriptors, each of which can end the wait.
struct WakeSources(Vec<Watched>);

impl WakeSources {
    fn new(fds: Vec<OwnedFd>) -> Self {
        // A descriptor that cannot be polled is left out; then the timeout ends the wait.
        Self(fds.into_iter().filter_map(Watched::new).collect())
    }

    async fn readable(&self) {
        if self.0.is_empty() {
            return pending().await;
        }
        let ready = self.0.iter().map(|fd| Box::pin(fd.readable()));
        let _ = select_all(ready).await;
    }
}

async fn report_progress(context: &RequestContext<RoleServer>, begun: Instant, wait: Duration, why: &str) {
    let Some(token): Option<ProgressToken> = context.meta.get_progress_token() else { return };
    let progress = ProgressNotificationParam::new(token, begun.elapsed().as_secs_f64())
        .with_total(wait.as_secs_f64())
        .with_message(why);
    let _ = context.peer.notify_progress(progress).await;
}
